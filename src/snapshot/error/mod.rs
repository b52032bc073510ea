//! The errors of saving and loading. Their texts are in `text`.

mod text;

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

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
pub struct SnapshotError {
    path: Option<PathBuf>,
    reason: Box<Reason>,
}

/// The kinds of [`SnapshotError`].
///
/// ```
/// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
///
/// let filter = ConcurrentCuckooFilter::builder()
///     .capacity(9)
///     .hasher(StableHash::with_seed(1))
///     .build()?;
/// let mut file = Vec::new();
/// filter.write_to(&mut file)?;
/// file.pop();
/// let error = ConcurrentCuckooFilter::<StableHash>::read_from(&file[..]).unwrap_err();
/// assert_eq!(error.kind(), SnapshotErrorKind::Incomplete);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SnapshotErrorKind {
    /// The file to load does not exist; perhaps its folder does not either.
    NotFound,
    /// The path leads to something other than a regular file, so a save cannot replace it.
    NotAFile,
    /// The system refused to read or write, and [`io_error`](SnapshotError::io_error) says why. Or another program
    /// removed the unfinished file, or put something else in its place.
    Io,
    /// Another save to the same file is in progress.
    Busy,
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
    /// The piece is not the one that comes next: pieces are missing, or it was pushed already, or it
    /// is from an earlier dump.
    OutOfOrder,
    /// The piece is of another filter than those that were pushed before it.
    OtherFilter,
}

#[doc(hidden)]
#[derive(Debug)]
pub enum Reason {
    Io {
        doing: &'static str,
        error: io::Error,
    },
    /// An operation on the unfinished file failed.
    Unfinished {
        doing: &'static str,
        unfinished: PathBuf,
        error: io::Error,
    },
    /// The unfinished file is no longer where it was created.
    Removed {
        unfinished: PathBuf,
    },
    NotFound {
        error: io::Error,
    },
    /// The new file is in place, but may not survive a crash of the system.
    NotSynced {
        error: io::Error,
    },
    Busy {
        unfinished: PathBuf,
    },
    NotAFile,
    /// Something that is not an unfinished file has its name.
    InTheWay {
        unfinished: PathBuf,
    },
    NotASnapshot,
    UnsupportedVersion {
        version: u64,
    },
    WrongHasher {
        found: String,
        wanted: &'static str,
    },
    OtherHashes {
        name: &'static str,
    },
    /// The data ends at this byte.
    CutOff {
        at: u64,
    },
    /// The end of the file should begin at this byte, but something else does.
    NoEnd {
        at: u64,
    },
    WrongLength {
        bytes: u64,
        wanted: u64,
    },
    Damaged {
        at: u64,
        what: Cow<'static, str>,
    },
    OutOfMemory {
        bytes: usize,
    },
    /// The filter grew so much while it was being written that the depths of its blocks differ by more than the format
    /// allows.
    Outgrown,
    /// No piece of the filter begins at this cursor.
    NoSuchPiece {
        cursor: u64,
    },
    /// The piece begins at `start`, but the next piece has to begin at `wanted`, which is `None` if all pieces have
    /// been pushed.
    Misplaced {
        start: u64,
        wanted: Option<u64>,
    },
    /// The piece was made before the last piece that was pushed.
    EarlierDump,
    OtherFilter,
    /// A piece was read where a whole filter was expected.
    OnlyAPiece,
    /// The pieces from this cursor on have not been pushed.
    PiecesMissing {
        next: u64,
    },
}

impl Reason {
    pub fn damaged(at: u64, what: impl Into<Cow<'static, str>>) -> Self {
        Reason::Damaged { at, what: what.into() }
    }

    pub fn io(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Reason::Io { doing, error }
    }

    /// The reason why an operation on an unfinished file failed.
    pub fn unfinished(doing: &'static str, path: &Path, error: io::Error) -> Self {
        Reason::Unfinished { doing, unfinished: path.to_path_buf(), error }
    }

    /// The reason why a file could not be opened for reading.
    pub fn opening(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Reason::NotFound { error },
            _ => Reason::Io { doing: "cannot open it", error },
        }
    }

    pub fn of(self, path: Option<&Path>) -> SnapshotError {
        SnapshotError { path: path.map(Path::to_path_buf), reason: Box::new(self) }
    }
}

/// For programs that report these errors in words of their own.
impl From<Reason> for io::Error {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Io { error, .. }
            | Reason::Unfinished { error, .. }
            | Reason::NotFound { error }
            | Reason::NotSynced { error } => error,
            Reason::NotAFile => {
                io::Error::new(io::ErrorKind::InvalidFilename, "this is not a regular file")
            }
            other => io::Error::other(other.to_string()),
        }
    }
}

