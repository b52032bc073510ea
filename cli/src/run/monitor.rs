//! The progress of a run, and the only place where its threads wait for each other, apart from
//! channels and [turns](crate::run::turns).
//!
//! The reader *hands in* chunks, and the writer *writes* them in the same order. The coordinator
//! can wait until so many have been written. It can also close the run, after which no chunk is handed in.

use crate::failure::Trouble;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Monitor {
    at: Mutex<Standing>,
    changed: Condvar,
}

#[derive(Default)]
struct Standing {
    handed: u64,
    written: u64,
    closed: bool,
    /// Whether the input has been read to its end.
    read: bool,
    /// Whether no more lines are to be written.
    is_enough: bool,
    signal: Option<i32>,
    trouble: Option<Trouble>,
}

impl Standing {
    fn is_disturbed(&self) -> bool {
        self.is_enough || self.trouble.is_some() || self.signal.is_some()
    }
}

/// What wakes up the coordinator.
pub enum Event {
    /// The input has ended, and every chunk has been written.
    Finished,
    /// No more lines are to be written.
    Enough,
    Signal(i32),
    Trouble(Trouble),
    /// The deadline has passed.
    Time,
}

impl Monitor {
    fn at(&self) -> MutexGuard<'_, Standing> {
        // No change to this state can panic halfway.
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut self.at());
        self.changed.notify_all();
    }

    /// Calls `hand` with the number of the next chunk. Returns `false` without calling it if the run is closed.
    pub fn hand_in(&self, hand: impl FnOnce(u64)) -> bool {
        let mut at = self.at();
        if at.closed {
            return false;
        }
        // Still under the lock: after `close`, it is certain whether this chunk was handed in.
        hand(at.handed);
        at.handed += 1;
        true
    }

    pub fn read_to_the_end(&self) {
        self.change(|at| at.read = true);
    }

    /// Records that a chunk has been written, and whether no more lines are to be written. Both at
    /// once: otherwise a run whose input ends at the limit could seem finished in between.
    pub fn wrote(&self, is_enough: bool) {
        self.change(|at| {
            at.written += 1;
            at.is_enough = is_enough;
        });
    }

    pub fn signal(&self, signal: i32) {
        self.change(|at| at.signal = Some(signal));
    }

    /// Reports trouble. Only the first is kept.
    pub fn trouble(&self, trouble: Trouble) {
        self.change(|at| {
            at.trouble.get_or_insert(trouble);
        });
    }

    pub fn close(&self) {
        self.change(|at| at.closed = true);
    }

    /// Returns the number of chunks that have been written.
    pub fn written(&self) -> u64 {
        self.at().written
    }

    /// Waits for an event, or until a deadline.
    pub fn wait(&self, until: Instant) -> Event {
        let mut event = Event::Time;
        self.wait_for(until, |at| {
            event = if let Some(trouble) = at.trouble.take() {
                Event::Trouble(trouble)
            } else if at.is_enough {
                Event::Enough
            } else if let Some(signal) = at.signal.take() {
                Event::Signal(signal)
            } else if at.read && at.written == at.handed {
                Event::Finished
            } else {
                return false;
            };
            true
        });
        event
    }

    /// Waits until every chunk handed in has been written, or until a signal, trouble or the
    /// deadline. The run must be closed.
    pub fn wait_until_idle(&self, until: Instant) -> Idle {
        self.wait_until_written(u64::MAX, until)
    }

    /// Waits until so many chunks have been written, or all that were handed in; or until a signal, trouble or
    /// the deadline.
    pub fn wait_until_written(&self, chunks: u64, until: Instant) -> Idle {
        let mut idle = Idle::Late;
        self.wait_for(until, |at| {
            idle = match (at.is_disturbed(), at.written >= chunks.min(at.handed)) {
                (true, _) => Idle::Disturbed,
                (false, true) => Idle::Reached,
                (false, false) => return false,
            };
            true
        });
        idle
    }

    /// Whether there is a reason to end the run early.
    pub fn is_disturbed(&self) -> bool {
        self.at().is_disturbed()
    }

    fn wait_for(&self, until: Instant, mut is_there: impl FnMut(&mut Standing) -> bool) {
        let mut at = self.at();
        while !is_there(&mut at) {
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return;
            }
            let woken = self.changed.wait_timeout(at, left);
            at = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The result of [`Monitor::wait_until_written`].
#[derive(PartialEq, Eq)]
pub enum Idle {
    Reached,
    /// A signal or trouble came first.
    Disturbed,
    Late,
}
