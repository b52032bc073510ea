//! The journals beside the state, and the checkpoint that replaces them and the state.

use crate::filter::ConcurrentCuckooFilter;
use crate::journal::file::header::{Header, StateId};
use crate::journal::file::names::{journal_of, journals_of};
use crate::journal::file::record::PAGE_BYTES;
use crate::journal::file::space::allocate;
use crate::journal::file::write::{Journal, Writer};
use crate::journal::streams::Streams;
use crate::layout::geometry::Mixed;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::format::End;
use crate::snapshot::header::Part;
use crate::snapshot::replace::{copy_permissions, replace, sync_folder_of};
use crate::snapshot::write::{UNCUT, write};
use crate::stable_hash::PersistentHasher;
use parking_lot::{Mutex, MutexGuard};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The journals may always be half as long as this.
const LEAST: u64 = 64 << 20;

/// The journals of changes since the state.
pub struct Journals {
    state: PathBuf,
    /// The oldest first. The last is written to, and during a checkpoint the one before, too.
    all: Mutex<Vec<Journaled>>,
    /// Held while a checkpoint copies the filter.
    copying: Mutex<()>,
}

/// A journal that may have to be replayed.
pub enum Journaled {
    /// Of an earlier process.
    Left {
        path: PathBuf,
        bytes: u64,
    },
    Written(Arc<Journal>),
}

impl Journaled {
    pub fn path(&self) -> &Path {
        match self {
            Journaled::Left { path, .. } => path,
            Journaled::Written(journal) => journal.path(),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Journaled::Left { bytes, .. } => *bytes,
            Journaled::Written(journal) => journal.bytes(),
        }
    }

    /// The journal, if this process writes or wrote to it.
    fn written(&self) -> Option<&Arc<Journal>> {
        match self {
            Journaled::Written(journal) => Some(journal),
            Journaled::Left { .. } => None,
        }
    }

    /// Whether anything was recorded, perhaps.
    fn has_records(&self) -> bool {
        self.bytes() > PAGE_BYTES
    }
}

impl Journals {
    pub fn new(state: PathBuf, all: Vec<Journaled>) -> Self {
        Journals { state, all: Mutex::new(all), copying: Mutex::default() }
    }

    /// The path of the state.
    pub fn state(&self) -> &Path {
        &self.state
    }

    pub fn bytes(&self) -> u64 {
        self.all.lock().iter().map(Journaled::bytes).sum()
    }

    /// Whether there is one that an earlier process, or a checkpoint that failed, has left.
    pub fn are_several(&self) -> bool {
        self.all.lock().len() > 1
    }

    /// Whether it is time for a checkpoint.
    pub fn are_long(&self) -> bool {
        let state = fs::metadata(&self.state).map_or(0, |about| about.len());
        // While somebody makes a checkpoint, there are two journals, and no need for another one.
        self.copying.try_lock().is_some_and(|_alone| {
            // With the next journal, while the checkpoint is made, they are no longer than allowed.
            self.are_several() || self.bytes() > state.max(LEAST) / 2
        })
    }

