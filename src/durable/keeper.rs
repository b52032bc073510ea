//! When syncs and checkpoints are made.
//!
//! One thread syncs the journals at the interval of the [`SyncPolicy`]. With [`SyncPolicy::Each`], callers sync
//! together: of the callers that wait for the present sync, the first makes the next one, and that includes the changes
//! of all others. Another thread makes a checkpoint when the journals are long. Syncs go on meanwhile.

use crate::durable::checkpoint::{Journals, Shared};
use crate::durable::claim::Claim;
use crate::durable::error::{DurableError, DurableErrorKind};
use crate::hash::PersistentHasher;
use memmap2::{MmapOptions, MmapRaw};
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

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

/// The longest interval between syncs: the clock has no time that is much later.
const MOST_INTERVAL: Duration = Duration::from_secs(1 << 30);

/// The shortest interval between syncs. A shorter one would keep a core busy.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

/// The interval at which the length of the journals is checked.
const LOOK: Duration = Duration::from_secs(1);

/// The longest pause after checkpoints that failed. It doubles with each of them.
const MOST_PAUSE: Duration = Duration::from_secs(600);

pub struct Keeper {
    work: Arc<Work>,
    threads: Vec<JoinHandle<()>>,
    /// Dropped last. A child that drops it leaves it to its parent.
    claim: Mutex<Option<Claim>>,
}

/// The state that the keeper's threads share with the callers.
struct Work {
    journals: Arc<Journals>,
    policy: SyncPolicy,
    origin: Origin,
    progress: Mutex<Progress>,
    /// Notified when a sync, or a checkpoint of the thread, has ended.
    done: Condvar,
    /// Notified when the threads have to end.
    end: Condvar,
    /// Whether a sync has failed. Relaxed: it only says whether to look at `progress`, and a thread that sees it late
    /// learns of the failure with its next change.
    has_failed: AtomicBool,
}

#[derive(Default)]
struct Progress {
    /// The number of the last sync that has begun.
    begun: u64,
    /// The number of the last sync that has ended.
    ended: u64,
    failed: Option<Arc<io::Error>>,
    /// Whether the threads have to end.
    is_over: bool,
    /// The number of [`Quiet`] values.
    holds: usize,
    /// Whether the thread is making a checkpoint.
    is_copying: bool,
}

/// Keeps the thread from beginning a checkpoint, until it is dropped.
pub struct Quiet {
    work: Arc<Work>,
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // In a child, a thread that does not exist there may hold the lock.
        if self.work.origin.is_here() {
            self.work.progress.lock().holds -= 1;
        }
    }
}

impl Progress {
    fn result(&self) -> Result<(), DurableError> {
        self.failed.clone().map_or(Ok(()), |error| Err(DurableError::not_synced(error)))
    }
}

impl Work {
    /// Syncs all journals that this process writes to, unless sync number `wanted`, or a later one, has ended. After a
    /// sync that failed, the pages may be gone, so all later syncs fail, too.
    fn sync(&self, wanted: u64) -> Result<(), DurableError> {
        let mut progress = self.progress.lock();
        loop {
            progress.result()?;
            if progress.ended >= wanted {
                return Ok(());
            }
            // One at a time, because of two, one might not see that the other failed.
            if progress.ended == progress.begun {
                break;
            }
            self.done.wait(&mut progress);
        }
        progress.begun += 1;
        drop(progress);
        let result = self.journals.sync();
        let mut progress = self.progress.lock();
        if let Err(error) = result {
            progress.failed = Some(Arc::new(error));
            self.has_failed.store(true, Ordering::Relaxed);
        }
        progress.ended = progress.begun;
        self.done.notify_all();
        progress.result()
    }

    /// Waits until the time has come, or the threads have to end. Returns whether they go on.
    fn pause(&self, until: Instant) -> bool {
        let mut progress = self.progress.lock();
        while !progress.is_over && !self.end.wait_until(&mut progress, until).timed_out() {}
        !progress.is_over
    }

    fn sync_at(&self, interval: Duration) {
        while self.pause(Instant::now() + interval) && self.sync(u64::MAX).is_ok() {}
    }

    fn make_checkpoints<S: PersistentHasher>(&self, shared: &Shared<S>) {
        // The journals of an earlier process become part of the state.
        let (mut is_due, mut pause) = (self.journals.has_leftovers(), LOOK);
        loop {
            if is_due && self.may_copy() {
                // The journals have all changes, so a failure waits for the next attempt.
                pause = match shared.checkpoint(u64::MAX) {
                    Ok(()) => LOOK,
                    Err(_) => (2 * pause).min(MOST_PAUSE),
                };
                self.progress.lock().is_copying = false;
                self.done.notify_all();
            }
            if !self.pause(Instant::now() + pause) {
                return;
            }
            is_due = self.journals.call_for_checkpoint();
        }
    }

    /// Returns whether the thread may begin a checkpoint, and if so, notes that it has.
    fn may_copy(&self) -> bool {
        let mut progress = self.progress.lock();
        progress.is_copying = progress.holds == 0 && !progress.is_over;
        progress.is_copying
    }
}

