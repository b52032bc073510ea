//! Maps the hash of an item to a shard, two buckets and a fingerprint.
//!
//! This is pure arithmetic on numbers that are fixed when a filter is built. The numbers of shards and buckets need
//! not be powers of two. Instead, part of the hash is multiplied by such a number. The high half of the
//! product is the index, and the low half is the randomness left for the next index.
//!
//! # The alternate bucket
//!
//! Either bucket of an item yields the other from the fingerprint alone, which is all that the filter has of an item
//! that it moves. Each rule is its own inverse, and changes the parity of the index, so an item's two buckets differ.
//!
//! In a table of at least 4,096 buckets, the other bucket of `i` is `i ^ d`, where the odd distance `d` is derived from
//! the fingerprint. There are two kinds of distances:
//!
//! * *near*, for three fingerprints of four: less than a near block of at most 512 buckets. The item's buckets then
//!   share a stripe and usually a page.
//! * *far*, for the rest: anywhere in the shard. Far alternates tie the blocks together, so that all of them fill up
//!   evenly.
//!
//! Distances are less than a power of two, `p`. The number of buckets `n` need not be one: where it is less than `p`,
//! but more than `p / 2`, all far distances are `p / 2` or more, and `i ^ d` may be in the *hole* between `n` and `p`.
//! Then `j`, its place in the hole, becomes `t - j`, modulo the size of the hole, with an odd `t` that is derived from
//! `d`: so the indices that lead to the hole, all of which are in the lower half, are paired with each other. With
//! smaller numbers:
//!
//! ```text
//! n = 10    3 ^ 11 = 8           in the shard
//!           3 ^ 13 = 14          j = 4 in the hole from 10 to 15. With t = 5, it becomes 1: (10 + 1) ^ 13 = 6
//!           6 ^ 13 = 11          and so back: j = 1 becomes 4, (10 + 4) ^ 13 = 3
//! ```
//!
//! In smaller tables, whose blocks would fill up one by one while others still have room, the other bucket is `(t - i)
//! mod n` with an odd `t`, where `n` is even: so any two buckets of different parity may belong to an item. The same
//! holds in a table with two lanes a bucket (narrow ones of 32 bits). There, five items that share both their buckets
//! cannot be placed; if all pairs of buckets came from one block, that would happen once in 10^8 items.

use crate::layout::SMALL;
use crate::layout::bucket::{Fingerprint, Lanes};

/// The number of buckets that one stripe guards.
pub(crate) const STRIPE_BUCKETS: u32 = if SMALL { 2 } else { 512 };

/// The maximum number of buckets in a shard: 1 MiB, or 2 MiB of wide buckets.
pub(crate) const SHARD_BUCKETS: u32 = if SMALL { 8 } else { 1 << 17 };

/// The smallest near block. A shard that would need smaller blocks has none.
const MIN_NEAR_BLOCK: u32 = 128;

/// The maximum number of stripes in a shard.
pub(crate) const SHARD_STRIPES: usize = (SHARD_BUCKETS / STRIPE_BUCKETS) as usize;

/// The maximum number of shards in a filter, far more than there is memory for.
pub(crate) const MAX_SHARDS: u32 = 1 << 31;

/// The index of a bucket in its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket(pub u32);

/// The two buckets in a shard where an item may be, and its fingerprint there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The bucket that a new item goes to if neither bucket is emptier.
    pub first: Bucket,
    pub second: Bucket,
    pub fp: Fingerprint,
}

/// The indices of an item's two buckets in the whole table, and its fingerprint there. The second may be in the hole.
pub(crate) type Spot = (usize, usize, Fingerprint);

