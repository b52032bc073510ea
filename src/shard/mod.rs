//! A shard: one complete cuckoo table inside a [`Table`].
//!
//! This file has the words and the locks of a shard, and its [`Lease`]: where the shard is, whether it still owns the
//! items that an operation asks about, and what its lanes mean. The operations are in other files:
//!
//! * [`lookup`] finds and counts one item, [`write`](mod@write) inserts, removes and refreshes one;
//! * [`kick`] moves other items out of the way along a path that [`path`] found;
//! * [`sweep`](mod@sweep) erases expired items;
//! * [`whole`] clears, copies and fills the shard as a unit.
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
//!   [`Lease::check`]. A shard of a fixed filter always owns them.
//!
//! # Orderings
//!
//! Words are stored `Release` and loaded `Acquire`; the stripe's lock orders writers among themselves. A
//! reader that saw a word without the item therefore also sees the version of the move that took it away (the
//! table is in [`stripe`](crate::table::stripe)). A thread that finds an item also sees everything that its
//! inserter did before. If an insert happens-before a lookup through any other synchronisation, the lookup
//! finds the item: a later load of the same word cannot return an earlier store. A store that took the item
//! away again was a move, the removal of one of several copies, its expiry in a tick, or a `clear`, and each of
//! these invalidates readers first.

pub(crate) mod kick;
pub(crate) mod lookup;
pub(crate) mod path;
pub(crate) mod sweep;
pub(crate) mod whole;
pub(crate) mod write;

use crate::layout::SMALL;
use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes, Words};
use crate::layout::geometry::{Bucket, Place, SHARD_STRIPES};
use crate::layout::stamps::Moment;
use crate::sync::AtomicU64;
use crate::table::stripe::{LockGuard, Locks, Many, StripeSet, Two, WriteSection};
use crate::table::ticking::{Clock, Ticking};
use crate::table::{Table, load};
use std::convert::Infallible;
use std::fmt::Debug;
use std::ops::Deref;

/// All locks of a shard.
pub(crate) type AllLocks<'a> = Many<'a, SHARD_STRIPES>;

/// A shard, as its lease describes it.
#[derive(Clone, Copy)]
pub(crate) struct Shard<L>(pub L);

impl<L> Deref for Shard<L> {
    type Target = L;

    #[inline(always)]
    fn deref(&self) -> &L {
        &self.0
    }
}

impl<'a> Shard<Permanent<'a>> {
    /// Returns a shard whose lease never ends, or is not checked.
    pub(crate) fn new(table: &'a Table, index: usize) -> Self {
        let base = index * table.geometry.buckets() as usize;
        Shard::of(Permanent { table, base, is_wide: table.is_wide() })
    }
}

impl<'a, L: Lease<'a>> Shard<L> {
    #[inline]
    pub(crate) fn of(lease: L) -> Self {
        debug_assert!(lease.table().is_wide() == lease.is_wide());
        Shard(lease)
    }

    /// Returns the fingerprint with the present stamp, for an item that is placed now. The caller holds a
    /// lock of the shard.
    #[inline]
    pub(crate) fn stamped(self, fp: Fingerprint) -> Fingerprint {
        if self.lanes().forgets() { self.lanes().stamped(fp, self.now()) } else { fp }
    }

    // Buckets.

    /// Reads the first word, which determines which lanes are empty.
    #[inline]
    pub(crate) fn read(self, bucket: Bucket) -> u64 {
        load(self.heads(bucket))
    }

    /// Reads the rest of a bucket whose first word is `heads`.
    #[inline]
    fn read_rest(self, bucket: Bucket, heads: u64) -> Words {
        Words { heads, tails: self.tails(bucket) }
    }

    #[inline]
    pub(crate) fn read_locked(self, locked: &impl Locks, bucket: Bucket) -> Words {
        let word = self.word(bucket);
        let tails = if self.is_wide() { self.table().read_locked(locked, word + 1) } else { 0 };
        Words { heads: self.table().read_locked(locked, word), tails }
    }

