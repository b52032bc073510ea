//! Fingerprints that age: what the lanes of a growing filter hold, and what a split makes of them.
//!
//! ```text
//! 16 bits   15           8 7             0
//!          [    anchor    |  bits 1 0 0 0 ]      four bits of the hash are left
//!          [    anchor    |    bits     1 ]      a new one: seven
//!          [    anchor    | 1 0 0 0 0 0 0 0 ]    used up
//! ```
//!
//! The *anchor*, the higher half, is kept for life, and tells the item's other bucket: `i ^ d`, with an
//! odd `d` of the anchor's, which for three anchors of four is less than 512, so that both buckets
//! share a stripe. (Shards that grow have 8,192 buckets, always.) The *window*
//! holds the bits of the hash that come after those by which the directory found the shard, then a
//! `1`, then zeros. A split uses the first bit of the window to tell which half the item goes to, and
//! shifts the rest up: the directory knows that bit from now on. So a lane becomes less particular
//! with each split, and items that come after it have whole windows again. When a window is used up,
//! nothing tells the halves apart, and the lane goes to both.
//!
//! An item is told by the fingerprint that it would have if it were new. A lane stands for it when it
//! agrees in all that is left above the `1`.
//!
//! All of this is arithmetic on copies of words, as in [`bucket`](crate::layout::bucket).

use crate::layout::SMALL;
use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes};
use crate::layout::geometry::{Bucket, Mixed, Place, SHARD_BUCKETS, STRIPE_BUCKETS};

/// The buckets of a shard that is to be split: 64 KiB. A split is a matter of microseconds then, and
/// what is kept of each shard does not count.
pub const GROWING_BUCKETS: u32 = if SMALL { SHARD_BUCKETS } else { 1 << 13 };

/// How lanes are divided.
#[derive(Clone, Copy, Debug)]
pub struct Aging {
    lanes: Lanes,
    /// The bits of the window, the `1` among them.
    window: u8,
    /// What to shift the top of a 64-bit fraction by, to be a lane or a window.
    to_lane: u8,
    to_window: u8,
    /// An anchor's other bucket is in the same stripe unless these bits of its hash are zero.
    near_class: u32,
    /// The bits of the anchor.
    anchors: u32,
    /// In every lane the bits of the anchor, but for the highest.
    lower_anchors: u64,
}

/// What a word of a shard becomes in the two halves of the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halves {
    pub lower: u64,
    pub upper: u64,
    /// How many lanes are in both.
    pub in_both: usize,
}

impl Aging {
    pub fn new(lanes: Lanes) -> Self {
        let bits = lanes.bits() as u8;
        let window = bits - bits / 2;
        // As in a fixed filter, items of two lanes a bucket have to be spread farther.
        let near_class = if SMALL || lanes.slots() <= 2 { 0 } else { 0b11 };
        let anchors = (lanes.fingerprints() as u32) & !((1 << window) - 1);
        let (to_lane, to_window) = (64 - bits, 64 - window);
        let lower_anchors = lanes.tops() - (lanes.ones() << window);
        Aging { lanes, window, to_lane, to_window, near_class, anchors, lower_anchors }
    }

    /// The bits of the hash in a whole window.
    #[cfg(all(test, not(any(loom, shuttle))))]
    fn window_bits(&self) -> u32 {
        u32::from(self.window) - 1
    }

    /// The fingerprint of a new item, from two fractions of its hash: one for the anchor, and one
    /// that begins with the bits of the window.
    #[inline]
    pub fn fingerprint(&self, anchor: u64, window: u64) -> Fingerprint {
        let anchor = (anchor >> self.to_lane) as u32 & self.anchors;
        Fingerprint::odd(anchor | (window >> self.to_window) as u32)
    }

    /// Where an item is in its shard, when there are so many roots and the shard is of this depth.
    #[inline(always)]
    pub fn place(&self, hash: Mixed, roots: usize, depth: u32) -> Place {
        // From the top of the hash: which shard, and then the window.
        let (_, rest) = hash.scaled(roots);
        let window = rest << (depth & 63);
        // From the top of another product of it: bucket and anchor, which no split changes.
        let other = hash.0.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let fp = self.fingerprint(other << GROWING_BUCKETS.ilog2(), window);
        let first = Bucket((other >> (64 - GROWING_BUCKETS.ilog2())) as u32);
        Place { first, second: self.alternate(first, fp), fp }
    }

    /// The other bucket of an item that is in `bucket`.
    #[inline]
    pub fn alternate(&self, bucket: Bucket, fp: Fingerprint) -> Bucket {
        let anchor = fp.get() & self.anchors;
        let spread = u64::from(anchor).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let wide = (spread >> 58) as u32 & self.near_class == 0;
        let within = if wide { GROWING_BUCKETS } else { STRIPE_BUCKETS } - 1;
        Bucket(bucket.0 ^ ((spread >> 40) as u32 & within | 1))
    }

