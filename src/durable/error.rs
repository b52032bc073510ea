//! Why a durable filter did not change.

use crate::durable::claim::ClaimError;
use crate::error::{BuildError, BuildErrorKind, Full, FullKind};
use crate::snapshot::{SnapshotError, SnapshotErrorKind};
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The error returned when a [`DurableFilter`](crate::DurableFilter) could not make a change, or not make it last.
#[derive(Clone, Debug)]
pub struct DurableError {
    reason: Reason,
}

#[derive(Clone, Debug)]
pub(super) enum Reason {
    Full(Full),
    /// The journal cannot be made longer. Nothing has changed.
    NoSpace(Arc<io::Error>),
    /// The journal cannot be synced. The change is made, and survives the end of the process.
    NotSynced(Arc<io::Error>),
    Build(BuildError),
    State(Arc<SnapshotError>),
    InUse(Arc<ClaimError>),
    Journal {
        doing: &'static str,
        path: PathBuf,
        error: Arc<io::Error>,
    },
    /// The filter was opened by the parent of this process.
    Forked,
    /// Not all items fit again.
    TooFull(Full),
    /// This journal is of another state, and has changes.
    OtherState {
        journal: PathBuf,
    },
    /// These journals have one key, and both have changes.
    CopiedJournal {
        journals: [PathBuf; 2],
    },
}

/// The kinds of [`DurableError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DurableErrorKind {
    /// There is no room in the filter. Nothing has changed.
    Full(FullKind),
    /// The journal could not be made longer: the disk is full, say. Nothing has changed.
    NoSpace,
    /// The journal could not be synced. The change is made, and survives the end of the process, but perhaps not a
    /// power failure.
    NotSynced,
    /// There is no state, and no filter can be built as was asked.
    Build(BuildErrorKind),
    /// The state cannot be loaded or saved.
    State(SnapshotErrorKind),
    /// Another process uses the state, or it cannot be locked.
    InUse,
    /// A journal cannot be read or created.
    Journal,
    /// The filter was so full that not all of its items fit when its changes were made again.
    TooFull,
    /// This process was forked from the one that opened the filter, and must not write to the journal. Nothing has
    /// changed.
    Forked,
    /// A journal beside the state has changes of another state: the state was replaced by another program, or is gone.
    OtherState,
    /// Two journals beside the state are copies of one, and both have changes. Nothing was replayed or removed.
    CopiedJournal,
}

impl DurableError {
    /// Returns the kind of this error.
    #[must_use]
    pub fn kind(&self) -> DurableErrorKind {
        match &self.reason {
            Reason::Full(full) => DurableErrorKind::Full(full.kind()),
            Reason::NoSpace(_) => DurableErrorKind::NoSpace,
            Reason::NotSynced(_) => DurableErrorKind::NotSynced,
            Reason::Build(error) => DurableErrorKind::Build(error.kind()),
            Reason::State(error) => DurableErrorKind::State(error.kind()),
            Reason::InUse(_) => DurableErrorKind::InUse,
            Reason::Journal { .. } => DurableErrorKind::Journal,
            Reason::Forked => DurableErrorKind::Forked,
            Reason::TooFull(_) => DurableErrorKind::TooFull,
            Reason::OtherState { .. } => DurableErrorKind::OtherState,
            Reason::CopiedJournal { .. } => DurableErrorKind::CopiedJournal,
        }
    }

    /// Returns `true` if another process has the state open, so that it may be free later.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        matches!(&self.reason, Reason::InUse(error) if error.is_taken())
    }

    /// Returns the path of the file that could not be used, or of the first of two.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.reason {
            Reason::State(error) => error.path(),
            Reason::Journal { path, .. }
            | Reason::OtherState { journal: path }
            | Reason::CopiedJournal { journals: [path, _] } => Some(path),
            _ => None,
        }
    }

    /// Returns the system's error, if there is one.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        match &self.reason {
            Reason::State(error) => error.io_error(),
            Reason::InUse(error) => error.io_error(),
            Reason::NoSpace(error) | Reason::NotSynced(error) | Reason::Journal { error, .. } => {
                Some(error)
            }
            _ => None,
        }
    }
}

impl From<Reason> for DurableError {
    fn from(reason: Reason) -> Self {
        DurableError { reason }
    }
}

impl From<Full> for DurableError {
    fn from(full: Full) -> Self {
        Reason::Full(full).into()
    }
}

impl From<BuildError> for DurableError {
    fn from(error: BuildError) -> Self {
        Reason::Build(error).into()
    }
}

impl From<SnapshotError> for DurableError {
    fn from(error: SnapshotError) -> Self {
        Reason::State(Arc::new(error)).into()
    }
}

impl From<ClaimError> for DurableError {
    fn from(error: ClaimError) -> Self {
        Reason::InUse(Arc::new(error)).into()
    }
}

impl fmt::Display for DurableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Full(full) => full.fmt(f),
            Reason::NoSpace(error) => {
                write!(f, "the journal cannot be made longer, so nothing has changed: {error}")
            }
            Reason::NotSynced(error) => write!(
                f,
                "the journal cannot be synced: {error}; what has changed since the last sync would not survive a power \
                 failure, so end this process and open the filter again"
            ),
            Reason::Build(error) => error.fmt(f),
            Reason::State(error) => error.fmt(f),
            Reason::InUse(error) => error.fmt(f),
            Reason::Journal { doing, path, error } => {
                write!(f, "{}: {doing}: {error}", path.display())
            }
            Reason::Forked => f.write_str(
                "the filter was opened before this process was forked, and only the process that opened it may change it",
            ),
            Reason::TooFull(full) => write!(
                f,
                "the filter was so full that not all of its items fit when the changes in its journals are made again \
                 ({full}); load the state alone, which is as old as the last checkpoint, or build a larger filter"
            ),
            Reason::OtherState { journal } => write!(
                f,
                "{} has changes of a state that is not beside it; restore that state, or remove this file, and the \
                 changes with it",
                journal.display()
            ),
            Reason::CopiedJournal { journals: [one, other] } => write!(
                f,
                "{} and {} are copies of one journal, and both have changes; leave the newer one here, and move the \
                 other elsewhere",
                one.display(),
                other.display()
            ),
        }
    }
}

impl Error for DurableError {
    /// Returns the system's error, if there is one.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.io_error().map(|error| error as _)
    }
}

pub(super) fn no_space(error: io::Error) -> DurableError {
    Reason::NoSpace(Arc::new(error)).into()
}
