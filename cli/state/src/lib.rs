//! What the programs that keep koel's filters in files agree on, beside the format of the files.
//!
//! * [`claim`]: which process may use a file, of those that want to.
//! * [`window`]: how time passes in a filter that forgets, so that another program knows when its items
//!   expire.
//! * [`files`] has helpers for paths.
//!
//! The command, the module for Redis and Valkey, and the wheel for Python use this, so a file of one is a
//! file of all.

#[cfg(not(unix))]
compile_error!("koel-state needs Unix: it uses Unix file locks");

pub mod claim;
pub mod files;
pub mod window;
