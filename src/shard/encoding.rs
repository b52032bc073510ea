//! What the lanes of a shard mean.
//!
//! A fixed filter compares whole fingerprints. In a growing filter fingerprints lose bits (see
//! [`shrinking`](crate::layout::shrinking)), and match more items the more they have lost.

use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes, Words};
use crate::layout::geometry::{Bucket, Geometry};
use crate::layout::shrinking::merge::MergeMatches;

pub trait Encoding: Copy {
    /// Whether the shard's buckets are wide.
    const WIDE: bool;

    /// The lanes of a first word that match an item with this fingerprint: in a wide bucket, by its
    /// head alone.
    fn matching(self, lanes: Lanes, word: u64, fp: Fingerprint) -> LaneSet;

    /// The lanes of a second word that match it by its tail. Those that are empty may be among them.
    fn matching_tail(self, lanes: Lanes, word: u64, fp: Fingerprint) -> LaneSet;

    /// The lanes of a bucket that agree with an entry of another filter in all bits that neither has lost.
    fn merge_matches(self, lanes: Lanes, words: Words, fp: Fingerprint) -> MergeMatches;

    /// The other bucket of an item that is in `bucket` as `fp`.
    fn alternate(self, geometry: &Geometry, bucket: Bucket, fp: Fingerprint) -> Bucket;

    /// Of these lanes, which all match one item, the lane that matches the fewest other items, and
    /// how many bits it has lost.
    fn most_precise(self, words: Words, among: LaneSet) -> Option<(u32, Lane)>;
}
