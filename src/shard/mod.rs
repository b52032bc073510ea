//! A shard: one complete cuckoo table inside a [`Table`]. [`raw`] has its words, its stripes and its locks. This file
//! has its [`Lease`]: whether the shard still owns the items that an operation asks about, and what its lanes mean. A
//! lock is handed out only while it does; see [`Lease::check`].
//!
//! When a change of a word has to change a version, and when a hit or a miss is valid: [kicks](mod@crate::guide::kick).
//! The orderings, and the proof of a lock: [`stripe`](crate::table::stripe).

pub(crate) mod kick;
pub(crate) mod lookup;
pub(crate) mod path;
pub(crate) mod raw;
pub(crate) mod sweep;
pub(crate) mod write;

use crate::layout::SMALL;
use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Words};
use crate::layout::geometry::{Bucket, Place};
use crate::layout::stamps::Moment;
use crate::shard::raw::{AllLocks, RawShard};
use crate::sync::AtomicU64;
use crate::table::lock::LockGuard;
use crate::table::stripe::{Locks, Many, StripeSet, Two};
use crate::table::ticking::{Ticking, Time};
use crate::table::{Table, load};
use std::convert::Infallible;
use std::fmt::Debug;
use std::ops::Deref;

/// The figures of a shard at the moment of its copy.
pub(crate) struct Copied {
    /// The number of items that the stripes count: of lanes that are not void.
    pub items: i64,
    /// The time, in a filter that forgets.
    pub time: Option<Time>,
}

/// A shard for which there is a lease.
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
    /// Returns a shard of a fixed filter.
    pub(crate) fn new(table: &'a Table, index: usize) -> Self {
        Shard(Permanent { raw: RawShard::new(table, index) })
    }
}

impl<'a, L: Lease<'a>> Shard<L> {
    /// Returns the fingerprint with the present stamp, for an item that is placed now, under a lock of the shard.
    #[inline]
    pub(crate) fn stamped(self, fp: Fingerprint) -> Fingerprint {
        if self.lanes().forgets() { self.lanes().stamped(fp, self.now()) } else { fp }
    }

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
    fn read_both(self, locked: &impl Locks, place: Place) -> (Words, Words) {
        (self.read_locked(locked, place.first), self.read_locked(locked, place.second))
    }

    /// Returns the lanes of a bucket that match an item with this fingerprint.
    #[inline]
    pub(crate) fn matching(self, words: Words, fp: Fingerprint) -> LaneSet {
        let heads = self.matching_heads(words.heads, fp);
        if self.is_wide() { heads.and(self.matching_tails(words.tails, fp)) } else { heads }
    }

    // Locks.

    #[inline]
    pub(crate) fn lock_one(self, bucket: Bucket) -> Result<LockGuard<'a>, L::Lapsed> {
        let locked = self.table.stripes.lock(self.stripe(bucket));
        self.check().map(|()| locked)
    }

    /// Locks the stripes of both buckets of an item.
    #[inline]
    pub(crate) fn lock(self, place: Place) -> Result<Two<'a>, L::Lapsed> {
        let both = [self.stripe(place.first), self.stripe(place.second)];
        let locked = self.table.stripes.lock_two(both);
        self.check().map(|()| locked)
    }

    pub(crate) fn lock_many<const N: usize>(
        self,
        which: &StripeSet<N>,
    ) -> Result<Many<'a, N>, L::Lapsed> {
        let locked = self.table.stripes.lock_many(which);
        self.check()?;
        self.time_after_sweep(&locked, which.iter());
        Ok(locked)
    }

    /// Locks every stripe of the shard.
    pub(crate) fn lock_all(self) -> Result<AllLocks<'a>, L::Lapsed> {
        let locked = self.lock_raw();
        self.check()?;
        self.time_after_sweep(&locked, self.own_stripes());
        Ok(locked)
    }

    /// Copies all words as they are at one moment.
    pub(crate) fn copy(self, to: &mut [u64]) -> Result<Copied, L::Lapsed> {
        let locked = self.lock_all()?;
        let time = self.ticking().map(|ticking| self.swept_time(&locked, ticking).0);
        self.copy_words(&locked, to);
        Ok(Copied { items: self.all_items(), time })
    }
}

/// The maximum number of full buckets on the list of a search for room, under any lease.
pub(crate) const MAX_NODES: usize = if SMALL { 16 } else { 512 };

