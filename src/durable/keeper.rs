//! Syncs, and checkpoints.
//!
//! A thread syncs the journals at the interval. If each change is to be synced, whoever made one takes part in the next
//! sync: of those who wait for the one that is going on, the first makes the next, and the others find that it has ended
//! and began after their changes. Another thread makes a checkpoint when the journals are long. Syncs go on meanwhile.

use crate::durable::claim::Claim;
use crate::durable::error::{DurableError, Reason};
use crate::durable::journal::{CHUNK_BYTES, Header, Journal, StateId, Writer};
use crate::durable::mapping::Origin;
use crate::durable::names::{journal_of, journals_of};
use crate::durable::shared::{Shared, SyncPolicy};
use crate::durable::space::allocate;
use crate::layout::geometry::Mixed;
use crate::snapshot::error::{Reason as SnapshotReason, SnapshotError};
use crate::snapshot::file::paths::folder_of;
use crate::snapshot::file::replace::{Folder, replace};
use crate::snapshot::part::format::End;
use crate::snapshot::write::{Cut, Part, write};
use crate::stable_hash::PersistentHasher;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The journals may always be half as long as this.
const LEAST: u64 = 64 << 20;

/// A shorter interval would keep a core busy.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

/// How often the length of the journals is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// After a checkpoint has failed again and again, the next is made so much later.
const MOST_PAUSE: Duration = Duration::from_secs(600);

pub struct Keeper {
    own: Arc<Own>,
    threads: Vec<JoinHandle<()>>,
    /// Dropped last. A child that drops it leaves it to its parent.
    claim: Mutex<Option<Claim>>,
}

struct Own {
    path: PathBuf,
    policy: SyncPolicy,
    /// The journals of changes since the state, the oldest first. The last is written to.
    journals: Mutex<Vec<Journaled>>,
    origin: Origin,
    /// Held while a checkpoint copies the filter.
    copying: Mutex<()>,
    syncs: Mutex<Syncs>,
    /// A sync, or a checkpoint of the thread, has ended.
    done: Condvar,
    /// All is over.
    end: Condvar,
    /// Whether a sync has failed.
    has_failed: AtomicBool,
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
        self.bytes() > CHUNK_BYTES
    }
}

#[derive(Default)]
struct Syncs {
    /// The number of the last sync that has begun.
    begun: u64,
    /// The same of the last that has ended.
    ended: u64,
    failed: Option<Arc<io::Error>>,
    is_over: bool,
    /// How many [`Quiet`] there are.
    held_off: usize,
    /// Whether the thread makes a checkpoint.
    is_busy: bool,
}

/// While this lives, the thread begins no checkpoint.
pub struct Quiet {
    own: Arc<Own>,
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // In a child, the lock may be held by a thread that is not there.
        if self.own.origin.is_here() {
            self.own.syncs.lock().held_off -= 1;
        }
    }
}

impl Syncs {
    fn result(&self) -> Result<(), DurableError> {
        self.failed.clone().map_or(Ok(()), |error| Err(Reason::NotSynced(error).into()))
    }
}

impl Own {
    fn newest(&self) -> Option<Arc<Journal>> {
        self.journals.lock().last().and_then(Journaled::written).map(Arc::clone)
    }

    /// The journals that this process writes or wrote to.
    fn written(&self) -> Vec<Arc<Journal>> {
        self.journals.lock().iter().filter_map(Journaled::written).map(Arc::clone).collect()
    }

