//! The promises of a filter hold while it is split all the time.

extern crate koel_tiny as koel;

#[path = "../../../tests/common/mod.rs"]
mod common;
#[path = "../small/mod.rs"]
mod small;

mod attacks;
#[cfg(feature = "rayon")]
mod model;
mod removals;
