//! The error of saving and loading. Its text is written where it happens; errors that several places report are here.

use crate::disk::error::text_of;
use crate::disk::{DiskError, DiskErrorKind};
use crate::error::{Error, NoMemory};
use std::fmt;
use std::io::{self, ErrorKind};

/// The error returned when a filter cannot be saved or loaded.
///
/// The text names the file, if there is one, and says what is wrong, where, and what to do.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
///
/// let picture = &b"GIF89a\x01\x00"[..];
/// let error = ConcurrentCuckooFilter::<StableHash>::read_from(picture).unwrap_err();
/// assert_eq!(error.kind(), SnapshotErrorKind::NotASnapshot);
///
/// let error = ConcurrentCuckooFilter::<StableHash>::load("/no/such/file").unwrap_err();
/// assert_eq!(error.kind(), SnapshotErrorKind::NotFound);
/// assert!(error.to_string().starts_with("/no/such/file: cannot open it: "));
/// ```
pub type SnapshotError = Error<SnapshotErrorKind>;

/// The kinds of [`SnapshotError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SnapshotErrorKind {
    /// The file to load does not exist; perhaps its folder does not either.
    NotFound,
    /// The path leads to something other than a regular file, so a save cannot replace it, and nothing can be looked
    /// up there.
    NotAFile,
    /// The system refused to read or write, and [`io_error`](SnapshotError::io_error) says why. Or another program
    /// removed the unfinished file, or put something else in its place.
    Io,
    /// A save has put the new file in the place of the old one, but could not sync the folder: the old file may come
    /// back if the system crashes.
    NotSynced,
    /// Another save to the same file is in progress.
    Busy,
    /// A journal beside the file has changes that the file lacks: the `DurableFilter` that wrote it is open, or was not
    /// closed. A load would leave them out, and a save would make them useless.
    HasJournal,
    /// The file does not begin like one that koel has saved.
    NotASnapshot,
    /// The file has a version of the format that this version of koel does not know.
    UnsupportedVersion,
    /// The filter was saved with another hasher, or the hasher no longer gives the same hashes.
    WrongHasher,
    /// The file ends too soon, or continues after its end; or it is only a
    /// [piece](crate::ConcurrentCuckooFilter::piece_at) of a filter.
    Incomplete,
    /// The contents of the file are not those that were written.
    Damaged,
    /// The memory for the filter could not be allocated.
    OutOfMemory,
    /// The filter grew to thousands of times its size while it was being saved.
    Outgrown,
    /// No [piece](crate::ConcurrentCuckooFilter::piece_at) of the filter begins at this cursor.
    NoSuchPiece,
    /// The piece is not the one that comes next: pieces are missing, or it was pushed already, or it is of a filter
    /// that was built otherwise.
    OutOfOrder,
}

impl SnapshotError {
    /// The error of the system, with a text that includes it.
    pub(crate) fn of_system(text: String, cause: io::Error) -> Self {
        Self::new(SnapshotErrorKind::Io, text).because_of(cause)
    }

    pub(crate) fn io(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::of_system(text_of(doing, &error), error)
    }