    #[inline]
    fn read_both(self, locked: &impl Locks, place: Place) -> (Words, Words) {
        (self.read_locked(locked, place.first), self.read_locked(locked, place.second))
    }

    #[inline]
    pub(crate) fn write(self, locked: &impl Locks, bucket: Bucket, Words { heads, tails }: Words) {
        let word = self.word(bucket);
        if self.is_wide() {
            self.table().write(locked, word + 1, tails);
        }
        self.table().write(locked, word, heads);
    }

    pub(crate) fn buckets(self) -> impl Iterator<Item = Bucket> {
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
    pub(crate) fn stripes<const N: usize>(
        self,
        buckets: impl IntoIterator<Item = Bucket>,
    ) -> StripeSet<N> {
        buckets.into_iter().map(|bucket| self.stripe(bucket)).collect()
    }

    pub(crate) fn own_stripes(self) -> impl Iterator<Item = usize> + use<L> {
        let first = Table::stripe_of(self.base());
        first..first + self.table().geometry.stripes() as usize
    }

    pub(crate) fn items(self, stripe: usize) -> i32 {
        self.table().stripes.items(stripe)
    }

    pub(crate) fn set_items(self, locked: &impl Locks, stripe: usize, items: i32) {
        self.table().stripes.set_items(locked, stripe, items);
    }

    #[inline]
    pub(crate) fn add_items(self, locked: &impl Locks, bucket: Bucket, change: i32) {
        self.table().stripes.add_items(locked, self.stripe(bucket), change);
    }

    // Locks.

    #[inline]
    pub(crate) fn lock_one(self, bucket: Bucket) -> Result<LockGuard<'a>, L::Lapsed> {
        let locked = self.table().stripes.lock(self.stripe(bucket));
        self.check().map(|()| locked)
    }

    /// Locks the stripes of both buckets of an item.
    #[inline]
    pub(crate) fn lock(self, place: Place) -> Result<Two<'a>, L::Lapsed> {
        let both = [self.stripe(place.first), self.stripe(place.second)];
        let locked = self.table().stripes.lock_two(both);
        self.check().map(|()| locked)
    }

    /// The same for a caller that may go on to split the shard. To a model checker, this check of the lease
    /// is no event (see [`check_alone`](Lease::check_alone)).
    pub(crate) fn lock_before_split(self, place: Place) -> Result<Two<'a>, L::Lapsed> {
        let both = [self.stripe(place.first), self.stripe(place.second)];
        let locked = self.table().stripes.lock_two(both);
        self.check_alone().map(|()| locked)
    }

    pub(crate) fn lock_many<const N: usize>(
        self,
        which: &StripeSet<N>,
    ) -> Result<Many<'a, N>, L::Lapsed> {
        let locked = self.table().stripes.lock_many(which);
        self.check()?;
        self.time_after_sweep(&locked, which.iter());
        Ok(locked)
    }

    /// Locks every stripe of the shard.
    pub(crate) fn lock_all(self) -> Result<AllLocks<'a>, L::Lapsed> {
        let all = self.own_stripes().collect();
        let locked = self.table().stripes.lock_many(&all);
        self.check_alone()?;
        self.time_after_sweep(&locked, all.iter());
        Ok(locked)
    }

    /// Makes the versions of these stripes odd until the result is dropped.
    #[inline]
    pub(crate) fn write_section<'l, const N: usize>(
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

/// The maximum number of full buckets on the list of a search for room, under any lease.
pub(crate) const MAX_NODES: usize = if SMALL { 16 } else { 512 };

