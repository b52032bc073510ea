//! Saving and loading filters, and those with a journal.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/file.rs"]
mod file;
#[path = "../common/kind.rs"]
mod kind;
#[path = "../common/process.rs"]
mod process;

mod agreement;
mod crashes;
mod damaged_files;
#[cfg(all(unix, feature = "durable"))]
#[path = "../durable/mod.rs"]
mod durable;
mod forgetting;
mod format;
mod golden;
mod lookups;
mod pieces;
#[cfg(unix)]
mod replacing;
mod small;
mod snapshots;
mod streams;
