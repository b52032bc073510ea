//! The promises of a single filter.

#[path = "../common/mod.rs"]
mod common;

#[cfg(feature = "rayon")]
mod batches;
mod capacity;
mod determinism;
mod forgetting;
mod growth;
mod hostile;
mod hot;
mod panicking_hash;
mod rates;
mod shrinking;
mod small;
mod union;
