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
use crate::table::ticking::{Held, Passage, Progress, Ticking, Time};

impl<'a> Held<'a> {
    /// Of a copy that has been counted.
    fn new(ticking: &'a Ticking) -> Self {
        Held { ticking, time: Time { tick: 0, elapsed: 0, number: None } }
    }

    pub fn time(&self) -> Time {
        self.time
    }
}

impl Drop for Held<'_> {
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
    pub fn hold(&self, through: &impl Passage) -> Held<'_> {
        self.after_ticks(self.next_copy(), through)
    }

    /// The same for a copy of a shard, which may be made while a tick passes: who locks it sweeps it.
    pub fn hold_in_a_tick(&self) -> Held<'_> {
        self.at_this_time(self.next_copy())
    }

    /// Lets no tick begin here and in another filter. If the other is ahead, this one is as far then.
    ///
    /// A caller that keeps ticks from beginning in one filter waits only for a tick of a filter whose number is
    /// lower. So no callers wait for each other, whatever filters they have. A tick that is about to begin here
    /// comes first as well, but it does that before.
    pub fn hold_both<'a>(
        &'a self,
        through: &impl Passage,
        (other, through_other): (&'a Ticking, &impl Passage),
    ) -> [Held<'a>; 2] {
        drop(self.next_copy());
        let there = other.hold(through_other);
        if let Some(number) = there.time.number {
            self.tick_to(through, number);
        }
        self.progress.lock().copies += 1;
        [self.after_ticks(Held::new(self), through), there]
    }

    /// Counts one more copy, after a tick that is about to begin. None begins after that.
    fn next_copy(&self) -> Held<'_> {
        let mut progress = self.progress.lock();
        if progress.pass.is_some() || progress.beginning == 0 {
            progress.copies += 1;
            return Held::new(self);
        }
        progress.later_copies += 1;
        let turns = progress.turns;
        drop(progress);
        while self.progress.lock().turns == turns {
            nap();
        }
        Held::new(self)
    }

    /// The same when the tick that is passing has passed.
    fn after_ticks<'a>(&'a self, held: Held<'a>, through: &impl Passage) -> Held<'a> {
        rule!("a_copy_is_made_while_a_tick_passes", self.finish(through), ());
        if self.own_time().ends_all() {
            self.end_of_all(through);
        }
        self.at_this_time(held)
    }

    fn at_this_time<'a>(&'a self, mut held: Held<'a>) -> Held<'a> {
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
    fn end_of_all(&self, through: &impl Passage) {
        through.begin(|| {
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
