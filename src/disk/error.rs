//! Why a file was not replaced or claimed.

use crate::error::Error;
use std::io::{self, ErrorKind};
use std::path::Path;

/// The error returned when a file could not be replaced or claimed.
pub type DiskError = Error<DiskErrorKind>;

/// The kinds of [`DiskError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiskErrorKind {
    /// The system refused an operation.
    Io,
    /// What is at the path is not a regular file.
    NotAFile,
    /// Another process, or another thread, replaces the file, or has claimed it.
    Busy,
    /// The new file is in place, but its folder could not be synced: the old one may come back if the system crashes.
    NotSynced,
}

/// What to do about a file that is longer than it may be.
pub(crate) const TOO_LARGE: &str =
    ": this process may write no file of that size; raise its limit (`ulimit -f`) and try again";

/// Returns the text of an error of the system, with what to do about it.
pub(crate) fn text_of(doing: &str, error: &io::Error) -> String {
    let advice = match error.kind() {
        ErrorKind::StorageFull => {
            ": there has to be space for the old and the new file at the same time; free some and save again (the \
             old file is unchanged)"
        }
        ErrorKind::FileTooLarge => TOO_LARGE,
        _ => "",
    };
    format!("{doing}: {error}{advice}")
}

impl DiskError {
    /// The error of an operation of the system.
    pub(super) fn io(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::of_system(text_of(doing, &error), error)
    }

    /// The error of the system, with a text that includes it.
    pub(super) fn of_system(text: String, cause: io::Error) -> Self {
        Self::new(DiskErrorKind::Io, text).because_of(cause)
    }

    /// The error of an operation on an unfinished file.
    pub(super) fn unfinished(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| {
            let path = path.display();
            let text = format!("{doing} {path}, where the new file is written first: {error}");
            Self::of_system(text, error)
        }
    }

    /// The error of an unfinished file that is no longer where it was created.
    pub(super) fn removed(unfinished: &Path) -> Self {
        let text = format!(
            "{} was removed while the new file was being written there: the old file is still in place; save again",
            unfinished.display()
        );
        Self::new(DiskErrorKind::Io, text)
    }

    /// The error of syncing the folder, after the new file has taken its place.
    pub(crate) fn not_synced(error: io::Error) -> Self {
        let text = format!(
            "the new file is in place and complete, but its folder could not be synced ({error}): if the system \
             crashes soon, the old file may come back; save again"
        );
        Self::new(DiskErrorKind::NotSynced, text).because_of(error)
    }

    pub(super) fn busy(unfinished: &Path) -> Self {
        let text = format!(
            "another save to it is in progress and holds the lock of {}: wait until it has finished, or save to \
             another file",
            unfinished.display()
        );
        Self::new(DiskErrorKind::Busy, text)
    }

    pub(crate) fn not_a_file() -> Self {
        let text = "this is not a regular file, so a save cannot replace it: name a regular file, or use `write_to` \
                    to write to something else";
        Self::new(DiskErrorKind::NotAFile, text)
    }

    /// Returns the error of the system, without a text of koel's own.
    #[must_use]
    pub fn into_io_error(self) -> io::Error {
        match (self.kind(), self.io_error()) {
            (DiskErrorKind::NotAFile, _) => {
                io::Error::new(ErrorKind::InvalidFilename, "this is not a regular file")
            }
            (_, Some(cause)) => match cause.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(cause.kind(), cause.to_string()),
            },
            _ => io::Error::other(self.to_string()),
        }
    }

    /// Returns `true` if the new file has taken the place of the old one.
    ///
    /// The new file is complete then. The error only means that the old one may come back if the system crashes.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.kind() == DiskErrorKind::NotSynced
    }
}