/// Maps the hash of every item of a filter to its place.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    lanes: Lanes,
    shards: u32,
    /// The number of heads that a fingerprint can have, times the number of stamps that a head can hold.
    head_values: u64,
    /// The number of buckets in each shard, which is even.
    buckets: u32,
    /// The number of buckets in all shards.
    total: u64,
    /// Whether the other bucket is a distance away, and not the rest of a sum.
    by_distance: bool,
    /// Whether it is a distance away, which may be applied to an index in the whole table: there is one shard, or each
    /// begins at a multiple of a power of two that is no less than any distance.
    is_aligned: bool,
    /// The mask of the distance to the other bucket, chosen by two bits of a hash of the fingerprint: anywhere in the
    /// shard, or in the near block.
    within: [u32; 4],
    /// The bits that every distance has: the lowest, and the highest of a far one if there is a hole.
    at_least: [u32; 4],
    /// The mask of a stamp, which is in the head of a narrow fingerprint or in the tail of a wide one.
    stamp: u32,
    /// The shift that turns the rest of a hash into a tail, and the mask of a tail without its stamp.
    to_tail: u8,
    in_a_tail: u32,
}

impl Geometry {
    /// Creates a geometry of `shards` shards with at least `buckets` buckets each. The number of buckets is rounded up
    /// to a whole number of near blocks.
    pub(crate) fn new(lanes: Lanes, shards: usize, buckets: u32) -> Self {
        let buckets = buckets.max(2).next_multiple_of(near_block(buckets));
        match Self::restore(lanes, shards, buckets) {
            Some(geometry) => geometry,
            None => unreachable!("{buckets} buckets in each of {shards} shards"),
        }
    }

    /// Returns the geometry with these numbers, or `None` if they contradict each other or are out of range.
    pub(crate) fn restore(lanes: Lanes, shards: usize, buckets: u32) -> Option<Self> {
        let is_right = (2..=SHARD_BUCKETS).contains(&buckets)
            && buckets.is_multiple_of(near_block(buckets))
            && (1..=MAX_SHARDS as usize).contains(&shards)
            // Stripes tile the whole table only if they tile each shard.
            && (shards == 1 || buckets.is_multiple_of(STRIPE_BUCKETS));
        is_right.then(|| Self::of(lanes, shards as u32, buckets))
    }

    fn of(lanes: Lanes, shards: u32, buckets: u32) -> Self {
        let (far, near) = (buckets.next_power_of_two(), near_block(buckets));
        let by_distance = near > 2 && lanes.slots() > 2;
        let highest = if buckets < far { far / 2 } else { 0 };
        let stamps_in_heads = lanes.unit_of_heads() - 1;
        Geometry {
            lanes,
            shards,
            head_values: lanes.last_head() & !u64::from(stamps_in_heads),
            buckets,
            total: u64::from(shards) * u64::from(buckets),
            by_distance,
            is_aligned: by_distance && (shards == 1 || buckets == far),
            within: [far, near, near, near].map(|buckets| buckets - 1),
            at_least: [highest, 0, 0, 0].map(|highest| highest | 1),
            stamp: lanes.last_stamp() as u32,
            to_tail: (u32::BITS - lanes.bits()) as u8,
            in_a_tail: !(lanes.last_stamp() as u32),
        }
    }

    /// Returns the same geometry with another number of shards, which is not checked.
    pub(crate) fn with_shards(&self, shards: usize) -> Self {
        Self::of(self.lanes, shards.min(MAX_SHARDS as usize) as u32, self.buckets)
    }

    #[inline]
    pub(crate) fn lanes(&self) -> Lanes {
        self.lanes
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards as usize
    }

    /// Returns the number of buckets in each shard.
    #[inline]
    pub(crate) fn buckets(&self) -> u32 {
        self.buckets
    }

    /// Returns the number of buckets of all shards.
    pub(crate) fn all_buckets(&self) -> u64 {
        self.total
    }

    /// Returns the number of words in each shard.
    #[inline]
    pub(crate) fn words(&self) -> usize {
        self.buckets as usize * self.lanes.words()
    }

    /// Returns the number of stripes in each shard.
    #[inline]
    pub(crate) fn stripes(&self) -> u32 {
        self.buckets.div_ceil(STRIPE_BUCKETS)
    }

    /// Returns the shard that a hash belongs to, and the place in that shard.
    #[inline]
    pub(crate) fn locate(&self, hash: u64) -> (usize, Place) {
        self.locate_mixed(Mixed::of(hash), self.lanes.is_wide())
    }