impl SnapshotError {
    /// Returns the kind of this error.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
    ///
    /// let filter = ConcurrentCuckooFilter::builder()
    ///     .capacity(9)
    ///     .hasher(StableHash::with_seed(1))
    ///     .build()?;
    /// let mut file = Vec::new();
    /// filter.write_to(&mut file)?;
    /// let error = ConcurrentCuckooFilter::<StableHash>::read_from(&file[..200]).unwrap_err();
    /// assert_eq!(error.kind(), SnapshotErrorKind::Incomplete);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn kind(&self) -> SnapshotErrorKind {
        match *self.reason {
            Reason::NotFound { .. } => SnapshotErrorKind::NotFound,
            Reason::NotAFile => SnapshotErrorKind::NotAFile,
            Reason::Io { .. }
            | Reason::NotSynced { .. }
            | Reason::Unfinished { .. }
            | Reason::Removed { .. }
            | Reason::InTheWay { .. } => SnapshotErrorKind::Io,
            Reason::Busy { .. } => SnapshotErrorKind::Busy,
            Reason::NotASnapshot => SnapshotErrorKind::NotASnapshot,
            Reason::UnsupportedVersion { .. } => SnapshotErrorKind::UnsupportedVersion,
            Reason::WrongHasher { .. } | Reason::OtherHashes { .. } => {
                SnapshotErrorKind::WrongHasher
            }
            Reason::CutOff { .. }
            | Reason::NoEnd { .. }
            | Reason::WrongLength { .. }
            | Reason::OnlyAPiece
            | Reason::PiecesMissing { .. } => SnapshotErrorKind::Incomplete,
            Reason::Damaged { .. } => SnapshotErrorKind::Damaged,
            Reason::OutOfMemory { .. } => SnapshotErrorKind::OutOfMemory,
            Reason::Outgrown => SnapshotErrorKind::Outgrown,
            Reason::NoSuchPiece { .. } => SnapshotErrorKind::NoSuchPiece,
            Reason::Misplaced { .. } | Reason::EarlierDump => SnapshotErrorKind::OutOfOrder,
            Reason::OtherFilter => SnapshotErrorKind::OtherFilter,
        }
    }

    /// Returns the path of the file, as it was given to
    /// [`save`](crate::ConcurrentCuckooFilter::save) or
    /// [`load`](crate::ConcurrentCuckooFilter::load).
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let error = ConcurrentCuckooFilter::<StableHash>::load("/no/such/file").unwrap_err();
    /// assert_eq!(error.path(), Some("/no/such/file".as_ref()));
    /// ```
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the byte of the file, or of the piece, at which something is wrong.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let filter = ConcurrentCuckooFilter::builder()
    ///     .capacity(9)
    ///     .hasher(StableHash::with_seed(1))
    ///     .build()?;
    /// let mut file = Vec::new();
    /// filter.write_to(&mut file)?;
    /// file[250] ^= 1;
    /// let error = ConcurrentCuckooFilter::<StableHash>::read_from(&file[..]).unwrap_err();
    /// assert_eq!(error.offset(), Some(200)); // the block that begins there
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn offset(&self) -> Option<u64> {
        match *self.reason {
            Reason::CutOff { at } | Reason::NoEnd { at } | Reason::Damaged { at, .. } => Some(at),
            Reason::WrongLength { bytes, wanted } => Some(bytes.min(wanted)),
            _ => None,
        }
    }

    /// Returns the error of the system, if the system reported one.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    /// use std::io;
    ///
    /// let error = ConcurrentCuckooFilter::<StableHash>::load("/").unwrap_err();
    /// assert_eq!(error.io_error().map(io::Error::kind), Some(io::ErrorKind::IsADirectory));
    /// assert!(std::error::Error::source(&error).is_some());
    /// ```
    pub fn io_error(&self) -> Option<&io::Error> {
        match &*self.reason {
            Reason::Io { error, .. }
            | Reason::Unfinished { error, .. }
            | Reason::NotFound { error }
            | Reason::NotSynced { error } => Some(error),
            _ => None,
        }
    }

    /// Returns `true` if a save has put the new file in the place of the old one.
    ///
    /// The new file is complete then. The error only means that the old one may come back if the system crashes.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let filter = ConcurrentCuckooFilter::builder()
    ///     .capacity(9)
    ///     .hasher(StableHash::with_seed(1))
    ///     .build()?;
    /// let error = filter.save("/no/such/folder/seen.koel").unwrap_err();
    /// assert!(!error.is_in_place());
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn is_in_place(&self) -> bool {
        matches!(*self.reason, Reason::NotSynced { .. })
    }
}

impl fmt::Debug for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A `main` that returns this error prints it in this form, so the form includes the advice.
        f.debug_tuple("SnapshotError").field(&format_args!("{self}")).finish()
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            let no_path = if path.as_os_str().is_empty() { "\"\"" } else { "" };
            write!(f, "{}{no_path}: ", path.display())?;
        }
        fmt::Display::fmt(&self.reason, f)
    }
}

impl Error for SnapshotError {
    /// Returns the system's error, if there is one.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.io_error().map(|error| error as _)
    }
}
