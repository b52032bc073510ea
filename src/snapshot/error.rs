//! The errors of saving and loading, and their texts.
//!
//! A text says what happened, and then what to do.

use crate::stable_hash::{PersistentHasher, StableHash};
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a filter could not be saved or loaded.
///
/// Its text names the file, if there is one, and says what is wrong, where, and what to do.
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
    /// The system refused to read or write, and [`io_error`](SnapshotError::io_error) says why. Or
    /// something else removed the unfinished file, or is in its place.
    Io,
    /// Another save to the same file is in progress.
    Busy,
    /// The file does not begin like one that koel has saved.
    NotASnapshot,
    /// The file has a version of the format that this version of koel does not know.
    UnsupportedVersion,
    /// The file holds a growing filter and a fixed one was requested, or the other way round.
    WrongKind,
    /// The filter was saved with another hasher, or the hasher no longer gives the same hashes.
    WrongHasher,
    /// The file ends too soon, or continues after its end.
    Incomplete,
    /// The contents of the file are not as they were written.
    Damaged,
    /// The memory for the filter could not be allocated.
    OutOfMemory,
    /// The filter grew to thousands of times its size while it was being saved.
    Outgrown,
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
    WrongKind {
        /// Whether the file holds a growing filter.
        grows: bool,
    },
    WrongHasher {
        found: String,
        wanted: &'static str,
    },
    OtherHashes {
        name: &'static str,
    },
    /// The data ends at this byte, or in the piece that begins there.
    CutOff {
        at: u64,
    },
    /// Something else is where the end of the file should begin.
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
    /// The filter grew so much while it was being written that the depths of its blocks differ by
    /// more than a file may have.
    Outgrown,
}

impl Reason {
    pub fn damaged(at: u64, what: impl Into<Cow<'static, str>>) -> Self {
        Reason::Damaged { at, what: what.into() }
    }

    pub fn io(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Reason::Io { doing, error }
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

impl SnapshotError {
    /// Returns the kind of this error.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, GrowingCuckooFilter, SnapshotErrorKind, StableHash};
    ///
    /// let filter = ConcurrentCuckooFilter::builder()
    ///     .capacity(9)
    ///     .hasher(StableHash::with_seed(1))
    ///     .build()?;
    /// let mut file = Vec::new();
    /// filter.write_to(&mut file)?;
    /// let error = GrowingCuckooFilter::<StableHash>::read_from(&file[..]).unwrap_err();
    /// assert_eq!(error.kind(), SnapshotErrorKind::WrongKind);
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
            Reason::WrongKind { .. } => SnapshotErrorKind::WrongKind,
            Reason::WrongHasher { .. } | Reason::OtherHashes { .. } => {
                SnapshotErrorKind::WrongHasher
            }
            Reason::CutOff { .. } | Reason::NoEnd { .. } | Reason::WrongLength { .. } => {
                SnapshotErrorKind::Incomplete
            }
            Reason::Damaged { .. } => SnapshotErrorKind::Damaged,
            Reason::OutOfMemory { .. } => SnapshotErrorKind::OutOfMemory,
            Reason::Outgrown => SnapshotErrorKind::Outgrown,
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

    /// Returns the byte of the file at which something is wrong.
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
    /// assert_eq!(error.offset(), Some(192)); // the block that begins there
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
    /// The new file is complete then. The error only says that the old one may come back if the
    /// system crashes.
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
        // A `main` that returns the error prints it in this form, which therefore has the advice.
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

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Io { doing, error } if error.kind() == io::ErrorKind::StorageFull => write!(
                f,
                "{doing}: {error}: there has to be space for the old and the new file at the same \
                 time; free some and save again (the old file is unchanged)"
            ),
            Reason::Io { doing, error } => write!(f, "{doing}: {error}"),
            Reason::Unfinished { doing, unfinished, error } => {
                let unfinished = unfinished.display();
                write!(f, "{doing} {unfinished}, where the new file is written first: {error}")
            }
            Reason::Removed { unfinished } => write!(
                f,
                "{} was removed while the new file was being written there: the old file is \
                 still in place; save again",
                unfinished.display()
            ),
            Reason::NotFound { error } => write!(f, "cannot open it: {error}"),
            Reason::NotSynced { error } => write!(
                f,
                "the new file is in place and complete, but its folder could not be synced \
                 ({error}): if the system crashes soon, the old file may come back; save again"
            ),
            Reason::Busy { unfinished } => write!(
                f,
                "another save to it is in progress and holds the lock of {}: wait until it has \
                 finished, or save to another file",
                unfinished.display()
            ),
            Reason::NotAFile => f.write_str(
                "this is not a regular file, so a save cannot replace it: name a regular file, or \
                 use `write_to` to write to something else",
            ),
            Reason::InTheWay { unfinished } => write!(
                f,
                "{} is in the way, where the new file is written before it replaces the old one: \
                 remove it",
                unfinished.display()
            ),
            Reason::NotASnapshot => {
                f.write_str("this is not a filter saved by koel: it does not begin like one")
            }
            Reason::UnsupportedVersion { version } => {
                write!(
                    f,
                    "it has version {version} of the format, and this version of koel reads only \
                     1: "
                )?;
                match version.swap_bytes() {
                    1 => f.write_str(
                        "its bytes are in the opposite order; restore it as it was saved",
                    ),
                    _ => f.write_str(
                        "load it with the version of koel that saved it, or a later one",
                    ),
                }
            }
            Reason::WrongKind { grows: true } => {
                f.write_str("it holds a growing filter: load it as a `GrowingCuckooFilter`")
            }
            Reason::WrongKind { grows: false } => f.write_str(
                "it holds a fixed filter, not a growing one: load it as a `ConcurrentCuckooFilter`",
            ),
            Reason::WrongHasher { found, wanted } => {
                let known = if StableHash::from_name(found, 0).is_some() {
                    " (koel's `StableHash`)"
                } else {
                    ""
                };
                write!(
                    f,
                    "its items were hashed by {found:?}{known}, not by {wanted:?}: load it with \
                     the hasher that it was saved with"
                )
            }
            Reason::OtherHashes { name } => write!(
                f,
                "{name:?} does not hash as it did when this was saved: it has another key, or what is \
                 hashed is another form of the items (as URLs in a state of the koel command), or \
                 the standard library now writes items differently; load it with the program that \
                 saved it"
            ),
            Reason::CutOff { at } => {
                write!(f, "it ends too soon, after {at} bytes: it was cut off; load another copy")
            }
            Reason::NoEnd { at } => write!(
                f,
                "its last part should begin at byte {at}, but something else is there: it was cut \
                 off, or something was appended; load another copy"
            ),
            Reason::WrongLength { bytes, wanted } => write!(
                f,
                "it has {bytes} bytes, but should have {wanted}: it was cut off, or something was \
                 appended; load another copy"
            ),
            Reason::Damaged { at, what } => {
                write!(f, "it is damaged at byte {at}: {what}; load another copy")
            }
            Reason::Outgrown => f.write_str(
                "the filter grew to thousands of times its size while it was being saved: save it \
                 again",
            ),
            Reason::OutOfMemory { bytes } => {
                write!(
                    f,
                    "{bytes} bytes of memory could not be allocated: make more memory available \
                     and try again"
                )
            }
        }
    }
}

// It has no `source`, because its text already includes the system's error.
impl Error for SnapshotError {}