    /// The same for a mixed hash. `is_wide` is whether buckets are wide: a constant, for callers on a fast path.
    #[inline]
    pub(crate) fn locate_mixed(&self, hash: Mixed, is_wide: bool) -> (usize, Place) {
        let (shard, rest) = scale(hash.0, u64::from(self.shards));
        let (bucket, _) = scale(rest, u64::from(self.buckets));
        let (first, fp) = (Bucket(bucket as u32), self.fingerprint(hash, is_wide));
        (shard as usize, Place { first, second: self.alternate_of(first, fp.head()), fp })
    }

    /// Returns where a hash belongs in the whole table: the same as [`locate_mixed`](Self::locate_mixed), in fewer
    /// steps.
    #[inline(always)]
    pub(crate) fn spot(&self, hash: Mixed, is_wide: bool) -> Spot {
        let first = scale(hash.0, self.total).0 as usize;
        let fp = self.fingerprint(hash, is_wide);
        if self.is_aligned {
            return (first, first ^ self.distance(fp.head()) as usize, fp);
        }
        let start = hash.scaled(self.shards as usize).0 * self.buckets as usize;
        let second = self.alternate_of(Bucket((first - start) as u32), fp.head());
        (first, start + second.0 as usize, fp)
    }

    /// Returns the bucket that the second index of a spot stands for, if it is in the hole of the only shard.
    #[cold]
    pub(crate) fn out_of_hole(&self, first: usize, second: usize) -> usize {
        self.at_distance(first as u32, (first ^ second) as u32) as usize
    }

    #[inline(always)]
    fn fingerprint(&self, hash: Mixed, is_wide: bool) -> Fingerprint {
        // The upper half has the head, the lower half what is left of the hash for the tail.
        let product = u64::from(hash.0 as u32) * self.head_values;
        let head = (product >> 32) as u32;
        if !is_wide {
            // All bits of the stamp are set, so the one that `nth` adds carries into the fingerprint, which is then
            // never zero, and clears the stamp.
            return Fingerprint::nth(head | self.stamp);
        }
        let tail = (product as u32).wrapping_shr(self.to_tail.into()) & self.in_a_tail;
        Fingerprint::nth(head).with_tail(tail.into())
    }

    /// Returns the other bucket of an item whose fingerprint `fp` is in `bucket`, in a fixed filter. In a wide bucket,
    /// only the head of `fp` matters.
    #[inline]
    pub(crate) fn alternate(&self, bucket: Bucket, fp: Fingerprint) -> Bucket {
        let stamp = if self.lanes.is_wide() { 0 } else { self.stamp };
        self.alternate_of(bucket, fp.head() & !stamp)
    }

    /// Does the same for a head whose stamp is zero.
    #[inline]
    fn alternate_of(&self, bucket: Bucket, head: u32) -> Bucket {
        if self.by_distance {
            return Bucket(self.at_distance(bucket.0, self.distance(head)));
        }
        let sum = scale(spread(head), u64::from(self.buckets)).0 as u32 | 1;
        let rest = sum.wrapping_sub(bucket.0);
        Bucket(if sum < bucket.0 { rest.wrapping_add(self.buckets) } else { rest })
    }

    /// Returns the distance between the two buckets of an item with this head, whose stamp is zero.
    #[inline(always)]
    fn distance(&self, head: u32) -> u32 {
        let spread = spread(head);
        let class = (spread >> 62) as usize;
        (spread >> 40) as u32 & self.within[class] | self.at_least[class]
    }

    /// Returns the index at this distance in a shard.
    #[inline(always)]
    fn at_distance(&self, index: u32, distance: u32) -> u32 {
        let other = index ^ distance;
        if other < self.buckets { other } else { self.around_hole(index, distance) }
    }

    /// Does the same where the distance leads into the hole.
    #[inline(never)]
    fn around_hole(&self, index: u32, distance: u32) -> u32 {
        let hole = self.buckets.next_power_of_two() - self.buckets;
        let hash = spread(distance) >> 32;
        let sum = ((hash * u64::from(hole)) >> 32) as u32 | 1;
        let from = (index ^ distance) - self.buckets;
        let to = if from <= sum { sum - from } else { sum + hole - from };
        (self.buckets + to) ^ distance
    }
}

