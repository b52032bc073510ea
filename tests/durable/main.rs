//! The promises of a filter with a journal.
//!
//! They are a program of their own: some tests fork, and a child has the locks of all filters that are open.
#![cfg(all(unix, feature = "durable"))]

#[path = "../common/mod.rs"]
mod common;

#[path = "../common/process.rs"]
mod process;

mod damage;
mod limits;
mod opening;
