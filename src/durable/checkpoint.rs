//! The journal beside a state, and the checkpoint that replaces both.
//!
//! # Which journal belongs to a state?
//!
//! Each state has a number: a random one in its header or, in a file that was only saved, the checksum in its end. A
//! journal names the state on which its changes are to be replayed, and the state before that one.
//!
//! A state *S* has a journal *J*. A checkpoint replaces them by a state *T* and a journal *K*:
//!
//! ```text
//! C1  create K, which names T, and S as the state before it
//! C2  copy the filter to a new file, shard by shard; changes of copied shards are recorded in K, too
//! C3  sync K, and the new file
//! C4  rename the new file to the state: it is T from now on
//! C5  sync the folder
//! C6  record all changes in K alone
//! C7  remove J
//! ```
//!
//! Every change is recorded in J until C6. So up to C4, S and J have all changes; and from C4 on, T and K have.
//!
//! # What does the end of the process leave, or a power failure?
//!
//! | it ends after | the state | beside it |
//! |---|---|---|
//! | C1, C2 or C3 | S, with J | K: the state before it is S. Whatever it has is in J, too |
//! | C4 | T, with K; after a power failure, S with J or T with K | J: it names the state before T; or K, as above |
//! | C5 or C6 | T, with K | J |
//! | C7 | T, with K; after a power failure, perhaps J | |
//!
//! So one journal names the state. The other journal, if it is there, is of the state before or of the state after, and is
//! removed. A journal of any other state is refused.
//!
//! A checkpoint that fails before C4 removes K. If that fails, or C5 or C7, the next checkpoint begins with that step, so
//! there are never three journals. Until C5 has succeeded, both journals get all changes.
//!
//! To [open](super::open) a state whose journal has changes, they are replayed, and then C1 to C7 follow, before the
//! first change.

use crate::backend::Backend;
use crate::disk::DiskError;
use crate::disk::claim::Mark;
use crate::disk::replace::{Replacement, copy_permissions, if_there, sync_folder_of};
use crate::hash::{HashedBy, random_number};
use crate::journal::format::{Header, PAGE_BYTES};
use crate::journal::streams::Streams;
use crate::journal::writer::{Journal, Writer};
use crate::snapshot::error::SnapshotError;
use crate::snapshot::header::Part;
use crate::snapshot::journals::{journals_begin, journals_of, number_in_name};
use crate::snapshot::write::{Saving, file_bytes, write};
use parking_lot::{Mutex, MutexGuard};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of bytes of journals that call for a checkpoint, however small the state is.
const LEAST: u64 = 32 << 20;

/// A journal that was begun after those that were found, and what is left of these.
pub(crate) struct TakenIn {
    pub journal: Arc<Journal>,
    /// A journal of the state before, if it could not be removed.
    pub old: Option<PathBuf>,
    /// The number of changes that are lost behind damage.
    pub lost: u64,
}

pub(crate) struct Journals {
    state: PathBuf,
    claim: Mark,
    files: Mutex<Files>,
    /// Held while a checkpoint is made.
    checkpoint: Mutex<()>,
}

struct Files {
    current: Arc<Journal>,
    /// The journal of the next state: during a checkpoint; and after one whose folder could not be synced.
    next: Option<Arc<Journal>>,
    /// A journal of the state before, or of a checkpoint that failed, if it could not be removed.
    old: Option<PathBuf>,
}

impl Journals {
    pub(crate) fn new(state: PathBuf, claim: Mark, taken: TakenIn) -> Self {
        let TakenIn { journal, old, .. } = taken;
        let files = Mutex::new(Files { current: journal, next: None, old });
        Journals { state, claim, files, checkpoint: Mutex::default() }
    }

    pub(crate) fn check_claim(&self) -> Result<(), SnapshotError> {
        Ok(self.claim.check().map_err(|error| error.of_file(&self.state))?)
    }

    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    pub(crate) fn bytes(&self) -> u64 {
        let files = self.files.lock();
        files.current.bytes() + files.next.as_ref().map_or(0, |next| next.bytes())
    }

    pub(crate) fn is_empty(&self) -> bool {
        let files = self.files.lock();
        files.next.is_none() && files.old.is_none() && files.current.bytes() <= PAGE_BYTES
    }

    /// Returns whether it is time for a checkpoint: the journal is half as long as the state, or the last checkpoint
    /// has something left to do. So the journal is about as long as the state when the checkpoint ends, unless the
    /// state is small.
    pub(crate) fn call_for_checkpoint(&self) -> bool {
        let state = fs::metadata(&self.state).map_or(0, |about| about.len());
        let alone = self.checkpoint.try_lock();
        let files = self.files.lock();
        let has_more = files.next.is_some() || files.old.is_some();
        alone.is_some() && (has_more || files.current.bytes() > (state / 2).max(LEAST))
    }

