//! Ticks in a growing filter that forgets, while it has a list and when it has shards.

use crate::backend::growing::sharded::AnySharded;
use crate::backend::growing::{Growing, Listed, enough_for_a_shard};
use crate::error::Full;
use crate::layout::bucket::Lanes;
use crate::layout::geometry::Mixed;
use crate::layout::stamps::Moment;
use crate::table::ticking::{SweepTarget, Ticking};
use std::ops::Range;
use std::sync::Arc;

impl Growing {
    /// Inserts items with stamps, the oldest first, each as if at the tick of its stamp.
    pub(super) fn insert_in_time(
        &self,
        sharded: &mut AnySharded,
        items: impl Iterator<Item = (u64, u8)> + Clone,
    ) -> Result<(), Full> {
        let (lanes, now) = (self.lanes(), self.now());
        let then = Arc::new(Ticking::new());
        sharded.keep_time(Some(Arc::clone(&then)));
        // A tick with the same stamp as the present one, from which all ages can be subtracted.
        let base = (now.tick() & lanes.most_stamps()) + lanes.most_stamps() + 1;
        for age in (0..=u64::from(lanes.remembers())).rev() {
            then.clock().set(Moment::of_tick(base - age));
            for (hash, _) in items.clone().filter(|(_, stamp)| lanes.age_of(*stamp, now) == age) {
                sharded.insert_listed(Mixed(hash))?;
            }
        }
        sharded.keep_time(self.ticking.clone());
        Ok(())
    }
}

impl SweepTarget for Growing {
    fn lanes(&self) -> Lanes {
        Growing::lanes(self)
    }

    /// A list erases expired items at once, under its lock. So a later change to shards sees the time.
    fn begin(&self, set: impl FnOnce() -> Option<Moment>) {
        let mut listed = self.listed.lock();
        let Listed { list, due } = &mut *listed;
        if let Some(list) = list {
            let lanes = self.lanes();
            if let Some(now) = set() {
                list.expire(|stamp| lanes.has_stamp_expired(stamp, now));
                *due = enough_for_a_shard(&self.plan);
            }
        } else if let Some(shards) = self.shards() {
            shards.begin(set);
        }
    }

    /// A list has no segments.
    fn segments(&self) -> usize {
        self.shards().map_or(0, AnySharded::segments)
    }

    fn sweep(&self, segments: Range<usize>, now: Moment) {
        self.shards().into_iter().for_each(|shards| shards.sweep(segments.clone(), now));
    }

    fn finish_tick(&self, now: Moment) {
        self.shards().into_iter().for_each(|shards| shards.finish_tick(now));
    }
}
