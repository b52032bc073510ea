//! Operations on a whole shard, under all its locks: clear, copy, fill, count.
//!
//! An item moves under the locks of both its stripes, so a copy that holds all of them meets each
//! item exactly once. Readers need not know of a copy. Twins
//! `a_copy_that_goes_stripe_by_stripe_loses_an_item`, `a_copy_is_made_without_the_locks`.

use crate::layout::geometry::{Bucket, STRIPE_BUCKETS};
use crate::shard::Shard;
use crate::shard::lease::Lease;
use crate::table::Table;
use crate::table::stripe::Locks;

impl<L: Lease> Shard<'_, L> {
    /// Empties the shard. All stripes are locked, so that no item escapes from a segment that has
    /// not been cleared yet into one that has.
    pub fn clear(self) -> Result<(), L::Lapsed> {
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
        Ok(())
    }

    /// Copies all buckets as they are at one moment. Returns the number of items.
    pub fn copy(self, to: &mut [u64]) -> Result<i64, L::Lapsed> {
        let locked = self.lock_all()?;
        for (bucket, copy) in self.buckets().zip(to) {
            *copy = self.read_locked(&locked, bucket);
        }
        Ok(self.own_stripes().map(|stripe| i64::from(self.items(stripe))).sum())
    }

    /// Fills an empty shard with a copy that holds `items` items.
    ///
    /// Each stripe counts its taken lanes. Where there are more lanes than items, because a split
    /// put some lanes into both halves, the difference is taken off the first stripe: only the sum
    /// over all stripes has a meaning.
    pub fn fill(self, from: &[u64], items: i64) -> Result<(), L::Lapsed> {
        let locked = self.lock_all()?;
        for (bucket, word) in self.buckets().zip(from) {
            // A page that is never written takes no memory.
            if *word != 0 {
                self.write(&locked, bucket, *word);
            }
        }
        let mut lanes = 0;
        for (stripe, words) in self.own_stripes().zip(from.chunks(STRIPE_BUCKETS as usize)) {
            let here = self.lanes().count_taken(words);
            self.set_items(&locked, stripe, here as i32);
            lanes += here as i64;
        }
        let first = Table::stripe_of(self.base);
        self.set_items(&locked, first, self.items(first) - (lanes - items) as i32);
        Ok(())
    }

    /// Counts the taken lanes, and adds up what `sorted` says of each word.
    pub fn lanes_locked(
        self,
        locked: &impl Locks,
        sorted: impl Fn(u64) -> usize,
    ) -> (usize, usize) {
        self.buckets()
            .map(|bucket| self.read_locked(locked, bucket))
            .fold((0, 0), |(taken, left), word| {
                (taken + self.lanes().taken(word).len(), left + sorted(word))
            })
    }

    /// The buckets of one of the shard's stripes.
    pub fn buckets_of(self, stripe: usize) -> impl Iterator<Item = Bucket> {
        let first = ((stripe - Table::stripe_of(self.base)) as u32) * STRIPE_BUCKETS;
        (first..(first + STRIPE_BUCKETS).min(self.table.geometry().buckets())).map(Bucket)
    }
}