/// Where a shard is, whether it still owns the items that an operation asks about, and what its lanes mean.
///
/// A shard of a fixed filter owns its items for good: its lease is [`Permanent`]. It compares whole fingerprints, and
/// each lane is one item. A shard of a growing filter owns its items until it is split or joined: its lease is
/// [`UntilSplit`](crate::backend::growing::until_split::UntilSplit). Its fingerprints [lose
/// bits](crate::layout::shrinking), and match more items the more they have lost;
/// [void](crate::backend::growing::void) lanes are not one item each.
pub(crate) trait Lease<'a>: Copy {
    /// The error that the lease has ended, so that the caller has to look up the item's shard again.
    type Lapsed: Debug;

    /// Whether the meaning of a word never changes. If so, a fingerprint that was seen once in a narrow bucket is a
    /// hit.
    const IS_PERMANENT: bool;

    /// The number of full buckets that a search for room lists before it gives up.
    const MAX_NODES: usize;

    fn table(&self) -> &'a Table;

    /// The table's index of the shard's first bucket.
    fn base(&self) -> usize;

    /// Returns the table's index of a bucket.
    #[inline]
    fn index(&self, bucket: Bucket) -> usize {
        self.base() + bucket.0 as usize
    }

    fn lanes(&self) -> Lanes;

    /// Whether the shard's buckets are wide.
    fn is_wide(&self) -> bool;

    /// Returns where the first word of a bucket is.
    fn heads(&self, bucket: Bucket) -> &'a AtomicU64;

    /// Reads the second word of a wide bucket. Returns zero for a narrow one.
    fn tails(&self, bucket: Bucket) -> u64;

    /// Returns the version of a bucket's stripe.
    fn version(&self, bucket: Bucket) -> &'a AtomicU64;

    /// Checks that the shard still owns the item. It stays so for as long as the caller holds a lock of the
    /// shard.
    fn check(self) -> Result<(), Self::Lapsed>;

    /// The same for a caller that holds a lock of the shard and may go on to end the lease. The entry changes
    /// only under all locks of the shard, so the caller's lock orders a plain load.
    fn check_alone(self) -> Result<(), Self::Lapsed>;

    /// Returns the clock, if the filter forgets (and not for a [`Permanent`] lease in a growing one). A caller that
    /// holds a lock of the shard reads a time no earlier than that of any thread that held the lock before.
    fn clock(&self) -> Option<&'a Clock>;

    // What the lanes mean.

    /// Whether a lane of two buckets matches an item with this fingerprint. (The second words of narrow buckets are
    /// zero.)
    fn either_matches(self, heads: [u64; 2], tails: [u64; 2], fp: Fingerprint) -> bool;

    /// Returns the lanes of a first word that match an item with this fingerprint: in a wide bucket, by its
    /// head alone.
    fn matching_heads(self, heads: u64, fp: Fingerprint) -> LaneSet;

    /// Returns the lanes of a second word that match it by its tail. Empty lanes may be among them.
    fn matching_tails(self, tails: u64, fp: Fingerprint) -> LaneSet;

    /// Returns the lanes of a bucket that match it.
    #[inline]
    fn matching(self, words: Words, fp: Fingerprint) -> LaneSet {
        let heads = self.matching_heads(words.heads, fp);
        if self.is_wide() { heads.and(self.matching_tails(words.tails, fp)) } else { heads }
    }

    /// Returns the other bucket of an item that is in `bucket` as `fp`.
    fn alternate(self, bucket: Bucket, fp: Fingerprint) -> Bucket;

    /// Returns, of these lanes that all match one item, the lane that matches the fewest other items, and the
    /// number of bits that it has lost.
    fn most_precise(self, words: Words, among: LaneSet) -> Option<(u32, Lane)>;

    // What is recorded of lanes that are not one item each.

    /// Records the removal of an item whose lane has lost `lost` bits. The caller holds the lock of the lane's stripe.
    #[inline]
    fn removing(self, _lost: u32) -> Removing {
        Removing::Lane
    }

    /// Records that the expired lanes of these buckets are being erased. Returns the number of them that
    /// their stripe does not count. The caller holds the lock of the stripe.
    #[inline]
    fn expiring(self, _words: &[u64], _now: Moment) -> i32 {
        0
    }
}

