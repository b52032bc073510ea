//! The lease of a fixed filter's shard, which never ends. In a growing filter, work on a whole shard goes by it, too:
//! its caller makes sure that the shard is not split meanwhile, or does not mind.

use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes, Words};
use crate::layout::geometry::{Bucket, Geometry};
use crate::layout::shrinking::merge::MergeMatches;
use crate::shard::lease::accounts::Accounts;
use crate::shard::lease::encoding::Encoding;
use crate::shard::lease::{Lease, MAX_NODES};
use crate::sync::AtomicU64;
use crate::table::Table;
use crate::table::clock::Clock;
use crate::table::ticking::Ticking;
use std::convert::Infallible;

/// The lease of a shard that is not split.
#[derive(Clone, Copy, Debug)]
pub struct Permanent<const WIDE: bool = false>;

impl<const WIDE: bool> Lease for Permanent<WIDE> {
    type Lapsed = Infallible;

    const IS_PERMANENT: bool = true;
    const MAX_NODES: usize = MAX_NODES;

    #[inline(always)]
    fn heads<'t>(&'t self, table: &'t Table, base: usize, bucket: Bucket) -> &'t AtomicU64 {
        table.word((base + bucket.0 as usize) << u32::from(WIDE))
    }

    #[inline(always)]
    fn read_second(&self, table: &Table, base: usize, bucket: Bucket) -> u64 {
        table.read(2 * (base + bucket.0 as usize) + 1)
    }

    #[inline(always)]
    fn version<'t>(&'t self, table: &'t Table, base: usize, bucket: Bucket) -> &'t AtomicU64 {
        table.stripes().version(Table::stripe_of(base + bucket.0 as usize))
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
    fn clock<'t>(&'t self, table: &'t Table) -> Option<&'t Clock> {
        table.ticking().map(Ticking::clock)
    }
}

/// Stripes count every lane, so there is nothing else to record.
impl<const WIDE: bool> Accounts for Permanent<WIDE> {}

/// Fingerprints keep all their bits.
impl<const WIDE: bool> Encoding for Permanent<WIDE> {
    const WIDE: bool = WIDE;

    #[inline(always)]
    fn either_holds(self, lanes: Lanes, heads: [u64; 2], tails: [u64; 2], fp: Fingerprint) -> bool {
        match WIDE {
            false => lanes.either_holds(heads, fp),
            true => lanes.either_holds_whole(heads, tails, fp),
        }
    }

    #[inline]
    fn matching(self, lanes: Lanes, word: u64, fp: Fingerprint) -> LaneSet {
        lanes.matching::<WIDE>(word, fp)
    }

    #[inline]
    fn matching_tail(self, lanes: Lanes, word: u64, fp: Fingerprint) -> LaneSet {
        lanes.matching_tail(word, fp)
    }

    #[inline]
    fn merge_matches(self, lanes: Lanes, words: Words, fp: Fingerprint) -> MergeMatches {
        let heads = lanes.matching::<WIDE>(words.heads, fp);
        let covering = if WIDE { heads.and(lanes.matching_tail(words.tails, fp)) } else { heads };
        MergeMatches { covering, finer: lanes.set_of(0) }
    }

    #[inline]
    fn alternate(self, geometry: &Geometry, bucket: Bucket, fp: Fingerprint) -> Bucket {
        geometry.alternate(bucket, fp)
    }

    #[inline]
    fn most_precise(self, _: Words, among: LaneSet) -> Option<(u32, Lane)> {
        among.first().map(|lane| (0, lane))
    }
}
