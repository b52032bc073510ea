//! A raw shard: where the words, the stripes and the locks of a shard are.
//!
//! It knows neither which items it owns nor what its lanes mean. So it cannot find or place an item, and no check keeps
//! it from being split: a [`Lease`](crate::shard::Lease) adds both. Here it is filled, cleared, read, counted and swept
//! as a unit.
//!
//! An item moves under the locks of both its stripes, so what is read under all locks contains each item exactly once.

use crate::layout::bucket::{Lanes, Words};
use crate::layout::geometry::{Bucket, SHARD_STRIPES, STRIPE_BUCKETS};
use crate::layout::stamps::{ByStamp, Moment, STAMPS};
use crate::table::Table;
use crate::table::stripe::{Locks, Many, StripeSet, WriteSection};
use std::ops::Range;

/// The number of words that are summed at once: the smallest lanes count to 255.
const IN_A_SUM: usize = 128;

pub(crate) type AllLocks<'a> = Many<'a, SHARD_STRIPES>;

/// A shard of a table. `W` is `bool`, or [`Known`] where the code is compiled for one width of buckets.
#[derive(Clone, Copy)]
pub(crate) struct RawShard<'a, W = bool> {
    pub table: &'a Table,
    /// The table's index of the shard's first bucket.
    pub base: usize,
    is_wide: W,
}

/// Whether buckets are wide, as a type. Operations on one item are compiled for either width, without a test of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<const WIDE: bool>;

impl<const WIDE: bool> From<Known<WIDE>> for bool {
    #[inline(always)]
    fn from(_: Known<WIDE>) -> bool {
        WIDE
    }
}

impl<'a> RawShard<'a> {
    pub(crate) fn new(table: &'a Table, index: usize) -> Self {
        let base = index * table.geometry.buckets() as usize;
        RawShard { table, base, is_wide: table.is_wide() }
    }
}

impl<'a, W: Into<bool> + Copy> RawShard<'a, W> {
    #[inline(always)]
    pub(crate) fn from_base(table: &'a Table, base: usize, is_wide: W) -> Self {
        debug_assert!(table.is_wide() == is_wide.into());
        RawShard { table, base, is_wide }
    }

    #[inline]
    pub(crate) fn lanes(self) -> Lanes {
        self.table.geometry.lanes()
    }

    #[inline]
    pub(crate) fn is_wide(self) -> bool {
        self.is_wide.into()
    }

    // Buckets.

    pub(crate) fn buckets(self) -> impl Iterator<Item = Bucket> {
        (0..self.table.geometry.buckets()).map(Bucket)
    }

    #[inline]
    pub(crate) fn index(self, bucket: Bucket) -> usize {
        self.base + bucket.0 as usize
    }

    #[inline]
    pub(crate) fn word(self, bucket: Bucket) -> usize {
        self.index(bucket) << u32::from(self.is_wide())
    }

    fn words(self) -> Range<usize> {
        let first = self.word(Bucket(0));
        first..first + self.table.geometry.words()
    }

    #[inline]
    pub(crate) fn read_locked(self, locked: &impl Locks, bucket: Bucket) -> Words {
        let word = self.word(bucket);
        let tails = if self.is_wide() { self.table.read_locked(locked, word + 1) } else { 0 };
        Words { heads: self.table.read_locked(locked, word), tails }
    }

    #[inline]
    pub(crate) fn write(self, locked: &impl Locks, bucket: Bucket, Words { heads, tails }: Words) {
        let word = self.word(bucket);
        if self.is_wide() {
            self.table.write(locked, word + 1, tails);
        }
        self.table.write(locked, word, heads);
    }

    /// Returns recent words of these buckets.
    pub(crate) fn recent_words(
        self,
        buckets: impl Iterator<Item = Bucket>,
    ) -> impl Iterator<Item = Words> {
        buckets.map(move |bucket| {
            let word = self.word(bucket);
            let heads = self.table.read(word);
            let tails = if self.is_wide() { self.table.read(word + 1) } else { 0 };
            Words { heads, tails }
        })
    }

    // Stripes, by their index in the table.

    #[inline]
    pub(crate) fn stripe(self, bucket: Bucket) -> usize {
        Table::stripe_of(self.index(bucket))
    }

    #[inline(always)]
    pub(crate) fn stripes<const N: usize>(
        self,
        buckets: impl IntoIterator<Item = Bucket>,
    ) -> StripeSet<N> {
        buckets.into_iter().map(|bucket| self.stripe(bucket)).collect()
    }

    pub(crate) fn own_stripes(self) -> Range<usize> {
        let first = Table::stripe_of(self.base);
        first..first + self.table.geometry.stripes() as usize
    }

    /// Returns the buckets of one of the shard's stripes.
    pub(crate) fn buckets_of(self, stripe: usize) -> impl Iterator<Item = Bucket> {
        let first = ((stripe - Table::stripe_of(self.base)) as u32) * STRIPE_BUCKETS;
        (first..(first + STRIPE_BUCKETS).min(self.table.geometry.buckets())).map(Bucket)
    }

    /// Returns a recent number of items, by the counts.
    pub(crate) fn all_items(self) -> i64 {
        self.own_stripes().map(|stripe| i64::from(self.table.stripes.items(stripe))).sum()
    }

    #[inline]
    pub(crate) fn add_items(self, locked: &impl Locks, bucket: Bucket, change: i32) {
        self.table.stripes.add_items(locked, self.stripe(bucket), change);
    }

