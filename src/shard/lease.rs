//! What a shard knows of its filter: whether it still owns the items it was asked about, and how
//! to interpret its lanes.
//!
//! A shard of a fixed filter owns its items for good, under the lease [`Always`]. A shard of a
//! growing filter owns them until it is split; [`UntilSplit`](crate::room::growing::until_split::UntilSplit) is
//! its lease.

use crate::error::FullKind;
use crate::layout::SMALL;
use crate::layout::aging::meeting::Alike;
use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes, Words};
use crate::layout::geometry::{Bucket, Geometry};
use crate::layout::stamps::Moment;
use crate::table::Table;
use crate::table::clock::Clock;
use crate::table::span::Span;
use crate::table::ticking::Ticking;
use std::convert::Infallible;
use std::fmt::Debug;

/// The most full buckets that any search for room lists before it gives up.
pub const MOST_NODES: usize = if SMALL { 16 } else { 512 };

pub trait Lease: Copy {
    /// Tells the caller that the lease has ended, and to look up the item's shard again.
    type Lapsed: Debug;

    /// Whether a word's meaning never changes. Then a fingerprint that was seen once is a hit.
    const LASTING: bool;

    /// Whether the shard's buckets are wide.
    const WIDE: bool;

    /// The number of full buckets a search for room lists before it gives up.
    const MOST_NODES: usize;

    /// What lookups read of the shard, if it is at hand.
    #[inline]
    fn span(&self) -> Option<Span<'_>> {
        None
    }

    /// Whether the shard still owns the item. The answer stays true for as long as the caller holds
    /// a lock of the shard.
    fn check(self) -> Result<(), Self::Lapsed>;

    /// The same for a caller that holds a lock of the shard and may go on to end the lease. The entry
    /// changes only under all locks, so a plain load is ordered by the one.
    fn check_alone(self) -> Result<(), Self::Lapsed>;

    /// The lanes of a first word that match an item with this fingerprint: in a wide bucket, by its
    /// head alone.
    fn holding(self, lanes: Lanes, word: u64, fp: Fingerprint) -> LaneSet;

    /// The lanes of a second word that match it by its tail. Those that are empty may be among them.
    fn holding_tail(self, lanes: Lanes, word: u64, fp: Fingerprint) -> LaneSet;

    /// The lanes of a bucket that agree with an entry of another filter in all bits that neither has lost.
    fn alike(self, lanes: Lanes, words: Words, fp: Fingerprint) -> Alike;

    /// The other bucket of an item that is in `bucket` as `fp`.
    fn alternate(self, geometry: &Geometry, bucket: Bucket, fp: Fingerprint) -> Bucket;

    /// Of these lanes, which all match one item, the lane that matches the fewest other items, and
    /// how many bits it has lost.
    fn closest(self, words: Words, among: LaneSet) -> Option<(u32, Lane)>;

    /// The clock, if the filter forgets. In the hands of a caller that holds a lock of the shard, no thread that held
    /// it before had a later time.
    fn clock<'t>(&'t self, table: &'t Table) -> Option<&'t Clock>;

    /// Records that a lane that has lost so many bits is being removed. Returns how many its stripe counts for
    /// it, or `None` if it stands for no item and has to stay. The caller holds the lock of its stripe.
    fn removing(self, words: Words, lane: Lane, lost: u32, now: Moment) -> Option<i32>;

    /// Records that what has expired in these words is being erased, which are those of whole buckets. Returns how
    /// many of the lanes their stripe does not count. The caller holds its lock.
    fn expiring(self, words: &[u64], now: Moment) -> i32;

    /// Records that a lane is getting another stamp. The caller holds the lock of its stripe.
    fn restamping(self, words: Words, lane: Lane, to: usize);

    /// Whether a removal that is done may have left the filter with lanes that stand for no item, and with no
    /// others.
    fn may_be_last(self) -> bool;
}

/// The lease of a shard that is never split.
#[derive(Clone, Copy, Debug)]
pub struct Always<const WIDE: bool = false>;

impl<const WIDE: bool> Lease for Always<WIDE> {
    type Lapsed = Infallible;

    const WIDE: bool = WIDE;

    const LASTING: bool = true;
    const MOST_NODES: usize = MOST_NODES;

    #[inline]
    fn check(self) -> Result<(), Infallible> {
        Ok(())
    }

    #[inline]
    fn check_alone(self) -> Result<(), Infallible> {
        Ok(())
    }

    #[inline]
    fn holding(self, lanes: Lanes, word: u64, fp: Fingerprint) -> LaneSet {
        lanes.holding::<WIDE>(word, fp)
    }

    #[inline]
    fn holding_tail(self, lanes: Lanes, word: u64, fp: Fingerprint) -> LaneSet {
        lanes.holding_tail(word, fp)
    }

    #[inline]
    fn alike(self, lanes: Lanes, words: Words, fp: Fingerprint) -> Alike {
        let heads = lanes.holding::<WIDE>(words.heads, fp);
        let covering = if WIDE { heads.and(lanes.holding_tail(words.tails, fp)) } else { heads };
        Alike { covering, finer: lanes.set_of(0) }
    }

    #[inline]
    fn alternate(self, geometry: &Geometry, bucket: Bucket, fp: Fingerprint) -> Bucket {
        geometry.alternate(bucket, fp)
    }

    #[inline]
    fn closest(self, _: Words, among: LaneSet) -> Option<(u32, Lane)> {
        among.first().map(|lane| (0, lane))
    }

    #[inline]
    fn clock<'t>(&'t self, table: &'t Table) -> Option<&'t Clock> {
        table.ticking().map(Ticking::clock)
    }

    #[inline]
    fn removing(self, _: Words, _: Lane, _: u32, _: Moment) -> Option<i32> {
        Some(1)
    }

    #[inline]
    fn expiring(self, _: &[u64], _: Moment) -> i32 {
        0
    }

    #[inline]
    fn restamping(self, _: Words, _: Lane, _: usize) {}

    #[inline]
    fn may_be_last(self) -> bool {
        false
    }
}

/// Why a shard did not do what it was asked to.
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

/// What became of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The item is not here.
    Absent,
    Done,
    /// It is done, and perhaps no item is [left](crate::room::growing::ledger).
    PerhapsLast,
}

/// The result of an operation for which the shard may be full, or no longer own the item.
pub type Answer<T, L> = Result<T, Refusal<<L as Lease>::Lapsed>>;
