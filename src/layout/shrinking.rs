//! Shrinking fingerprints: what the lanes of a growing filter hold, and how a split changes them.
//!
//! ```text
//! 16 bits   15           8 7             0
//!          [    anchor    |    bits     1 ]      new: seven bits of the hash
//!          [    anchor    |  bits 1 0 0 0 ]      after three splits: four bits are left
//!          [    anchor    | 1 0 0 0 0 0 0 0 ]    void: no bits are left
//! ```
//!
//! The *anchor*, the upper half of a lane or less, never changes. It determines the item's other bucket, by the rule
//! for [several shards](crate::layout::geometry). In a [wide](crate::layout::bucket) bucket, it is the head, and never
//! zero.
//!
//! The *suffix* is the rest of the lane, or the tail in a wide bucket. It holds the bits of the hash that follow the
//! bits by which the directory found the shard, then a `1`, then zeros. A split sends the item to one of the halves by
//! the first bit of the suffix, and shifts the rest up: from then on, the directory accounts for that bit. So each split
//! makes a lane match more items, while items that are inserted after it have whole suffixes again. A *void* suffix has
//! no bit left that could choose a half, and the lane goes to both. A [stamp](crate::layout::stamps) is below the
//! suffix, and stays as it is.
//!
//! A lookup derives the fingerprint that the item would have if it were new. A lane matches the item if it agrees with
//! that fingerprint in all bits above the lane's last `1`.
//!
//! # An example
//!
//! ```text
//! new            5C | 1011001 1     5CB3   the anchor 5C, and seven bits of the hash
//! first bit: 1                             the item is in the upper half
//! after a split  5C | 011001 1 0    5C66   six bits are left
//!
//! looked for     5C | 0110010 1     5C65   what another item of the upper half would be
//! differs in               11              5C66 ^ 5C65
//! need not agree           11              5C66 from its last 1 down: 5C66 ^ (5C66 - 1)
//! ```
//!
//! The lane matches that item, too: nothing is left that differs. A join of the halves shifts the suffix down again and
//! puts the `1` of the upper half in front, which gives 5CB3.
//!
//! The code does the same to all lanes of a word at once: it multiplies a value by a word that has the lowest bit of
//! each lane, to have the value in each lane, and leaves room in each lane for what an addition carries.

use crate::layout::SMALL;
use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes, Words};
use crate::layout::geometry::{
    Bucket, MULTIPLIER, Mixed, Place, SHARD_BUCKETS, STRIPE_BUCKETS, spread,
};
use crate::layout::stamps::Moment;
use std::num::NonZeroU32;
use std::ops::BitOr;

/// The number of buckets in each shard of a growing filter: 64 KiB, or 128 KiB of wide buckets. They are
/// [small](mod@crate::guide::design#growth), so that splits are short.
pub(crate) const GROWING_BUCKETS: u32 = if SMALL { SHARD_BUCKETS } else { 1 << 13 };

/// The division of lanes into anchor and suffix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shrinking {
    lanes: Lanes,
    /// The number of bits in the suffix, including the `1`.
    suffix: u8,
    stamp: u8,
    /// The shift that turns the top bits of a position into a suffix.
    to_suffix: u8,
    /// The mask of the distance to the other bucket, by two bits of the anchor's hash: anywhere in the shard, or in the
    /// stripe.
    within: [u32; 4],
    /// The mask of the anchor in a fingerprint.
    anchors: u32,
    /// The mask of a suffix in its lane, and the lowest bit of that mask.
    in_a_suffix: u32,
    unit: NonZeroU32,
    /// The lowest bit of each suffix.
    units: u64,
    stamps: u64,
}

/// The two buckets that a bucket becomes in the halves of a shard that is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Halves {
    pub lower: Words,
    pub upper: Words,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Matches {
    pub lanes: usize,
    /// The number of these lanes that have lost no bits.
    pub whole: usize,
    /// The number of bits that all of these lanes have lost together.
    pub lost: u32,
}

/// The lanes that agree with an entry of another filter in all bits that neither has lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergeMatches {
    /// The lanes that have lost at least as many bits as the entry.
    pub covering: LaneSet,
    /// The lanes that have lost fewer bits than the entry.
    pub finer: LaneSet,
}