    /// Sets the counts of all stripes so that they add up to `items`, in equal parts. The remainder goes one
    /// by one to the stripes from that of `bucket` on.
    pub(crate) fn share_out(self, locked: &AllLocks<'_>, items: i64, bucket: Bucket) {
        let stripes = self.own_stripes().len() as i64;
        let (each, left) = (items.div_euclid(stripes), items.rem_euclid(stripes));
        let first = self.stripe(bucket);
        for stripe in self.own_stripes() {
            let turn = (stripe as i64 - first as i64).rem_euclid(stripes);
            self.table.stripes.set_items(locked, stripe, (each + i64::from(turn < left)) as i32);
        }
    }

    #[inline(always)]
    pub(crate) fn write_section<'l, const N: usize>(
        self,
        locked: &'l impl Locks,
        which: &'l StripeSet<N>,
    ) -> WriteSection<'l, N>
    where
        'a: 'l,
    {
        self.table.stripes.write_section(locked, which)
    }

    fn invalidate_all_readers(self, locked: &AllLocks<'_>) {
        self.own_stripes().for_each(|stripe| self.table.stripes.invalidate_readers(locked, stripe));
    }

    // The shard as a unit.

    /// Locks every stripe, whichever items the shard owns, and sweeps none.
    pub(crate) fn lock_raw(self) -> AllLocks<'a> {
        self.table.stripes.lock_many(&self.own_stripes().collect())
    }

    /// Copies all words, which does not invalidate readers.
    pub(crate) fn copy_words(self, locked: &AllLocks<'_>, to: &mut [u64]) {
        for (word, copy) in self.words().zip(to) {
            *copy = self.table.read_locked(locked, word);
        }
    }

    /// Fills the shard, which is empty, with a copy. Its items have to be [shared out](Self::share_out) then.
    pub(crate) fn fill(self, from: &[u64]) {
        let locked = self.lock_raw();
        for (word, value) in self.words().zip(from) {
            // A page that is never written takes no memory.
            if *value != 0 {
                self.table.write(&locked, word, *value);
            }
        }
    }

    /// Empties the shard. Returns its locks, for a caller that has more to do before other threads may write to it. All
    /// stripes are locked, so that no item moves from a segment that has not been cleared yet into one that has.
    pub(crate) fn clear(self) -> AllLocks<'a> {
        let locked = self.lock_raw();
        self.invalidate_all_readers(&locked);
        let all = self.own_stripes().collect::<StripeSet<SHARD_STRIPES>>();
        // The two words of a wide bucket cannot be emptied in one store.
        let moving = self.is_wide().then(|| self.write_section(&locked, &all));
        for bucket in self.buckets() {
            if self.read_locked(&locked, bucket).heads != 0 {
                self.write(&locked, bucket, Words::default());
            }
        }
        self.share_out(&locked, 0, Bucket(0));
        drop(moving);
        locked
    }

    // Ticks.

    pub(crate) fn mark_swept(self, locked: &AllLocks<'_>, now: Moment) {
        self.own_stripes().for_each(|stripe| self.table.stripes.set_swept(locked, stripe, now));
    }

    /// Erases the expired lanes of a stripe, unless a writer has done so in this tick. `uncounted` gets the words
    /// before that, and returns how many of these lanes the stripe does not count. `is_in_use` is called under the
    /// lock: if the shard is out of use, the stripe is only marked.
    pub(crate) fn sweep(
        self,
        stripe: usize,
        now: Moment,
        is_in_use: impl FnOnce() -> bool,
        uncounted: impl FnMut(&[u64]) -> i32,
    ) {
        let stripes = &self.table.stripes;
        let locked = stripes.lock(stripe);
        if !is_in_use() {
            stripes.set_swept(&locked, stripe, now);
        } else if !stripes.is_swept(stripe, now) {
            self.erase_expired(&locked, stripe, now, uncounted);
        }
    }

    /// The same for a caller that holds the lock of the stripe, which has not been swept.
    pub(crate) fn erase_expired(
        self,
        locked: &impl Locks,
        stripe: usize,
        now: Moment,
        mut uncounted: impl FnMut(&[u64]) -> i32,
    ) {
        let (lanes, stripes) = (self.lanes(), &self.table.stripes);
        let which: StripeSet<1> = [stripe].into_iter().collect();
        let _moving = self.is_wide().then(|| self.write_section(locked, &which));
        if !self.is_wide() {
            stripes.invalidate_readers(locked, stripe);
        }
        let mut buckets = self.buckets_of(stripe);
        let Some(first) = buckets.next() else { return };
        let last = buckets.last().unwrap_or(first);
        let words = self.word(first)..self.word(last) + lanes.words();
        let mut change = 0;
        let expiry = lanes.expiry(now);
        self.table.replace::<IN_A_SUM>(locked, words, |words| {
            change += uncounted(words);
            let erased = expiry.erase(words);
            change -= erased as i32;
            erased > 0
        });
        stripes.add_items(locked, stripe, change);
        stripes.set_swept(locked, stripe, now);
    }
}

/// Returns a recent number of the lanes with each stamp in these shards.
pub(crate) fn items_by_stamp<'a>(
    lanes: Lanes,
    shards: impl Iterator<Item = RawShard<'a>>,
) -> ByStamp {
    let mut items = [0; STAMPS];
    for words in shards.flat_map(|shard| shard.recent_words(shard.buckets())) {
        lanes.taken(words.heads).for_each(|lane| items[lanes.stamp(words, lane)] += 1);
    }
    items
}
