//! How a tick passes through a filter: in which order its segments learn of it, and who does the work.
//!
//! A tick has one pass over all segments, in which what has expired is erased: see
//! [`sweep`](mod@crate::shard::sweep). What is left to do when nothing dead is left is done at once. The work is
//! handed out in portions, to whichever threads ask for some. The next tick begins when all of them are done.
//!
//! No lock is held while a portion is worked on, so a thread may wait for others here wherever it may
//! wait for the lock of a segment.
//!
//! While the filter or a shard of it is being copied, no tick begins: the ages in a copy are all of one moment.
//! Ticks and [copies](Ticking::pause) take turns.
//!
//! The lock of the progress is the last that a thread takes, and nobody waits for anything while holding it. So
//! it takes no time to ask what time it is, whatever a tick has to wait for as it begins.

mod copies;
mod target;

pub use target::SweepTarget;

use crate::layout::SMALL;
use crate::layout::stamps::{Moment, STAMPS};
use crate::rule::rule;
use crate::sync::{Backoff, Mutex, nap};
use crate::table::clock::Clock;
use std::ops::Range;
use std::panic::RefUnwindSafe;

/// The segments that a thread works on before it asks for more: 256 KiB, or 512.
const PORTION: usize = if SMALL { 2 } else { 64 };

/// When a filter was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// The number of the tick, or one with the same stamp.
    pub tick: u64,
    /// The ticks that have passed since some moment, by their numbers. (Where more were made up for at once
    /// than anything is remembered for, there may be fewer, but as many as that.)
    pub elapsed: u64,
    /// What the caller calls it.
    pub number: Option<u64>,
}

/// Keeps ticks from beginning, for a copy of the filter.
pub struct TickPause<'a> {
    ticking: &'a Ticking,
    time: Time,
}

pub struct Ticking {
    /// It is set by whoever has the lock of the progress.
    clock: Clock,
    progress: Mutex<Progress>,
}

/// Nothing that is done under its lock panics.
impl RefUnwindSafe for Ticking {}

struct Progress {
    /// The pass that is going on, if a tick is.
    pass: Option<Pass>,
    /// The first segment that no thread works on or has worked on in this pass.
    next: usize,
    /// The number of threads that work on a portion.
    at_work: usize,
    /// The number of copies of the filter that are being made, or wait for this tick to pass.
    copies: usize,
    /// The number of those that wait for a tick to begin, and how often such copies were let in.
    later_copies: usize,
    turns: u64,
    /// The number of threads that are about to begin a tick.
    beginning: usize,
    /// What the caller calls the present tick, if ticks have numbers.
    number: Option<u64>,
    /// As in [`Time`].
    elapsed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Sweep,
    Close,
}

/// What there is to do for a thread.
enum Task {
    Work(Pass, Range<usize>),
    /// Nothing, until other threads are done.
    Wait,
    /// Nothing: no tick is passing.
    Rest,
}

impl Ticking {
    /// The memory that one takes which is shared, with the two counts of an [`Arc`](std::sync::Arc).
    pub const SHARED_BYTES: usize = size_of::<Ticking>() + 2 * size_of::<usize>();

    pub fn new() -> Self {
        let progress = Progress {
            pass: None,
            next: 0,
            at_work: 0,
            copies: 0,
            later_copies: 0,
            turns: 0,
            beginning: 0,
            number: None,
            elapsed: 0,
        };
        Ticking { clock: Clock::new(), progress: Mutex::new(progress) }
    }

    #[inline]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Lets one more tick pass, after the one that is passing.
    pub fn tick(&self, target: &impl SweepTarget) {
        while !self.begin(target) {
            self.finish(target);
        }
        self.finish(target);
    }

    /// Lets ticks pass until the present one has this number. Returns how many have passed in this call.
    ///
    /// Without numbers until now, the present tick gets this one.
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

    /// Begins a tick toward the one with this number, unless one is passing. Returns how many ticks it
    /// makes up for, or `None` if there is none to begin.
    pub fn begin_toward(&self, target: &impl SweepTarget, number: u64) -> Option<u64> {
        // Mostly the time is known, and then nobody has to wait for copies.
        if self.number_or(number) >= number {
            return None;
        }
        let remembers = target.lanes().remembers().into();
        let begun = self.begin_if_due(target, |progress| {
            let behind = number.saturating_sub(progress.number?);
            // After so many ticks, nothing that came before is remembered.
            let passes = if behind > remembers { behind } else { behind.min(1) };
            Some(passes).filter(|passes| *passes > 0 && progress.pass.is_none())
        });
        begun.or_else(|| (self.number_or(number) < number).then_some(0))
    }

    /// Begins a tick that makes up for as many as this says, if any. Waits for the copies that are being made,
    /// and lets no other begin meanwhile.
    fn begin_if_due(
        &self,
        target: &impl SweepTarget,
        due: impl Fn(&Progress) -> Option<u64>,
    ) -> Option<u64> {
        let _beginning = Beginning::new(self);
        loop {
            let is_copied = {
                let progress = self.progress.lock();
                due(&progress)?;
                rule!("a_tick_begins_while_a_copy_is_made", progress.copies > 0, false)
            };
            if is_copied {
                nap();
                continue;
            }
            let mut begun = None;
            target.begin(|| {
                let mut progress = self.progress.lock();
                if rule!("a_tick_begins_while_a_copy_is_made", progress.copies > 0, false) {
                    return None;
                }
                begun = due(&progress);
                begun.map(|passes| self.begin_with(&mut progress, passes))
            });
            if begun.is_some() {
                return begun;
            }
        }
    }

    /// Begins a tick that makes up for so many. Returns the time.
    fn begin_with(&self, progress: &mut Progress, passes: u64) -> Moment {
        progress.number = progress.number.map(|number| number.saturating_add(passes));
        progress.elapsed = progress.elapsed.wrapping_add(passes.min(STAMPS as u64));
        let now = self.clock.own_time().next(passes > 1);
        self.clock.begin(now);
        (progress.pass, progress.next) = (Some(Pass::Sweep), 0);
        progress.let_copies_in();
        now
    }

    /// The number of the present tick, if ticks have numbers.
    pub fn number(&self) -> Option<u64> {
        self.progress.lock().number
    }

    /// The number of the present tick. It gets this one if ticks have none.
    fn number_or(&self, number: u64) -> u64 {
        *self.progress.lock().number.get_or_insert(number)
    }

    /// Works until no tick is passing.
    pub fn finish(&self, target: &impl SweepTarget) {
        self.work(target, usize::MAX);
    }

    /// Works on at most so many segments. Returns whether no tick is passing any more.
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
            if rule!("a_tick_overtakes_the_one_before", progress.at_work > 0, false) {
                return Task::Wait;
            }
            progress.next = 0;
            progress.pass = match pass {
                Pass::Sweep => Some(Pass::Close),
                Pass::Close => None,
            };
            if progress.pass.is_none() {
                self.clock.end();
            }
        }
    }
}

/// A thread that is about to begin a tick.
struct Beginning<'a>(&'a Ticking);

impl<'a> Beginning<'a> {
    fn new(ticking: &'a Ticking) -> Self {
        ticking.progress.lock().beginning += 1;
        Beginning(ticking)
    }
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        let mut progress = self.0.progress.lock();
        progress.beginning -= 1;
        // Perhaps there was no tick to begin.
        if progress.beginning == 0 {
            progress.let_copies_in();
        }
    }
}

/// A thread that works on a portion.
struct AtWork<'a> {
    ticking: &'a Ticking,
    /// The segment that the pass goes back to if the work ends in a panic.
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
