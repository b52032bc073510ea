//! Copies and ticks: who waits for whom.
//!
//! A copy of a filter waits until the tick that is passing has passed. One of a shard does not: who locks a shard
//! sweeps it. No tick begins while a copy is made or waits for that. So a copy waits for one tick at most,
//! however fast they follow each other. A tick waits for the copies that are being made; those that
//! come after it wait for the tick. So it does not wait for ever beside threads that make one copy after the
//! other.

use crate::layout::stamps::Moment;
use crate::rule::rule;
use crate::sync::nap;
use crate::table::ticking::{Progress, SweepTarget, TickPause, Ticking, Time};

impl<'a> TickPause<'a> {
    /// Of a copy that has been counted.
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
    /// Counts the copies that wait for a tick to begin as those that wait for it to pass.
    pub(super) fn let_copies_in(&mut self) {
        self.copies += self.later_copies;
        self.later_copies = 0;
        self.turns += 1;
    }
}

impl Ticking {
    /// Lets no tick begin until the result is dropped, for a copy of the filter. A tick that is about to
    /// begin comes first.
    pub fn pause(&self, target: &impl SweepTarget) -> TickPause<'_> {
        self.after_ticks(self.next_copy(), target)
    }

    /// The same for a copy of a shard, which may be made while a tick passes: who locks it sweeps it.
    pub fn pause_in_a_tick(&self) -> TickPause<'_> {
        self.at_this_time(self.next_copy())
    }

    /// Lets no tick begin here and in another filter. If the other is ahead, this one is as far then.
    ///
    /// A caller that keeps ticks from beginning in one filter waits only for a tick of a filter whose number is
    /// lower. So no callers wait for each other, whatever filters they have. A tick that is about to begin here
    /// comes first as well, but it does that before.
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

    /// Counts one more copy, after a tick that is about to begin. None begins after that.
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

    /// The same when the tick that is passing has passed.
    fn after_ticks<'a>(&'a self, held: TickPause<'a>, target: &impl SweepTarget) -> TickPause<'a> {
        rule!("a_copy_is_made_while_a_tick_passes", self.finish(target), ());
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

    /// After a tick that ended all, what is older than the tick may come again, from another filter. No tick
    /// is passing, and none begins.
    fn end_of_all(&self, target: &impl SweepTarget) {
        target.begin(|| {
            let _progress = self.progress.lock();
            let now = Moment::of_tick(self.clock.own_time().tick());
            self.clock.set(now);
            Some(now)
        });
    }

    /// Begins with what was copied at this time. The caller alone has the filter.
    pub fn continue_from(&self, Time { tick, elapsed, number }: Time) {
        self.clock.set(Moment::of_tick(tick));
        let mut progress = self.progress.lock();
        (progress.elapsed, progress.number) = (elapsed, number);
    }
}
