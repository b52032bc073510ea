//! The progress of a run, and the only place where its threads wait for each other, apart from
//! channels and [turns](crate::run::turns).
//!
//! The reader *hands in* chunks, and the writer *writes* them in the same order. The coordinator
//! can wait until a number of them has been written. It can also close the run, after which no chunk is handed in.

use crate::failure::End;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

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
    is_writing: bool,
    /// Whether no chunk is written any more.
    is_final: bool,
    /// Whether the input has been read to its end.
    read: bool,
    /// Whether no more lines are to be written.
    is_enough: bool,
    signal: Option<i32>,
    trouble: Option<End>,
}

impl Standing {
    fn is_disturbed(&self) -> bool {
        self.is_enough || self.trouble.is_some() || self.signal.is_some()
    }
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

    /// Begins to write a chunk. Returns `false` if no chunk is written any more.
    pub fn begin_write(&self) -> bool {
        let mut at = self.at();
        at.is_writing = !at.is_final;
        at.is_writing
    }

    /// Records that a chunk has been written, and whether no more lines are to be written. Both at
    /// once: otherwise a run whose input ends at the limit could seem finished in between.
    pub fn wrote(&self, is_enough: bool) {
        self.change(|at| {
            at.written += 1;
            (at.is_writing, at.is_enough) = (false, is_enough);
        });
    }

    /// Reports that a chunk could not be written.
    pub fn wrote_not(&self, trouble: End) {
        self.trouble(trouble);
        self.change(|at| at.is_writing = false);
    }

    /// Lets no chunk be written any more. Returns `false` if one is still being written at the deadline.
    pub fn end_writes(&self, until: Instant) -> bool {
        self.change(|at| at.is_final = true);
        self.wait_for(until, |at| !at.is_writing)
    }

    pub fn signal(&self, signal: i32) {
        self.change(|at| at.signal = Some(signal));
    }

    /// Reports trouble. Only the first is kept.
    pub fn trouble(&self, trouble: End) {
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

    /// Waits for a reason to end the run, or until a deadline.
    pub fn wait(&self, until: Instant) -> Option<End> {
        let mut end = None;
        self.wait_for(until, |at| {
            end = if let Some(trouble) = at.trouble.take() {
                Some(trouble)
            } else if at.is_enough {
                Some(End::Enough)
            } else if let Some(signal) = at.signal.take() {
                Some(End::Signal(signal))
            } else {
                (at.read && at.written == at.handed).then_some(End::Reached)
            };
            end.is_some()
        });
        end
    }

    /// Waits until a number of chunks has been written, or all that were handed in; or until there is a reason to end
    /// the run. Returns `false` if the deadline comes first.
    pub fn wait_until_written(&self, chunks: u64, until: Instant) -> bool {
        self.wait_for(until, |at| at.is_disturbed() || at.written >= chunks.min(at.handed))
    }

    /// Whether there is a reason to end the run early.
    pub fn is_disturbed(&self) -> bool {
        self.at().is_disturbed()
    }

    fn wait_for(&self, until: Instant, mut is_there: impl FnMut(&mut Standing) -> bool) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let woken = self.changed.wait_timeout_while(self.at(), left, |at| !is_there(at));
        !woken.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}
