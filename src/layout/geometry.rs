//! Maps the hash of an item to a shard, two buckets and a fingerprint.
//!
//! This is pure arithmetic on numbers that are fixed when a filter is built. The numbers of shards and buckets are
//! never rounded to a power of two. Instead, part of the hash is multiplied by such a number. The high half of the
//! product is the index, and the low half is the randomness left for the next index.
//!
//! # The alternate bucket
//!
//! Either bucket of an item yields the other from the fingerprint alone, which is all that the filter has of an item
//! that it moves. There are two rules. Each is its own inverse, and each changes the parity of the index, so an item's
//! two buckets always differ:
//!
//! * *near*, for three fingerprints of four: `i ^ d` with an odd `d`, inside the same block of at most 512 buckets. The
//!   item's buckets then share a stripe and usually a page.
//! * *far*, for the rest: `(t - i) mod n` with an odd `t`, where the number of buckets `n` is even. Far alternates tie
//!   the blocks together, so that all of them fill up evenly.
//!
//! In a table with two lanes a bucket (narrow ones of 32 bits), all fingerprints are far. There, five items that share
//! both their buckets cannot be placed; if all pairs of buckets came from one block, that would happen once in 10^8
//! items. Fingerprints are also far if a shard is too small for near blocks.

use crate::layout::bucket::{Fingerprint, Lanes};
use crate::layout::{SMALL, either};

/// The number of buckets that one stripe guards.
pub const STRIPE_BUCKETS: u32 = if SMALL { 2 } else { 512 };

/// The maximum number of buckets in a shard: 1 MiB, or 2 MiB of wide buckets.
pub const SHARD_BUCKETS: u32 = if SMALL { 8 } else { 1 << 17 };

/// The smallest near block. A shard that would need smaller blocks has no near alternates, because small blocks fill up
/// one by one while others still have room.
const MIN_NEAR_BLOCK: u32 = 128;

/// The maximum number of stripes in a shard.
pub const SHARD_STRIPES: usize = (SHARD_BUCKETS / STRIPE_BUCKETS) as usize;

/// The maximum number of shards in a filter, far more than there is memory for.
pub const MAX_SHARDS: u32 = 1 << 31;

/// The index of a bucket in its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket(pub u32);

/// The two buckets in a shard where an item may be, and its fingerprint there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The bucket that a new item goes to if neither bucket is emptier.
    pub first: Bucket,
    pub second: Bucket,
    pub fp: Fingerprint,
}

/// The numbers that define a [`Geometry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    pub lanes: Lanes,
    pub shards: usize,
    /// The number of buckets in each shard.
    pub buckets: u32,
    /// The number of buckets in a near block. An item whose alternate is near has both buckets in
    /// one such block.
    pub near_block: u32,
}

/// Maps the hash of every item of a filter to its place.
#[derive(Clone, Debug)]
pub struct Geometry {
    lanes: Lanes,
    shards: u32,
    /// The number of heads that a fingerprint can have, times the number of stamps that a head can hold.
    heads: u32,
    /// The number of buckets in each shard, which is even.
    buckets: u32,
    /// The number of buckets in a near block, minus one.
    near_mask: u16,
    /// A fingerprint is far if these bits of its hash are zero.
    near_class: u8,
    /// The mask of a stamp, which is in the head of a narrow fingerprint or in the tail of a wide one.
    stamp: u8,
}

impl Geometry {
    /// Creates a geometry of `shards` shards with at least `buckets` buckets each. The number of buckets is rounded up
    /// to a whole number of near blocks.
    pub fn new(lanes: Lanes, shards: usize, buckets: u32) -> Self {
        let near_block = Self::near_block(buckets);
        let buckets = buckets.max(2).next_multiple_of(near_block);
        match Self::restore(Numbers { lanes, shards, buckets, near_block }) {
            Some(geometry) => geometry,
            None => unreachable!("{buckets} buckets in each of {shards} shards"),
        }
    }

