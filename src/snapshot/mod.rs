//! Filters in files: saving one while other threads use it, and loading it again.
//!
//! A file, or a piece of a filter, is a *part*: [`write`](mod@write) writes it, and [`read`] makes a filter from its
//! parts. Of a whole file, [`load`] makes a filter on all cores, and [`mapped`] answers lookups without a load.

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