/// Whether a shard still owns the items that an operation asks about, what its lanes mean, and where it is: a
/// [`RawShard`].
///
/// A shard of a fixed filter owns its items for good: its lease is [`Permanent`]. It compares whole fingerprints, and
/// each lane is one item. A shard of a growing filter owns its items until it is split or joined: its lease is
/// [`UntilSplit`](crate::backend::growing::lease::UntilSplit). Its fingerprints [lose bits](crate::layout::shrinking),
/// and match more items the more they have lost; [void](crate::backend::growing#void-lanes) lanes are not one item
/// each.
pub(crate) trait Lease<'a>: Copy + Deref<Target = RawShard<'a, Self::Width>> {
    /// `bool`, or [`Known`](raw::Known) where the code is compiled for one width of buckets.
    type Width: Into<bool> + Copy;

    /// The error that the lease has ended, so that the caller has to look up the item's shard again.
    type Lapsed: Debug;

    /// Whether the meaning of a word never changes.
    const IS_PERMANENT: bool;

    /// The number of full buckets that a search for room lists before it gives up.
    const MAX_NODES: usize;

    #[inline(always)]
    fn heads(self, bucket: Bucket) -> &'a AtomicU64 {
        self.table.word(self.word(bucket))
    }

    /// Reads the second word of a wide bucket. Returns zero for a narrow one.
    #[inline(always)]
    fn tails(self, bucket: Bucket) -> u64 {
        if self.is_wide() { self.table.read(2 * self.index(bucket) + 1) } else { 0 }
    }

    /// Returns the version of a bucket's stripe.
    #[inline(always)]
    fn version(self, bucket: Bucket) -> &'a AtomicU64 {
        self.table.stripes.version(self.stripe(bucket))
    }

    /// Checks that the shard still owns the item. It stays so for as long as the caller holds a lock of the shard.
    fn check(self) -> Result<(), Self::Lapsed>;

    /// Returns the filter's clock and ticks, if it forgets. A caller that holds a lock of the shard reads a time no
    /// earlier than that of any thread that held the lock before.
    fn ticking(self) -> Option<&'a Ticking>;

    // What the lanes mean.

    /// Whether a lane of two buckets matches an item with this fingerprint. The second words of narrow buckets are
    /// zero.
    fn either_matches(self, heads: [u64; 2], tails: [u64; 2], fp: Fingerprint) -> bool;

    /// Returns the lanes of a first word that match an item with this fingerprint: in a wide bucket, by its head alone.
    fn matching_heads(self, heads: u64, fp: Fingerprint) -> LaneSet;

    /// Returns the lanes of a second word that match it by its tail. Empty lanes may be among them.
    fn matching_tails(self, tails: u64, fp: Fingerprint) -> LaneSet;

    /// Returns the other bucket of an item that is in `bucket` as `fp`.
    fn alternate(self, bucket: Bucket, fp: Fingerprint) -> Bucket;

    /// Returns the number of bits that a taken lane has lost.
    #[inline]
    fn lost(self, _words: Words, _lane: Lane) -> u32 {
        0
    }

    /// Whether a lane that has lost `lost` bits is [void](crate::backend::growing#void-lanes), so that no removal takes
    /// it.
    #[inline]
    fn is_void(self, _lost: u32) -> bool {
        false
    }

    /// Returns how many of the expired lanes of these buckets are void, so that their stripe does not count them.
    #[inline]
    fn expired_void_lanes(self, _words: &[u64], _now: Moment) -> i32 {
        0
    }
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

/// The lease of a fixed filter's shard, which never ends.
#[derive(Clone, Copy)]
pub(crate) struct Permanent<'a, W = bool> {
    pub raw: RawShard<'a, W>,
}

impl<'a, W> Deref for Permanent<'a, W> {
    type Target = RawShard<'a, W>;

    #[inline(always)]
    fn deref(&self) -> &RawShard<'a, W> {
        &self.raw
    }
}

impl<'a, W: Into<bool> + Copy> Lease<'a> for Permanent<'a, W> {
    type Width = W;
    type Lapsed = Infallible;

    const IS_PERMANENT: bool = true;
    const MAX_NODES: usize = MAX_NODES;

    #[inline]
    fn check(self) -> Result<(), Infallible> {
        Ok(())
    }

    #[inline]
    fn ticking(self) -> Option<&'a Ticking> {
        self.table.ticking()
    }

    #[inline(always)]
    fn either_matches(self, heads: [u64; 2], tails: [u64; 2], fp: Fingerprint) -> bool {
        if self.is_wide() {
            self.lanes().either_matches_whole(heads, tails, fp)
        } else {
            self.lanes().either_matches(heads, fp)
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
}
