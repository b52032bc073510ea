//! How a tick passes through a filter: the order in which its segments are swept, and the threads that do the work,
//! which is handed out to them in portions. What a tick does, and why: [`sweep`](mod@crate::guide::sweep).
//!
//! ```text
//!              1 begin                                     2 hand out
//!   ┌─────────┐ ─────▶ ┌───────────────────────────────┐ ────────▶ ┌───────────────────┐
//!   │ resting │        │ passing: `next`.. are left,   │           │ a thread sweeps   │
//!   └─────────┘ ◀───── │ `at_work` threads sweep       │ ◀──────── │ a portion         │
//!              5 end   └───────────────────────────────┘ 3 done    └───────────────────┘
//!                                                        4 give back, after a panic
//! ```
//!
//! 1. *Begin*: `next` becomes 0, the caller's number and `elapsed` advance, and the clock shows the new time, and that
//!    its tick is passing. Only a resting filter begins a tick, so one tick passes after the other.
//! 2. *Hand out*: a thread gets the segments from `next` on, up to a limit. `next` moves behind them, and `at_work` is
//!    one more.
//! 3. *Done*: `at_work` is one less.
//! 4. *Give back*: the same, and `next` goes back to the portion's first segment, so some segments may be swept twice.
//! 5. *End*: nothing is left and no thread is at work, so no lane is left that has expired. The filter may have got
//!    segments meanwhile, and may get more: a split sweeps its shard first, and marks the new one. The clock then shows
//!    that no tick is passing.
//!
//! The lock of `progress`, under which all transitions happen, is the last that a thread acquires, and no thread waits
//! for anything while holding it. So reading the time never blocks for long, whatever a tick has to wait for as it
//! begins. No lock of this module is held during the work on a portion, so a thread may wait for others here wherever
//! it may wait for the lock of a segment.
//!
//! Ticks and copies do not wait for each other's end. A copy of a shard holds all its locks, and reads the time under
//! them: a tick that begins after that cannot touch its words. So all ages in it are relative to that time.

use crate::layout::SMALL;
use crate::layout::stamps::{Moment, STAMPS};
use crate::sync::{AtomicU64, Backoff, Mutex, Ordering, nap, read_owned};
use std::ops::Range;
use std::panic::RefUnwindSafe;

/// The number of segments that a thread works on before it asks for more: 256 KiB, or 512 of wide buckets.
const PORTION: usize = if SMALL { 2 } else { 64 };

/// The time at which a filter was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time {
    /// The number of the tick, or one with the same stamp.
    pub tick: u64,
    /// The number of ticks since some fixed moment, by the callers' numbers. A tick that made up for more ticks than
    /// items are remembered for may count as fewer, but never as fewer than that.
    pub elapsed: u64,
    /// The caller's number of the tick.
    pub number: Option<u64>,
}

/// The clock of a filter that forgets. It is one word, so a thread that reads a new time, or acquires a lock after one
/// that did, also knows that its tick is passing. Otherwise it might move an expired item into a segment that has been
/// swept.
pub(crate) struct Clock(AtomicU64);

impl Clock {
    pub(crate) fn new() -> Self {
        Clock(AtomicU64::new(Moment::FIRST.word()))
    }

    #[inline]
    pub(crate) fn now(&self) -> Moment {
        // Acquire: pairs with `set`. A thread that reads that a tick is over sees that the expired items are gone.
        Moment::of_word(self.0.load(Ordering::Acquire))
    }

    /// Returns the time, for a caller that alone may set it, or that keeps other threads from setting it.
    pub(crate) fn own_time(&self) -> Moment {
        Moment::of_word(read_owned(&self.0))
    }

    /// Sets the time. One caller at a time.
    pub(crate) fn set(&self, now: Moment) {
        // Release: pairs with `now`. A thread that sweeps by this time has seen all inserts from before the tick, and
        // passes that on: a lookup that finds an expired copy gone finds the copy that was inserted before the tick.
        self.0.store(now.word(), Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_passing(&self) -> bool {
        self.now().is_passing()
    }
}

/// The tick toward which another one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    Next,
    Number(u64),
}

pub(crate) struct Ticking {
    /// Set under the lock of `progress`, or while no other thread has the filter.
    clock: Clock,
    progress: Mutex<Progress>,
    remembers: u8,
}

/// No code under its lock panics.
impl RefUnwindSafe for Ticking {}

struct Progress {
    /// The first segment that has not been handed out in this tick.
    next: usize,
    at_work: usize,
    /// The caller's number of the present tick, if ticks have numbers.
    number: Option<u64>,
    /// As in [`Time`].
    elapsed: u64,
}

enum Task {
    Sweep(Range<usize>),
    /// Nothing, until other threads are done.
    Wait,
    /// Nothing: no tick is passing.
    Rest,
}

impl Ticking {
    pub(crate) fn new(remembers: u8) -> Self {
        let progress = Progress { next: 0, at_work: 0, number: None, elapsed: 0 };
        Ticking { clock: Clock::new(), progress: Mutex::new(progress), remembers }
    }

    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn time(&self) -> (Time, Moment) {
        let progress = self.progress.lock();
        let now = self.clock.own_time();
        (Time { tick: now.tick(), elapsed: progress.elapsed, number: progress.number }, now)
    }

