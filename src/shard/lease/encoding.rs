//! The meaning of a shard's lanes.
//!
//! A fixed filter compares whole fingerprints. In a growing filter, fingerprints lose bits (see
//! [`shrinking`](crate::layout::shrinking)); the more bits one has lost, the more items it matches.

use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes, Words};
use crate::layout::geometry::{Bucket, Geometry};
use crate::layout::shrinking::merge::MergeMatches;

pub trait Encoding: Copy {
    /// Whether the shard's buckets are wide.
    const WIDE: bool;

    /// Whether a lane of two buckets matches an item with this fingerprint. (The second words of narrow buckets are
    /// zero.)
    fn either_holds(self, lanes: Lanes, heads: [u64; 2], tails: [u64; 2], fp: Fingerprint) -> bool;

    /// Returns the lanes of a first word that match an item with this fingerprint: in a wide bucket, by its
    /// head alone.
    fn matching(self, lanes: Lanes, word: u64, fp: Fingerprint) -> LaneSet;

    /// Returns the lanes of a second word that match it by its tail. Empty lanes may be among them.
    fn matching_tail(self, lanes: Lanes, word: u64, fp: Fingerprint) -> LaneSet;

    /// Returns the lanes of a bucket that agree with an entry of another filter in all bits that neither has
    /// lost.
    fn merge_matches(self, lanes: Lanes, words: Words, fp: Fingerprint) -> MergeMatches;

    /// Returns the other bucket of an item that is in `bucket` as `fp`.
    fn alternate(self, geometry: &Geometry, bucket: Bucket, fp: Fingerprint) -> Bucket;

    /// Returns, of these lanes that all match one item, the lane that matches the fewest other items, and the
    /// number of bits that it has lost.
    fn most_precise(self, words: Words, among: LaneSet) -> Option<(u32, Lane)>;
}
