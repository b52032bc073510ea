//! What a shard has to know of the filter that it is a part of: whether it still has the items that
//! it was asked about, and how its lanes are read.
//!
//! A shard of a fixed filter has its items for [`Always`]. One of a growing filter has them
//! until it is split; its lease is in [`directory`](crate::directory), its lanes in
//! [`aging`](crate::layout::aging).

use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes};
use crate::layout::geometry::{Bucket, Geometry};
use crate::shard::path::MOST_NODES;
use std::convert::Infallible;
use std::fmt::Debug;

pub trait Lease: Copy {
    /// What the caller is told when the lease has ended: to ask again who has the item.
    type Lapsed: Debug;

    /// Whether words never change their meaning. Then a fingerprint that was seen was there.
    const LASTING: bool;

    /// How many full buckets a search for room lists before it gives up.
    const PATIENCE: usize;

    /// Whether the shard still has the item. For one who holds a lock of the shard, it stays so until
    /// that is given back.
    fn check(self) -> Result<(), Self::Lapsed>;

    /// The same, for one who holds all locks of the shard.
    fn check_alone(self) -> Result<(), Self::Lapsed>;

    /// The lanes that stand for an item with this fingerprint.
    fn holding(self, lanes: Lanes, word: u64, fp: Fingerprint) -> LaneSet;

    /// Whether any lane of two words does.
    fn is_in(self, lanes: Lanes, first: u64, second: u64, fp: Fingerprint) -> bool;

    /// The other bucket of an item that is in `bucket` as `fp`.
    fn alternate(self, geometry: &Geometry, bucket: Bucket, fp: Fingerprint) -> Bucket;

    /// Of these lanes, all of which stand for an item, the one that stands for the fewest others,
    /// and how many bits it lacks.
    fn closest(self, lanes: Lanes, word: u64, among: LaneSet) -> Option<(u32, Lane)>;
}

/// The lease of a shard that is never split.
#[derive(Clone, Copy, Debug)]
pub struct Always;

impl Lease for Always {
    type Lapsed = Infallible;

    const LASTING: bool = true;
    const PATIENCE: usize = MOST_NODES;

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
        lanes.holding(word, fp)
    }

    #[inline]
    fn is_in(self, lanes: Lanes, first: u64, second: u64, fp: Fingerprint) -> bool {
        !lanes.holding(first, fp).or(lanes.holding(second, fp)).is_empty()
    }

    #[inline]
    fn alternate(self, geometry: &Geometry, bucket: Bucket, fp: Fingerprint) -> Bucket {
        geometry.alternate(bucket, fp)
    }

    #[inline]
    fn closest(self, _: Lanes, _: u64, among: LaneSet) -> Option<(u32, Lane)> {
        among.first().map(|lane| (0, lane))
    }
}

/// Why a shard did not do what it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal<E> {
    /// There is no room for the item.
    Full,
    /// The shard no longer has the item.
    Lapsed(E),
}
