//! Filters in files: saving one while other threads use it, and loading it again.
//!
//! * [`format`](mod@format) is the specification of the file, and seals what is written.
//! * [`header`] encodes and parses the header.
//! * [`info`] tells what a file holds, without loading it.
//! * [`blocks`] validates each block, and checks that all of them together make one filter.
//! * [`write`](mod@write) turns a filter into a stream of words.
//! * [`read`] turns such a stream back into a filter.
//! * [`load`] does the same for a file, on all cores.
//! * [`copy`] copies a filter in memory.
//! * [`replace`] puts a new file in the place of an old one, atomically.
//! * `allocate` gets memory for what a file claims to hold.
//! * [`error`] has the errors of all of these, and their texts.
//!
//! What a room and a file have in common is in [`room::parts`](crate::room::parts).

mod allocate;
pub mod blocks;
pub mod copy;
pub mod error;
pub mod format;
pub mod header;
pub mod info;
pub mod load;
pub mod read;
pub mod replace;
pub mod write;

pub use error::{SnapshotError, SnapshotErrorKind};
pub use info::SnapshotInfo;
pub use write::SaveReport;
