//! Filters in files: saving one while its threads go on, and loading it.
//!
//! `format` says what is in a file, `blocks` what has to be right about it, `write`, `read` and `load` turn a filter into that and back, and `replace`
//! puts a new file in the place of an old one. `parts` is what a room has to do with it.

mod allocate;
pub mod blocks;
pub mod error;
#[cfg(doc)]
pub mod format;
#[cfg(not(doc))]
mod format;
pub mod load;
pub mod read;
pub mod replace;
pub mod write;

pub use error::{SnapshotError, SnapshotErrorKind};
pub use write::SaveReport;
