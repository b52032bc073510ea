//! Why a durable filter did not change.

use crate::disk::error::TOO_LARGE;
use crate::disk::{DiskError, DiskErrorKind};
use crate::durable::mismatch::Mismatch;
use crate::error::{BuildError, BuildErrorKind, Error, Full, FullKind};
use crate::snapshot::{SnapshotError, SnapshotErrorKind};
use std::io;
use std::path::Path;

/// The error returned when a [`DurableFilter`](crate::DurableFilter) could not make a change, or not make it last.
pub type DurableError = Error<DurableErrorKind>;

/// The kinds of [`DurableError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DurableErrorKind {
    /// There is no room in the filter. Nothing has changed.
    Full(FullKind),
    /// The journal could not be made longer: the disk is full, say, or the process may write no longer file. Nothing
    /// has changed.
    NoSpace,
    /// The journal could not be synced. The change is made, and survives the end of the process, but perhaps not a
    /// power failure.
    NotSynced,
    /// There is no state, and no filter can be built as was asked.
    Build(BuildErrorKind),
    /// The state cannot be loaded, saved or locked.
    State(SnapshotErrorKind),
    /// Another process uses the state, so that it may be free later.
    InUse,
    /// A journal cannot be read or created.
    Journal,
    /// The builder asks for what the filter of the state does not have, and cannot get any more. Nothing was replayed
    /// or removed.
    OtherSettings,
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

/// What to do about an error of the system, if its text does not say so.
fn advice(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::FileTooLarge { TOO_LARGE } else { "" }
}

impl DurableError {
    pub(super) fn no_space(error: io::Error) -> Self {
        let text = format!(
            "the journal cannot be made longer, so nothing has changed: {error}{}",
            advice(&error)
        );
        Self::new(DurableErrorKind::NoSpace, text).because_of(error)
    }

    pub(super) fn not_synced(error: io::Error) -> Self {
        let text = format!(
            "the journal cannot be synced: {error}; what has changed since the last sync would not survive \
             a power failure, so end this process and open the filter again"
        );
        Self::new(DurableErrorKind::NotSynced, text).because_of(error)
    }

    pub(super) fn journal(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| {
            let text = format!("{doing}: {error}{}", advice(&error));
            let error_of = Self::new(DurableErrorKind::Journal, text);
            error_of.because_of(error).of_file(path)
        }
    }

    pub(super) fn other_state(journal: &Path) -> Self {
        let text = "it has changes of a state that is not beside it; restore that state, or remove this file, and \
                    the changes with it";
        Self::new(DurableErrorKind::OtherState, text).of_file(journal)
    }

    pub(super) fn other_settings(mismatch: Mismatch) -> Self {
        let text = format!(
            "{mismatch}: a filter keeps what it was made with, so leave that setting out, or use another file"
        );
        Self::new(DurableErrorKind::OtherSettings, text)
    }

    pub(super) fn copied_journal(one: &Path, other: &Path) -> Self {
        let text = format!(
            "it and {} are copies of one journal, and both have changes; leave the newer one here, and move \
             the other elsewhere",
            other.display()
        );
        Self::new(DurableErrorKind::CopiedJournal, text).of_file(one)
    }

    pub(super) fn of_claim(error: DiskError) -> Self {
        match error.kind() {
            DiskErrorKind::Busy => error.with_kind(DurableErrorKind::InUse),
            _ => SnapshotError::from(error).into(),
        }
    }
}

impl From<Full> for DurableError {
    fn from(full: Full) -> Self {
        DurableError::new(DurableErrorKind::Full(full.kind()), full.to_string())
    }
}

impl From<BuildError> for DurableError {
    fn from(error: BuildError) -> Self {
        let kind = DurableErrorKind::Build(error.kind());
        error.with_kind(kind)
    }
}

impl From<SnapshotError> for DurableError {
    fn from(error: SnapshotError) -> Self {
        let kind = DurableErrorKind::State(error.kind());
        error.with_kind(kind)
    }
}