/// Returns the number of bits in the suffix of these lanes, including the `1`, in a filter that is expected to grow by
/// this factor.
///
/// It is half of the fingerprint, or more if the growth takes more: with each doubling, a lane loses a bit. One bit has
/// to be left, because a void lane cannot choose its half; and one more level is needed, because some of the unequal
/// shards have been split once more than the others. What is left for the anchor is never less than the loads of
/// [`sizing`](crate::layout::sizing) were measured with.
fn suffix_size(lanes: Lanes, growth: f64) -> u32 {
    let unstamped = lanes.bits() - lanes.stamp_bits();
    if lanes.is_wide() {
        return unstamped;
    }
    let half = unstamped - unstamped / 2;
    let most = unstamped.saturating_sub(lanes.least_anchor());
    (bits_for(growth) + 1).clamp(half, most.max(half))
}

/// The number of hash bits in a suffix with which no lane becomes void before a filter has grown by this factor, 1 or
/// more: 2 more than its binary logarithm, rounded up.
fn bits_for(growth: f64) -> u32 {
    // From the bits of the number, since files depend on it: not every machine rounds a logarithm alike.
    const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
    let is_power_of_two = growth.to_bits().trailing_zeros() >= FRACTION;
    let exponent = (growth.to_bits() >> FRACTION).saturating_sub(1_023).min(64) as u32;
    exponent + u32::from(!is_power_of_two) + 2
}

/// Whether no lane of a filter becomes void before the filter has grown by this factor.
pub(crate) fn lasts_for(lanes: Lanes, growth: f64) -> bool {
    suffix_size(lanes, growth) > bits_for(growth)
}

impl Shrinking {
    /// Divides the lanes of a filter that is expected to grow by this factor.
    pub(crate) fn new(lanes: Lanes, growth: f64) -> Self {
        let stamp = lanes.stamp_bits() as u8;
        let suffix = suffix_size(lanes, growth) as u8;
        // As in a fixed filter, buckets of two lanes need their items spread farther.
        let near = if SMALL || lanes.slots() <= 2 { GROWING_BUCKETS } else { STRIPE_BUCKETS };
        let within = [GROWING_BUCKETS, near, near, near].map(|buckets| buckets - 1);
        let in_a_head = if lanes.is_wide() { 0 } else { suffix + stamp };
        let anchors = (lanes.last_head() as u32) & !((1 << in_a_head) - 1);
        let to_suffix = 64 - suffix - stamp;
        let unit = NonZeroU32::MIN.saturating_add((1 << stamp) - 1);
        let in_a_suffix = ((1u64 << suffix) - 1) << stamp;
        let units = lanes.ones() << stamp;
        let stamps = units - lanes.ones();
        Shrinking {
            lanes,
            suffix,
            stamp,
            to_suffix,
            within,
            anchors,
            in_a_suffix: in_a_suffix as u32,
            unit,
            units,
            stamps,
        }
    }

    /// The number of hash bits in a suffix that has lost none.
    pub(crate) fn suffix_bits(&self) -> u32 {
        u32::from(self.suffix) - 1
    }

    /// The number of bits above the suffix in its word.
    #[inline]
    fn anchor_bits(&self) -> u32 {
        self.lanes.bits() - u32::from(self.suffix + self.stamp)
    }

    /// Whether a filter takes another copy of an item that already has these matching lanes.
    ///
    /// It takes as many copies as a bucket has lanes. Two buckets hold twice as many, but an item with that many copies
    /// would leave other items of these buckets nowhere to move. With one bucket's worth of copies per item, buckets
    /// that such items connect like the edges of a tree have the room of a whole bucket left. Anchors of less than six
    /// bits lead to so few alternates that three such items often share both buckets. With such anchors, in buckets of more
    /// than four lanes, four or five copies are enough, if fingerprints are so long that the filter takes no other items
    /// for copies.
    ///
    /// A matching lane may belong to another item, especially if it has lost bits. So the filter adds up in how many
    /// bits the lanes agree with the item. It has enough copies if that is more than in `slots - 1` copies that have
    /// lost none; or, if anchors are short, if the lanes that have lost no bits agree in 32 bits or more.
    pub(crate) fn takes_another(&self, copies: Matches) -> bool {
        let Matches { lanes, whole, lost } = copies;
        let slots = self.lanes.slots();
        let unstamped = self.lanes.fingerprint_bits() - self.lanes.stamp_bits();
        let anchor = unstamped - u32::from(self.suffix);
        let of_a_copy = unstamped as usize - 1;
        let are_enough = slots > 4 && anchor < 6 && whole * of_a_copy >= 32;
        let agreeing = (lanes * of_a_copy).saturating_sub(lost as usize);
        !are_enough && agreeing <= (slots - 1) * of_a_copy
    }

