//! Syncs, and checkpoints.
//!
//! A thread syncs the journals at the interval. If each change is to be synced, whoever made one takes part in the next
//! sync: of those who wait for the one that is going on, the first makes the next, and the others find that it has
//! ended and began after their changes. Another thread makes a checkpoint when the journals are long. Syncs go on
//! meanwhile.

use crate::durable::claim::Claim;
use crate::durable::error::{DurableError, DurableErrorKind};
use crate::durable::journals::Journals;
use crate::durable::journals::{Shared, SyncPolicy};
use crate::journal::file::mapping::Origin;
use crate::stable_hash::PersistentHasher;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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
    journals: Journals,
    policy: SyncPolicy,
    origin: Origin,
    syncs: Mutex<Syncs>,
    /// A sync, or a checkpoint of the thread, has ended.
    done: Condvar,
    /// All is over.
    end: Condvar,
    /// Whether a sync has failed. `Relaxed`: it only says whether to look at `syncs`, and whoever sees it late is told
    /// with its next change.
    has_failed: AtomicBool,
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
        self.failed.clone().map_or(Ok(()), |error| Err(DurableError::not_synced(error)))
    }
}

impl Own {
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
        let result = self.journals.sync();
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
        syncs.is_busy = syncs.held_off == 0 && !syncs.is_over;
        syncs.is_busy
    }

    /// Makes a checkpoint when the journals are long.
    fn keep_short<S: PersistentHasher>(&self, shared: &Shared<S>) {
        // What an earlier process has left becomes part of the state.
        let (mut is_due, mut pause) = (self.journals.are_several(), LOOK);
        loop {
            if is_due && self.may_begin() {
                // The journal has all changes, so a failure waits for the next try, and then twice as long.
                pause = match self.journals.checkpoint(shared, u64::MAX) {
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
            is_due = self.journals.are_long();
        }
    }
}

impl Keeper {
    pub fn new<S: PersistentHasher + Send + Sync + 'static>(
        journals: Journals,
        policy: SyncPolicy,
        claim: Claim,
        shared: &Arc<Shared<S>>,
    ) -> io::Result<Keeper> {
        let own = Arc::new(Own {
            journals,
            policy,
            origin: Origin::new()?,
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
        self.own.journals.state()
    }

    /// Fails in a child of the process that opened the filter.
    #[inline]
    pub fn check_process(&self) -> Result<(), DurableError> {
        if self.own.origin.is_here() {
            return Ok(());
        }
        let text = "the filter was opened before this process was forked, and only the process that opened it \
                    may change it";
        Err(DurableError::new(DurableErrorKind::Forked, text))
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
        self.own.journals.pause()
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
        Ok(self.own.journals.checkpoint(shared, u64::MAX)?)
    }

    /// Makes a checkpoint that fails when it has written so many bytes.
    pub fn fail_checkpoint<S: PersistentHasher>(
        &self,
        shared: &Shared<S>,
        most: u64,
    ) -> Result<(), DurableError> {
        Ok(self.own.journals.checkpoint(shared, most)?)
    }

    /// The bytes of the journals.
    pub fn journal_bytes(&self) -> u64 {
        self.own.journals.bytes()
    }

    /// Ends all that goes on, and leaves the state as the only file. Nothing changes any more.
    pub fn close<S: PersistentHasher>(mut self, shared: &Shared<S>) -> Result<(), DurableError> {
        self.check_process()?;
        self.end_threads();
        Ok(self.own.journals.close(shared)?)
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
        self.own.journals.leave();
    }
}