    /// Syncs all journals that this process writes to, unless this sync, or a later one, has ended. After a sync that
    /// failed, the pages may be gone, so all others fail, too.
    fn sync(&self, wanted: u64) -> Result<(), DurableError> {
        {
            let mut syncs = self.syncs.lock();
            loop {
                syncs.result()?;
                if syncs.ended >= wanted {
                    return Ok(());
                }
                // Of two at the same time, one might not see that the other failed.
                if syncs.ended == syncs.begun {
                    break;
                }
                self.done.wait(&mut syncs);
            }
            syncs.begun += 1;
        }
        let result = self.written().iter().try_for_each(|journal| journal.sync());
        let mut syncs = self.syncs.lock();
        if let Err(error) = result {
            syncs.failed = Some(Arc::new(error));
            self.has_failed.store(true, Ordering::Relaxed);
        }
        syncs.ended = syncs.begun;
        self.done.notify_all();
        syncs.result()
    }

    /// The number of the first sync that has all changes of before this call.
    fn next_sync(&self) -> u64 {
        // One that has begun may have been too early.
        self.syncs.lock().begun + 1
    }

    /// Syncs at an interval, until all is over.
    fn keep_synced(&self, interval: Duration) {
        loop {
            {
                let mut syncs = self.syncs.lock();
                while !syncs.is_over && !self.end.wait_for(&mut syncs, interval).timed_out() {}
                if syncs.is_over || syncs.failed.is_some() {
                    return;
                }
            }
            let _ = self.sync(u64::MAX);
        }
    }

    /// Begins a checkpoint of the thread's, unless one is not to be begun now.
    fn may_begin(&self) -> bool {
        let mut syncs = self.syncs.lock();
        syncs.is_busy = syncs.held_off == 0;
        syncs.is_busy
    }

    /// Makes a checkpoint when the journals are long.
    fn keep_short<S: PersistentHasher>(&self, shared: &Shared<S>) {
        // What an earlier process has left becomes part of the state.
        let (mut is_due, mut pause) = (self.journals.lock().len() > 1, LOOK);
        loop {
            if is_due && self.may_begin() {
                // The journal has all changes, so a failure waits for the next try, and then twice as long.
                pause = match checkpoint(self, shared, u64::MAX) {
                    Ok(()) => LOOK,
                    Err(_) => (2 * pause).min(MOST_PAUSE),
                };
                self.syncs.lock().is_busy = false;
                self.done.notify_all();
            }
            let mut syncs = self.syncs.lock();
            let until = Instant::now() + pause;
            while !syncs.is_over && !self.end.wait_until(&mut syncs, until).timed_out() {}
            if syncs.is_over {
                return;
            }
            drop(syncs);
            let state = fs::metadata(&self.path).map_or(0, |about| about.len());
            // While somebody makes a checkpoint, there are two journals, and no need for another one.
            is_due = self.copying.try_lock().is_some_and(|_alone| {
                let journals = self.journals.lock();
                let bytes: u64 = journals.iter().map(Journaled::bytes).sum();
                // With the next journal, while the checkpoint is made, they are no longer than allowed.
                journals.len() > 1 || bytes > state.max(LEAST) / 2
            });
        }
    }
}

/// Where a checkpoint cuts the journal.
impl<S> Cut for Shared<S> {
    fn copy<A>(
        &self,
        first: Mixed,
        most: Option<Mixed>,
        copy: impl FnOnce() -> (A, Option<Mixed>),
    ) -> A {
        self.streams.cut(first, most, copy)
    }
}