    /// Holds off checkpoints.
    pub(crate) fn pause(&self) -> MutexGuard<'_, ()> {
        self.checkpoint.lock()
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        let files = self.files.lock();
        let written = [Some(Arc::clone(&files.current)), files.next.clone()];
        drop(files);
        written.iter().flatten().try_for_each(|journal| journal.sync())
    }

    pub(crate) fn checkpoint(
        &self,
        backend: &Backend,
        hasher: &HashedBy,
        streams: &Streams<Writer>,
    ) -> Result<(), SnapshotError> {
        let _alone = self.checkpoint.lock();
        let made = || {
            self.check_claim()?;
            // What the checkpoint before has left.
            self.finish(streams)?;
            let mut new = Replacement::begin(&self.state)?;
            // First, so that a full disk is found out before anything is copied.
            new.reserve(file_bytes(backend))?;
            let part = Part::state();
            let next = Next::begin(self, streams, part.state)?;
            let mut saving = Saving::begin(backend, hasher, part)?;
            new.write_all(saving.header())?;
            while let Some((first, most)) = saving.next_range() {
                streams.cut(first, most, || saving.copy());
                new.write_all(saving.shard()?)?;
            }
            new.write_all(saving.end()?.1)?;
            next.journal.sync().map_err(SnapshotError::io("cannot sync a journal"))?;
            let placed = new.finish();
            // If only the folder could not be synced, the old state may come back after a power failure.
            if placed.as_ref().map_or_else(DiskError::is_in_place, |()| true) {
                next.keep();
            }
            placed?;
            self.adopt_next(streams);
            self.remove_old()
        };
        made().map_err(|error: SnapshotError| error.of_file(&self.state))
    }

    /// Does what is left of the last checkpoint, from C5 on.
    fn finish(&self, streams: &Streams<Writer>) -> Result<(), SnapshotError> {
        if self.files.lock().next.is_some() {
            sync_folder_of(&self.state).map_err(DiskError::not_synced)?;
            self.adopt_next(streams);
        }
        self.remove_old()
    }

    fn adopt_next(&self, streams: &Streams<Writer>) {
        streams.adopt_next();
        let Files { current, next, old } = &mut *self.files.lock();
        if let Some(next) = next.take() {
            *old = Some(std::mem::replace(current, next).path().to_path_buf());
        }
    }

    fn remove_old(&self) -> Result<(), SnapshotError> {
        let old = self.files.lock().old.clone();
        if let Some(old) = old {
            self.check_claim()?;
            remove(&old)?;
            self.files.lock().old = None;
        }
        Ok(())
    }

    /// Removes the journal, which is empty, because the state has all changes. No thread makes changes any more.
    pub(crate) fn close(&self) {
        let synced = sync_folder_of(&self.state);
        let others = journals_of(&self.state).map_or(usize::MAX, |journals| journals.len());
        // The journal must outlive any other one: its header tells that the state has the other's changes.
        if synced.is_ok() && others == 1 {
            let _ = remove(self.files.lock().current.path());
        }
    }
}

/// The journal of the next state, from C1 to C4. Dropping it removes the journal.
struct Next<'a> {
    journals: &'a Journals,
    streams: &'a Streams<Writer>,
    journal: Arc<Journal>,
    is_kept: bool,
}

impl<'a> Next<'a> {
    fn begin(
        journals: &'a Journals,
        streams: &'a Streams<Writer>,
        state: u64,
    ) -> Result<Self, SnapshotError> {
        let previous = journals.files.lock().current.header().state;
        let journal = create_journal(&journals.state, state, previous)
            .map_err(SnapshotError::io("cannot create a journal"))?;
        journals.files.lock().next = Some(Arc::clone(&journal));
        streams.begin_cut(|stream| Writer::new(&journal, stream));
        Ok(Next { journals, streams, journal, is_kept: false })
    }

    /// Keeps the journal, since the new state has taken its place.
    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Next<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.streams.drop_next();
            let mut files = self.journals.files.lock();
            files.next = None;
            // In a folder that was emptied, the name may be that of another process's journal.
            if self.journals.claim.check().is_ok() {
                files.old = left(self.journal.path());
            }
        }
    }
}

fn remove(journal: &Path) -> Result<(), SnapshotError> {
    let removed = if_there(fs::remove_file(journal)).map(drop);
    removed.map_err(|error| {
        let doing = format!("cannot remove its old journal {}: {error}", journal.display());
        SnapshotError::of_system(doing, error)
    })
}

/// Removes a journal, and returns its path if that is not possible.
pub(crate) fn left(journal: &Path) -> Option<PathBuf> {
    remove(journal).is_err().then(|| journal.to_path_buf())
}

/// Saves a filter as the state at a path, which no other thread changes. The state gets the number of this part.
pub(crate) fn save_state(
    backend: &Backend,
    hasher: &HashedBy,
    path: &Path,
    part: Part,
) -> Result<(), SnapshotError> {
    let save = || {
        let mut new = Replacement::begin(path)?;
        new.reserve(file_bytes(backend))?;
        write(backend, hasher, part, &mut |bytes| Ok(new.write_all(bytes)?))?;
        Ok(new.finish()?)
    };
    save().map_err(|error: SnapshotError| error.of_file(path))
}

/// Creates the journal of a state with this number, beside the file of the state.
pub(crate) fn create_journal(path: &Path, state: u64, previous: u64) -> io::Result<Arc<Journal>> {
    let last = journals_of(path)?.iter().map(|journal| number_in_name(journal)).max();
    let mut name = journals_begin(path.file_name().unwrap_or_default());
    name.push(last.unwrap_or(0).saturating_add(1).to_string());
    let header = Header { key: random_number(), state, previous };
    let journal = Journal::create(&path.with_file_name(name), header)?;
    // A journal must have the permissions of its state, and its name must survive a power failure before any change is
    // recorded in it.
    let made = fs::metadata(path)
        .and_then(|state| copy_permissions(journal.file(), &state))
        .and_then(|()| sync_folder_of(path));
    made.inspect_err(|_| drop(fs::remove_file(journal.path())))?;
    Ok(Arc::new(journal))
}
