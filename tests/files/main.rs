//! What is saved, and loaded again. (What the system may refuse a save is in `faults`, and the memory that
//! it takes to load in `load_memory`.)

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/file.rs"]
mod file;
#[path = "../common/kind.rs"]
mod kind;
#[path = "../common/process.rs"]
mod process;

mod crashes;
mod damaged_files;
mod format;
mod golden;
#[cfg(unix)]
mod replacing;
mod snapshots;
mod streams;
