//! When syncs and checkpoints are made.
//!
//! One thread syncs the journal at the interval of the [`SyncPolicy`]. With [`SyncPolicy::Each`], callers sync
//! together: of the callers that wait for the present sync, the first makes the next one, and that includes the changes
//! of all others. Another thread makes a checkpoint when the journal is long. Syncs go on meanwhile.

use crate::backend::Backend;
use crate::durable::checkpoint::Journals;
use crate::durable::error::{DurableError, DurableErrorKind};
use crate::filter::ConcurrentCuckooFilter;
use crate::hash::HashedBy;
use crate::journal::streams::Streams;
use crate::journal::writer::Writer;
use crate::snapshot::error::SnapshotError;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// When changes are made to survive a power failure. They always survive the end of the process.
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

/// The interval at which the length of the journal is checked.
const LOOK: Duration = Duration::from_secs(1);

/// The longest pause after checkpoints that failed. It doubles with each of them.
const MOST_PAUSE: Duration = Duration::from_secs(600);

/// A filter with any hasher.
pub(super) trait Stored: Send + Sync {
    fn backend(&self) -> &Backend;
}

impl<S: Send + Sync> Stored for ConcurrentCuckooFilter<S> {
    fn backend(&self) -> &Backend {
        self.backend()
    }
}

/// A durable filter, its records and its files, which the threads share with the callers.
pub(super) struct Journaled {
    filter: Arc<dyn Stored>,
    hasher: HashedBy,
    pub streams: Streams<Writer>,
    pub journals: Journals,
    policy: SyncPolicy,
    /// The number of [`FORKS`] of the process that opened the filter.
    forks: u64,
    syncs: Mutex<Syncs>,
    /// Notified when a sync has ended.
    done: Condvar,
    /// Notified when the threads have to end.
    end: Condvar,
    /// Whether a change has to wait for a sync, or to report one that has failed. Relaxed: it only says whether to look
    /// at `syncs`, and a thread that sees a failure late learns of it with its next change.
    asks: AtomicBool,
}

#[derive(Default)]
struct Syncs {
    /// The number of the last sync that has begun.
    begun: u64,
    /// The number of the last sync that has ended.
    ended: u64,
    failed: Option<DurableError>,
    is_over: bool,
}

impl Syncs {
    fn result(&self) -> Result<(), DurableError> {
        self.failed.clone().map_or(Ok(()), Err)
    }
}

impl Journaled {
    pub(super) fn new(
        filter: Arc<dyn Stored>,
        hasher: HashedBy,
        streams: Streams<Writer>,
        journals: Journals,
        policy: SyncPolicy,
    ) -> io::Result<Self> {
        Ok(Journaled {
            filter,
            hasher,
            streams,
            journals,
            policy,
            forks: forks()?,
            syncs: Mutex::default(),
            done: Condvar::new(),
            end: Condvar::new(),
            asks: AtomicBool::new(policy == SyncPolicy::Each),
        })
    }

    /// Returns whether this process was forked from the one that opened the filter. It must not write to the mappings
    /// that it shares with that one.
    #[inline]
    pub(super) fn is_forked_child(&self) -> bool {
        FORKS.load(Ordering::Relaxed) != self.forks
    }

    #[inline]
    pub(super) fn check_process(&self) -> Result<(), DurableError> {
        if !self.is_forked_child() {
            return Ok(());
        }
        let text = "the filter was opened before this process was forked, and only the process that opened it \
                    may change it";
        Err(DurableError::new(DurableErrorKind::Forked, text))
    }

    pub(super) fn checkpoint(&self) -> Result<(), SnapshotError> {
        self.journals.checkpoint(self.filter.backend(), &self.hasher, &self.streams)
    }