    /// Continues from the time of a copy. No other thread has the filter.
    pub(crate) fn continue_from(&self, Time { tick, elapsed, number }: Time) {
        self.clock.set(Moment::of_tick(tick));
        let mut progress = self.progress.lock();
        (progress.elapsed, progress.number) = (elapsed, number);
    }

    /// Returns the number of the present tick, if ticks have numbers.
    pub(crate) fn number(&self) -> Option<u64> {
        self.progress.lock().number
    }

    /// Whether the present tick has this number, or a later one. If ticks have had no numbers, the present tick gets
    /// this one.
    pub(crate) fn has_reached(&self, number: u64) -> bool {
        *self.progress.lock().number.get_or_insert(number) >= number
    }

    pub(crate) fn is_due(&self, goal: Goal) -> bool {
        self.due(goal, &self.progress.lock()).is_some()
    }

    /// Begins a tick toward this goal, unless one is passing or the goal has been reached. Returns how many ticks it
    /// makes up for.
    pub(crate) fn begin(&self, goal: Goal) -> Option<u64> {
        let mut progress = self.progress.lock();
        let passes = self.due(goal, &progress)?;
        progress.number = progress.number.map(|number| number.saturating_add(passes));
        progress.elapsed = progress.elapsed.wrapping_add(passes.min(STAMPS as u64));
        self.clock.set(self.clock.own_time().next(passes > 1));
        progress.next = 0;
        Some(passes)
    }

    /// Returns how many ticks a tick that begins now makes up for, or `None` if none begins.
    fn due(&self, goal: Goal, progress: &Progress) -> Option<u64> {
        let passes = match goal {
            Goal::Next => 1,
            Goal::Number(number) => match number.saturating_sub(progress.number?) {
                // After more ticks than this, no earlier item is remembered.
                behind if behind > self.remembers.into() => behind,
                behind => behind.min(1),
            },
        };
        Some(passes).filter(|passes| *passes > 0 && !self.clock.own_time().is_passing())
    }

    /// Works on at most `most` segments, of the number that `segments` returns now, which never shrinks. Returns
    /// whether no tick is passing any more. `sweep` erases the expired lanes of some segments, except where a writer
    /// has done so.
    pub(crate) fn work(
        &self,
        most: usize,
        segments: impl Fn() -> usize,
        sweep: impl Fn(Range<usize>, Moment),
    ) -> bool {
        let mut left = most;
        let mut backoff = Backoff::new();
        loop {
            match self.task(&segments, left.min(PORTION)) {
                Task::Rest => return true,
                _ if left == 0 => return false,
                Task::Sweep(portion) => {
                    left -= portion.len();
                    let mut at_work = AtWork { ticking: self, give_back_from: portion.start };
                    sweep(portion, self.clock.own_time());
                    at_work.give_back_from = usize::MAX;
                    drop(at_work);
                    backoff = Backoff::new();
                }
                Task::Wait if most < usize::MAX => return false,
                Task::Wait if backoff.is_completed() => nap(),
                Task::Wait => backoff.snooze(),
            }
        }
    }

    /// Hands out a portion of at most `most` segments, or ends the tick.
    fn task(&self, segments: impl Fn() -> usize, most: usize) -> Task {
        let mut progress = self.progress.lock();
        let now = self.clock.own_time();
        if !now.is_passing() {
            return Task::Rest;
        }
        let (start, all) = (progress.next, segments());
        let end = start.saturating_add(most).min(all);
        if start < end {
            progress.next = end;
            progress.at_work += 1;
            return Task::Sweep(start..end);
        }
        if start < all || progress.at_work > 0 {
            return Task::Wait;
        }
        // It does not end all any more: from now on a union may bring items that are older than this tick.
        self.clock.set(Moment::of_tick(now.tick()));
        Task::Rest
    }
}

struct AtWork<'a> {
    ticking: &'a Ticking,
    /// The first segment of the portion, to which the pass returns if the work ends in a panic.
    give_back_from: usize,
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let mut progress = self.ticking.progress.lock();
        progress.at_work -= 1;
        progress.next = progress.next.min(self.give_back_from);
    }
}

#[cfg(test)]
mod tests;
