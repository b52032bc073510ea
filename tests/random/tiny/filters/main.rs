//! The promises of a filter hold while it is split all the time.

// Shuttle's atomics work in its own tests only.
#![cfg(not(shuttle))]

extern crate koel_small as koel;

#[path = "../../../common/mod.rs"]
mod common;
#[cfg(feature = "rayon")]
#[path = "../../model.rs"]
mod multiset;
#[path = "../small/mod.rs"]
mod small;

mod attacks;
#[cfg(feature = "rayon")]
mod model;
mod removals;