    #[inline]
    fn anchor(&self, random: u32, is_wide: bool) -> u32 {
        match is_wide {
            false => random & self.anchors,
            true => ((u64::from(random) * u64::from(self.anchors)) >> u32::BITS) as u32 + 1,
        }
    }

    /// Returns the fingerprint of a new item with this anchor. The suffix is in the bits of `suffix` above a stamp.
    #[inline]
    fn fingerprint(&self, anchor: u32, suffix: u32, is_wide: bool) -> Fingerprint {
        // A whole suffix above a stamp of zeros.
        let suffix = suffix & self.in_a_suffix | self.unit.get();
        match is_wide {
            false => Fingerprint::with_bit(self.unit, anchor | suffix),
            true => Fingerprint::nth(anchor - 1).with_tail(suffix.into()),
        }
    }

    /// Computes where an item may be in its shard, which has this `depth`. `position` is the item's
    /// [position](crate::layout::roots) in its root. `is_wide` is a constant, for callers on a fast path.
    #[inline(always)]
    pub(crate) fn place(&self, hash: Mixed, position: u64, depth: u32, is_wide: bool) -> Place {
        // The bucket, and the anchor below it, which no split changes, are bits of a product of the hash.
        let product = hash.0.wrapping_mul(MULTIPLIER);
        let first = Bucket((product >> (u64::BITS - GROWING_BUCKETS.ilog2())) as u32);
        let random = (product >> (u32::BITS - GROWING_BUCKETS.ilog2())) as u32;
        let anchor = self.anchor(random, is_wide);
        let second = self.alternate_of(first, anchor);
        // The top bits of the position select the shard. The suffix follows.
        let suffix = position.wrapping_shr(u32::from(self.to_suffix).wrapping_sub(depth));
        Place { first, second, fp: self.fingerprint(anchor, suffix as u32, is_wide) }
    }

    #[inline]
    pub(crate) fn alternate(&self, bucket: Bucket, fp: Fingerprint) -> Bucket {
        self.alternate_of(bucket, fp.head() & self.anchors)
    }

    /// Returns the other bucket by the anchor alone, which a lookup has before it knows the suffix.
    #[inline]
    fn alternate_of(&self, bucket: Bucket, anchor: u32) -> Bucket {
        let spread = spread(anchor);
        let within = self.within[(spread >> 62) as usize];
        Bucket((bucket.0 ^ ((spread >> 40) as u32 & within | 1)) % GROWING_BUCKETS)
    }

    /// Returns the lanes of a narrow bucket that match an item of this shard. `fp` is the fingerprint that the item
    /// would have if it were new. In a wide bucket, the first word has the anchors, which are compared as they are.
    #[inline]
    pub(crate) fn matching(&self, word: u64, fp: Fingerprint) -> LaneSet {
        debug_assert!(!self.lanes.is_wide());
        let flipped = self.flipped(word);
        let either = (word ^ (self.lanes.ones() * u64::from(fp.head()))) | flipped;
        // Of a lane that agrees, no bit above its stamp is left here.
        let differ = either ^ flipped;
        // As in `compared`. Empty lanes, whose bits are flipped up to the top, are excluded as well.
        self.lanes.set_of(differ.wrapping_sub(self.units) & !either & self.lanes.tops())
    }

    /// Whether a lane of either narrow bucket matches an item.
    #[inline(always)]
    pub(crate) fn either_matches(&self, [first, second]: [u64; 2], fp: Fingerprint) -> bool {
        !self.matching(first, fp).or(self.matching(second, fp)).is_empty()
    }

    /// Whether a lane of either wide bucket matches an item, by its anchor and by
    /// [`matching_tail`](Self::matching_tail).
    #[inline(always)]
    pub(crate) fn either_matches_whole(
        &self,
        heads: [u64; 2],
        tails: [u64; 2],
        fp: Fingerprint,
    ) -> bool {
        let ones = self.lanes.ones();
        let [head, tail] = [fp.head(), fp.tail()].map(|value| !(ones * u64::from(value)));
        let held = |heads: u64, tails: u64| {
            // The bits in which they are the same, or need not be: see `Lanes::either_matches_whole`.
            let same = (heads ^ head) & (tails ^ tail | self.flipped(tails) | self.stamps);
            same & !same.wrapping_add(ones)
        };
        (held(heads[0], tails[0]) | held(heads[1], tails[1])) & self.lanes.tops() != 0
    }

    /// Returns the taken lanes of a second word whose suffix agrees with that of the item, and perhaps empty ones.
    #[inline]
    pub(crate) fn matching_tail(&self, word: u64, fp: Fingerprint) -> LaneSet {
        let (_, alike) = self.compared(word, fp.tail(), 0);
        self.lanes.set_of(alike)
    }

