//! Ticks of a filter that forgets: how they begin, and who passes them through the filter.
//! [`sweep`](mod@crate::guide::sweep) says what a tick does to a shard, and [`ticking`](crate::table::ticking) in which
//! order it passes through segments.
//!
//! # Growing filters
//!
//! The pass goes through all shards, including those that are made meanwhile. A lane that moves from a shard to a new
//! shard is met in one of the two:
//!
//! 1. The pass went through the old shard, under its locks, before the split.
//! 2. The pass reaches the old shard later. Then it has not ended before the split, and reaches the new shard, too.
//!
//! At a new shard, the pass waits for the end of the split: the shard is fully locked before it is counted, and until
//! its items, its figures and the directory's entries are stored. Then the pass finds the shard marked as swept, and
//! leaves it alone: its items were swept before the split. A union may have added others since, which are older than a
//! tick that ends all and stay nevertheless.
//!
//! Lanes may also move to a shard where the pass has been: a split takes a shard into use that a join has emptied, and a
//! join moves the items of the upper half. Three rules are for this:
//!
//! 1. The pass also marks the stripes of unused shards.
//! 2. A thread that locks all stripes of a shard to move or add items sweeps those that the pass has not reached.
//! 3. No tick begins during a split or a join.

use crate::backend::{Backend, on_either};
use crate::table::ticking::Goal;

impl Backend {
    /// Passes one more tick through the filter, after the one that is passing.
    pub(crate) fn tick(&self) {
        if self.ticking().is_some() {
            while !self.begin_tick() {
                self.finish_tick();
            }
            self.finish_tick();
        }
    }

    /// Passes ticks through the filter until the present one has this number. Returns how many have passed in this
    /// call.
    pub(crate) fn tick_to(&self, number: u64) -> u64 {
        let mut passed = 0;
        while let Some(some) = self.begin_tick_toward(number) {
            passed += some;
            self.finish_tick();
        }
        passed
    }

    /// Begins a tick, unless one is passing.
    pub(crate) fn begin_tick(&self) -> bool {
        self.begin(Goal::Next).is_some()
    }

    /// Begins a tick toward the one with this number, unless one is passing. Returns how many ticks it makes up for: 0
    /// if a tick is passing that has to end first, and `None` if this number has been reached.
    pub(crate) fn begin_tick_toward(&self, number: u64) -> Option<u64> {
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
        match self {
            Backend::Fixed(_) => ticking.begin(goal),
            Backend::Growing(growing) => growing.begin_tick(goal),
        }
    }

    /// Works until no tick is passing.
    pub(crate) fn finish_tick(&self) {
        self.work_on_tick(usize::MAX);
    }

    /// Works on at most `most` segments. Returns whether no tick is passing any more.
    pub(crate) fn work_on_tick(&self, most: usize) -> bool {
        self.ticking().is_none_or(|ticking| {
            let segments = || on_either!(self, backend => backend.segments());
            ticking.work(most, segments, |portion, now| {
                on_either!(self, backend => backend.sweep(portion, now));
            })
        })
    }

    /// Returns the number of items that expire with each of the next ticks, if the filter forgets.
    pub(crate) fn expiring(&self) -> Vec<usize> {
        let Some(ticking) = self.ticking() else { return Vec::new() };
        let lanes = self.lanes();
        let now = ticking.clock().now();
        let by_stamp = on_either!(self, backend => backend.items_by_stamp());
        let of_age = |age| by_stamp[lanes.stamp_of_age(age, now)];
        let ages = (0..=u64::from(lanes.remembers())).rev();
        ages.map(of_age).collect()
    }
}
