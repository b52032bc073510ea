//! Maps the hash of an item to a shard, two buckets and a fingerprint.
//!
//! This is arithmetic on numbers that are fixed when a filter is built. A number of shards or buckets need not be a
//! power of two: part of the hash is multiplied by it. The high half of the product is the index, and the low half is
//! the randomness left for the next index.
//!
//! # The alternate bucket
//!
//! Either bucket of an item yields the other from the fingerprint alone, which is all that the filter has of an item
//! that it moves. Each rule is its own inverse, and changes the parity of the index, so an item's two buckets differ.
//!
//! 1. A table of several shards has a power of two of buckets in each, and so may a table of one shard from 4,096
//!    buckets on. The other bucket of `i` is `i ^ d`, where the odd distance `d` is derived from the fingerprint. A
//!    shard begins at a multiple of its size, so the same holds for indices in the whole table. *Near* distances, those
//!    of three fingerprints of four, are less than 512: the buckets share a stripe and usually a page. *Far* distances
//!    lead anywhere in the shard, and tie the stripes together, so that all of them fill up evenly. With two lanes a
//!    bucket, [all are far](mod@crate::guide::design#where-items-go).
//! 2. Any other table of one shard has an even number of buckets `n`. The other bucket is `(t - i) mod n`, where the
//!    odd `t` is derived from the fingerprint: so any two buckets of different parity may belong to an item.

use crate::layout::SMALL;
use crate::layout::bucket::{Fingerprint, Lanes};

pub(crate) const STRIPE_BUCKETS: u32 = if SMALL { 2 } else { 512 };

/// The maximum number of buckets in a shard: 1 MiB, or 2 MiB of wide buckets.
pub(crate) const SHARD_BUCKETS: u32 = if SMALL { 8 } else { 1 << 17 };

/// The smallest number of buckets in a shard whose other buckets are a distance away. In smaller ones, stripes would
/// fill up one by one while others still have room.
pub(crate) const MIN_BY_DISTANCE: u32 = if SMALL { SHARD_BUCKETS } else { 1 << 12 };

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

#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    lanes: Lanes,
    shards: u32,
    /// The number of heads that a fingerprint can have, times the number of stamps that a head can hold.
    head_values: u64,
    /// The number of buckets in each shard, which is even.
    buckets: u32,
    total: u64,
    /// Whether the other bucket is a distance away, and not the rest of a sum.
    by_distance: bool,
    /// The mask of the distance to the other bucket, chosen by two bits of a hash of the fingerprint: anywhere in the
    /// shard, or in the stripe.
    within: [u32; 4],
    /// The mask of a stamp, which is in the head of a narrow fingerprint or in the tail of a wide one.
    stamp: u32,
    /// The shift that turns the rest of a hash into a tail, and the mask of a tail without its stamp.
    to_tail: u8,
    in_a_tail: u32,
}

impl Geometry {
    /// Creates a geometry of `shards` shards with `buckets` buckets each: a power of two, unless there is one shard.
    /// Then the number of buckets is rounded up to an even one.
    pub(crate) fn new(lanes: Lanes, shards: usize, buckets: u32) -> Self {
        match Self::restore(lanes, shards, buckets.max(2).next_multiple_of(2)) {
            Some(geometry) => geometry,
            None => unreachable!("{buckets} buckets in each of {shards} shards"),
        }
    }

    /// Returns the geometry with these numbers, or `None` if they contradict each other or are out of range.
    pub(crate) fn restore(lanes: Lanes, shards: usize, buckets: u32) -> Option<Self> {
        let is_right = (2..=SHARD_BUCKETS).contains(&buckets)
            && buckets.is_multiple_of(2)
            && (1..=MAX_SHARDS as usize).contains(&shards)
            && (shards == 1 || is_by_distance(buckets));
        is_right.then(|| Self::of(lanes, shards as u32, buckets))
    }