    /// Returns the bits of each lane from its last `1` down, which need not agree with those of an item.
    ///
    /// Subtracting one flips them. In a narrow bucket, only an empty lane flips up to its top, since the `1` of a taken
    /// lane is in the suffix. In a second word, a void suffix flips up to its top, too.
    #[inline]
    fn flipped(&self, word: u64) -> u64 {
        let or_tops = word | self.lanes.tops();
        or_tops ^ (or_tops - self.units)
    }

    /// Compares each lane with `lane`, except for the bits in `except`. Returns the bits of each lane from its last `1`
    /// down, which need not agree either, and the top bit of each lane that agrees in all other bits.
    #[inline]
    fn compared(&self, word: u64, lane: u32, except: u32) -> (u64, u64) {
        let flipped = self.flipped(word);
        let except = flipped | (self.lanes.ones() * u64::from(except));
        let differ = (word ^ (self.lanes.ones() * u64::from(lane))) & !except;
        // Subtracting one again goes below zero only if no bit differs. The lowest bit of a suffix never differs, so
        // any difference is at least two: enough for this one and for another one borrowed by the lane below. Stamps
        // are less than one.
        (flipped, differ.wrapping_sub(self.units) & !differ & self.lanes.tops())
    }

    /// Returns the number of bits that a taken lane has lost, in the word that holds the suffixes.
    #[inline]
    pub(crate) fn lost(&self, suffixes: u64, lane: Lane) -> u32 {
        // There is a `1` in the lane.
        (self.lanes.shifted_to(suffixes, lane) >> self.stamp).trailing_zeros()
    }

    #[inline]
    fn suffixes(&self, Words { heads, tails }: Words) -> u64 {
        if self.lanes.is_wide() { tails } else { heads }
    }

    /// Splits a bucket in two. Every lane keeps its position in the bucket.
    #[inline]
    pub(crate) fn split(&self, words: Words) -> Halves {
        let suffixes = self.suffixes(words);
        let [first, rest] = self.first_and_rest();
        let to_first = self.suffix - 1 + self.stamp;
        let set = suffixes & first;
        let void = self.void_suffixes(suffixes);
        let upper_only = set ^ void;
        let taken = self.lanes.taken(words.heads).tops() >> self.anchor_bits();
        let lower_only = taken ^ set;
        // Widens the first bit of a suffix to its whole lane.
        let whole = |bits: u64| (bits >> to_first) * self.lanes.last_head();
        let shifted = (suffixes & !(first | rest)) | ((suffixes & rest) << 1);
        let both = whole(void);
        let half = |only: u64| {
            let suffixes = shifted & whole(only) | suffixes & both;
            match self.lanes.is_wide() {
                false => Words { heads: suffixes, tails: 0 },
                true => Words { heads: words.heads & (whole(only) | both), tails: suffixes },
            }
        };
        Halves { lower: half(lower_only), upper: half(upper_only) }
    }

    /// Returns the taken lanes without a `1` in their suffix. Only damaged buckets have any.
    #[inline]
    pub(crate) fn without_a_one(&self, words: Words) -> LaneSet {
        let in_suffixes = self.units * ((1 << self.suffix) - 1);
        let suffixes = self.suffixes(words) & in_suffixes;
        let (taken, with) = (self.lanes.taken(words.heads), self.lanes.taken(suffixes));
        self.lanes.set_of(taken.tops() & !with.tops())
    }

    /// Returns the lanes that have no bits left, which a split sends to both halves.
    #[inline]
    pub(crate) fn void_lanes(&self, words: Words) -> LaneSet {
        let void = self.void_suffixes(self.suffixes(words));
        self.lanes.set_of(void << self.anchor_bits())
    }

    /// Whether a lane that has lost `lost` bits has none left.
    #[inline]
    pub(crate) fn is_void(&self, lost: u32) -> bool {
        lost == self.suffix_bits()
    }

    /// Returns the first bit of each void suffix, in which that bit is the last `1`.
    #[inline]
    fn void_suffixes(&self, suffixes: u64) -> u64 {
        let [first, rest] = self.first_and_rest();
        suffixes & first & !((suffixes & rest) + rest)
    }

    #[inline]
    fn first_and_rest(&self) -> [u64; 2] {
        let first = self.units << (self.suffix - 1);
        [first, first - self.units]
    }