    /// Waits for a sync if each change is to be synced. Fails if changes are no longer synced as they should be.
    #[inline(always)] // a call would save registers
    pub(super) fn wait(&self) -> Result<(), DurableError> {
        if self.asks.load(Ordering::Relaxed) { self.wait_for_sync() } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn wait_for_sync(&self) -> Result<(), DurableError> {
        let syncs = self.syncs.lock();
        if self.policy != SyncPolicy::Each {
            return syncs.result();
        }
        // A sync that has begun may not include this thread's changes.
        let next = syncs.begun + 1;
        drop(syncs);
        self.sync(next)
    }

    /// Syncs the journals, unless sync number `wanted`, or a later one, has ended. After a sync that failed, the pages
    /// may be gone, so all later syncs fail, too.
    pub(super) fn sync(&self, wanted: u64) -> Result<(), DurableError> {
        let mut syncs = self.syncs.lock();
        loop {
            syncs.result()?;
            if syncs.ended >= wanted {
                return Ok(());
            }
            // One at a time, because of two, one might not see that the other failed.
            if syncs.ended == syncs.begun {
                break;
            }
            self.done.wait(&mut syncs);
        }
        syncs.begun += 1;
        drop(syncs);
        let result = self.journals.sync();
        let mut syncs = self.syncs.lock();
        if let Err(error) = result {
            syncs.failed = Some(DurableError::not_synced(error));
            // With `Never`, only a call of `sync` reports it.
            self.asks.store(self.policy != SyncPolicy::Never, Ordering::Relaxed);
        }
        syncs.ended = syncs.begun;
        self.done.notify_all();
        syncs.result()
    }

    /// Waits until the time has come, or the threads have to end. Returns whether they go on.
    fn pause(&self, until: Instant) -> bool {
        let mut syncs = self.syncs.lock();
        while !syncs.is_over && !self.end.wait_until(&mut syncs, until).timed_out() {}
        !syncs.is_over
    }

    fn make_checkpoints(&self) {
        let mut pause = LOOK;
        while self.pause(Instant::now() + pause) {
            let is_due = self.journals.call_for_checkpoint();
            // The journal has all changes, so a failure waits for the next attempt.
            pause = match is_due.then(|| self.checkpoint()) {
                Some(Err(_)) => (2 * pause).min(MOST_PAUSE),
                _ => LOOK,
            };
        }
    }
}

#[derive(Default)]
pub(super) struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    /// Starts the threads. After an error, those that have started go on until they are [ended](Self::end).
    pub(super) fn start(&mut self, shared: &Arc<Journaled>) -> io::Result<()> {
        let thread = |name: &str| thread::Builder::new().name(name.into());
        if let SyncPolicy::Every(interval) = shared.policy {
            let interval = interval.clamp(LEAST_INTERVAL, MOST_INTERVAL);
            let shared = Arc::clone(shared);
            self.0.push(thread("koel-sync").spawn(move || {
                while shared.pause(Instant::now() + interval) && shared.sync(u64::MAX).is_ok() {}
            })?);
        }
        let shared = Arc::clone(shared);
        self.0.push(thread("koel-checkpoint").spawn(move || shared.make_checkpoints())?);
        Ok(())
    }

    pub(super) fn end(&mut self, shared: &Journaled) {
        shared.syncs.lock().is_over = true;
        shared.end.notify_all();
        for thread in self.0.drain(..) {
            let _ = thread.join();
        }
    }

    /// Ends the use of a filter: ends the threads, and makes all changes survive a power failure, if any are to.
    pub(super) fn leave(&mut self, shared: &Journaled) {
        if shared.is_forked_child() {
            // The threads are the parent's, and so are the files.
            std::mem::take(&mut self.0).into_iter().for_each(std::mem::forget);
            return;
        }
        self.end(shared);
        if shared.policy != SyncPolicy::Never {
            let _ = shared.sync(u64::MAX);
        }
    }
}

/// The number of forks that led to this process since an ancestor opened the first filter. Relaxed: the handler that
/// adds one in a child runs before the child's own code.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Returns [`FORKS`]. A child that is not made by `fork` of the C library is not told from its parent.
fn forks() -> io::Result<u64> {
    extern "C" fn forked() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static REGISTERED: OnceLock<i32> = OnceLock::new();
    // SAFETY: the function is called in a child, and only adds to an atomic.
    #[allow(unsafe_code)]
    let register = || unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    match REGISTERED.get_or_init(register) {
        0 => Ok(FORKS.load(Ordering::Relaxed)),
        error => Err(io::Error::from_raw_os_error(*error)),
    }
}
