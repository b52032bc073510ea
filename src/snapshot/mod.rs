//! Filters in files: saving one while other threads use it, and loading it again.
//!
//! * [`format`](mod@format) is the specification of the file, and seals what is written.
//! * [`header`] encodes and parses the header.
//! * [`blocks`] validates each block, and checks that all of them together make one filter.
//! * [`coverage`] is the part of a filter that blocks cover.
//! * [`write`](mod@write) turns a filter into a stream of words.
//! * [`read`] turns such a stream back into a filter.
//! * [`time`] tells when a block was copied, in a filter that forgets.
//! * [`copy`] copies a filter in memory.
//! * [`file`](mod@file) has what needs a file.
//! * [`pieces`] has what is for a filter in pieces.
//! * `allocate` gets memory for what a file claims to hold.
//! * [`error`] has the errors of all of these, and their texts.
//!
//! What a room and a file have in common is in [`room::parts`](crate::room::parts).

mod allocate;
pub mod blocks;
pub mod copy;
pub mod coverage;
pub mod error;
pub mod file;
pub mod format;
pub mod header;
pub mod list;
pub mod pieces;
pub mod read;
pub mod time;
pub mod write;

pub use error::{SnapshotError, SnapshotErrorKind};
pub use file::info::SnapshotInfo;
pub use file::lookup::SnapshotFile;
pub use pieces::dump::Piece;
pub use write::SaveReport;
