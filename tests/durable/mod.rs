//! The promises of a filter with a journal.
#![cfg(all(unix, feature = "durable"))]

#[path = "../common/mod.rs"]
mod common;

#[path = "../common/history.rs"]
mod history;

#[path = "../common/process.rs"]
mod process;

mod damage;
mod kills;
mod limits;
mod opening;
