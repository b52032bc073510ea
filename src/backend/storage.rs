//! What concerns a filter as a whole, of fixed size or growing, and how ticks pass through it.

use crate::backend::shards::Block;
use crate::layout::bucket::Lanes;
use crate::layout::geometry::{Geometry, Mixed};
use crate::layout::sizing::Layout;
use crate::layout::stamps::{ByStamp, Moment};
use crate::sync::{RwLockReadGuard, RwLockWriteGuard};
use crate::table::ticking::{Goal, Ticking};
use std::ops::Range;

/// What concerns a filter as a whole. A fixed filter is not split or joined, and has no void lanes.
pub(crate) trait Storage: Send + Sync {
    /// Returns the geometry of the shards that the filter began with.
    fn geometry(&self) -> &Geometry;

    fn lanes(&self) -> Lanes {
        self.geometry().lanes()
    }

    fn capacity(&self) -> usize;

    /// Returns the layout, with the present limit of the memory.
    fn layout(&self) -> Layout;

    /// Returns the filter's clock and ticks, if it forgets.
    fn ticking(&self) -> Option<&Ticking>;

    /// Returns the present number of buckets.
    fn buckets(&self) -> usize;

    fn items(&self) -> usize;

    /// Returns the number of lanes with each stamp.
    fn items_by_stamp(&self) -> ByStamp;

    /// Returns the memory held beside `self`, in bytes.
    fn heap_bytes(&self) -> usize;

    /// Returns the present false-positive rate. The time that this takes does not depend on the number of
    /// shards.
    fn rate(&self) -> f64;

    fn clear(&self);

    // Shard by shard.

    /// Copies the buckets of the shard at the cursor `next`, which is 0 at first, and moves it to the shard that
    /// follows. Other threads may change the filter between two calls, but for joins of its shards; an item that stays
    /// in the filter is in exactly one of the copies. (This holds for items. A void lane, which goes to both halves of
    /// a split, may be in two.)
    fn copy_shard(&self, next: &mut Option<u64>, buckets: &mut [u64]) -> Option<Block>;

    /// Returns the cursor after `next` of [`copy_shard`](Self::copy_shard). While no shards are joined, the border of
    /// two shards stays where it is; splits only add borders.
    fn after(&self, next: u64) -> Option<u64>;

    /// Returns a hash that the shard at this cursor owns.
    fn hash_in(&self, next: u64) -> Mixed;

    // Ticks.

    /// Returns the number of segments now. It may grow later, but never shrinks.
    fn segments(&self) -> usize;

    /// Erases the expired lanes of these segments, except where a writer has done so.
    fn sweep(&self, segments: Range<usize>, now: Moment);

    /// Keeps shards from being split and joined, and unions from going on, until the result is dropped.
    fn keep_from_splitting(&self) -> Option<RwLockWriteGuard<'_>> {
        None
    }

    /// Does what is to be done as a tick begins, while no shard is split or joined.
    fn tick_begins(&self, _now: Moment) {}

    // Growth.

    /// Returns the greatest depth that a shard has had.
    fn level(&self) -> u32 {
        0
    }

    /// Returns the limit of the memory, or `usize::MAX` if there is none.
    fn max_bytes(&self) -> usize {
        usize::MAX
    }

    fn set_max_bytes(&self, _bytes: usize) {}

    /// Returns the number of items that void lanes stand for.
    fn void_items(&self) -> u64 {
        0
    }

    /// Keeps shards from being joined until the result is dropped, while one after the other is copied.
    fn keep_shards(&self) -> Option<RwLockReadGuard<'_>> {
        None
    }

    /// Visits up to `most` shards from this cursor on, 0 at first, and joins those that leave enough room. Returns the
    /// cursor of the next part, if there is one. If shards are [kept](Self::keep_shards), none is joined.
    fn join_from(&self, _cursor: u64, _most: usize) -> Option<u64> {
        None
    }

    /// Joins all shards that leave enough room, unless another thread joins shards.
    fn join_all_if_alone(&self) {}
}

/// Ticks of a filter that forgets. [`ticking`](crate::table::ticking) has the order in which a tick passes through the
/// segments.
impl dyn Storage + '_ {
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
    ///
    /// If ticks have had no numbers until now, the present tick gets this one.
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

    /// Begins a tick toward the one with this number, unless one is passing. Returns how many ticks it makes
    /// up for: 0 if a tick is passing that has to end first, and `None` if this number has been reached.
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
        let _no_splits = self.keep_from_splitting();
        let (passes, now) = ticking.begin(goal)?;
        self.tick_begins(now);
        Some(passes)
    }

    /// Works until no tick is passing.
    pub(crate) fn finish_tick(&self) {
        self.work_on_tick(usize::MAX);
    }

    /// Works on at most `most` segments. Returns whether no tick is passing any more.
    pub(crate) fn work_on_tick(&self, most: usize) -> bool {
        self.ticking().is_none_or(|ticking| {
            ticking.work(most, || self.segments(), |portion, now| self.sweep(portion, now))
        })
    }
}