    /// Returns the geometry with these numbers, or `None` if they contradict each other or are out
    /// of range. (The near block cannot be derived from `buckets`, which was rounded up to it.)
    pub fn restore(numbers: Numbers) -> Option<Self> {
        let Numbers { lanes, shards, buckets, near_block } = numbers;
        let in_shards = (2..=SHARD_BUCKETS).contains(&buckets)
            && shards > 0
            // Stripes tile the whole table only if they tile each shard.
            && (shards == 1 || buckets.is_multiple_of(STRIPE_BUCKETS));
        let in_blocks = near_block.is_power_of_two()
            && (2..=STRIPE_BUCKETS).contains(&near_block)
            && buckets.is_multiple_of(near_block);
        let near = near_block > 2 && lanes.slots() > 2;
        let shards = u32::try_from(shards).ok().filter(|shards| *shards <= MAX_SHARDS)?;
        let stamps_in_heads = lanes.unit_of_heads() - 1;
        (in_shards && in_blocks).then(|| Geometry {
            lanes,
            // A head has 32 bits at most.
            heads: lanes.heads() as u32 & !stamps_in_heads,
            stamp: lanes.most_stamps() as u8,
            shards,
            buckets,
            near_mask: (near_block - 1) as u16,
            near_class: if near { 0b11 } else { 0 },
        })
    }

    pub fn numbers(&self) -> Numbers {
        let Geometry { lanes, shards, buckets, near_mask, .. } = *self;
        Numbers { lanes, shards: shards as usize, buckets, near_block: u32::from(near_mask) + 1 }
    }

    /// Returns the size of a near block: the largest power of two that rounds `buckets` up by at
    /// most 1/32. In small shards it is 2, because the far rule needs an even number of buckets.
    fn near_block(buckets: u32) -> u32 {
        match buckets / 32 {
            ..MIN_NEAR_BLOCK => 2,
            longest => (1 << longest.ilog2()).min(STRIPE_BUCKETS),
        }
    }

    /// Returns the same geometry with another number of shards.
    pub fn with_shards(&self, shards: usize) -> Self {
        let shards = shards.min(MAX_SHARDS as usize) as u32;
        Geometry { shards, ..self.clone() }
    }

    #[inline]
    pub fn lanes(&self) -> Lanes {
        self.lanes
    }

    pub fn shards(&self) -> usize {
        self.shards as usize
    }

    /// Returns the number of buckets in each shard.
    #[inline]
    pub fn buckets(&self) -> u32 {
        self.buckets
    }

    /// Returns the number of words in each shard.
    #[inline]
    pub fn words(&self) -> usize {
        self.buckets as usize * self.lanes.words()
    }

    /// Returns the number of stripes in each shard.
    #[inline]
    pub fn stripes(&self) -> u32 {
        self.buckets.div_ceil(STRIPE_BUCKETS)
    }

    /// Returns the shard that a hash belongs to, and the place in that shard.
    #[inline]
    pub fn locate(&self, hash: u64) -> (usize, Place) {
        either!(self.lanes.is_wide(), WIDE => self.locate_mixed::<WIDE>(Mixed::of(hash)))
    }

    #[inline]
    pub fn locate_mixed<const WIDE: bool>(&self, hash: Mixed) -> (usize, Place) {
        let (shard, rest) = hash.scaled(self.shards as usize);
        let (bucket, _) = scale(rest, u64::from(self.buckets));
        let (head, fraction) = scale(hash.0 << 32, u64::from(self.heads));
        // `nth` adds one to a stamp of ones, which yields the next head, with a stamp of zeros.
        let mut fp = Fingerprint::nth(head as u32 | if WIDE { 0 } else { self.stamp.into() });
        if WIDE {
            let tail = fraction >> (u64::BITS - self.lanes.bits());
            fp = fp.with_tail(tail & !u64::from(self.stamp));
        }
        let first = Bucket(bucket as u32);
        (shard, Place { first, second: self.alternate_of(first, fp.head()), fp })
    }

