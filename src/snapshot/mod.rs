//! Filters in files: saving one while other threads use it, and loading it again.
//!
//! * [`format`](mod@format) is the specification of files and pieces, and has the checksums and the end.
//! * [`header`] encodes and parses the header of a part: it describes the filter.
//! * [`index`] checks the words of each shard, and reads the index, which says what they have to be.
//! * [`write`](mod@write) writes a part of a filter to a file, or as a piece in memory.
//! * [`read`] makes a filter from its parts, and copies one in memory.
//! * [`load`] makes a filter of a file, on all cores, or reads only the description of the filter.
//! * [`mapped`] answers from a file that is not loaded, and that all processes share.
//! * [`journals`] finds the changes that a file lacks, beside it.
//! * [`error`] has the error of all of these.

pub(crate) mod error;
pub(crate) mod format;
pub(crate) mod header;
pub(crate) mod index;
pub(crate) mod journals;
pub(crate) mod load;
pub(crate) mod mapped;
pub(crate) mod read;
pub(crate) mod write;

pub use error::{SnapshotError, SnapshotErrorKind};
pub use journals::UnreadChanges;
pub use load::SnapshotInfo;
pub use mapped::SnapshotFile;
pub use read::PieceLoader;
pub use write::{Piece, SaveReport};
