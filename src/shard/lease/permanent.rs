//! The lease of a fixed filter's shard, which never ends. In a growing filter, work on a whole shard goes by it, too:
//! its caller makes sure that the shard is not split meanwhile, or does not mind.

use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes, Words};
use crate::layout::geometry::{Bucket, Geometry};
use crate::layout::shrinking::merge::MergeMatches;
use crate::shard::lease::accounts::Accounts;
use crate::shard::lease::encoding::Encoding;
use crate::shard::lease::{Lease, MAX_NODES};
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
