//! A shard: one complete cuckoo table inside a [`Table`].
//!
//! This file has the words and the locks of a shard. The operations are in other files:
//!
//! * [`lookup`] finds and counts one item, [`write`](mod@write) inserts, removes and refreshes one;
//! * [`kick`] moves other items out of the way along a path that [`path`] found;
//! * [`sweep`](mod@sweep) erases expired items;
//! * [`merge`](mod@merge) merges the entries of another filter;
//! * [`whole`] clears, copies and fills the shard as a unit;
//! * [`lease`] defines for how long a shard owns its items, and what its lanes mean.
//!
//! # Rules
//!
//! * A write to a bucket needs the lock of its stripe; the [`Locks`] argument is the proof.
//! * Filling or emptying a single lane is one store and needs no version change. (In a wide bucket,
//!   filling stores the second word first, and emptying is a move; see [`kick`].)
//! * Before a fingerprint is erased while a copy of it stays in the item's other bucket, readers that have
//!   already begun are invalidated. Otherwise, a reader that read the other bucket before that copy arrived
//!   would see neither copy.
//! * A miss is valid only if nothing moved while both words were read. A hit needs one word in a narrow bucket of a
//!   fixed filter; in a wide bucket, and in a shard that may be split, it is valid under the same condition as a miss.
//! * A lock is handed out only while the shard still owns the items that the caller asks about; see
//!   [`lease`]. A shard of a fixed filter always owns them.
//!
//! # Orderings
//!
//! Words are stored `Release` and loaded `Acquire`; the stripe's lock orders writers among themselves. A
//! reader that saw a word without the item therefore also sees the version of the move that took it away (the
//! table is in [`stripe`](crate::table::stripe)). A thread that finds an item also sees everything that its
//! inserter did before. If an insert happens-before a lookup through any other synchronisation, the lookup
//! finds the item: a later load of the same word cannot return an earlier store. A store that took the item
//! away again was a move, the removal of one of several copies, or its expiry in a tick, and each of these
//! invalidates readers first.

#[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
pub mod exhaustive;
pub mod kick;
pub mod lease;
pub mod lookup;
pub mod merge;
pub mod path;
pub mod sweep;
pub mod whole;
pub mod write;

use crate::layout::bucket::{Fingerprint, LaneSet, Words};
use crate::layout::geometry::{Bucket, Place, SHARD_STRIPES};
use crate::shard::lease::{Lease, Permanent};
use crate::table::lock::LockGuard;
use crate::table::stripe::{Locks, Many, StripeSet, Two, WriteSection};
use crate::table::{Table, load};
use std::ops::Deref;

/// A shard, as its lease describes it.
#[derive(Clone, Copy)]
pub struct Shard<L>(pub L);

impl<L> Deref for Shard<L> {
    type Target = L;

    #[inline(always)]
    fn deref(&self) -> &L {
        &self.0
    }
}

impl<'a> Shard<Permanent<'a>> {
    /// Returns a shard that keeps its items for good.
    pub fn new(table: &'a Table, index: usize) -> Self {
        let base = index * table.geometry.buckets() as usize;
        Shard::of(Permanent { table, base, is_wide: table.is_wide() })
    }
}

impl<'a, L: Lease<'a>> Shard<L> {
    #[inline]
    pub fn of(lease: L) -> Self {
        debug_assert!(lease.table().is_wide() == lease.is_wide());
        Shard(lease)
    }

    /// Returns the fingerprint with the present stamp, for an item that is placed now. The caller holds a
    /// lock of the shard.
    #[inline]
    pub fn stamped(self, fp: Fingerprint) -> Fingerprint {
        if self.lanes().forgets() { self.lanes().stamped(fp, self.now()) } else { fp }
    }

    /// Returns the lanes of a bucket that match the item.
    #[inline]
    fn matching(self, words: Words, fp: Fingerprint) -> LaneSet {
        let heads = self.matching_heads(words.heads, fp);
        if self.is_wide() { heads.and(self.matching_tails(words.tails, fp)) } else { heads }
    }

    // Buckets.

    /// Reads the first word, which determines which lanes are empty.
    #[inline]
    pub fn read(self, bucket: Bucket) -> u64 {
        load(self.heads(bucket))
    }

    /// Reads the rest of a bucket whose first word is `heads`.
    #[inline]
    fn read_rest(self, bucket: Bucket, heads: u64) -> Words {
        Words { heads, tails: self.tails(bucket) }
    }

