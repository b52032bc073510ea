//! Filters in files: saving one while other threads use it, and loading it again.
//!
//! * [`format`](mod@format) is the specification of files and pieces, which are parts of a filter, and seals what is
//!   written.
//! * [`header`] encodes and parses the header of a part, and [`list`] the only block of a small filter.
//! * [`blocks`] validates each block, and checks that the blocks of a part follow one another.
//! * [`coverage`] is what blocks cover of a filter.
//! * [`write`](mod@write) writes a part of a filter.
//! * [`read`] makes a filter of its parts, which come from a [`source`], and [`gather`] holds what has come of it.
//! * [`time`] tells when a block was copied, in a filter that forgets.
//! * [`origin`] tells which filter a part is of.
//! * [`piece`] is a part in memory.
//! * [`copy`] copies a filter in memory.
//! * [`file`](mod@file) has what needs a file.
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
pub mod gather;
pub mod header;
pub mod list;
pub mod origin;
pub mod piece;
pub mod read;
pub mod source;
pub mod time;
pub mod write;

pub use error::{SnapshotError, SnapshotErrorKind};
pub use file::info::SnapshotInfo;
pub use file::lookup::SnapshotFile;
pub use piece::Piece;
pub use write::SaveReport;
