//! The promises of a filter with a journal.
#![cfg(all(unix, feature = "durable"))]

#[path = "../common/mod.rs"]
mod common;

#[path = "../common/process.rs"]
mod process;

mod damage;
mod kills;
mod opening;
