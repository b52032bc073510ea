//! The journals beside a state, and the checkpoint that replaces them and the state.
//!
//! # Which journals belong to a state?
//!
//! A state is identified by the checksum in its end, and its length. Each journal has a random key, and its header has the key of
//! the journal before it and, if it is the first journal of a state, that state's identity. Two rules hold at every
//! moment, whichever step a process or the machine ends at:
//!
//! 1. A journal whose header names a state: that state has the changes of all earlier journals, and none of this one.
//! 2. A journal whose header names no state: its changes follow those of the journal with its `previous` key.
//!
//! So the journals to replay on a state are its *chain*: the last journal that names the state, and then each journal
//! whose `previous` key is that of the journal before it. All other journals are older than the state, or belong to
//! another one.
//!
//! ```text
//! C1  create the next journal, which names no state and follows the present one
//! C2  copy the filter to a new file, shard by shard; changes of copied shards go to the next journal
//! C3  name the new file in the header of the next journal, and sync it
//! C4  rename the new file to the state
//! C5  remove the older journals
//! ```
//!
//! Up to C4, the state is the old one, and the next journal is the end of its chain by rule 2. (From C3 on, that
//! journal names a state that does not exist yet. So a journal belongs to the chain if *either* rule says so.) From C4
//! on, the next journal alone is the chain, by rule 1. If a checkpoint fails, the next journal stays in the chain.

use crate::durable::claim::Mark;
use crate::filter::ConcurrentCuckooFilter;
use crate::hash::{PersistentHasher, random_number};
use crate::journal::format::{Header, PAGE_BYTES, StateId};
use crate::journal::read::Reader;
use crate::journal::streams::Streams;
use crate::journal::write::{Journal, Writer, allocate, check_limit};
use crate::layout::geometry::Mixed;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::header::Part;
use crate::snapshot::journals::{journals_begin, journals_of};
use crate::snapshot::replace::{copy_permissions, is_at, replace, sync_folder_of};
use crate::snapshot::write::{UNCUT, file_bytes};
use parking_lot::{Mutex, MutexGuard};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of bytes of journals that call for a checkpoint, however small the state is.
const LEAST: u64 = 32 << 20;

/// The journals of a state.
pub(super) struct Journals {
    state: PathBuf,
    claim: Mark,
    chain: Mutex<Chain>,
    /// Held while a checkpoint copies the filter.
    copying: Mutex<()>,
}

/// The journals to replay on the state, in their order.
pub(super) struct Chain {
    /// The journals that an earlier process wrote, each with its length.
    pub left: Vec<(PathBuf, u64)>,
    /// The journals of this process. The last one is written to, and during a checkpoint the one before it, too.
    pub written: Vec<Arc<Journal>>,
}

impl Chain {
    fn bytes(&self) -> u64 {
        let written: u64 = self.written.iter().map(|journal| journal.bytes()).sum();
        self.left.iter().map(|(_, bytes)| bytes).sum::<u64>() + written
    }

    /// Returns whether an earlier process, or a checkpoint that failed, has left journals.
    fn has_leftovers(&self) -> bool {
        self.left.len() + self.written.len() > 1
    }
}

impl Journals {
    pub(super) fn new(state: PathBuf, claim: Mark, chain: Chain) -> Self {
        Journals { state, claim, chain: Mutex::new(chain), copying: Mutex::default() }
    }

    /// Fails if the claim of the state is gone, as where its folder was emptied.
    pub(super) fn check_claim(&self) -> Result<(), SnapshotError> {
        self.claim.check().map_err(|error| error.of_file(&self.state))
    }

    /// Returns the path of the state.
    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    pub(super) fn bytes(&self) -> u64 {
        self.chain.lock().bytes()
    }

    /// Returns whether an earlier process, or a checkpoint that failed, has left journals.
    pub(super) fn has_leftovers(&self) -> bool {
        self.chain.lock().has_leftovers()
    }

    /// Returns whether the state has all changes: there is one journal, without any.
    pub(super) fn is_empty(&self) -> bool {
        let chain = self.chain.lock();
        !chain.has_leftovers() && chain.bytes() <= PAGE_BYTES
    }

    /// Returns whether it is time for a checkpoint: if there are several journals, or if they are half as long as the
    /// state. (So they are together about as long as the state when the checkpoint ends, unless the state is small.)
    pub(super) fn call_for_checkpoint(&self) -> bool {
        let state = fs::metadata(&self.state).map_or(0, |about| about.len());
        // During a checkpoint, there are two journals, and no need for another one.
        let alone = self.copying.try_lock();
        let chain = self.chain.lock();
        alone.is_some() && (chain.has_leftovers() || chain.bytes() > (state / 2).max(LEAST))
    }

