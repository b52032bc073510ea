//! Leases: where a shard is, whether it still owns the items that an operation asks about, and what its lanes mean.
//!
//! A shard of a fixed filter owns its items for good: its lease is [`Permanent`]. It compares whole fingerprints, and
//! each lane is one item. A shard of a growing filter owns its items until it is split: its lease is
//! [`UntilSplit`](crate::backend::growing::until_split::UntilSplit). Its fingerprints [lose
//! bits](crate::layout::shrinking), and match more items the more they have lost;
//! [void](crate::backend::growing::void) lanes are not one item each.

use crate::error::FullKind;
use crate::layout::SMALL;
use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes, Words};
use crate::layout::geometry::Bucket;
use crate::layout::shrinking::MergeMatches;
use crate::layout::stamps::Moment;
use crate::sync::AtomicU64;
use crate::table::Table;
use crate::table::ticking::{Clock, Ticking};
use std::convert::Infallible;
use std::fmt::Debug;

/// The maximum number of full buckets on the list of a search for room, under any lease.
pub const MAX_NODES: usize = if SMALL { 16 } else { 512 };

pub trait Lease<'a>: Copy {
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

    /// Returns the clock, if the filter forgets. A caller that holds a lock of the shard reads a time no
    /// earlier than that of any thread that held the lock before.
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

    /// Returns the lanes of a bucket that agree with an entry of another filter in all bits that neither has
    /// lost.
    fn merge_matches(self, words: Words, fp: Fingerprint) -> MergeMatches;

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
pub enum Removing {
    /// The lane goes, and its stripe counts one item less.
    Lane,
    /// The lane stays, since other items may need it.
    OneOfMany,
    /// The lane stands for no item, and stays.
    Nothing,
}

/// The reason why a shard refused an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal<E> {
    /// There is no room for the item.
    Full(FullKind),
    /// The shard no longer owns the item.
    Lapsed(E),
}

impl<E> From<E> for Refusal<E> {
    fn from(lapsed: E) -> Self {
        Refusal::Lapsed(lapsed)
    }
}

/// The result of an operation that fails if the shard is full or no longer owns the item (`E`).
pub type Answer<T, E> = Result<T, Refusal<E>>;

/// The lease of a fixed filter's shard, which never ends. In a growing filter, work on a whole shard uses it, too: its
/// caller makes sure that the shard is not split meanwhile, or does not mind.
#[derive(Clone, Copy)]
pub struct Permanent<'a, W = bool> {
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
    fn merge_matches(self, words: Words, fp: Fingerprint) -> MergeMatches {
        let heads = self.matching_heads(words.heads, fp);
        let covering =
            if self.is_wide() { heads.and(self.matching_tails(words.tails, fp)) } else { heads };
        MergeMatches { covering, finer: self.lanes().set_of(0) }
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