    fn of(lanes: Lanes, shards: u32, buckets: u32) -> Self {
        let near = if SMALL || lanes.slots() <= 2 { buckets } else { STRIPE_BUCKETS };
        let stamps_in_heads = lanes.unit_of_heads() - 1;
        Geometry {
            lanes,
            shards,
            head_values: lanes.last_head() & !u64::from(stamps_in_heads),
            buckets,
            total: u64::from(shards) * u64::from(buckets),
            by_distance: is_by_distance(buckets),
            within: [buckets, near, near, near].map(|buckets| buckets - 1),
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

    #[inline]
    pub(crate) fn buckets(&self) -> u32 {
        self.buckets
    }

    pub(crate) fn all_buckets(&self) -> u64 {
        self.total
    }

    /// Returns the power of two that near distances are less than: 0 if there are no distances.
    pub(crate) fn near_block(&self) -> u32 {
        if self.by_distance { self.within[1] + 1 } else { 0 }
    }

    #[inline]
    pub(crate) fn words(&self) -> usize {
        self.buckets as usize * self.lanes.words()
    }

    #[inline]
    pub(crate) fn stripes(&self) -> u32 {
        self.buckets.div_ceil(STRIPE_BUCKETS)
    }

    /// Returns the shard that a hash belongs to, and the place in that shard.
    #[inline]
    pub(crate) fn locate(&self, hash: u64) -> (usize, Place) {
        self.locate_mixed(Mixed::of(hash), self.lanes.is_wide())
    }

    /// The same for a mixed hash. `is_wide` is a constant, for callers on a fast path.
    #[inline]
    pub(crate) fn locate_mixed(&self, hash: Mixed, is_wide: bool) -> (usize, Place) {
        let (shard, rest) = scale(hash.0, u64::from(self.shards));
        let (bucket, _) = scale(rest, u64::from(self.buckets));
        let (first, fp) = (Bucket(bucket as u32), self.fingerprint(hash, is_wide));
        (shard as usize, Place { first, second: self.alternate_of(first, fp.head()), fp })
    }

    #[inline(always)]
    pub(crate) fn spot(&self, hash: Mixed, is_wide: bool) -> Spot {
        let first = scale(hash.0, self.total).0 as usize;
        let fp = self.fingerprint(hash, is_wide);
        if self.by_distance {
            return (first, first ^ self.distance(fp.head()) as usize, fp);
        }
        (first, self.rest_of_sum(first as u32, fp.head()) as usize, fp)
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

    /// Returns the other bucket of an item that is in `bucket` with this fingerprint, of which only the head matters.
    #[inline]
    pub(crate) fn alternate(&self, bucket: Bucket, fp: Fingerprint) -> Bucket {
        let stamp = if self.lanes.is_wide() { 0 } else { self.stamp };
        self.alternate_of(bucket, fp.head() & !stamp)
    }

    /// Does the same for a head whose stamp is zero.
    #[inline]
    fn alternate_of(&self, bucket: Bucket, head: u32) -> Bucket {
        Bucket(match self.by_distance {
            true => bucket.0 ^ self.distance(head),
            false => self.rest_of_sum(bucket.0, head),
        })
    }

    /// Returns the distance between the two buckets of an item with this head, whose stamp is zero.
    #[inline(always)]
    fn distance(&self, head: u32) -> u32 {
        let spread = spread(head);
        (spread >> 40) as u32 & self.within[(spread >> 62) as usize] | 1
    }

    /// Returns what `bucket` lacks of the sum of the two buckets of such an item, in the only shard. The sum is derived
    /// from the head's square: [why](mod@crate::guide::design#where-items-go).
    #[inline(always)]
    fn rest_of_sum(&self, bucket: u32, head: u32) -> u32 {
        let square = spread(head).wrapping_mul(head.into());
        let sum = scale(square, u64::from(self.buckets)).0 as u32 | 1;
        let rest = sum.wrapping_sub(bucket);
        if sum < bucket { rest.wrapping_add(self.buckets) } else { rest }
    }
}

/// Whether the other bucket is a distance away in a shard with this number of buckets.
fn is_by_distance(buckets: u32) -> bool {
    buckets >= MIN_BY_DISTANCE && buckets.is_power_of_two()
}

/// Spreads the bits of a fingerprint, the higher ones best.
#[inline(always)]
pub(crate) fn spread(head: u32) -> u64 {
    u64::from(head).wrapping_mul(MULTIPLIER)
}

/// An odd number without a pattern. There is one number for all purposes, so that a loop over lookups keeps it in a
/// register.
///
/// It has no divisor in common with 2^64 - 1: a product that is a multiple of that number is folded to ones, and so
/// would hashes be that repeat a byte. And it spreads fingerprints well: a quarter of those of each size are far, and
/// the distances of the few anchors of short fingerprints all differ, in tables of eight buckets, too.
pub(crate) const MULTIPLIER: u64 = 0xA750_FAA4_14DC_2D91;

/// A hash after mixing: each bit depends on all bits that the hasher returned.
#[derive(Clone, Copy)]
pub(crate) struct Mixed(pub u64);

impl Mixed {
    /// Spreads every bit of a hash over the whole hash, so that sequential, aligned or small values from a weak hasher
    /// fill the table like random ones. After one fold, keys that differ in their upper halves only would share
    /// fingerprints.
    #[inline]
    pub(crate) fn of(hash: u64) -> Self {
        Mixed(folded(folded(hash)))
    }

    /// Returns the index of the part that contains this hash, of `count` equal parts of all hashes, and its place in
    /// that part.
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
        let alone = [2, 6, 62, 510, 1_026, 4_096, 40_000, 1 << 17].map(|buckets| (1, buckets));
        let several = [(2, 4_096), (3, 1 << 16), (1_000, 1 << 17)];
        let shapes = alone.into_iter().chain(several);
        let of = |lanes| move |(shards, buckets)| Geometry::new(lanes, shards, buckets);
        all_lanes().flat_map(move |lanes| shapes.clone().map(of(lanes)))
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
                let index = |bucket: Bucket| shard * each + bucket.0 as usize;
                let expected = (index(place.first), index(place.second), place.fp);
                assert_eq!((first, second, fp), expected);
            }
        }
    }