impl Keeper {
    pub fn new<S: PersistentHasher + Send + Sync + 'static>(
        policy: SyncPolicy,
        claim: Claim,
        shared: &Arc<Shared<S>>,
    ) -> io::Result<Keeper> {
        let work = Arc::new(Work {
            journals: Arc::clone(&shared.journals),
            policy,
            origin: Origin::new()?,
            progress: Mutex::default(),
            done: Condvar::new(),
            end: Condvar::new(),
            has_failed: AtomicBool::new(false),
        });
        let mut keeper = Keeper { work, threads: Vec::new(), claim: Mutex::new(Some(claim)) };
        let thread = |name: &str| thread::Builder::new().name(name.into());
        if let SyncPolicy::Every(interval) = policy {
            let (work, interval) =
                (Arc::clone(&keeper.work), interval.clamp(LEAST_INTERVAL, MOST_INTERVAL));
            keeper.threads.push(thread("koel-sync").spawn(move || work.sync_at(interval))?);
        }
        let (work, shared) = (Arc::clone(&keeper.work), Arc::clone(shared));
        let checkpoints =
            thread("koel-checkpoint").spawn(move || work.make_checkpoints(&shared))?;
        keeper.threads.push(checkpoints);
        Ok(keeper)
    }

    /// Fails in a child of the process that opened the filter.
    #[inline]
    pub fn check_process(&self) -> Result<(), DurableError> {
        if self.work.origin.is_here() {
            return Ok(());
        }
        let text = "the filter was opened before this process was forked, and only the process that opened it \
                    may change it";
        Err(DurableError::new(DurableErrorKind::Forked, text))
    }

    #[inline]
    pub fn is_of_parent(&self) -> bool {
        !self.work.origin.is_here()
    }

    /// Holds off checkpoints of the thread, and waits for the one that it is making.
    pub fn quiet(&self) -> Quiet {
        let mut progress = self.work.progress.lock();
        progress.holds += 1;
        while progress.is_copying {
            self.work.done.wait(&mut progress);
        }
        Quiet { work: Arc::clone(&self.work) }
    }

    /// In a child of the process that opened the filter: closes the file that both have locked, so that the lock ends
    /// with the parent.
    pub fn leave_to_parent(&self) {
        if self.is_of_parent() {
            self.claim.lock().take();
        }
    }

    /// Waits for a sync if each change is to be synced. Fails if changes are no longer synced as they should be.
    #[inline]
    pub fn wait(&self) -> Result<(), DurableError> {
        match self.work.policy {
            SyncPolicy::Each => {
                // A sync that has begun may not include this thread's changes.
                let next = self.work.progress.lock().begun + 1;
                self.work.sync(next)
            }
            SyncPolicy::Every(_) if self.work.has_failed.load(Ordering::Relaxed) => {
                self.work.progress.lock().result()
            }
            _ => Ok(()),
        }
    }

    pub fn sync(&self) -> Result<(), DurableError> {
        self.check_process()?;
        self.work.sync(u64::MAX)
    }

    /// Ends the threads.
    pub fn end(&mut self) {
        self.work.progress.lock().is_over = true;
        self.work.end.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.is_of_parent() {
            // The threads are the parent's, and so are the files.
            std::mem::take(&mut self.threads).into_iter().for_each(std::mem::forget);
            return;
        }
        self.end();
        if self.work.policy != SyncPolicy::Never {
            let _ = self.work.sync(u64::MAX);
        }
        self.work.journals.leave();
    }
}

/// Tells the process that made it from its children, which must not write to the mappings that they share with it.
struct Origin {
    process: u32,
    /// A page that Linux clears in a child, so that no system call is needed. Relaxed: its mark is stored before
    /// another thread sees it, and never again.
    page: Option<MmapRaw>,
}

impl Origin {
    fn new() -> io::Result<Self> {
        let page = MmapRaw::from(MmapOptions::new().len(1).map_anon()?);
        let origin = Origin { process: std::process::id(), page: cleared_in_a_child(page) };
        origin.mark().inspect(|mark| mark.store(1, Ordering::Relaxed));
        Ok(origin)
    }

    #[inline]
    fn mark(&self) -> Option<&AtomicU64> {
        // SAFETY: a page is aligned, is longer than a word, and lives as long as the result.
        #[allow(unsafe_code)]
        self.page.as_ref().map(|page| unsafe { &*page.as_ptr().cast() })
    }

    #[inline]
    fn is_here(&self) -> bool {
        match self.mark() {
            Some(mark) => mark.load(Ordering::Relaxed) == 1,
            None => std::process::id() == self.process,
        }
    }
}

#[cfg(target_os = "linux")]
fn cleared_in_a_child(page: MmapRaw) -> Option<MmapRaw> {
    // SAFETY: the page is anonymous and private, and nobody has anything there.
    #[allow(unsafe_code)]
    let done =
        unsafe { libc::madvise(page.as_mut_ptr().cast(), page.len(), libc::MADV_WIPEONFORK) };
    (done == 0).then_some(page)
}

#[cfg(not(target_os = "linux"))]
fn cleared_in_a_child(_: MmapRaw) -> Option<MmapRaw> {
    None
}
