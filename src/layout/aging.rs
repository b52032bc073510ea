//! Fingerprints that age: what the lanes of a growing filter hold, and how a split changes them.
//!
//! ```text
//! 16 bits   15           8 7             0
//!          [    anchor    |    bits     1 ]      new: seven bits of the hash
//!          [    anchor    |  bits 1 0 0 0 ]      after three splits: four bits are left
//!          [    anchor    | 1 0 0 0 0 0 0 0 ]    used up: no bits are left
//! ```
//!
//! The *anchor*, the upper half of a lane, never changes. It determines the item's other bucket,
//! `i ^ d`, where `d` is odd and derived from the anchor. For three anchors of four, `d` is less
//! than 512, so that both buckets share a stripe. (A shard of a growing filter always has 8,192
//! buckets.)
//!
//! The *window*, the lower half, holds the bits of the hash that follow the ones by which the
//! directory found the shard, then a `1`, then zeros. A split sends the item to one of the halves
//! by the first bit of the window, and shifts the rest up: from then on, the directory accounts for
//! that bit. So each split makes a lane match more items, while items that are inserted after it
//! have whole windows again. When a window is *used up*, nothing tells the halves apart, and the
//! lane goes to both.
//!
//! A lookup derives the fingerprint that the item would have if it were new. A lane matches the
//! item if it agrees with that fingerprint in all bits above the lane's last `1`.
//!
//! All of this is arithmetic on copies of words, as in [`bucket`](crate::layout::bucket).

use crate::layout::SMALL;
use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes};
use crate::layout::geometry::{Bucket, Mixed, Place, SHARD_BUCKETS, STRIPE_BUCKETS};

/// The number of buckets in each shard of a growing filter: 64 KiB. At this size a split takes
/// microseconds, and the bookkeeping of a shard is negligible.
pub const GROWING_BUCKETS: u32 = if SMALL { SHARD_BUCKETS } else { 1 << 13 };

/// How the lanes of a growing filter are divided into anchor and window.
#[derive(Clone, Copy, Debug)]
pub struct Aging {
    lanes: Lanes,
    /// The number of bits in the window, including the `1`.
    window: u8,
    /// The shifts that make a lane or a window of the top bits of a 64-bit fraction.
    to_lane: u8,
    to_window: u8,
    /// The other bucket is in the same stripe unless these bits of the anchor's hash are zero.
    near_class: u32,
    /// The mask of the anchor in a fingerprint.
    anchors: u32,
    /// The mask of the anchors in a word, without the highest bit of each.
    lower_anchors: u64,
}

/// What a word becomes in the two halves of a shard that is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halves {
    pub lower: u64,
    pub upper: u64,
    /// The number of used-up lanes, which are in both.
    pub in_both: usize,
}

impl Aging {
    pub fn new(lanes: Lanes) -> Self {
        let bits = lanes.bits() as u8;
        let window = bits - bits / 2;
        // As in a fixed filter, buckets of two lanes need their items spread farther.
        let near_class = if SMALL || lanes.slots() <= 2 { 0 } else { 0b11 };
        let anchors = (lanes.fingerprints() as u32) & !((1 << window) - 1);
        let (to_lane, to_window) = (64 - bits, 64 - window);
        let lower_anchors = lanes.tops() - (lanes.ones() << window);
        Aging { lanes, window, to_lane, to_window, near_class, anchors, lower_anchors }
    }

    /// The number of bits of the hash in a whole window.
    pub fn window_bits(&self) -> u32 {
        u32::from(self.window) - 1
    }

    /// Returns the fingerprint of a new item, from two fractions of its hash: one for the anchor,
    /// and one that begins with the bits of the window.
    #[inline]
    pub fn fingerprint(&self, anchor: u64, window: u64) -> Fingerprint {
        let anchor = (anchor >> self.to_lane) as u32 & self.anchors;
        Fingerprint::odd(anchor | (window >> self.to_window) as u32)
    }

