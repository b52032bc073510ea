//! How a tick passes through a filter: the order in which its segments are swept, and the threads that do the
//! work.
//!
//! A tick is one pass over all segments, which erases expired lanes: see [`sweep`](mod@crate::shard::sweep).
//! A last step follows once no expired lane is left. The work is handed out in portions to the threads that
//! ask for it. The next tick begins when all portions are done.
//!
//! No lock of this module is held during the work on a portion, so a thread may wait for others here wherever
//! it may wait for the lock of a segment.
//!
//! Ticks and copies do not wait for each other. A copy of a shard holds all its locks, and reads the time under them: a
//! tick that begins after that cannot touch its words. So all ages in it are relative to that time.
//!
//! The lock of `progress` is the last that a thread acquires, and no thread waits for anything while holding
//! it. So reading the time never blocks for long, whatever a tick has to wait for as it begins.

use crate::layout::SMALL;
use crate::layout::bucket::Lanes;
use crate::layout::stamps::{Moment, STAMPS};
use crate::sync::{Backoff, Mutex, nap};
use crate::table::clock::Clock;
use std::ops::Range;
use std::panic::RefUnwindSafe;

/// The number of segments that a thread works on before it asks for more: 256 KiB, or 512 of wide buckets.
const PORTION: usize = if SMALL { 2 } else { 64 };

/// A filter that ticks pass through.
pub trait SweepTarget: Sync {
    fn lanes(&self) -> Lanes;

    /// Begins a tick: calls `set`, which sets the clock and returns the time, or returns `None` if no tick
    /// begins.
    fn begin(&self, set: impl FnOnce() -> Option<Moment>);

    /// Returns the number of segments now. It may grow later, but never shrinks.
    fn segments(&self) -> usize;

    /// Erases the expired lanes of these segments, except where a writer has done so.
    fn sweep(&self, segments: Range<usize>, now: Moment);

    /// Ends the tick. No expired lane is left.
    fn finish_tick(&self, now: Moment);
}

/// The time at which a filter was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// The number of the tick, or one with the same stamp.
    pub tick: u64,
    /// The number of ticks since some fixed moment, by the callers' numbers. (A tick that made up for more
    /// ticks than items are remembered for may count as fewer, but never as fewer than items are remembered
    /// for.)
    pub elapsed: u64,
    /// The caller's number of the tick.
    pub number: Option<u64>,
}

pub struct Ticking {
    /// Set under the lock of `progress`.
    clock: Clock,
    progress: Mutex<Progress>,
}

/// No code under its lock panics.
impl RefUnwindSafe for Ticking {}

struct Progress {
    /// The pass in progress, if a tick is passing.
    pass: Option<Pass>,
    /// The first segment that has not been handed out in this pass.
    next: usize,
    /// The number of threads that work on a portion.
    at_work: usize,
    /// The caller's number of the present tick, if ticks have numbers.
    number: Option<u64>,
    /// As in [`Time`].
    elapsed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Sweep,
    Close,
}

/// What a thread has to do next.
enum Task {
    Work(Pass, Range<usize>),
    /// Nothing, until other threads are done.
    Wait,
    /// Nothing: no tick is passing.
    Rest,
}

impl Ticking {
    pub fn new() -> Self {
        let progress = Progress { pass: None, next: 0, at_work: 0, number: None, elapsed: 0 };
        Ticking { clock: Clock::new(), progress: Mutex::new(progress) }
    }

    #[inline]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Passes one more tick through the filter, after the one that is passing.
    pub fn tick(&self, target: &impl SweepTarget) {
        while !self.begin(target) {
            self.finish(target);
        }
        self.finish(target);
    }

    /// Passes ticks through the filter until the present one has this number. Returns how many have passed in
    /// this call.
    ///
    /// If ticks have had no numbers until now, the present tick gets this one.
    pub fn tick_to(&self, target: &impl SweepTarget, number: u64) -> u64 {
        let mut passed = 0;
        loop {
            let some = self.begin_toward(target, number);
            let Some(some) = some else { return passed };
            passed += some;
            self.finish(target);
        }
    }

    /// Begins a tick, unless one is passing.
    pub fn begin(&self, target: &impl SweepTarget) -> bool {
        self.begin_if_due(target, |progress| progress.pass.is_none().then_some(1)).is_some()
    }

