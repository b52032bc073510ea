//! Who waits for whom: the one place where the threads of a run learn how far it is, and that it is to end.
//!
//! A chunk of lines is *handed in* by the reader and *written* by the writer, in the same order. The
//! coordinator can put the reader on hold, so that everything handed in gets written and the state can be saved; and it can
//! close the door, after which nothing is handed in any more.

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
    on_hold: bool,
    closed: bool,
    /// The input has ended.
    read: bool,
    signal: Option<i32>,
    trouble: Option<Trouble>,
}

/// What the coordinator wakes up for.
pub enum Event {
    /// Everything has been read, and what was handed in is written.
    Finished,
    Signal(i32),
    Trouble(Trouble),
    /// It is as late as was said.
    Time,
}

impl Monitor {
    fn at(&self) -> MutexGuard<'_, Standing> {
        // Whoever panicked left nothing half done here.
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut self.at());
        self.changed.notify_all();
    }

    /// For the reader: hands something in, which is given its number. `false` if the door is closed.
    pub fn hand_in(&self, hand: impl FnOnce(u64)) -> bool {
        let waiting = |at: &mut Standing| at.on_hold && !at.closed;
        let at = self.changed.wait_while(self.at(), waiting);
        let mut at = at.unwrap_or_else(PoisonError::into_inner);
        if at.closed {
            return false;
        }
        // Under the lock, so that who closes the door knows whether this one is in.
        hand(at.handed);
        at.handed += 1;
        true
    }

    pub fn read_to_the_end(&self) {
        self.change(|at| at.read = true);
    }

    pub fn wrote(&self) {
        self.change(|at| at.written += 1);
    }

    pub fn signal(&self, signal: i32) {
        self.change(|at| at.signal = Some(signal));
    }

    /// The first trouble is the one that is told.
    pub fn trouble(&self, trouble: Trouble) {
        self.change(|at| {
            at.trouble.get_or_insert(trouble);
        });
    }

    pub fn hold(&self) {
        self.change(|at| at.on_hold = true);
    }

    pub fn go_on(&self) {
        self.change(|at| at.on_hold = false);
    }

    pub fn close(&self) {
        self.change(|at| at.closed = true);
    }

    /// How much has been written.
    pub fn written(&self) -> u64 {
        self.at().written
    }

    /// Waits for something to happen.
    pub fn wait(&self, until: Instant) -> Event {
        let mut event = Event::Time;
        self.wait_for(until, |at| {
            event = if let Some(trouble) = at.trouble.take() {
                Event::Trouble(trouble)
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

    /// Waits until all that was handed in is written, or something happens that comes first. Only while nothing
    /// more is handed in.
    pub fn wait_until_idle(&self, until: Instant) -> Idle {
        let mut idle = Idle::Late;
        self.wait_for(until, |at| {
            idle = match (at.trouble.is_some() || at.signal.is_some(), at.written == at.handed) {
                (true, _) => Idle::Disturbed,
                (false, true) => Idle::Reached,
                (false, false) => return false,
            };
            true
        });
        idle
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

#[derive(PartialEq, Eq)]
pub enum Idle {
    Reached,
    /// A signal or a trouble is to be looked at first.
    Disturbed,
    Late,
}