    /// Prevents checkpoints from copying.
    pub(super) fn pause(&self) -> MutexGuard<'_, ()> {
        self.copying.lock()
    }

    /// Returns the journals that this process writes or wrote to.
    fn written(&self) -> Vec<Arc<Journal>> {
        self.chain.lock().written.clone()
    }

    /// Syncs all journals that this process writes to.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.written().iter().try_for_each(|journal| journal.sync())
    }

    /// Removes the last journals as long as they are empty and follow others.
    pub(super) fn leave(&self) {
        let mut chain = self.chain.lock();
        // A journal that names a state stays: a checkpoint may have failed after it had replaced the state.
        while chain.has_leftovers()
            && let Some(last) = chain.written.pop_if(|last| {
                last.bytes() <= PAGE_BYTES && last.header().state == StateId::default()
            })
        {
            remove(&last);
        }
    }

    /// Makes a checkpoint of the filter whose changes these streams record. Fails on purpose after `most` bytes.
    pub(super) fn checkpoint<S: PersistentHasher>(
        &self,
        filter: &ConcurrentCuckooFilter<S>,
        streams: &Streams<Writer>,
        most: u64,
    ) -> Result<(), SnapshotError> {
        let Journals { state, chain, copying, .. } = self;
        let _copying = copying.lock();
        let written = self.written();
        let Some((last, earlier)) = written.split_last() else { return Ok(()) };
        self.check_claim()?;
        // A record in the next journal has the number of records of the last journal that precede it, but not of
        // earlier journals. So these must be safe first.
        for journal in earlier {
            let synced = journal.sync().map_err(SnapshotError::io("cannot sync a journal"));
            synced.map_err(|error| error.of_file(state))?;
        }
        let Header { key, number, .. } = last.header();
        let write = |file: &mut File| {
            // First, so that a full disk does not leave another journal at each attempt. (Other failures do.)
            allocate(file, 0, file_bytes(filter.backend()))
                .map_err(SnapshotError::io("cannot write"))?;
            let journal = journal_after(state, key, number.saturating_add(1))
                .map_err(SnapshotError::io("cannot create a journal"))?;
            chain.lock().written.push(Arc::clone(&journal));
            let cut_at = |first, most, copy: &mut dyn FnMut() -> Option<Mixed>| {
                streams.cut(first, most, || ((), copy()));
            };
            let cut = EndOfCut(streams);
            streams.begin_cut(|stream| Writer::new(&journal, stream));
            let mut written = 0;
            let end = filter.write_part(Part::state(), &cut_at, |bytes| {
                match written + bytes.len() as u64 > most {
                    true => Err(io::Error::other("as the caller wishes")),
                    false => append(file, &mut written, bytes),
                }
            })?;
            drop(cut);
            // Truncate what was allocated beyond the end.
            file.set_len(end.bytes).map_err(SnapshotError::io("cannot write"))?;
            let set = journal.set_state(StateId { sums: end.sums, bytes: end.bytes });
            set.map_err(SnapshotError::io("cannot write the header of a journal"))
        };
        // If the state is in place, and only its folder could not be synced, the old one may come back.
        replace(state, write).map_err(|error| error.of_file(state))?;
        let mut chain = chain.lock();
        let written = Vec::from_iter(chain.written.pop());
        let old = std::mem::replace(&mut *chain, Chain { left: Vec::new(), written });
        drop(chain);
        // If one cannot be removed, it is in no chain, and the next start removes it.
        old.left.iter().for_each(|(path, _)| drop(fs::remove_file(path)));
        old.written.iter().for_each(|journal| remove(journal));
        Ok(())
    }

    /// Removes the last journal, which is empty, because the state has all changes. No thread makes changes any more.
    pub(super) fn close(&self) {
        let Some(last) = self.chain.lock().written.pop() else { return };
        let synced = sync_folder_of(&self.state);
        let others = journals_of(&self.state).map_or(usize::MAX, |journals| journals.len());
        // It must outlive any older one: its header records that the state has the older journal's changes.
        if synced.is_ok() && others == 1 {
            remove(&last);
        }
    }
}

/// Removes a journal, unless it is gone and another file has its name.
fn remove(journal: &Journal) {
    if is_at(journal.file(), journal.path()).is_ok_and(|it| it) {
        let _ = fs::remove_file(journal.path());
    }
}

/// Saves a new filter as the state at a path.
pub(super) fn save_state<S: PersistentHasher>(
    filter: &ConcurrentCuckooFilter<S>,
    path: &Path,
) -> Result<(), SnapshotError> {
    let write = |file: &mut File| {
        let mut written = 0;
        let write = |bytes: &[u8]| append(file, &mut written, bytes);
        filter.write_part(Part::state(), UNCUT, write).map(|_| ())
    };
    replace(path, write).map_err(|error| error.of_file(path))
}

/// Writes at the end of a new state, unless it gets longer than a file may be.
fn append(file: &mut File, written: &mut u64, bytes: &[u8]) -> io::Result<()> {
    *written += bytes.len() as u64;
    check_limit(*written)?;
    file.write_all(bytes)
}

/// Ends a cut, also after an error: later changes go to the next journal.
struct EndOfCut<'a>(&'a Streams<Writer>);

impl Drop for EndOfCut<'_> {
    fn drop(&mut self) {
        self.0.end_cut();
    }
}

/// Creates the journal that follows another one.
pub(super) fn journal_after(state: &Path, previous: u64, number: u64) -> io::Result<Arc<Journal>> {
    let key = random_number();
    let header = Header { key, previous, state: StateId::default(), number };
    let mut name = journals_begin(state.file_name().unwrap_or_default());
    name.push(number.to_string());
    let journal = Journal::create(&state.with_file_name(name), header)?;
    // A journal must have the permissions of its state, and its name must survive a power failure before any change is
    // recorded in it.
    let made = fs::metadata(state)
        .and_then(|state| copy_permissions(journal.file(), &state))
        .and_then(|()| sync_folder_of(state));
    made.inspect_err(|_| drop(fs::remove_file(journal.path())))?;
    Ok(Arc::new(journal))
}

/// Returns whether a journal has changes. `None` if it has no header yet: then it is empty.
pub fn has_changes(journal: &Path) -> io::Result<Option<bool>> {
    Ok(Reader::open(journal)?.map(|reader| !reader.is_empty()))
}
