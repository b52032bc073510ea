//! Models of koel's own stripes, shards and kicks, run on loom's atomics in every interleaving.
//!
//! Each model states one rule of the crate, or several. The lists in `loom-tests/mutants` name the mistakes in the
//! sources on which it has to fail.
//!
//! The public operations begin with unlocked reads. In models about writers, threads skip these and
//! call the part that follows (`execute` with a path found before, `remove_locked`, ...). The reason
//! is that an ordinary load right before a store of the same atomic hides from loom what other
//! threads read before it.

mod mutants;

mod grove;
mod toy;

mod batches;
mod exclusion;
mod forgetting;
mod joins;
mod journals;
mod lookups;
mod snapshots;
mod splits;
mod union;
mod void;
mod wide;
mod winners;
