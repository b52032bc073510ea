//! Operations on a whole shard: clear, copy and fill it, under all its locks, and count its items, without them.
//!
//! An item moves under the locks of both its stripes, so a copy made under all locks contains each item
//! exactly once. A copy does not invalidate readers.

use crate::layout::bucket::{Lanes, Words};
use crate::layout::geometry::{Bucket, SHARD_STRIPES, STRIPE_BUCKETS};
use crate::layout::stamps::{ByStamp, STAMPS};
use crate::shard::{AllLocks, Lease, Permanent, Shard};
use crate::table::Table;
use crate::table::stripe::StripeSet;
use crate::table::ticking::{Ticking, Time};

/// Fills a shard of a new table with a copy that holds `items` items.
pub(crate) fn fill(table: &Table, shard: usize, from: &[u64], items: i64) {
    let Ok(()) = Shard::new(table, shard).fill(from, items);
}

/// Reads the words of a shard of a new table.
pub(crate) fn read_shard(table: &Table, shard: usize, to: &mut [u64]) {
    let Ok(_) = Shard::new(table, shard).copy(None, to);
}

/// Returns a recent number of the lanes with each stamp in these shards.
pub(crate) fn items_by_stamp<'a>(
    lanes: Lanes,
    shards: impl Iterator<Item = Shard<Permanent<'a>>>,
) -> ByStamp {
    let mut items = [0; STAMPS];
    for words in shards.flat_map(Shard::all_words) {
        lanes.taken(words.heads).for_each(|lane| items[lanes.stamp(words, lane)] += 1);
    }
    items
}

/// Empties a shard of a new table.
pub(crate) fn clear(table: &Table, shard: usize) {
    let Ok(()) = Shard::new(table, shard).clear(|| ());
}

impl<'a, L: Lease<'a>> Shard<L> {
    /// Empties the shard, and calls `cleared` before other threads can write to it again. All stripes are
    /// locked, so that no item moves from a segment that has not been cleared yet into one that has.
    pub(crate) fn clear(self, cleared: impl FnOnce()) -> Result<(), L::Lapsed> {
        let locked = self.lock_all()?;
        self.invalidate_all_readers(&locked);
        let all = self.own_stripes().collect::<StripeSet<SHARD_STRIPES>>();
        // The two words of a wide bucket cannot be emptied in one store.
        let _moving = self.is_wide().then(|| self.write_section(&locked, &all));
        for bucket in self.buckets() {
            if self.read_locked(&locked, bucket).heads != 0 {
                self.write(&locked, bucket, Words::default());
            }
        }
        self.own_stripes().for_each(|stripe| self.set_items(&locked, stripe, 0));
        cleared();
        Ok(())
    }

    /// Invalidates all readers that have begun.
    fn invalidate_all_readers(self, locked: &AllLocks<'_>) {
        self.own_stripes()
            .for_each(|stripe| self.table().stripes.invalidate_readers(locked, stripe));
    }

    /// Copies the words of all buckets as they are at one moment. Returns the number of items that the stripes count
    /// at that moment, and its time, if the filter forgets.
    pub(crate) fn copy(
        self,
        ticking: Option<&Ticking>,
        to: &mut [u64],
    ) -> Result<(i64, Option<Time>), L::Lapsed> {
        let locked = self.lock_all()?;
        let time = ticking.map(|ticking| self.swept_time(&locked, ticking).0);
        for (word, copy) in (self.word(Bucket(0))..).zip(to) {
            *copy = self.table().read_locked(&locked, word);
        }
        Ok((self.all_items(), time))
    }

    fn fill(self, from: &[u64], items: i64) -> Result<(), L::Lapsed> {
        let locked = self.lock_all()?;
        for (word, value) in (self.word(Bucket(0))..).zip(from) {
            // A page that is never written takes no memory.
            if *value != 0 {
                self.table().write(&locked, word, *value);
            }
        }
        self.share_out(&locked, items, Bucket(0));
        Ok(())
    }

    /// Sets the counts of all stripes so that they add up to `items`, in equal parts. The remainder goes one
    /// by one to the stripes from that of `bucket` on.
    pub(crate) fn share_out(self, locked: &AllLocks<'_>, items: i64, bucket: Bucket) {
        let stripes = self.own_stripes().count() as i64;
        let (each, left) = (items.div_euclid(stripes), items.rem_euclid(stripes));
        let first = self.stripe(bucket);
        for stripe in self.own_stripes() {
            let turn = (stripe as i64 - first as i64).rem_euclid(stripes);
            self.set_items(locked, stripe, (each + i64::from(turn < left)) as i32);
        }
    }

    /// Returns recent words of all buckets.
    pub(crate) fn all_words(self) -> impl Iterator<Item = Words> {
        self.buckets().map(move |bucket| self.read_rest(bucket, self.read(bucket)))
    }

    /// Returns a recent number of items, by the counts.
    pub(crate) fn all_items(self) -> i64 {
        self.own_stripes().map(|stripe| i64::from(self.items(stripe))).sum()
    }

    /// Returns the buckets of one of the shard's stripes.
    pub(crate) fn buckets_of(self, stripe: usize) -> impl Iterator<Item = Bucket> {
        let first = ((stripe - Table::stripe_of(self.base())) as u32) * STRIPE_BUCKETS;
        (first..(first + STRIPE_BUCKETS).min(self.table().geometry.buckets())).map(Bucket)
    }
}
