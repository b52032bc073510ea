//! The lease of a growing filter's shard, which ends when the shard is split, or joined with its other half.

use crate::backend::growing::arena::Arena;
use crate::backend::growing::directory::SeenEntry;
use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Words};
use crate::layout::geometry::Bucket;
use crate::layout::shrinking::{GROWING_BUCKETS, Shrinking};
use crate::layout::stamps::Moment;
use crate::shard::Lease;
use crate::shard::raw::RawShard;
use crate::sync::{AtomicU64, Gauge};
use crate::table::ticking::Ticking;
use crate::table::{ShardVersions, ShardWords, Table, load};
use std::ops::Deref;

/// The lease of a shard, valid for as long as the directory's entry of the shard is unchanged.
#[derive(Clone, Copy)]
pub(crate) struct UntilSplit<'a, W = bool> {
    pub(crate) seen: SeenEntry<'a>,
    pub(super) shared: &'a Shared,
    pub(super) raw: RawShard<'a, W>,
    /// One array of words, or two of wide buckets, as the shard's [site](crate::backend::growing::arena) has checked.
    pub(super) words: &'a [ShardWords],
    pub(super) versions: &'a ShardVersions,
}

/// The state that the leases of all shards share.
pub(crate) struct Shared {
    pub shrinking: Shrinking,
    /// In a box, since a fixed filter takes as much room as all of this. Lookups read nothing of it.
    pub tables: Box<Arena>,
    /// `Some` if the filter forgets.
    pub ticking: Option<Box<Ticking>>,
    /// Zero for as long as no lane can be void: set under the locks of the shard that gets the first one.
    pub may_have_void: Gauge,
}

impl Shared {
    /// Returns how many of the lanes of these buckets are void and have expired.
    pub(super) fn expired_void_lanes(&self, words: &[u64], now: Moment) -> i32 {
        match self.may_have_void.get() {
            0 => 0,
            _ => self.shrinking.expired_void_lanes(words, now),
        }
    }
}

/// The error that the shard has been split, or joined with its other half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WasSplit;

impl<'a, W> Deref for UntilSplit<'a, W> {
    type Target = RawShard<'a, W>;

    #[inline(always)]
    fn deref(&self) -> &RawShard<'a, W> {
        &self.raw
    }
}

impl<'a, W: Into<bool> + Copy> Lease<'a> for UntilSplit<'a, W> {
    type Width = W;
    type Lapsed = WasSplit;

    const IS_PERMANENT: bool = false;

    /// With this limit, searches begin to fail [early](mod@crate::guide::design#growth).
    const MAX_NODES: usize = 32;

    #[inline(always)]
    fn heads(self, bucket: Bucket) -> &'a AtomicU64 {
        let index = bucket.0 as usize % GROWING_BUCKETS as usize;
        if self.is_wide() { &self.words.as_flattened()[2 * index] } else { &self.words[0][index] }
    }

    #[inline(always)]
    fn tails(self, bucket: Bucket) -> u64 {
        let index = bucket.0 as usize % GROWING_BUCKETS as usize;
        if self.is_wide() { load(&self.words.as_flattened()[2 * index + 1]) } else { 0 }
    }

    #[inline(always)]
    fn version(self, bucket: Bucket) -> &'a AtomicU64 {
        &self.versions[Table::stripe_of(bucket.0 as usize) % self.versions.len()]
    }

    #[inline]
    fn check(self) -> Result<(), WasSplit> {
        if self.seen.is_unchanged() { Ok(()) } else { Err(WasSplit) }
    }

    #[inline]
    fn ticking(self) -> Option<&'a Ticking> {
        self.shared.ticking.as_deref()
    }

    #[inline]
    fn is_void(self, lost: u32) -> bool {
        self.shared.shrinking.is_void(lost)
    }

    fn expired_void_lanes(self, words: &[u64], now: Moment) -> i32 {
        self.shared.expired_void_lanes(words, now)
    }

    #[inline(always)]
    fn either_matches(self, heads: [u64; 2], tails: [u64; 2], fp: Fingerprint) -> bool {
        if self.is_wide() {
            self.shared.shrinking.either_matches_whole(heads, tails, fp)
        } else {
            self.shared.shrinking.either_matches(heads, fp)
        }
    }

    #[inline]
    fn matching_heads(self, heads: u64, fp: Fingerprint) -> LaneSet {
        let shrinking = &self.shared.shrinking;
        if self.is_wide() {
            shrinking.lanes().matching(heads, fp)
        } else {
            shrinking.matching(heads, fp)
        }
    }

    #[inline]
    fn matching_tails(self, tails: u64, fp: Fingerprint) -> LaneSet {
        self.shared.shrinking.matching_tail(tails, fp)
    }

    #[inline]
    fn alternate(self, bucket: Bucket, fp: Fingerprint) -> Bucket {
        self.shared.shrinking.alternate(bucket, fp)
    }

    #[inline]
    fn lost(self, words: Words, lane: Lane) -> u32 {
        let suffixes = if self.is_wide() { words.tails } else { words.heads };
        self.shared.shrinking.lost(suffixes, lane)
    }
}
