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
mod limit;
mod panicking_hash;
mod rates;
mod shrinking;
mod union;