    /// Computes where an item may be in its shard. The shard has this `depth`, in a directory that
    /// began with `roots` shards.
    #[inline(always)]
    pub fn place(&self, hash: Mixed, roots: usize, depth: u32) -> Place {
        // The top of the hash selects the shard. The window follows.
        let (_, rest) = hash.scaled(roots);
        let window = rest << (depth & 63);
        // Bucket and anchor, which no split changes, are the top of a product of the hash.
        let other = hash.0.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let fp = self.fingerprint(other << GROWING_BUCKETS.ilog2(), window);
        let first = Bucket((other >> (64 - GROWING_BUCKETS.ilog2())) as u32);
        Place { first, second: self.alternate(first, fp), fp }
    }

    /// Returns the other bucket of an item that is in `bucket` as `fp`.
    #[inline]
    pub fn alternate(&self, bucket: Bucket, fp: Fingerprint) -> Bucket {
        let anchor = fp.get() & self.anchors;
        let spread = u64::from(anchor).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let wide = (spread >> 58) as u32 & self.near_class == 0;
        let within = if wide { GROWING_BUCKETS } else { STRIPE_BUCKETS } - 1;
        Bucket(bucket.0 ^ ((spread >> 40) as u32 & within | 1))
    }

    /// Returns whether any lane of two words matches an item, given its fingerprint if it were new.
    ///
    /// Most lookups of absent items end after comparing the anchors, none of which is equal. The
    /// instructions that wait for the words limit how many lookups a processor has in flight, so
    /// saving these few gives half as many lookups again.
    #[inline]
    pub fn is_in(&self, first: u64, second: u64, fp: Fingerprint) -> bool {
        let copies = self.lanes.ones() * u64::from(fp.get());
        let other_anchor = |word: u64| {
            // The test for zero lanes in `Lanes`, on the bits of the anchors only.
            let differ = word ^ copies;
            ((differ & self.lower_anchors) + self.lower_anchors) | differ
        };
        if other_anchor(first) & other_anchor(second) & self.lanes.tops() == self.lanes.tops() {
            return false;
        }
        self.one_agrees(first, second, fp)
    }

    #[inline]
    fn one_agrees(&self, first: u64, second: u64, fp: Fingerprint) -> bool {
        !self.holding(first, fp).or(self.holding(second, fp)).is_empty()
    }

    /// Returns the lanes that match an item of this shard, given its fingerprint if it were new.
    #[inline]
    pub fn holding(&self, word: u64, fp: Fingerprint) -> LaneSet {
        let (ones, tops) = (self.lanes.ones(), self.lanes.tops());
        // Subtracting one flips a lane's last `1` and the zeros below it: the bits that need not
        // agree. Only an empty lane flips up to its top, since the `1` of a taken lane is in the
        // window.
        let or_tops = word | tops;
        let flipped = or_tops ^ (or_tops - ones);
        let differ = (word ^ (ones * u64::from(fp.get()))) & !flipped;
        // The test for zero lanes in `Lanes`. It leaves out empty lanes, which flip up to the top.
        let lower = tops - ones;
        let unlike = ((differ & lower) + lower) | differ | flipped;
        self.lanes.set_of(!unlike & tops)
    }

    /// Returns the one of these lanes that has lost the fewest bits, and the number it has lost.
    #[inline]
    pub fn closest(&self, word: u64, among: LaneSet) -> Option<(u32, Lane)> {
        let lacks = |lane| self.lanes.get(word, lane).map_or(0, |fp| fp.get().trailing_zeros());
        among.map(|lane| (lacks(lane), lane)).min_by_key(|(lacks, _)| *lacks)
    }

    /// Splits a word in two. Every lane keeps its position in the word.
    #[inline]
    pub fn split(&self, word: u64) -> Halves {
        let ones = self.lanes.ones();
        // Masks for every lane: the first bit of the window, and the bits after it.
        let first = ones << (self.window - 1);
        let rest = first - ones;
        let set = word & first;
        let used_up = self.used_up_windows(word);
        let upper_only = set ^ used_up;
        let taken = self.lanes.taken(word).tops() >> (self.lanes.bits() - u32::from(self.window));
        let lower_only = taken ^ set;
        // Widens the first bit of a window to its whole lane.
        let whole = |bits: u64| (bits >> (self.window - 1)) * self.lanes.fingerprints();
        let shifted = (word & !(first | rest)) | ((word & rest) << 1);
        let both = word & whole(used_up);
        Halves {
            lower: shifted & whole(lower_only) | both,
            upper: shifted & whole(upper_only) | both,
            in_both: used_up.count_ones() as usize,
        }
    }

