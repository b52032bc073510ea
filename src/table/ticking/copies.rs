//! How copies and ticks wait for each other.
//!
//! A copy of a filter waits until a tick that is passing has passed. A copy of a shard does not: locking a
//! whole shard sweeps it. No tick begins while a copy is being made or waits for a tick to pass. So a copy
//! waits for one tick at most, however fast ticks follow each other. A tick waits for the copies that are
//! being made; copies that arrive later wait for the tick. So a tick does not wait for ever beside threads
//! that make one copy after another.

use crate::layout::stamps::Moment;
use crate::sync::nap;
use crate::table::ticking::{Progress, SweepTarget, TickPause, Ticking, Time};

impl<'a> TickPause<'a> {
    /// The pause of a copy that has been counted.
    fn new(ticking: &'a Ticking) -> Self {
        TickPause { ticking, time: Time { tick: 0, elapsed: 0, number: None } }
    }

    pub fn time(&self) -> Time {
        self.time
    }
}

impl Drop for TickPause<'_> {
    fn drop(&mut self) {
        self.ticking.progress.lock().copies -= 1;
    }
}

impl Progress {
    /// Counts the copies that wait for a tick to begin among those that wait for it to pass.
    pub(super) fn let_copies_in(&mut self) {
        self.copies += self.later_copies;
        self.later_copies = 0;
        self.turns += 1;
    }
}

impl Ticking {
    /// Prevents ticks from beginning until the result is dropped, for a copy of the filter. A tick that is
    /// about to begin comes first.
    pub fn pause(&self, target: &impl SweepTarget) -> TickPause<'_> {
        self.after_ticks(self.next_copy(), target)
    }

    /// The same for a copy of a shard, which may be made while a tick passes, since locking the shard sweeps
    /// it.
    pub fn pause_in_a_tick(&self) -> TickPause<'_> {
        self.at_this_time(self.next_copy())
    }

    /// Prevents ticks in this filter and in another one. If the other filter is ahead, this one catches up
    /// first.
    ///
    /// A caller that prevents ticks in one filter waits only for a tick of a filter whose number is lower. So
    /// callers never wait for each other in a cycle, whichever filters they use. A tick that is about to
    /// begin here also comes first, but the caller waits for it before it prevents any ticks.
    pub fn pause_both<'a>(
        &'a self,
        target: &impl SweepTarget,
        (other, through_other): (&'a Ticking, &impl SweepTarget),
    ) -> [TickPause<'a>; 2] {
        drop(self.next_copy());
        let there = other.pause(through_other);
        if let Some(number) = there.time.number {
            self.tick_to(target, number);
        }
        self.progress.lock().copies += 1;
        [self.after_ticks(TickPause::new(self), target), there]
    }

    /// Counts one more copy, after a tick that is about to begin. No tick begins after that.
    fn next_copy(&self) -> TickPause<'_> {
        let mut progress = self.progress.lock();
        if progress.pass.is_some() || progress.beginning == 0 {
            progress.copies += 1;
            return TickPause::new(self);
        }
        progress.later_copies += 1;
        let turns = progress.turns;
        drop(progress);
        while self.progress.lock().turns == turns {
            nap();
        }
        TickPause::new(self)
    }

    /// Returns the pause with its time, once a tick that is passing has passed.
    fn after_ticks<'a>(&'a self, held: TickPause<'a>, target: &impl SweepTarget) -> TickPause<'a> {
        self.finish(target);
        if self.own_time().ends_all() {
            self.end_of_all(target);
        }
        self.at_this_time(held)
    }

    fn at_this_time<'a>(&'a self, mut held: TickPause<'a>) -> TickPause<'a> {
        let progress = self.progress.lock();
        let tick = self.clock.own_time().tick();
        held.time = Time { tick, elapsed: progress.elapsed, number: progress.number };
        drop(progress);
        held
    }

    fn own_time(&self) -> Moment {
        let _progress = self.progress.lock();
        self.clock.own_time()
    }

    /// Ends the effect of a tick that expired everything: items older than that tick may arrive again, from
    /// another filter. No tick is passing, and none begins.
    fn end_of_all(&self, target: &impl SweepTarget) {
        target.begin(|| {
            let _progress = self.progress.lock();
            let now = Moment::of_tick(self.clock.own_time().tick());
            self.clock.set(now);
            Some(now)
        });
    }

    /// Continues from the time of a copy. No other thread has the filter.
    pub fn continue_from(&self, Time { tick, elapsed, number }: Time) {
        self.clock.set(Moment::of_tick(tick));
        let mut progress = self.progress.lock();
        (progress.elapsed, progress.number) = (elapsed, number);
    }
}