    /// Whether any lane of two words stands for a new item's fingerprint.
    ///
    /// Most lookups of what is not here end with the anchors, of which none is the same. What waits
    /// for the words in a processor is what limits how many lookups it has under way, so these few
    /// steps less are half as many lookups more.
    #[inline]
    pub fn is_in(&self, first: u64, second: u64, fp: Fingerprint) -> bool {
        let copies = self.lanes.ones() * u64::from(fp.get());
        let other_anchor = |word: u64| {
            // As in `Lanes::empty`, of the bits of the anchors only.
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

    /// The lanes that stand for a new item's fingerprint, the item being of this shard.
    #[inline]
    pub fn holding(&self, word: u64, fp: Fingerprint) -> LaneSet {
        let (ones, tops) = (self.lanes.ones(), self.lanes.tops());
        // Subtracting one flips the `1` of a lane and what is below, in which nothing has to agree.
        // An empty lane flips up to its top, which no other does as the `1` is in the window.
        let or_tops = word | tops;
        let flipped = or_tops ^ (or_tops - ones);
        let differ = (word ^ (ones * u64::from(fp.get()))) & !flipped;
        // As in `Lanes::empty`, but lanes that flipped to the top are none.
        let lower = tops - ones;
        let unlike = ((differ & lower) + lower) | differ | flipped;
        self.lanes.set_of(!unlike & tops)
    }

    /// Of some lanes the one with the most bits left, and how many it lacks.
    #[inline]
    pub fn closest(&self, word: u64, among: LaneSet) -> Option<(u32, Lane)> {
        let lacks = |lane| self.lanes.get(word, lane).map_or(0, |fp| fp.get().trailing_zeros());
        among.map(|lane| (lacks(lane), lane)).min_by_key(|(lacks, _)| *lacks)
    }

    /// What the words of both halves are after a split. Every lane stays where it is in its word.
    #[inline]
    pub fn split(&self, word: u64) -> Halves {
        let ones = self.lanes.ones();
        // In each lane: the first bit of the window, and those after it.
        let first = ones << (self.window - 1);
        let rest = first - ones;
        // Where the first bit is the last `1`, the window is used up.
        let set = word & first;
        let used_up = set & !((word & rest) + rest);
        let upper_only = set ^ used_up;
        let taken = self.lanes.taken(word).tops() >> (self.lanes.bits() - u32::from(self.window));
        let lower_only = taken ^ set;
        // From one bit of a lane to all of it.
        let whole = |bits: u64| (bits >> (self.window - 1)) * self.lanes.fingerprints();
        let shifted = (word & !(first | rest)) | ((word & rest) << 1);
        let both = word & whole(used_up);
        Halves {
            lower: shifted & whole(lower_only) | both,
            upper: shifted & whole(upper_only) | both,
            in_both: used_up.count_ones() as usize,
        }
    }

    /// The lanes that are taken but have no `1` in their window: there should be none.
    #[inline]
    pub fn without_a_one(&self, word: u64) -> LaneSet {
        let windows = self.lanes.ones() * ((1 << self.window) - 1);
        let (taken, with) = (self.lanes.taken(word), self.lanes.taken(word & windows));
        self.lanes.set_of(taken.tops() ^ with.tops())
    }

    /// How many lanes of a word have bits left, by which a split sorts them.
    #[inline]
    pub fn sorted(&self, word: u64) -> usize {
        let Halves { lower, upper, in_both } = self.split(word);
        self.lanes.taken(lower).len() + self.lanes.taken(upper).len() - 2 * in_both
    }

    /// How often the lanes of a word stand for an item that is not here, in units of that of a new
    /// lane: 1, 2 for one that lacks a bit, 4, ...
    #[inline]
    pub fn vagueness(&self, word: u64) -> u64 {
        let (ones, tops) = (self.lanes.ones(), self.lanes.tops());
        // The `1` of a lane is as much as that. An empty lane comes out as its top.
        let or_tops = word | tops;
        let values = or_tops & !(or_tops - ones) & !tops;
        // The highest lane of the product is the sum of all, which fits in a lane.
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

    /// A lane as it is meant: what is left of the hash, from its first bit on.
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
    fn a_lane_stands_for_the_items_that_agree_in_all_that_is_left() {
        for_random_words(|rng, aging, mut plain| {
            let mut item = Plain::random(rng, aging, aging.window_bits());
            // Often the same as something that is there, in most of its bits.
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
            let stands_for_it = |lane: &Option<Plain>| {
                let left = lane.as_ref().filter(|lane| lane.anchor == item.anchor)?;
                item.bits.starts_with(&left.bits).then_some(left.bits.len())
            };
            let expected: Vec<usize> = plain.iter().filter_map(stands_for_it).collect();
            assert_eq!(holding.len(), expected.len(), "{plain:?} {item:?}");
            assert_eq!(aging.is_in(0, word, fp), !expected.is_empty());
            assert_eq!(aging.is_in(word, 0, fp), !expected.is_empty());
            let lacks = aging.closest(word, holding).map(|(lacks, _)| lacks as usize);
            let most = expected.iter().max();
            assert_eq!(lacks, most.map(|most| aging.window_bits() as usize - most));
        });
    }

    #[test]
    fn a_split_sorts_lanes_by_the_first_bit_that_is_left() {
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
            let taken = plain.iter().flatten().count();
            assert_eq!(aging.sorted(word(aging, &plain)), taken - used_up);
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
    fn a_lane_that_lacks_a_bit_is_twice_as_vague() {
        for_random_words(|_, aging, plain| {
            let of = |lane: &Plain| 1 << (aging.window_bits() as usize - lane.bits.len());
            let expected: u64 = plain.iter().flatten().map(of).sum();
            assert_eq!(aging.vagueness(word(aging, &plain)), expected);
        });
    }

    #[test]
    fn a_lane_without_its_one_is_noticed() {
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