    /// Returns the taken lanes without a `1` in their window. Only damaged words have any.
    #[inline]
    pub fn without_a_one(&self, word: u64) -> LaneSet {
        let windows = self.lanes.ones() * ((1 << self.window) - 1);
        let (taken, with) = (self.lanes.taken(word), self.lanes.taken(word & windows));
        self.lanes.set_of(taken.tops() ^ with.tops())
    }

    /// Counts the lanes that have no bits left, which a split sends to both halves.
    #[inline]
    pub fn used_up(&self, word: u64) -> usize {
        self.used_up_windows(word).count_ones() as usize
    }

    /// Returns the first bits of the windows that are used up: the first bit is the last `1`.
    #[inline]
    fn used_up_windows(&self, word: u64) -> u64 {
        let first = self.lanes.ones() << (self.window - 1);
        let rest = first - self.lanes.ones();
        word & first & !((word & rest) + rest)
    }

    /// Returns how often the lanes of a word match an item that is not here, relative to one new
    /// lane: 1 for a new lane, 2 for a lane that has lost one bit, 4 for two bits, and so on.
    #[inline]
    pub fn vagueness(&self, word: u64) -> u64 {
        let (ones, tops) = (self.lanes.ones(), self.lanes.tops());
        // As a number, the last `1` of a lane is its value. An empty lane yields only its top bit,
        // which is masked out.
        let or_tops = word | tops;
        let values = or_tops & !(or_tops - ones) & !tops;
        // The highest lane of the product is the sum over all lanes, which fits in a lane.
        let highest = self.lanes.bits() * (self.lanes.slots() as u32 - 1);
        (values.wrapping_mul(ones) >> highest) & self.lanes.fingerprints()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    const BITS: [u32; 7] = [8, 9, 10, 12, 16, 21, 32];

    /// A lane in plain form: its anchor, and the bits of the hash that are left, in order.
    #[derive(Clone, Debug, PartialEq)]
    struct Plain {
        anchor: u32,
        bits: Vec<bool>,
    }

    impl Plain {
        fn random(rng: &mut SmallRng, aging: Aging, bits: u32) -> Self {
            let anchor = rng.random_range(0..1 << (aging.lanes.bits() - u32::from(aging.window)));
            Plain { anchor, bits: (0..bits).map(|_| rng.random()).collect() }
        }

        fn packed(&self, aging: Aging) -> u64 {
            let mut lane = u64::from(self.anchor);
            for bit in self.bits.iter().copied().chain([true]) {
                lane = lane << 1 | u64::from(bit);
            }
            lane << (aging.window_bits() as usize - self.bits.len())
        }
    }

    fn word(aging: Aging, plain: &[Option<Plain>]) -> u64 {
        let bits = aging.lanes.bits() as usize;
        let lanes = plain.iter().enumerate();
        lanes
            .map(|(at, lane)| lane.as_ref().map_or(0, |lane| lane.packed(aging) << (at * bits)))
            .sum()
    }

    fn random_word(rng: &mut SmallRng, aging: Aging) -> Vec<Option<Plain>> {
        (0..aging.lanes.slots())
            .map(|_| {
                let bits = rng.random_range(0..=aging.window_bits());
                rng.random_bool(0.8).then(|| Plain::random(rng, aging, bits))
            })
            .collect()
    }

    fn for_random_words(mut check: impl FnMut(&mut SmallRng, Aging, Vec<Option<Plain>>)) {
        let mut rng = SmallRng::seed_from_u64(1);
        for bits in BITS {
            let aging = Aging::new(Lanes::of_bits(bits));
            for _ in 0..20_000 {
                let plain = random_word(&mut rng, aging);
                check(&mut rng, aging, plain);
            }
        }
    }

    #[test]
    fn a_lane_matches_the_items_that_agree_in_all_bits_left() {
        for_random_words(|rng, aging, mut plain| {
            let mut item = Plain::random(rng, aging, aging.window_bits());
            // Often agrees with a lane of the word, in all or all but one of its bits.
            if let Some(Some(there)) = plain.first() {
                item.anchor = there.anchor;
                item.bits[..there.bits.len()].clone_from_slice(&there.bits);
                if rng.random_bool(0.3) {
                    let other = rng.random_range(0..item.bits.len());
                    item.bits[other] ^= true;
                }
            }
            plain.rotate_left(1);
            let bits = item.bits.iter().fold(0, |bits, bit| bits << 1 | u64::from(*bit));
            let anchor =
                u64::from(item.anchor) << (64 - aging.lanes.bits() + u32::from(aging.window));
            let fp = aging.fingerprint(anchor, bits << (64 - aging.window_bits()));
            assert_eq!(u64::from(fp.get()), item.packed(aging));
            let word = word(aging, &plain);
            let holding = aging.holding(word, fp);
            let matching_bits = |lane: &Option<Plain>| {
                let left = lane.as_ref().filter(|lane| lane.anchor == item.anchor)?;
                item.bits.starts_with(&left.bits).then_some(left.bits.len())
            };
            let expected: Vec<usize> = plain.iter().filter_map(matching_bits).collect();
            assert_eq!(holding.len(), expected.len(), "{plain:?} {item:?}");
            assert_eq!(aging.is_in(0, word, fp), !expected.is_empty());
            assert_eq!(aging.is_in(word, 0, fp), !expected.is_empty());
            let lacks = aging.closest(word, holding).map(|(lacks, _)| lacks as usize);
            let most = expected.iter().max();
            assert_eq!(lacks, most.map(|most| aging.window_bits() as usize - most));
        });
    }

    #[test]
    fn a_split_sorts_lanes_by_the_first_bit_left() {
        for_random_words(|_, aging, plain| {
            let half = |upper: bool| -> Vec<Option<Plain>> {
                let sorted = plain.iter().map(|lane| {
                    let Plain { anchor, bits } = lane.clone()?;
                    match bits.split_first() {
                        None => Some(Plain { anchor, bits }),
                        Some((first, rest)) => {
                            (*first == upper).then(|| Plain { anchor, bits: rest.to_vec() })
                        }
                    }
                });
                sorted.collect()
            };
            let used_up = plain.iter().flatten().filter(|lane| lane.bits.is_empty()).count();
            let expected = Halves {
                lower: word(aging, &half(false)),
                upper: word(aging, &half(true)),
                in_both: used_up,
            };
            assert_eq!(aging.split(word(aging, &plain)), expected, "{plain:?}");
            assert_eq!(aging.used_up(word(aging, &plain)), used_up);
        });
    }

    #[test]
    fn either_bucket_yields_the_other_whatever_the_window() {
        for bits in BITS {
            let aging = Aging::new(Lanes::of_bits(bits));
            for bucket in (0..GROWING_BUCKETS).map(Bucket) {
                let fp = |window| aging.fingerprint(u64::from(bucket.0) << 53, window);
                let other = aging.alternate(bucket, fp(0));
                assert!(other != bucket && other.0 < GROWING_BUCKETS);
                assert_eq!(aging.alternate(other, fp(u64::MAX)), bucket);
            }
        }
    }

    #[test]
    fn each_bit_a_lane_has_lost_doubles_its_vagueness() {
        for_random_words(|_, aging, plain| {
            let of = |lane: &Plain| 1 << (aging.window_bits() as usize - lane.bits.len());
            let expected: u64 = plain.iter().flatten().map(of).sum();
            assert_eq!(aging.vagueness(word(aging, &plain)), expected);
        });
    }

    #[test]
    fn a_taken_lane_without_a_one_in_its_window_is_reported() {
        for_random_words(|rng, aging, plain| {
            let word = word(aging, &plain);
            assert!(aging.without_a_one(word).is_empty());
            let taken: Vec<Lane> = aging.lanes.taken(word).collect();
            let Some(lane) = taken.get(rng.random_range(0..taken.len().max(1))) else { return };
            let anchor = Fingerprint::new(1 << aging.window).expect("an anchor");
            let without = aging.without_a_one(aging.lanes.with(word, *lane, anchor));
            assert_eq!((without.first(), without.len()), (Some(*lane), 1));
        });
    }
}
