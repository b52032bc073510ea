//! koel's own stripes, shards and kicks, on loom's atomics, in every interleaving.
//!
//! Each model states one rule of the crate. What happens without the rule is in `twins.rs`, which
//! breaks it in a copy of the sources and expects the model named there to fail.
//!
//! Threads call what comes after the unlocked looks of the public operations (`walk` with a path
//! found before, `remove_locked`, ...) wherever the model is about writers: an ordinary load right
//! before a store of the same atomic hides from loom what other threads read before it.

mod grove;
mod toy;

mod batches;
mod exclusion;
mod growth;
mod lookups;
mod snapshots;
mod winners;
