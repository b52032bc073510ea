//! The promises of a filter to threads that use it at the same time.
//!
//! The tests run one after the other in a program of their own: the threads of a test rarely run
//! simultaneously if they share the processors with other tests.

#[path = "../common/mod.rs"]
mod common;

mod soak;
mod stress;
mod ticks;
mod turns;