    #[inline]
    pub fn read_locked(self, locked: &impl Locks, bucket: Bucket) -> Words {
        let word = self.word(bucket);
        let tails = if self.is_wide() { self.table().read_locked(locked, word + 1) } else { 0 };
        Words { heads: self.table().read_locked(locked, word), tails }
    }

    #[inline]
    fn read_both(self, locked: &impl Locks, place: Place) -> (Words, Words) {
        (self.read_locked(locked, place.first), self.read_locked(locked, place.second))
    }

    #[inline]
    pub fn write(self, locked: &impl Locks, bucket: Bucket, Words { heads, tails }: Words) {
        let word = self.word(bucket);
        if self.is_wide() {
            self.table().write(locked, word + 1, tails);
        }
        self.table().write(locked, word, heads);
    }

    pub fn buckets(self) -> impl Iterator<Item = Bucket> {
        (0..self.table().geometry.buckets()).map(Bucket)
    }

    /// Returns the table's index of a bucket's first word.
    #[inline]
    fn word(self, bucket: Bucket) -> usize {
        self.index(bucket) << u32::from(self.is_wide())
    }

    // Stripes, by their index in the table.

    #[inline]
    fn stripe(self, bucket: Bucket) -> usize {
        Table::stripe_of(self.index(bucket))
    }

    /// Returns the stripes of all these buckets.
    #[inline]
    pub fn stripes<const N: usize>(
        self,
        buckets: impl IntoIterator<Item = Bucket>,
    ) -> StripeSet<N> {
        buckets.into_iter().map(|bucket| self.stripe(bucket)).collect()
    }

    pub fn own_stripes(self) -> impl Iterator<Item = usize> + use<L> {
        let first = Table::stripe_of(self.base());
        first..first + self.table().geometry.stripes() as usize
    }

    pub fn items(self, stripe: usize) -> i32 {
        self.table().stripes.items(stripe)
    }

    pub fn set_items(self, locked: &impl Locks, stripe: usize, items: i32) {
        self.table().stripes.set_items(locked, stripe, items);
    }

    #[inline]
    pub fn add_items(self, locked: &impl Locks, bucket: Bucket, change: i32) {
        self.table().stripes.add_items(locked, self.stripe(bucket), change);
    }

    // Locks.

    #[inline]
    pub fn lock_one(self, bucket: Bucket) -> Result<LockGuard<'a>, L::Lapsed> {
        let locked = self.table().stripes.lock(self.stripe(bucket));
        self.check().map(|()| locked)
    }

    /// Locks the stripes of both buckets of an item.
    #[inline]
    pub fn lock(self, place: Place) -> Result<Two<'a>, L::Lapsed> {
        let both = [self.stripe(place.first), self.stripe(place.second)];
        let locked = self.table().stripes.lock_two(both);
        self.check().map(|()| locked)
    }

    /// The same for a caller that may go on to split the shard. To a model checker, this check of the lease
    /// is no event (see [`check_alone`](Lease::check_alone)).
    pub fn lock_before_split(self, place: Place) -> Result<Two<'a>, L::Lapsed> {
        let both = [self.stripe(place.first), self.stripe(place.second)];
        let locked = self.table().stripes.lock_two(both);
        self.check_alone().map(|()| locked)
    }

    pub fn lock_many<const N: usize>(self, which: &StripeSet<N>) -> Result<Many<'a, N>, L::Lapsed> {
        let locked = self.table().stripes.lock_many(which);
        self.check()?;
        self.sweep_moved(&locked, which.iter());
        Ok(locked)
    }

    /// Locks every stripe of the shard.
    pub fn lock_all(self) -> Result<Many<'a, SHARD_STRIPES>, L::Lapsed> {
        let all = self.own_stripes().collect();
        let locked = self.table().stripes.lock_many(&all);
        self.check_alone()?;
        self.sweep_moved(&locked, all.iter());
        Ok(locked)
    }

    /// Makes the versions of these stripes odd until the result is dropped.
    #[inline]
    pub fn write_section<'l, const N: usize>(
        self,
        locked: &'l impl Locks,
        which: &'l StripeSet<N>,
    ) -> WriteSection<'l, N>
    where
        'a: 'l,
    {
        self.table().stripes.write_section(locked, which)
    }
}
