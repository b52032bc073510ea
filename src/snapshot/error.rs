//! What can go wrong with a file.

use crate::stable_hash::{PersistentHasher, StableHash};
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a filter could not be saved or loaded.
///
/// It names the file, if there is one, and says what is wrong, where, and what to do.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
///
/// let error = ConcurrentCuckooFilter::<StableHash>::read_from(&b"GIF89a\x01\x00"[..]).unwrap_err();
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
/// let filter = ConcurrentCuckooFilter::builder().capacity(9).hasher(StableHash::with_seed(1)).build()?;
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
    /// There is no file to load; nor perhaps its folder.
    NotFound,
    /// What is there is not a file, so a save cannot replace it.
    NotAFile,
    /// The system refused to read or write, and [`io_error`](SnapshotError::io_error) says why; or somebody
    /// meddles with the unfinished file.
    Io,
    /// Another save to the same file is going on.
    Busy,
    /// No filter was ever saved as this file.
    NotASnapshot,
    /// The file is of a version of the format that this version of koel does not know.
    UnsupportedVersion,
    /// The file has a filter that grows, and a fixed one was asked for, or the other way round.
    WrongKind,
    /// The file is of a filter with another hasher, or the hashes are no longer the same.
    WrongHasher,
    /// The file ends too soon, or goes on after its end.
    Incomplete,
    /// The file is not as it was written.
    Damaged,
    /// The memory for the filter could not be allocated.
    OutOfMemory,
    /// The filter became thousands of times as large while it was being saved.
    Outgrown,
}

#[doc(hidden)]
#[derive(Debug)]
pub enum Reason {
    Io {
        doing: &'static str,
        error: io::Error,
    },
    /// Of the file that is written before it takes its place.
    Beside {
        doing: &'static str,
        beside: PathBuf,
        error: io::Error,
    },
    Removed {
        beside: PathBuf,
    },
    NotFound {
        error: io::Error,
    },
    /// The new file is there, but may not survive a crash of the system.
    NotSynced {
        error: io::Error,
    },
    Busy {
        beside: PathBuf,
    },
    NotAFile,
    InTheWay {
        beside: PathBuf,
    },
    NotASnapshot,
    UnsupportedVersion {
        version: u64,
    },
    WrongKind {
        grows: bool,
    },
    WrongHasher {
        found: String,
        wanted: &'static str,
    },
    OtherHashes {
        name: &'static str,
    },
    /// It has no more bytes than these.
    CutOff {
        at: u64,
    },
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
    /// While it was being written, the filter grew so much that its parts are too unequal.
    Outgrown,
}

impl Reason {
    pub fn damaged(at: u64, what: impl Into<Cow<'static, str>>) -> Self {
        Reason::Damaged { at, what: what.into() }
    }

    pub fn io(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Reason::Io { doing, error }
    }

    pub fn of(self, path: Option<&Path>) -> SnapshotError {
        SnapshotError { path: path.map(Path::to_path_buf), reason: Box::new(self) }
    }
}

impl SnapshotError {
    /// Which of the possible reasons it is.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, GrowingCuckooFilter, SnapshotErrorKind, StableHash};
    ///
    /// let filter = ConcurrentCuckooFilter::builder().capacity(9).hasher(StableHash::with_seed(1)).build()?;
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
            | Reason::Beside { .. }
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

    /// The file, as it was named to [`save`](crate::ConcurrentCuckooFilter::save) or
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

    /// At which byte of the file something is wrong.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let filter = ConcurrentCuckooFilter::builder().capacity(9).hasher(StableHash::with_seed(1)).build()?;
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

    /// What the system said, if it was the system.
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
            | Reason::Beside { error, .. }
            | Reason::NotFound { error }
            | Reason::NotSynced { error } => Some(error),
            _ => None,
        }
    }

    /// Whether a save got as far as putting the new file in the place of the old one. It is complete
    /// then; the error says only that a crash of the system may bring the old one back.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let filter = ConcurrentCuckooFilter::builder().capacity(9).hasher(StableHash::with_seed(1)).build()?;
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
        // As `main` prints it that returns it, and there what to do should not be hidden.
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
                "{doing}: {error}: there has to be room for the old and the new file (the old one is \
                 what it was)"
            ),
            Reason::Io { doing, error } => write!(f, "{doing}: {error}"),
            Reason::Beside { doing, beside, error } => {
                write!(f, "{doing} {}, where the new file is written first: {error}", beside.display())
            }
            Reason::Removed { beside } => write!(
                f,
                "somebody removed {}, where the new file was being written: the old one is still there; \
                 save again",
                beside.display()
            ),
            Reason::NotFound { error } => write!(f, "cannot open it: {error}"),
            Reason::NotSynced { error } => write!(
                f,
                "the new file is in place and complete, but its folder could not be synced ({error}): \
                 if the system crashes soon, the old file may come back; save again"
            ),
            Reason::Busy { beside } => write!(
                f,
                "another save to it is going on, which holds the lock of {}: wait for it, or save to \
                 another file",
                beside.display()
            ),
            Reason::NotAFile => f.write_str(
                "there is something that is no file, so it cannot be replaced: name a file, or use \
                 `write_to` to write to whatever it is",
            ),
            Reason::InTheWay { beside } => write!(
                f,
                "{} is in the way, where the new file is written before it takes the place of the old \
                 one: remove it",
                beside.display()
            ),
            Reason::NotASnapshot => {
                f.write_str("this is no filter that was saved by koel: it does not begin like one")
            }
            Reason::UnsupportedVersion { version } => {
                write!(
                    f,
                    "the file is of version {version} of the format, and this koel knows 1: "
                )?;
                match version.swap_bytes() {
                    1 => f.write_str("its bytes are in the other order; write it as it was saved"),
                    _ => f.write_str(
                        "load it with the version of koel that saved it, or a later one",
                    ),
                }
            }
            Reason::WrongKind { grows: true } => {
                f.write_str("it has a filter that grows: load it as a `GrowingCuckooFilter`")
            }
            Reason::WrongKind { grows: false } => f.write_str(
                "it has a fixed filter, not one that grows: load it as a `ConcurrentCuckooFilter`",
            ),
            Reason::WrongHasher { found, wanted } => {
                let known = if found == StableHash::NAME { ", koel's `StableHash`," } else { "" };
                write!(
                    f,
                    "its items were hashed by {found:?}{known} and not by {wanted:?}: load it with \
                     that hasher"
                )
            }
            Reason::OtherHashes { name } => write!(
                f,
                "{name:?} does not hash as it did when this was saved: its key is another, or the hasher, \
                 or what the standard library gives it of an item, has changed; load it with the program \
                 that saved it"
            ),
            Reason::CutOff { at } => write!(
                f,
                "it ends after {at} bytes, in the middle: it was cut off; load another copy"
            ),
            Reason::NoEnd { at } => write!(
                f,
                "at byte {at}, where its last part should be, is something else: it was cut off, or \
                 something was added; load another copy"
            ),
            Reason::WrongLength { bytes, wanted } => write!(
                f,
                "it has {bytes} bytes, and should have {wanted}: it was cut off, or something was \
                 added; load another copy"
            ),
            Reason::Damaged { at, what } => {
                write!(f, "at byte {at}: {what}; it was damaged, load another copy")
            }
            Reason::Outgrown => f.write_str(
                "the filter became thousands of times as large while it was being saved: save it again",
            ),
            Reason::OutOfMemory { bytes } => {
                write!(f, "the {bytes} bytes of the table could not be allocated")
            }
        }
    }
}

// It has no `source`, since it says all that the system said.
impl Error for SnapshotError {}
