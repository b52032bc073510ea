//! Ticks of a filter that forgets, of either kind.
//!
//! [`ticking`](crate::table::ticking) has the order in which a tick passes through the segments.

use crate::backend::Storage;
use crate::table::ticking::Goal;

impl dyn Storage + '_ {
    /// Passes one more tick through the filter, after the one that is passing.
    pub fn tick(&self) {
        if self.ticking().is_some() {
            while !self.begin_tick() {
                self.finish_tick();
            }
            self.finish_tick();
        }
    }

    /// Passes ticks through the filter until the present one has this number. Returns how many have passed in this
    /// call.
    ///
    /// If ticks have had no numbers until now, the present tick gets this one.
    pub fn tick_to(&self, number: u64) -> u64 {
        let mut passed = 0;
        while let Some(some) = self.begin_tick_toward(number) {
            passed += some;
            self.finish_tick();
        }
        passed
    }

    /// Begins a tick, unless one is passing.
    pub fn begin_tick(&self) -> bool {
        self.begin(Goal::Next).is_some()
    }

    /// Begins a tick toward the one with this number, unless one is passing. Returns how many ticks it makes
    /// up for: 0 if a tick is passing that has to end first, and `None` if this number has been reached.
    pub fn begin_tick_toward(&self, number: u64) -> Option<u64> {
        let ticking = self.ticking()?;
        // Usually the number has been reached.
        if ticking.has_reached(number) {
            return None;
        }
        let begun = self.begin(Goal::Number(number));
        begun.or_else(|| (!ticking.has_reached(number)).then_some(0))
    }

    fn begin(&self, goal: Goal) -> Option<u64> {
        let ticking = self.ticking()?;
        if !ticking.is_due(goal) {
            return None;
        }
        let _no_splits = self.keep_from_splitting();
        let (passes, now) = ticking.begin(goal)?;
        self.tick_begins(now);
        Some(passes)
    }

    /// Works until no tick is passing.
    pub fn finish_tick(&self) {
        self.work_on_tick(usize::MAX);
    }

    /// Works on at most `most` segments. Returns whether no tick is passing any more.
    pub fn work_on_tick(&self, most: usize) -> bool {
        self.ticking().is_none_or(|ticking| {
            ticking.work(most, || self.segments(), |portion, now| self.sweep(portion, now))
        })
    }
}