    #[test]
    fn three_of_four_alternates_share_the_stripe() {
        for lanes in all_lanes() {
            for buckets in [1 << 15, 1 << 17] {
                let geometry = Geometry::new(lanes, 3, buckets);
                let stripe = |bucket: Bucket| bucket.0 / STRIPE_BUCKETS;
                let near = (0..100_000)
                    .map(|hash| geometry.locate(hash).1)
                    .filter(|place| stripe(place.first) == stripe(place.second))
                    .count();
                let expected = if lanes.slots() == 2 { 0..=2_000 } else { 72_000..=78_000 };
                assert!(expected.contains(&near), "{lanes:?}: {near} of 100,000 are near");
            }
        }
    }

    #[test]
    fn sequential_and_aligned_hashes_fill_buckets_and_fingerprints_evenly() {
        let geometry = Geometry::new(Lanes::of_bits(8), 2, 4_096);
        for stride in [1u64, 2, 64, 1 << 32, 1 << 48, u64::MAX / 65_536] {
            let mut per_bucket = vec![0u32; 2 * 4_096];
            let mut per_fp = [0u32; 256];
            for item in 0..65_536 {
                let (shard, place) = geometry.locate(item * stride);
                per_bucket[shard * 4_096 + place.first.0 as usize] += 1;
                per_fp[place.fp.head() as usize] += 1;
            }
            // Chi-squared over k cells is k, give or take a deviation of sqrt(2k). Six deviations
            // never happen by chance.
            for (counts, cells) in [(&per_bucket[..], 8_192.0), (&per_fp[1..], 255.0)] {
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
        let lanes = Lanes::of_bits(16);
        let several = [(2, 4_096), (70_000, 1 << 17)];
        let is_right = |(shards, buckets)| Geometry::restore(lanes, shards, buckets).is_some();
        assert!(several.into_iter().all(is_right));
        let alone = [(0, 4_096), (1, 0), (1, 5_001), (1, 1 << 18)];
        // Several shards have distances.
        let several = [(2, 2), (2, 2_048), (2, 5_000), (2, 3 << 12), (2, 1 << 18)];
        for bad in alone.into_iter().chain(several) {
            assert!(!is_right(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_single_shard_has_any_even_number_of_buckets() {
        for wanted in (0..70_000).chain([100_000, (1 << 17) - 1, 1 << 17]) {
            let buckets = Geometry::new(Lanes::of_bits(16), 1, wanted).buckets();
            assert_eq!(buckets, wanted.max(2).next_multiple_of(2));
        }
    }

    #[test]
    fn tables_with_other_rules_have_other_near_blocks() {
        let near = |bits, shards, buckets| {
            Geometry::new(Lanes::of_bits(bits), shards, buckets).near_block()
        };
        assert_eq!([near(16, 1, 2_048), near(16, 1, 5_000), near(32, 1, 130_000)], [0; 3]);
        assert_eq!([near(16, 1, 4_096), near(16, 9, 1 << 17)], [STRIPE_BUCKETS; 2]);
        assert_eq!([near(32, 1, 4_096), near(32, 9, 1 << 17)], [4_096, 1 << 17]);
    }
}