/// Returns the number of buckets in a near block of a shard: the largest power of two that rounds `buckets` up by at
/// most 1/32. In small shards it is 2, because the number of buckets has to be even.
pub(crate) fn near_block(buckets: u32) -> u32 {
    match buckets / 32 {
        ..MIN_NEAR_BLOCK => 2,
        longest => (1 << longest.ilog2()).min(STRIPE_BUCKETS),
    }
}

/// Spreads the bits of a fingerprint, the higher ones best.
#[inline(always)]
pub(crate) fn spread(head: u32) -> u64 {
    u64::from(head).wrapping_mul(MULTIPLIER)
}

/// An odd number without a pattern. There is one for all purposes, so that a loop over lookups keeps it in a register.
///
/// It has no divisor in common with 2^64 - 1: a product that is a multiple of that number is folded to ones, and so
/// would hashes be that repeat a byte. And of 2,500 random ones, it spreads fingerprints best: a quarter of those of
/// each size are far, and the distances of the few anchors of short ones all differ, in tables of eight buckets, too.
pub(crate) const MULTIPLIER: u64 = 0xA750_FAA4_14DC_2D91;

/// A hash after mixing: each bit depends on all bits that the hasher returned.
#[derive(Clone, Copy)]
pub(crate) struct Mixed(pub u64);

impl Mixed {
    /// Spreads every bit of a hash over the whole hash. Sequential, aligned or small values from a weak hasher then
    /// fill the table like random ones. (One fold is not enough: keys that differ in their upper halves only would
    /// share fingerprints.)
    #[inline]
    pub(crate) fn of(hash: u64) -> Self {
        Mixed(folded(folded(hash)))
    }

    /// Returns the index of the part of the hash range, of `count` equal parts, that contains this hash, and its place
    /// in that part.
    #[inline]
    pub(crate) fn scaled(self, count: usize) -> (usize, u64) {
        let (part, rest) = scale(self.0, count as u64);
        (part as usize, rest)
    }
}

/// Computes `fraction / 2^64 * count`, as a whole number and the remaining fraction.
#[inline]
pub(crate) fn scale(fraction: u64, count: u64) -> (u64, u64) {
    let product = u128::from(fraction) * u128::from(count);
    ((product >> 64) as u64, product as u64)
}