impl Keeper {
    pub fn new<S: PersistentHasher + Send + Sync + 'static>(
        path: PathBuf,
        policy: SyncPolicy,
        journals: Vec<Journaled>,
        claim: Claim,
        shared: &Arc<Shared<S>>,
    ) -> io::Result<Keeper> {
        let own = Arc::new(Own {
            path,
            policy,
            journals: Mutex::new(journals),
            origin: Origin::new()?,
            copying: Mutex::new(()),
            syncs: Mutex::default(),
            done: Condvar::new(),
            end: Condvar::new(),
            has_failed: AtomicBool::new(false),
        });
        let mut keeper = Keeper { own, threads: Vec::new(), claim: Mutex::new(Some(claim)) };
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        if let SyncPolicy::Every(interval) = policy {
            let own = Arc::clone(&keeper.own);
            keeper.threads.push(
                thread("koel-sync").spawn(move || own.keep_synced(interval.max(LEAST_INTERVAL)))?,
            );
        }
        let (own, shared) = (Arc::clone(&keeper.own), Arc::clone(shared));
        keeper.threads.push(thread("koel-checkpoint").spawn(move || own.keep_short(&shared))?);
        Ok(keeper)
    }

    pub fn path(&self) -> &Path {
        &self.own.path
    }

    /// Fails in a child of the process that opened the filter.
    #[inline]
    pub fn check_process(&self) -> Result<(), DurableError> {
        if self.own.origin.is_here() { Ok(()) } else { Err(Reason::Forked.into()) }
    }

    /// Holds off checkpoints of the thread, and waits for the one that it makes.
    pub fn quiet(&self) -> Quiet {
        let mut syncs = self.own.syncs.lock();
        syncs.held_off += 1;
        while syncs.is_busy {
            self.own.done.wait(&mut syncs);
        }
        drop(syncs);
        Quiet { own: Arc::clone(&self.own) }
    }

    #[inline]
    pub fn is_of_parent(&self) -> bool {
        !self.own.origin.is_here()
    }

    /// In a child of the process that opened the filter: closes the file that both have locked, so that the lock ends
    /// with the parent.
    pub fn leave_to_parent(&self) {
        if !self.own.origin.is_here() {
            self.claim.lock().take();
        }
    }

    /// Prevents checkpoints from copying.
    pub fn pause(&self) -> MutexGuard<'_, ()> {
        self.own.copying.lock()
    }

    /// Waits for a sync if each change is to be synced. Fails if changes are no longer synced as they should be.
    #[inline]
    pub fn wait(&self) -> Result<(), DurableError> {
        match self.own.policy {
            SyncPolicy::Each => self.own.sync(self.own.next_sync()),
            SyncPolicy::Every(_) if self.own.has_failed.load(Ordering::Relaxed) => {
                self.own.syncs.lock().result()
            }
            _ => Ok(()),
        }
    }

    pub fn sync(&self) -> Result<(), DurableError> {
        self.check_process()?;
        self.own.sync(u64::MAX)
    }

    pub fn checkpoint<S: PersistentHasher>(&self, shared: &Shared<S>) -> Result<(), DurableError> {
        self.check_process()?;
        Ok(checkpoint(&self.own, shared, u64::MAX)?)
    }

    /// Makes a checkpoint that fails when it has written so many bytes.
    pub fn fail_checkpoint<S: PersistentHasher>(
        &self,
        shared: &Shared<S>,
        most: u64,
    ) -> Result<(), DurableError> {
        Ok(checkpoint(&self.own, shared, most)?)
    }

    /// The bytes of the journals.
    pub fn journal_bytes(&self) -> u64 {
        self.own.journals.lock().iter().map(Journaled::bytes).sum()
    }

    /// Ends all that goes on, and leaves the state as the only file. Nothing changes any more.
    pub fn close<S: PersistentHasher>(mut self, shared: &Shared<S>) -> Result<(), DurableError> {
        self.check_process()?;
        self.end_threads();
        let is_written = |journals: &[Journaled]| {
            journals.len() > 1 || journals.iter().any(Journaled::has_records)
        };
        let is_due = is_written(&self.own.journals.lock());
        if is_due {
            checkpoint(&self.own, shared, u64::MAX)?;
        }
        // It is empty. But as long as there is an older one, it tells that the state has the changes of that.
        let last = self.own.journals.lock().pop();
        let folder = Folder::open(folder_of(&self.own.path)).and_then(|folder| folder.sync());
        let others = journals_of(&self.own.path).map_or(usize::MAX, |journals| journals.len());
        if let Some(last) = last
            && folder.is_ok()
            && others == 1
        {
            let _ = fs::remove_file(last.path());
        }
        Ok(())
    }

    fn end_threads(&mut self) {
        self.own.syncs.lock().is_over = true;
        self.own.end.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if !self.own.origin.is_here() {
            // The threads are the parent's, and so are the files.
            std::mem::take(&mut self.threads).into_iter().for_each(std::mem::forget);
            return;
        }
        self.end_threads();
        if self.own.policy != SyncPolicy::Never {
            let _ = self.own.sync(u64::MAX);
        }
        // Nothing was recorded in the last journal, and those before are as they were. But if a checkpoint has replaced the
        // state, and then failed, that one tells that the state has the changes of those.
        let journals = self.own.journals.lock();
        if let [.., _, last] = &journals[..]
            && !last.has_records()
            && last.written().is_some_and(|it| it.header().state == StateId::default())
        {
            let _ = fs::remove_file(last.path());
        }
    }
}

