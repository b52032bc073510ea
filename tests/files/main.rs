//! Saving and loading filters.

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
mod damage;
mod damaged_files;
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