    /// Prevents checkpoints from copying.
    pub fn pause(&self) -> MutexGuard<'_, ()> {
        self.copying.lock()
    }

    /// The journals that this process writes or wrote to.
    fn written(&self) -> Vec<Arc<Journal>> {
        self.all.lock().iter().filter_map(Journaled::written).map(Arc::clone).collect()
    }

    /// Syncs all journals that this process writes to.
    pub fn sync(&self) -> io::Result<()> {
        self.written().iter().try_for_each(|journal| journal.sync())
    }

    /// Replaces the state and the journals. Fails on purpose when more than `most` bytes are written.
    pub fn checkpoint<S: PersistentHasher>(
        &self,
        shared: &Shared<S>,
        most: u64,
    ) -> Result<(), SnapshotError> {
        let _copying = self.copying.lock();
        let written = self.written();
        let Some((last, earlier)) = written.split_last() else { return Ok(()) };
        // What follows in the next journal tells how many records it follows in the last one, but not in those before:
        // they have to be safe.
        for journal in earlier {
            let synced = journal.sync();
            synced.map_err(|error| {
                SnapshotError::io("cannot sync a journal")(error).of_file(&self.state)
            })?;
        }
        let Header { key, number, .. } = last.header();
        let replaced = replace(&self.state, |file| {
            // First, so that a full disk does not leave a journal more at each try. (Other failures do.)
            allocate(file, 0, shared.filter.backend().heap_bytes() as u64)
                .map_err(SnapshotError::io("cannot write"))?;
            let journal = journal_after(&self.state, key, number.saturating_add(1))
                .map_err(SnapshotError::io("cannot create a journal"))?;
            self.all.lock().push(Journaled::Written(Arc::clone(&journal)));
            let cut_at = |first, most, copy: &mut dyn FnMut() -> Option<Mixed>| {
                shared.streams.cut(first, most, || ((), copy()));
            };
            let cut = EndOfCut(shared);
            shared.streams.begin_cut(|stream| Writer::new(&journal, stream));
            let mut bytes_written = 0;
            let write_all = |bytes: &[u8]| {
                bytes_written += bytes.len() as u64;
                let written = match bytes_written > most {
                    true => Err(io::Error::other("as the caller wishes")),
                    false => file.write_all(bytes),
                };
                written.map_err(SnapshotError::io("cannot write"))
            };
            let about = (shared.filter.capacity(), shared.filter.hasher());
            let (end, _) =
                write(shared.filter.backend(), about, Part::state(), &cut_at, write_all)?;
            drop(cut);
            // What was allocated behind the end goes.
            file.set_len(bytes_written).map_err(SnapshotError::io("cannot write"))?;
            let End { sums, bytes, .. } = end;
            let set = journal.set_state(StateId { sums, bytes });
            set.map_err(SnapshotError::io("cannot write the header of a journal"))
        });
        // If it is in place, and only its folder could not be synced, the old state may come back.
        replaced.map_err(|error| error.of_file(&self.state))?;
        let mut all = self.all.lock();
        let last = all.pop();
        let old = std::mem::replace(&mut *all, last.into_iter().collect());
        drop(all);
        // What is left is of no state, and removed by the next start.
        old.iter().for_each(|it| drop(fs::remove_file(it.path())));
        Ok(())
    }

    /// Leaves no journal beside the state, if that has all changes. Nothing changes any more.
    pub fn close<S: PersistentHasher>(&self, shared: &Shared<S>) -> Result<(), SnapshotError> {
        let is_due = self.are_several() || self.all.lock().iter().any(Journaled::has_records);
        if is_due {
            self.checkpoint(shared, u64::MAX)?;
        }
        // It is empty. But as long as there is an older one, it tells that the state has the changes of that.
        let last = self.all.lock().pop();
        let synced = sync_folder_of(&self.state);
        let others = journals_of(&self.state).map_or(usize::MAX, |journals| journals.len());
        if let Some(last) = last
            && synced.is_ok()
            && others == 1
        {
            let _ = fs::remove_file(last.path());
        }
        Ok(())
    }

    /// Removes the last journals if nothing was recorded in them, and those before are as they were.
    pub fn leave(&self) {
        let mut all = self.all.lock();
        // If a checkpoint failed after it had replaced the state, the last journal says that the state has the changes
        // of the earlier journals.
        while let [_, .., last] = &all[..]
            && !last.has_records()
            && last.written().is_some_and(|it| it.header().state == StateId::default())
        {
            let _ = fs::remove_file(last.path());
            all.pop();
        }
    }
}

/// Saves a new filter as the state at a path.
pub fn save_state<S: PersistentHasher>(
    filter: &ConcurrentCuckooFilter<S>,
    path: &Path,
) -> Result<(), SnapshotError> {
    let replaced = replace(path, |file| {
        let write_all =
            |bytes: &[u8]| file.write_all(bytes).map_err(SnapshotError::io("cannot write"));
        let about = (filter.capacity(), filter.hasher());
        write(filter.backend(), about, Part::state(), UNCUT, write_all).map(|_| ())
    });
    replaced.map_err(|error| error.of_file(path))
}

/// Ends a cut, also after an error: what comes after it goes to the new journal.
struct EndOfCut<'a, S>(&'a Shared<S>);

impl<S> Drop for EndOfCut<'_, S> {
    fn drop(&mut self) {
        self.0.streams.end_cut();
    }
}

/// Creates the journal that follows another one.
pub fn journal_after(path: &Path, previous: u64, number: u64) -> io::Result<Arc<Journal>> {
    let key = loop {
        let key = ahash::RandomState::new().hash_one(number);
        if key != 0 {
            break key;
        }
    };
    let header = Header { key, previous, state: StateId::default(), number };
    let journal = Journal::create(&journal_of(path, number), header)?;
    // Whoever may open the state may open its journals. And its name has to survive a power failure before anything is
    // recorded in it.
    let made = fs::metadata(path)
        .and_then(|state| copy_permissions(journal.file(), &state))
        .and_then(|()| sync_folder_of(path));
    match made {
        Ok(()) => Ok(Arc::new(journal)),
        Err(error) => {
            let _ = fs::remove_file(journal.path());
            Err(error)
        }
    }
}

/// When changes are made to survive a power failure. (They always survive the end of the process.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncPolicy {
    /// Before a call that has changed something returns. Threads that wait at the same time share a sync.
    Each,
    /// At this interval.
    Every(Duration),
    /// When the system writes them.
    Never,
}

impl Default for SyncPolicy {
    /// Every second.
    fn default() -> Self {
        SyncPolicy::Every(Duration::from_secs(1))
    }
}

pub struct Shared<S> {
    pub filter: ConcurrentCuckooFilter<S>,
    pub streams: Streams<Writer>,
}