/// The effect of a removal on the lane that matches its item best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removing {
    /// The lane goes, and its stripe counts one item less.
    Lane,
    /// The lane stays, since other items may need it.
    OneOfMany,
    /// The lane stands for no item, and stays.
    Nothing,
}

/// The reason why a shard refused an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal<E> {
    /// There is no room for the item.
    Full,
    /// The shard no longer owns the item.
    Lapsed(E),
}

impl<E> From<E> for Refusal<E> {
    fn from(lapsed: E) -> Self {
        Refusal::Lapsed(lapsed)
    }
}

/// The result of an operation that fails if the shard is full or no longer owns the item (`E`).
pub(crate) type Answer<T, E> = Result<T, Refusal<E>>;

/// The lease of a fixed filter's shard, which never ends. In a growing filter, work on a whole shard uses it, too: its
/// caller makes sure that the shard is not split meanwhile, or does not mind.
#[derive(Clone, Copy)]
pub(crate) struct Permanent<'a, W = bool> {
    pub table: &'a Table,
    pub base: usize,
    /// Whether the shard's buckets are wide: a value, or [`Known`].
    pub is_wide: W,
}

/// Whether buckets are wide, as a type. Operations on one item are compiled for either width, without a test of it.
#[derive(Clone, Copy, Debug)]
pub struct Known<const WIDE: bool>;

impl<const WIDE: bool> From<Known<WIDE>> for bool {
    #[inline(always)]
    fn from(_: Known<WIDE>) -> bool {
        WIDE
    }
}

impl<'a, W: Into<bool> + Copy> Lease<'a> for Permanent<'a, W> {
    type Lapsed = Infallible;

    const IS_PERMANENT: bool = true;
    const MAX_NODES: usize = MAX_NODES;

    #[inline]
    fn table(&self) -> &'a Table {
        self.table
    }

    #[inline]
    fn base(&self) -> usize {
        self.base
    }

    #[inline]
    fn lanes(&self) -> Lanes {
        self.table.geometry.lanes()
    }

    #[inline]
    fn is_wide(&self) -> bool {
        self.is_wide.into()
    }

    #[inline(always)]
    fn heads(&self, bucket: Bucket) -> &'a AtomicU64 {
        self.table.word(self.index(bucket) << u32::from(self.is_wide()))
    }

    #[inline(always)]
    fn tails(&self, bucket: Bucket) -> u64 {
        match self.is_wide() {
            false => 0,
            true => self.table.read(2 * self.index(bucket) + 1),
        }
    }

    #[inline(always)]
    fn version(&self, bucket: Bucket) -> &'a AtomicU64 {
        self.table.stripes.version(Table::stripe_of(self.index(bucket)))
    }

    #[inline]
    fn check(self) -> Result<(), Infallible> {
        Ok(())
    }

    #[inline]
    fn check_alone(self) -> Result<(), Infallible> {
        Ok(())
    }

    #[inline]
    fn clock(&self) -> Option<&'a Clock> {
        self.table.ticking().map(Ticking::clock)
    }

    #[inline(always)]
    fn either_matches(self, heads: [u64; 2], tails: [u64; 2], fp: Fingerprint) -> bool {
        match self.is_wide() {
            false => self.lanes().either_matches(heads, fp),
            true => self.lanes().either_matches_whole(heads, tails, fp),
        }
    }

    #[inline]
    fn matching_heads(self, heads: u64, fp: Fingerprint) -> LaneSet {
        self.lanes().matching(heads, fp)
    }

    #[inline]
    fn matching_tails(self, tails: u64, fp: Fingerprint) -> LaneSet {
        self.lanes().matching_tail(tails, fp)
    }

    #[inline]
    fn alternate(self, bucket: Bucket, fp: Fingerprint) -> Bucket {
        self.table.geometry.alternate(bucket, fp)
    }

    #[inline]
    fn most_precise(self, _: Words, among: LaneSet) -> Option<(u32, Lane)> {
        among.first().map(|lane| (0, lane))
    }
}