/// Folds the product with a constant.
#[inline(always)]
fn folded(hash: u64) -> u64 {
    let product = u128::from(hash) * u128::from(MULTIPLIER);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::bucket::all_lanes;

    fn geometries() -> impl Iterator<Item = Geometry> {
        let shapes =
            [(1, 2), (1, 6), (1, 62), (1, 510), (1, 1_026), (1, 40_000), (3, 70_000), (3, 1 << 17)];
        all_lanes().flat_map(move |lanes| {
            shapes.map(|(shards, buckets)| Geometry::new(lanes, shards, buckets))
        })
    }

    #[test]
    fn either_bucket_yields_the_other_and_they_differ() {
        for geometry in geometries() {
            for hash in 0..20_000 {
                let (shard, place) = geometry.locate(hash);
                assert!(shard < geometry.shards());
                assert!(place.first.0 < geometry.buckets() && place.second.0 < geometry.buckets());
                assert!(u64::from(place.fp.head()) <= geometry.lanes().last_head());
                assert_ne!(place.first, place.second);
                assert_eq!(geometry.alternate(place.second, place.fp), place.first);
            }
        }
    }

    #[test]
    fn a_spot_is_the_place_in_the_whole_table() {
        for geometry in geometries() {
            let (each, is_wide) = (geometry.buckets() as usize, geometry.lanes().is_wide());
            for hash in (0..20_000).map(Mixed::of) {
                let (shard, place) = geometry.locate_mixed(hash, is_wide);
                let (first, second, fp) = geometry.spot(hash, is_wide);
                let is_in_hole = second >= geometry.shards() * each;
                let second = if is_in_hole { geometry.out_of_hole(first, second) } else { second };
                let index = |bucket: Bucket| shard * each + bucket.0 as usize;
                let expected = (index(place.first), index(place.second), place.fp);
                assert_eq!((first, second, fp), expected);
            }
        }
    }

    #[test]
    fn distances_lead_back_around_every_hole() {
        for buckets in (4_096..131_072).step_by(512) {
            let geometry = Geometry::new(Lanes::of_bits(16), 1, buckets);
            let far = buckets.next_power_of_two();
            for step in 0..2_000 {
                let index = step * 65_537 % buckets;
                let distance = geometry.distance(step * 31 + buckets % 97);
                let other = geometry.at_distance(index, distance);
                assert!(
                    other < buckets && other % 2 != index % 2 && distance < far,
                    "{buckets}: {index}"
                );
                assert_eq!(geometry.at_distance(other, distance), index, "{buckets}: {distance}");
            }
        }
    }

    #[test]
    fn three_of_four_alternates_share_the_stripe() {
        for lanes in all_lanes() {
            let geometry = Geometry::new(lanes, 1, 1 << 17);
            let near = (0..100_000)
                .map(|hash| geometry.locate(hash).1)
                .filter(|place| place.first.0 / STRIPE_BUCKETS == place.second.0 / STRIPE_BUCKETS)
                .count();
            let expected = if lanes.slots() == 2 { 0..=600 } else { 72_000..=78_000 };
            assert!(expected.contains(&near), "{lanes:?}: {near} of 100,000 are near");
        }
    }

    #[test]
    fn sequential_and_aligned_hashes_fill_buckets_and_fingerprints_evenly() {
        let geometry = Geometry::new(Lanes::of_bits(8), 4, 1_024);
        for stride in [1u64, 2, 64, 1 << 32, 1 << 48, u64::MAX / 65_536] {
            let mut per_bucket = vec![0u32; 4 * 1_024];
            let mut per_fp = [0u32; 256];
            for item in 0..65_536 {
                let (shard, place) = geometry.locate(item * stride);
                per_bucket[shard * 1_024 + place.first.0 as usize] += 1;
                per_fp[place.fp.head() as usize] += 1;
            }
            // Chi-squared over k cells is k, give or take a deviation of sqrt(2k). Six deviations
            // never happen by chance.
            for (counts, cells) in [(&per_bucket[..], 4_096.0), (&per_fp[1..], 255.0)] {
                let mean = 65_536.0 / cells;
                let chi2: f64 =
                    counts.iter().map(|&n| (f64::from(n) - mean).powi(2) / mean).sum::<f64>();
                let limit = cells + 6.0 * (2.0 * cells).sqrt();
                assert!(chi2 < limit, "stride {stride:#x}: chi² {chi2} over {cells} cells");
            }
        }
    }

    #[test]
    fn a_geometry_is_restored_from_its_numbers() {
        for buckets in (2..9_000).chain([100_000, 1 << 17]) {
            let geometry = Geometry::new(Lanes::of_bits(16), 1, buckets);
            let again = Geometry::restore(geometry.lanes(), 1, geometry.buckets());
            let again = again.expect("the numbers of a geometry");
            for hash in 0..20 {
                assert_eq!(again.locate(hash << 58), geometry.locate(hash << 58));
            }
        }
        let good = Geometry::new(Lanes::of_bits(16), 1, 5_000).buckets();
        for bad in [(0, good), (1, 0), (1, good + 1), (1, good + 2), (1, 1 << 18), (2, 2)] {
            assert!(Geometry::restore(Lanes::of_bits(16), bad.0, bad.1).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn no_size_is_rounded_up_by_more_than_a_thirtysecond_and_two_buckets() {
        for wanted in (0..70_000).chain([100_000, (1 << 17) - 1, 1 << 17]) {
            let buckets = Geometry::new(Lanes::of_bits(16), 1, wanted).buckets();
            assert!(
                buckets >= wanted && buckets <= wanted + wanted / 32 + 2,
                "{wanted}: {buckets}"
            );
            assert!(buckets.is_multiple_of(2));
        }
    }
}
