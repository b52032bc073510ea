//! Operations on a whole shard, under all its locks: clear, copy, fill, count.
//!
//! An item moves under the locks of both its stripes, so a copy that holds all of them meets each
//! item exactly once. Readers need not know of a copy. Twins
//! `a_copy_that_goes_stripe_by_stripe_loses_an_item`, `a_copy_is_made_without_the_locks`.

use crate::layout::geometry::{Bucket, SHARD_STRIPES, STRIPE_BUCKETS};
use crate::shard::Shard;
use crate::shard::lease::Lease;
use crate::table::Table;
use crate::table::stripe::Locks;
use arrayvec::ArrayVec;

impl<L: Lease> Shard<'_, L> {
    /// Empties the shard, and calls `cleared` before other threads can write to it again. All stripes
    /// are locked, so that no item escapes from a segment that has
    /// not been cleared yet into one that has.
    pub fn clear(self, cleared: impl FnOnce()) -> Result<(), L::Lapsed> {
        let locked = self.lock_all()?;
        for stripe in self.own_stripes() {
            self.table.stripes().outdate(&locked, stripe);
        }
        for bucket in self.buckets() {
            if self.read_locked(&locked, bucket) != 0 {
                self.write(&locked, bucket, 0);
            }
        }
        for stripe in self.own_stripes() {
            self.set_items(&locked, stripe, 0);
        }
        cleared();
        Ok(())
    }

    /// Copies all buckets as they are at one moment. Returns the number of items.
    pub fn copy(self, to: &mut [u64]) -> Result<i64, L::Lapsed> {
        let locked = self.lock_all()?;
        for (bucket, copy) in self.buckets().zip(to) {
            *copy = self.read_locked(&locked, bucket);
        }
        Ok(self.all_items())
    }

    /// Fills an empty shard with a copy that holds `items` items.
    pub fn fill(self, from: &[u64], items: i64) -> Result<(), L::Lapsed> {
        let locked = self.lock_all()?;
        for (bucket, word) in self.buckets().zip(from) {
            // A page that is never written takes no memory.
            if *word != 0 {
                self.write(&locked, bucket, *word);
            }
        }
        let in_stripes = from.chunks(STRIPE_BUCKETS as usize);
        let lanes = in_stripes.map(|words| self.lanes().count_taken(words)).collect();
        self.set_counts(&locked, lanes, items);
        Ok(())
    }

    /// Makes the counts of all stripes add up to `items`: each is the number of the stripe's taken
    /// lanes, and lanes that stand for no item of their own are taken off the first.
    pub fn set_counts(
        self,
        locked: &impl Locks,
        lanes: ArrayVec<usize, SHARD_STRIPES>,
        items: i64,
    ) {
        let mut excess = lanes.iter().sum::<usize>() as i64 - items;
        for (stripe, lanes) in self.own_stripes().zip(lanes) {
            self.set_items(locked, stripe, (lanes as i64 - std::mem::take(&mut excess)) as i32);
        }
    }

    /// The number of items, by the counts of a moment ago.
    pub fn all_items(self) -> i64 {
        self.own_stripes().map(|stripe| i64::from(self.items(stripe))).sum()
    }

    /// The buckets of one of the shard's stripes.
    pub fn buckets_of(self, stripe: usize) -> impl Iterator<Item = Bucket> {
        let first = ((stripe - Table::stripe_of(self.base)) as u32) * STRIPE_BUCKETS;
        (first..(first + STRIPE_BUCKETS).min(self.table.geometry().buckets())).map(Bucket)
    }
}
