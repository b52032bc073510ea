//! Filters in files: saving one while other threads use it, and loading it again.
//!
//! * [`part`] has the format of files and pieces: a header, blocks and an end.
//! * [`write`](mod@write) writes a part of a filter, and a [`piece`] is one in memory.
//! * [`read`] makes a filter from its parts, which come from a [`source`], and [`gather`] holds the shards read so far.
//! * [`copy`] copies a filter in memory.
//! * [`file`](mod@file) has the operations that need a file.
//! * [`error`] has the error of all of these.
//!
//! The types that backends and files share are in [`backend::exchange`](crate::backend::exchange).

pub mod copy;
pub mod error;
pub mod file;
pub mod gather;
pub mod part;
pub mod piece;
pub mod read;
pub mod source;
pub mod write;

pub use error::{SnapshotError, SnapshotErrorKind};
pub use file::info::SnapshotInfo;
pub use file::lookup::SnapshotFile;
pub use piece::Piece;
pub use write::SaveReport;
