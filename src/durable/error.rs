//! Why a durable filter did not change.

use crate::error::{BuildError, BuildErrorKind, Full, FullKind};
use crate::snapshot::{SnapshotError, SnapshotErrorKind};
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The error returned when a [`DurableFilter`](crate::DurableFilter) could not make a change, or not make it last.
#[derive(Clone, Debug)]
pub struct DurableError(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kind: DurableErrorKind,
    text: Cow<'static, str>,
    path: Option<PathBuf>,
    /// The system's error, which all errors of a sync that failed share.
    cause: Option<Arc<io::Error>>,
    is_in_use: bool,
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
    pub(super) fn new(kind: DurableErrorKind, text: impl Into<Cow<'static, str>>) -> Self {
        Self::with_cause(kind, text, None, None)
    }

    fn with_cause(
        kind: DurableErrorKind,
        text: impl Into<Cow<'static, str>>,
        path: Option<&Path>,
        cause: Option<Arc<io::Error>>,
    ) -> Self {
        let (text, path) = (text.into(), path.map(Path::to_path_buf));
        DurableError(Arc::new(Inner { kind, text, path, cause, is_in_use: false }))
    }

    /// The error when the journal cannot be made longer.
    pub(super) fn no_space(error: io::Error) -> Self {
        let text = format!("the journal cannot be made longer, so nothing has changed: {error}");
        Self::with_cause(DurableErrorKind::NoSpace, text, None, Some(Arc::new(error)))
    }

    /// The error when the journal cannot be synced.
    pub(super) fn not_synced(error: Arc<io::Error>) -> Self {
        let text = format!(
            "the journal cannot be synced: {error}; what has changed since the last sync would not survive \
             a power failure, so end this process and open the filter again"
        );
        Self::with_cause(DurableErrorKind::NotSynced, text, None, Some(error))
    }

    /// The error of an operation on the journal, or on the state with its journals, at this path.
    pub(super) fn journal(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| {
            let text = format!("{}: {doing}: {error}", path.display());
            let cause = Some(Arc::new(error));
            Self::with_cause(DurableErrorKind::Journal, text, Some(path), cause)
        }
    }

    /// The error of a journal with the changes of another state.
    pub(super) fn other_state(journal: &Path) -> Self {
        let text = format!(
            "{} has changes of a state that is not beside it; restore that state, or remove this file, and \
             the changes with it",
            journal.display()
        );
        Self::with_cause(DurableErrorKind::OtherState, text, Some(journal), None)
    }

    /// The error of two journals with one key, both with changes.
    pub(super) fn copied_journal(one: &Path, other: &Path) -> Self {
        let text = format!(
            "{} and {} are copies of one journal, and both have changes; leave the newer one here, and move \
             the other elsewhere",
            one.display(),
            other.display()
        );
        Self::with_cause(DurableErrorKind::CopiedJournal, text, Some(one), None)
    }

    /// The error of a state that cannot be claimed.
    pub(super) fn of_claim(error: SnapshotError) -> Self {
        let is_in_use = error.kind() == SnapshotErrorKind::Busy;
        let (kind, text) = (DurableErrorKind::InUse, error.to_string().into());
        let cause = error.into_cause().map(Arc::new);
        DurableError(Arc::new(Inner { kind, text, path: None, cause, is_in_use }))
    }

    /// Returns the kind of this error.
    #[must_use]
    pub fn kind(&self) -> DurableErrorKind {
        self.0.kind
    }

    /// Returns `true` if another process has the state open, so that it may be free later.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.0.is_in_use
    }

    /// Returns the path of the file that could not be used, or of the first of two.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the system's error, if there is one.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.cause.as_deref()
    }
}

impl From<Full> for DurableError {
    fn from(full: Full) -> Self {
        DurableError::new(DurableErrorKind::Full(full.kind()), full.to_string())
    }
}

impl From<BuildError> for DurableError {
    fn from(error: BuildError) -> Self {
        DurableError::new(DurableErrorKind::Build(error.kind()), error.to_string())
    }
}

impl From<SnapshotError> for DurableError {
    fn from(error: SnapshotError) -> Self {
        let (kind, text) = (DurableErrorKind::State(error.kind()), error.to_string());
        let path = error.path().map(Path::to_path_buf);
        Self::with_cause(kind, text, path.as_deref(), error.into_cause().map(Arc::new))
    }
}

impl fmt::Display for DurableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl Error for DurableError {
    /// Returns the system's error, if there is one.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.io_error().map(|error| error as _)
    }
}