    /// Begins a tick toward the one with this number, unless one is passing. Returns how many ticks it makes
    /// up for: 0 if a tick is passing that has to end first, and `None` if this number has been reached.
    pub fn begin_toward(&self, target: &impl SweepTarget, number: u64) -> Option<u64> {
        // Usually the number has been reached.
        if self.number_or(number) >= number {
            return None;
        }
        let remembers = target.lanes().remembers().into();
        let begun = self.begin_if_due(target, |progress| {
            let behind = number.saturating_sub(progress.number?);
            // After more ticks than this, no earlier item is remembered.
            let passes = if behind > remembers { behind } else { behind.min(1) };
            Some(passes).filter(|passes| *passes > 0 && progress.pass.is_none())
        });
        begun.or_else(|| (self.number_or(number) < number).then_some(0))
    }

    /// Begins a tick that makes up for as many ticks as `due` returns, if it returns any.
    fn begin_if_due(
        &self,
        target: &impl SweepTarget,
        due: impl Fn(&Progress) -> Option<u64>,
    ) -> Option<u64> {
        due(&self.progress.lock())?;
        let mut begun = None;
        target.begin(|| {
            let mut progress = self.progress.lock();
            begun = due(&progress);
            begun.map(|passes| self.begin_with(&mut progress, passes))
        });
        begun
    }

    /// Begins a tick that makes up for `passes` ticks. Returns the time.
    fn begin_with(&self, progress: &mut Progress, passes: u64) -> Moment {
        progress.number = progress.number.map(|number| number.saturating_add(passes));
        progress.elapsed = progress.elapsed.wrapping_add(passes.min(STAMPS as u64));
        let now = self.clock.own_time().next(passes > 1);
        self.clock.begin(now);
        (progress.pass, progress.next) = (Some(Pass::Sweep), 0);
        now
    }

    /// Returns the time, and its moment.
    pub fn present(&self) -> (Time, Moment) {
        let progress = self.progress.lock();
        let now = self.clock.own_time();
        (Time { tick: now.tick(), elapsed: progress.elapsed, number: progress.number }, now)
    }

    /// Continues from the time of a copy. No other thread has the filter.
    pub fn continue_from(&self, Time { tick, elapsed, number }: Time) {
        self.clock.set(Moment::of_tick(tick));
        let mut progress = self.progress.lock();
        (progress.elapsed, progress.number) = (elapsed, number);
    }

    /// Returns the number of the present tick, if ticks have numbers.
    pub fn number(&self) -> Option<u64> {
        self.progress.lock().number
    }

    /// Returns the number of the present tick, which becomes `number` if ticks have had none.
    fn number_or(&self, number: u64) -> u64 {
        *self.progress.lock().number.get_or_insert(number)
    }

    /// Works until no tick is passing.
    pub fn finish(&self, target: &impl SweepTarget) {
        self.work(target, usize::MAX);
    }

    /// Works on at most `most` segments. Returns whether no tick is passing any more.
    pub fn work(&self, target: &impl SweepTarget, most: usize) -> bool {
        let mut left = most;
        let mut backoff = Backoff::new();
        loop {
            match self.task(target, left.min(PORTION)) {
                Task::Rest => return true,
                _ if left == 0 => return false,
                Task::Work(pass, segments) => {
                    left -= segments.len();
                    let mut at_work = AtWork { ticking: self, again_from: segments.start };
                    match pass {
                        Pass::Sweep => target.sweep(segments, self.clock.own_time()),
                        Pass::Close => target.finish_tick(self.clock.own_time()),
                    }
                    at_work.again_from = usize::MAX;
                    drop(at_work);
                    backoff = Backoff::new();
                }
                Task::Wait if most < usize::MAX => return false,
                Task::Wait if backoff.is_completed() => nap(),
                Task::Wait => backoff.snooze(),
            }
        }
    }

    fn task(&self, target: &impl SweepTarget, most: usize) -> Task {
        let mut progress = self.progress.lock();
        loop {
            let Some(pass) = progress.pass else { return Task::Rest };
            let all = if pass == Pass::Close { 1 } else { target.segments() };
            let start = progress.next;
            let end = start.saturating_add(most).min(all);
            if start < end {
                progress.next = end;
                progress.at_work += 1;
                return Task::Work(pass, start..end);
            }
            if start < all {
                return Task::Wait;
            }
            if progress.at_work > 0 {
                return Task::Wait;
            }
            progress.next = 0;
            progress.pass = match pass {
                Pass::Sweep => Some(Pass::Close),
                Pass::Close => None,
            };
            if progress.pass.is_none() {
                // After a tick that expired everything, older items may arrive from another filter.
                self.clock.set(Moment::of_tick(self.clock.own_time().tick()));
                self.clock.end();
            }
        }
    }
}

/// A thread that works on a portion.
struct AtWork<'a> {
    ticking: &'a Ticking,
    /// The segment to which the pass returns if the work ends in a panic.
    again_from: usize,
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let mut progress = self.ticking.progress.lock();
        progress.at_work -= 1;
        progress.next = progress.next.min(self.again_from);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