/// Ends a cut, also if a copy panics: what comes after it goes to the new journal.
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
    // Its name has to survive a power failure before anything is recorded in it.
    let synced = Folder::open(folder_of(path)).and_then(|folder| folder.sync());
    match synced {
        Ok(()) => Ok(Arc::new(journal)),
        Err(error) => {
            let _ = fs::remove_file(journal.path());
            Err(error)
        }
    }
}

/// Replaces the state and the journals. Fails on purpose when more than `most` bytes are written.
fn checkpoint<S: PersistentHasher>(
    own: &Own,
    shared: &Shared<S>,
    most: u64,
) -> Result<(), SnapshotError> {
    let _copying = own.copying.lock();
    let Some(last) = own.newest() else { return Ok(()) };
    // What follows in the next journal tells how many records it follows in the last one, but not in those before: they
    // have to be safe.
    for journal in own.written().iter().filter(|journal| !Arc::ptr_eq(journal, &last)) {
        let synced = journal.sync();
        synced.map_err(|error| {
            SnapshotReason::io("cannot sync a journal")(error).of(Some(&own.path))
        })?;
    }
    let Header { key, number, .. } = last.header();
    let replaced = replace(&own.path, |file| {
        // First, so that a full disk does not leave a journal more at each try.
        allocate(file, 0, shared.filter.backend().heap_bytes() as u64)
            .map_err(SnapshotReason::io("cannot write"))?;
        let journal = journal_after(&own.path, key, number.saturating_add(1))
            .map_err(SnapshotReason::io("cannot create a journal"))?;
        own.journals.lock().push(Journaled::Written(Arc::clone(&journal)));
        let cut = EndOfCut(shared);
        shared.streams.begin_cut(|stream| Writer::new(&journal, stream));
        let mut bytes_written = 0;
        let write_all = |bytes: &[u8]| {
            bytes_written += bytes.len() as u64;
            let written = match bytes_written > most {
                true => Err(io::Error::other("as the caller wishes")),
                false => file.write_all(bytes),
            };
            written.map_err(SnapshotReason::io("cannot write"))
        };
        let about = (shared.filter.capacity(), shared.filter.hasher());
        let (end, _) = write(shared.filter.backend(), about, Part::FILE, shared, write_all)?;
        drop(cut);
        // What was allocated behind the end goes.
        file.set_len(bytes_written).map_err(SnapshotReason::io("cannot write"))?;
        let End { sums, bytes, .. } = end;
        let set = journal.set_state(StateId { sums, bytes });
        set.map_err(SnapshotReason::io("cannot write the header of a journal"))
    });
    // If it is in place, and only its folder could not be synced, the old state may come back.
    replaced.map_err(|reason| reason.of(Some(&own.path)))?;
    let mut journals = own.journals.lock();
    let last = journals.pop();
    let old = std::mem::replace(&mut *journals, last.into_iter().collect());
    drop(journals);
    // What is left is of no state, and removed by the next start.
    old.iter().for_each(|it| drop(fs::remove_file(it.path())));
    Ok(())
}