    /// Returns the other bucket of an item whose fingerprint `fp` is in `bucket`, in a fixed filter. In a wide bucket,
    /// only the head of `fp` matters.
    #[inline]
    pub fn alternate(&self, bucket: Bucket, fp: Fingerprint) -> Bucket {
        let stamp = if self.lanes.is_wide() { 0 } else { self.stamp };
        self.alternate_of(bucket, fp.head() & !u32::from(stamp))
    }

    /// Does the same for a head whose stamp is zero.
    #[inline]
    fn alternate_of(&self, bucket: Bucket, head: u32) -> Bucket {
        let spread = u64::from(head).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let near = bucket.0 ^ ((spread >> 40) as u32 & u32::from(self.near_mask) | 1);
        let sum = scale(spread, u64::from(self.buckets)).0 as u32 | 1;
        let far = sum.wrapping_sub(bucket.0);
        let far = if sum < bucket.0 { far.wrapping_add(self.buckets) } else { far };
        Bucket(if (spread >> 20) as u8 & self.near_class == 0 { far } else { near })
    }
}

/// A hash after mixing: each bit depends on all bits that the hasher returned.
#[derive(Clone, Copy)]
pub struct Mixed(pub u64);

impl Mixed {
    #[inline]
    pub fn of(hash: u64) -> Self {
        Mixed(mix(hash))
    }

    /// Returns the index of the part of the hash range, of `count` equal parts, that contains this hash, and its place
    /// in that part.
    #[inline]
    pub fn scaled(self, count: usize) -> (usize, u64) {
        let (part, rest) = scale(self.0, count as u64);
        (part as usize, rest)
    }
}

/// Computes `fraction / 2^64 * count`, as a whole number and the remaining fraction.
#[inline]
pub fn scale(fraction: u64, count: u64) -> (u64, u64) {
    let product = u128::from(fraction) * u128::from(count);
    ((product >> 64) as u64, product as u64)
}

/// Spreads every bit of a hash over the whole hash, one to one. Sequential, aligned or small values from a weak hasher
/// then fill the table like random ones. (Two multiplications between three shifts; the constants are those of
/// "moremur" by Pelle Evensen.)
#[inline]
fn mix(hash: u64) -> u64 {
    let mut x = hash;
    x = (x ^ (x >> 27)).wrapping_mul(0x3C79_AC49_2BA7_B653);
    x = (x ^ (x >> 33)).wrapping_mul(0x1C69_B3F7_4AC4_AE35);
    x ^ (x >> 27)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::layout::bucket::all_lanes;

    fn geometries() -> impl Iterator<Item = Geometry> {
        let shapes = [(1, 2), (1, 6), (1, 62), (1, 510), (1, 1_026), (1, 40_000), (3, 1 << 17)];
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
                assert!(u64::from(place.fp.head()) <= geometry.lanes().heads());
                assert_ne!(place.first, place.second);
                assert_eq!(geometry.alternate(place.second, place.fp), place.first);
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
            let again = Geometry::restore(geometry.numbers()).expect("the numbers of a geometry");
            for hash in 0..20 {
                assert_eq!(again.locate(hash << 58), geometry.locate(hash << 58));
            }
        }
        let good = Geometry::new(Lanes::of_bits(16), 1, 5_000).numbers();
        for bad in [
            Numbers { shards: 0, ..good },
            Numbers { buckets: 0, ..good },
            Numbers { buckets: good.buckets + 1, ..good },
            Numbers { buckets: 1 << 18, ..good },
            Numbers { near_block: 0, ..good },
            Numbers { near_block: 6, ..good },
            Numbers { near_block: 1_024, ..good },
            Numbers { shards: 2, buckets: 2, near_block: 2, ..good },
        ] {
            assert!(Geometry::restore(bad).is_none(), "{bad:?}");
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