    /// Returns how many of the lanes of these buckets are void and have expired.
    pub(crate) fn expired_void_lanes(&self, words: &[u64], now: Moment) -> i32 {
        let (lanes, mut void) = (self.lanes, 0);
        // There rarely is a void lane, and finding that out takes no branch for each bucket.
        let any = |bucket| self.void_suffixes(self.suffixes(bucket));
        if lanes.fold(words, any, BitOr::bitor) == 0 {
            return 0;
        }
        let expiry = lanes.expiry(now);
        lanes.for_each(words, |bucket| {
            void += self.void_lanes(lanes.only(bucket, expiry.expired(bucket))).len();
        });
        void as i32
    }

    pub(crate) fn lanes(&self) -> Lanes {
        self.lanes
    }

    /// Returns how often the lanes of a bucket match an item that is not in the filter, relative to one new lane: a
    /// lane that has lost `n` bits matches `2^n` times as often.
    #[inline]
    pub(crate) fn match_weight(&self, words: Words) -> u64 {
        let (ones, tops) = (self.lanes.ones(), self.lanes.tops());
        // Shifts the suffixes down, so that they begin at the lowest bit of their lanes.
        let lanes = (self.suffixes(words) & !self.stamps) >> self.stamp;
        let or_tops = lanes | tops;
        if self.lanes.is_wide() {
            return self.lanes.sum(or_tops & !(or_tops - ones) & lanes);
        }
        // As a number, the last `1` of a lane is the lane's weight. An empty lane yields only its top bit, which is
        // masked out.
        let values = or_tops & !(or_tops - ones) & !tops;
        // The highest lane of the product is the sum over all lanes, which fits in a lane.
        let highest = self.lanes.bits() * (self.lanes.slots() as u32 - 1);
        (values.wrapping_mul(ones) >> highest) & self.lanes.last_head()
    }

    // Entries of another filter.

    /// Returns the taken lanes that agree with an entry of another filter in all bits that neither has lost.
    #[inline]
    pub(crate) fn merge_matches(&self, words: Words, fp: Fingerprint) -> MergeMatches {
        let own = self.suffix_lane(fp);
        // The bits that the entry has lost, and the last `1` above them.
        let lost = own ^ own.wrapping_sub(self.unit.get());
        let (flipped, alike) = self.compared(self.suffixes(words), own, lost);
        let among = match self.lanes.is_wide() {
            false => self.lanes.set_of(alike & !flipped),
            true => self.lanes.matching(words.heads, fp).and(self.lanes.set_of(alike)),
        };
        let last_one = lost & !(lost >> 1);
        // A lane that has lost as many bits has flipped this bit, too.
        let to_top = self.lanes.bits() - 1 - (last_one | 1).ilog2();
        let covering =
            ((flipped & (self.lanes.ones() * u64::from(last_one))) << to_top) & among.tops();
        let finer = self.lanes.set_of(among.tops() ^ covering);
        MergeMatches { covering: self.lanes.set_of(covering), finer }
    }

    #[inline]
    pub(crate) fn lost_by(&self, fp: Fingerprint) -> u32 {
        (self.suffix_lane(fp) >> self.stamp).trailing_zeros()
    }

    #[inline]
    fn suffix_lane(&self, fp: Fingerprint) -> u32 {
        if self.lanes.is_wide() { fp.tail() } else { fp.head() }
    }

    /// Undoes a split: returns what the bucket of one half was before. A lane that has lost no bits loses its last one,
    /// and a void lane stays void.
    pub(crate) fn joined(&self, words: Words, is_upper: bool) -> Words {
        let suffixes = self.suffixes(words);
        let [first, rest] = self.first_and_rest();
        let taken = self.lanes.taken(words.heads).tops() >> self.anchor_bits();
        let shifted = ((suffixes & (first | rest)) >> 1) & rest | suffixes & self.units;
        let other = suffixes & !(first | rest);
        let void = self.void_suffixes(suffixes);
        let joined = shifted & !(void >> 1) | other | void | if is_upper { taken } else { 0 };
        match self.lanes.is_wide() {
            false => Words { heads: joined, tails: 0 },
            true => Words { tails: joined, ..words },
        }
    }

    /// Undoes the splits of a bucket of a shard of depth `from` down to depth `to`, if that is less. `position` is that
    /// of a hash of the shard.
    pub(crate) fn joined_to_depth(
        &self,
        words: Words,
        (from, to): (u32, u32),
        position: u64,
    ) -> Words {
        let is_upper = |depth: u32| position << (depth & 63) >> 63 == 1;
        (to..from).rev().fold(words, |words, depth| self.joined(words, is_upper(depth)))
    }
}

#[cfg(test)]
mod tests;