    pub(crate) fn opening(error: io::Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::NotFound => SnapshotErrorKind::NotFound,
            _ => SnapshotErrorKind::Io,
        };
        Self::io("cannot open it")(error).with_kind(kind)
    }

    /// The error of a lookup in something that is read from front to back, or not at all.
    pub(crate) fn no_file_to_look_up() -> Self {
        let text = "this is not a regular file, so nothing can be looked up there: name a regular file, or use \
                    `load`, which reads pipes, too";
        Self::new(SnapshotErrorKind::NotAFile, text)
    }

    pub(crate) fn not_a_snapshot() -> Self {
        let text = "this is not a filter saved by koel: it does not begin like one";
        Self::new(SnapshotErrorKind::NotASnapshot, text)
    }

    /// The error of a file or piece that ends after `at` bytes.
    pub(crate) fn cut_off(at: u64) -> Self {
        let text = format!("it ends too soon, after {at} bytes: it was cut off; load another copy");
        Self::new(SnapshotErrorKind::Incomplete, text).at_byte(at)
    }

    pub(crate) fn wrong_length(bytes: u64, wanted: u64) -> Self {
        let text = format!(
            "it has {bytes} bytes, but should have {wanted}: it was cut off, or something was \
             appended; load another copy"
        );
        Self::new(SnapshotErrorKind::Incomplete, text).at_byte(bytes.min(wanted))
    }

    /// The error of contents that were not written so. They begin at byte `at`.
    pub(crate) fn damaged(at: u64, what: impl fmt::Display) -> Self {
        let text = format!("it is damaged at byte {at}: {what}; load another copy");
        Self::new(SnapshotErrorKind::Damaged, text).at_byte(at)
    }

    pub(crate) fn no_end(at: u64) -> Self {
        let text = format!(
            "its end should begin at byte {at}, but something else is there: it was cut off, or \
             something was appended; load another copy"
        );
        Self::new(SnapshotErrorKind::Incomplete, text).at_byte(at)
    }

    pub(crate) fn only_a_piece() -> Self {
        let text = "this is a piece of a filter, not all of it: push all pieces to a `PieceLoader`";
        Self::new(SnapshotErrorKind::Incomplete, text)
    }

    /// The error of a filter whose shards have depths that differ by more than the format allows.
    pub(crate) fn outgrown() -> Self {
        let text = "the filter grew to thousands of times its size while it was being saved: save it \
                    again";
        Self::new(SnapshotErrorKind::Outgrown, text)
    }

    /// Returns `true` if a save has put the new file in the place of the old one. The new file is complete then. The
    /// error only means that the old one may come back if the system crashes.
    pub fn is_in_place(&self) -> bool {
        self.kind() == SnapshotErrorKind::NotSynced
    }
}

/// For functions that return the errors of the system. The [`SnapshotError`] is the [inner error](io::Error::get_ref),
/// with its text, and the kind is that of the [system's error](SnapshotError::io_error), if there is one.
///
/// ```
/// use koel::{SnapshotError, SnapshotErrorKind, SnapshotFile};
/// use std::io;
///
/// fn is_in(path: &str, item: &str) -> io::Result<bool> {
///     Ok(SnapshotFile::open(path)?.contains(item)?)
/// }
/// let error = is_in("/no/such/file", "an item").unwrap_err();
/// assert_eq!(error.kind(), io::ErrorKind::NotFound);
/// let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<SnapshotError>());
/// assert_eq!(inner.map(|inner| inner.kind()), Some(SnapshotErrorKind::NotFound));
/// ```
impl From<SnapshotError> for io::Error {
    fn from(error: SnapshotError) -> Self {
        let kind = match error.kind() {
            SnapshotErrorKind::NotFound => ErrorKind::NotFound,
            SnapshotErrorKind::NotAFile
            | SnapshotErrorKind::NoSuchPiece
            | SnapshotErrorKind::OutOfOrder => ErrorKind::InvalidInput,
            SnapshotErrorKind::Busy => ErrorKind::ResourceBusy,
            SnapshotErrorKind::NotASnapshot
            | SnapshotErrorKind::WrongHasher
            | SnapshotErrorKind::Incomplete
            | SnapshotErrorKind::Damaged => ErrorKind::InvalidData,
            SnapshotErrorKind::UnsupportedVersion => ErrorKind::Unsupported,
            SnapshotErrorKind::OutOfMemory => ErrorKind::OutOfMemory,
            SnapshotErrorKind::Io
            | SnapshotErrorKind::NotSynced
            | SnapshotErrorKind::HasJournal
            | SnapshotErrorKind::Outgrown => ErrorKind::Other,
        };
        let kind = error.io_error().map_or(kind, io::Error::kind);
        io::Error::new(kind, error)
    }
}

impl From<DiskError> for SnapshotError {
    fn from(error: DiskError) -> Self {
        let kind = match error.kind() {
            DiskErrorKind::Io => SnapshotErrorKind::Io,
            DiskErrorKind::NotAFile => SnapshotErrorKind::NotAFile,
            DiskErrorKind::Busy => SnapshotErrorKind::Busy,
            DiskErrorKind::NotSynced => SnapshotErrorKind::NotSynced,
        };
        error.with_kind(kind)
    }
}

impl From<NoMemory> for SnapshotError {
    fn from(NoMemory(bytes): NoMemory) -> Self {
        let text = format!(
            "{bytes} bytes of memory could not be allocated: make more memory available and try again"
        );
        SnapshotError::new(SnapshotErrorKind::OutOfMemory, text)
    }
}
