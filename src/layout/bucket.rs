//! Lanes in a word: the arithmetic of one bucket, on copies of words. None of it can fail.
//!
//! A bucket is one 64-bit word, cut into as many equal lanes as fit, from the low end up. The bits left over at the top
//! stay zero. A lane holds one [`Fingerprint`], or zero when it is empty.
//!
//! ```text
//! 12 × 5    63 60 59     48 47     36 35     24 23     12 11      0
//!          [ 0000 | lane 4 | lane 3 | lane 2 | lane 1 | lane 0 ]
//! ```
//!
//! A *wide* bucket has two such words. A lane of the first word holds the *head* of a fingerprint, one half of it,
//! which is never zero. The same lane of the second word holds its *tail*, which is zero if the lane is empty.

use std::num::NonZeroU32;

/// The part of an item's hash that a bucket stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// The value in the lane of the first word. It is never zero, which means "empty".
    head: u32,
    /// The value in the lane of the second word. Zero in a narrow bucket.
    tail: u32,
}

impl Fingerprint {
    /// Returns the fingerprint with this head, or `None` for zero, which is not a fingerprint.
    #[inline]
    pub(crate) fn new(head: u32) -> Option<Self> {
        (head != 0).then_some(Self { head, tail: 0 })
    }

    /// Returns the fingerprint with this index, counted from zero in ascending order.
    #[inline]
    pub(crate) fn nth(index: u32) -> Self {
        Self { head: index.wrapping_add(1), tail: 0 }
    }

    /// Returns the fingerprint whose head has `bit` and all bits of `others`.
    #[inline]
    pub(crate) fn with_bit(bit: NonZeroU32, others: u32) -> Self {
        Self { head: bit.get() | others, tail: 0 }
    }

    #[inline]
    pub(crate) fn with_tail(self, tail: u64) -> Self {
        Self { tail: tail as u32, ..self }
    }

    #[inline]
    pub(crate) fn head(self) -> u32 {
        self.head
    }

    #[inline]
    pub(crate) fn tail(self) -> u32 {
        self.tail
    }

    /// Returns the fingerprint with `bits` added to its head. The sum must not overflow.
    #[inline]
    pub(crate) fn with_added(self, bits: u32) -> Self {
        Self { head: self.head.saturating_add(bits), ..self }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    pub heads: u64,
    /// Zero, unless the bucket is wide.
    pub tails: u64,
}

/// The division of buckets into `slots` lanes of `bits` bits in each word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lanes {
    bits: u8,
    slots: u8,
    is_wide: bool,
    /// The number of ticks for which items are remembered; 0 if for ever.
    pub(super) remembers: u8,
    /// The lowest bit of every lane.
    ones: u64,
    /// The highest bit of every lane.
    tops: u64,
    /// The bits of all lanes below the highest bit that are not [stamps](crate::layout::stamps), in a first word.
    pub(super) compared: u64,
    /// The same in the word that may hold stamps.
    pub(super) unstamped: u64,
    /// The lowest bit of every lane that is not part of a stamp, in a first word.
    pub(super) units: u64,
    pub(super) stamps: u64,
}

impl Lanes {
    /// Cuts words into as many lanes of `bits` bits (2 to 32) as fit.
    pub(crate) const fn of_bits(bits: u32) -> Self {
        assert!(bits >= 2 && bits <= 32);
        let slots = 64 / bits;
        let mut ones = 0;
        let mut slot = 0;
        while slot < slots {
            ones |= 1 << (slot * bits);
            slot += 1;
        }
        let (bits, slots, tops) = (bits as u8, slots as u8, ones << (bits - 1));
        let unstamped = tops - ones;
        Lanes {
            bits,
            slots,
            is_wide: false,
            remembers: 0,
            ones,
            tops,
            compared: unstamped,
            unstamped,
            units: ones,
            stamps: 0,
        }
    }

    /// Cuts both words of wide buckets into as many lanes as fit, for fingerprints of `bits` bits (an even number from
    /// 4 to 32).
    pub(crate) const fn of_wide(bits: u32) -> Self {
        assert!(bits.is_multiple_of(2));
        Lanes { is_wide: true, ..Lanes::of_bits(bits / 2) }
    }

    /// The number of bits of a lane in each word.
    #[inline]
    pub(crate) const fn bits(self) -> u32 {
        self.bits as u32
    }

    pub(crate) const fn fingerprint_bits(self) -> u32 {
        self.bits() * self.words() as u32
    }

    #[inline]
    pub(crate) const fn is_wide(self) -> bool {
        self.is_wide
    }

    #[inline]
    pub(crate) const fn words(self) -> usize {
        1 + self.is_wide as usize
    }

    #[inline]
    pub(crate) const fn slots(self) -> usize {
        self.slots as usize
    }

    /// Returns the lowest bit of every lane.
    #[inline]
    pub(crate) const fn ones(self) -> u64 {
        self.ones
    }

    /// Returns the highest bit of every lane.
    #[inline]
    pub(crate) const fn tops(self) -> u64 {
        self.tops
    }

    /// Returns the lanes whose highest bits are set in `tops`.
    #[inline]
    pub(crate) fn set_of(self, tops: u64) -> LaneSet {
        LaneSet { tops, bits: self.bits }
    }

    /// The number of ticks for which items are remembered; 0 if for ever.
    #[inline]
    pub(crate) const fn remembers(self) -> u8 {
        self.remembers
    }

    #[inline]
    pub(crate) const fn forgets(self) -> bool {
        self.remembers > 0
    }

    /// Returns the number of values that a head can take, which is also the largest of them. A narrow bucket has heads
    /// only.
    #[inline]
    pub(crate) const fn last_head(self) -> u64 {
        (1 << self.bits) - 1
    }

    /// The least number of bits with which an item of a narrow growing filter can find its other bucket.
    pub(crate) const fn least_anchor(self) -> u32 {
        match self.slots {
            0..=3 => 6,
            4 => 5,
            _ => 4,
        }
    }

    /// Returns the number of values that a fingerprint can take.
    pub(crate) const fn fingerprints(self) -> u64 {
        let bits = self.bits() - self.stamp_bits();
        if self.is_wide { self.last_head() << bits } else { (1 << bits) - 1 }
    }

    /// Returns the lanes of a first word that hold the head of `fp`.
    #[inline]
    pub(crate) fn matching(self, word: u64, fp: Fingerprint) -> LaneSet {
        self.equal_lanes(word ^ (self.ones * u64::from(fp.head())), self.compared)
    }

    /// Whether a lane of either narrow bucket holds `fp`.
    ///
    /// A lane that differs from it only in the stamp is less than one unit, so subtracting one makes its top bit 1. The
    /// lane above may then seem to match as well, but no other does, and this asks only whether there is one.
    #[inline(always)]
    pub(crate) fn either_matches(self, words: [u64; 2], fp: Fingerprint) -> bool {
        let heads = !(self.ones * u64::from(fp.head()));
        let [first, second] = words.map(|word| {
            // The bits in which they are the same. `same + units` is `differ - units`, all of its bits flipped.
            let same = word ^ heads;
            same & !same.wrapping_add(self.units)
        });
        (first | second) & self.tops != 0
    }

    /// Whether a lane of either wide bucket holds `fp`, in the same way.
    #[inline(always)]
    pub(crate) fn either_matches_whole(
        self,
        heads: [u64; 2],
        tails: [u64; 2],
        fp: Fingerprint,
    ) -> bool {
        let [head, tail] = [fp.head(), fp.tail()].map(|value| !(self.ones * u64::from(value)));
        let held = |heads: u64, tails: u64| {
            let same = (heads ^ head) & (tails ^ tail | self.stamps);
            same & !same.wrapping_add(self.ones)
        };
        (held(heads[0], tails[0]) | held(heads[1], tails[1])) & self.tops != 0
    }

    /// Returns the lanes of a second word that hold the tail of `fp`.
    #[inline]
    pub(crate) fn matching_tail(self, word: u64, fp: Fingerprint) -> LaneSet {
        self.equal_lanes(word ^ (self.ones * u64::from(fp.tail)), self.unstamped)
    }

    /// Returns exactly the lanes whose bits are all zero.
    #[inline]
    pub(crate) fn empty(self, word: u64) -> LaneSet {
        self.equal_lanes(word, self.tops - self.ones)
    }

    /// Returns the lanes of a first word that hold a fingerprint.
    #[inline]
    pub(crate) fn taken(self, word: u64) -> LaneSet {
        let LaneSet { tops, bits } = self.empty(word);
        LaneSet { tops: tops ^ self.tops, bits }
    }

    /// Counts the taken lanes of the buckets that consist of these words. One word of counters, with a counter for each
    /// lane position, accumulates words until a counter might overflow: without a branch or a popcount for every word,
    /// many words are processed at once.
    pub(crate) fn count_taken(self, words: &[u64]) -> usize {
        let ones = |words: Words| self.taken(words.heads).tops >> (self.bits - 1);
        let count = |words| self.sum(self.fold(words, ones, u64::wrapping_add)) as usize;
        // At most as many words as a lane can count. The 2-bit lanes of a test count to 3.
        words.chunks(self.last_head().min(128) as usize & !1).map(count).sum()
    }

    #[inline]
    pub(crate) fn sum(self, word: u64) -> u64 {
        let (mut sum, mut rest) = (0, word);
        for _ in 0..self.slots {
            sum += rest & self.last_head();
            rest >>= self.bits;
        }
        sum
    }

    /// Folds the results of `of` for all buckets into one number. `words` are the words of all buckets.
    #[inline]
    pub(crate) fn fold(
        self,
        words: &[u64],
        of: impl Fn(Words) -> u64,
        join: fn(u64, u64) -> u64,
    ) -> u64 {
        match self.is_wide {
            false => words.iter().map(|&heads| of(Words { heads, tails: 0 })).fold(0, join),
            true => {
                let buckets = words.as_chunks().0.iter();
                buckets.map(|&[heads, tails]| of(Words { heads, tails })).fold(0, join)
            }
        }
    }

    pub(crate) fn for_each(self, words: &[u64], mut act: impl FnMut(Words)) {
        match self.is_wide {
            false => words.iter().for_each(|&heads| act(Words { heads, tails: 0 })),
            true => {
                let buckets = words.as_chunks().0.iter();
                buckets.for_each(|&[heads, tails]| act(Words { heads, tails }));
            }
        }
    }

    #[inline]
    pub(crate) fn replace_each(self, words: &mut [u64], mut by: impl FnMut(Words) -> Words) {
        if self.is_wide {
            for [heads, tails] in words.as_chunks_mut().0 {
                let new = by(Words { heads: *heads, tails: *tails });
                (*heads, *tails) = (new.heads, new.tails);
            }
            return;
        }
        words.iter_mut().for_each(|heads| *heads = by(Words { heads: *heads, tails: 0 }).heads);
    }

    /// Returns a nonzero word if bits are set that have to be zero: those above the lanes, and the tails of empty
    /// lanes.
    #[inline]
    pub(crate) fn wrong(self, Words { heads, tails }: Words) -> u64 {
        let mut wrong = self.above(heads);
        if self.is_wide {
            wrong |= self.above(tails) | self.taken(tails).tops & !self.taken(heads).tops;
        }
        wrong
    }

    #[inline]
    fn above(self, word: u64) -> u64 {
        word & !(self.ones * self.last_head())
    }

    #[inline]
    pub(crate) fn value(self, word: u64, lane: Lane) -> u64 {
        let lane_mask = u64::MAX >> (64 - self.bits);
        (word >> lane.shift) & lane_mask
    }

    /// Returns a word shifted so that `lane` is the lowest. The lanes above it are still there.
    #[inline]
    pub(crate) fn shifted_to(self, word: u64, lane: Lane) -> u64 {
        word >> lane.shift
    }

    /// Returns the head in `lane` of a first word, or `None` if the lane is empty.
    #[inline]
    pub(crate) fn get(self, word: u64, lane: Lane) -> Option<Fingerprint> {
        Fingerprint::new(self.value(word, lane) as u32)
    }

    #[inline]
    pub(crate) fn get_whole(
        self,
        Words { heads, tails }: Words,
        lane: Lane,
    ) -> Option<Fingerprint> {
        Some(self.get(heads, lane)?.with_tail(self.value(tails, lane)))
    }

    #[inline]
    pub(crate) fn with(self, word: u64, lane: Lane, fp: Fingerprint) -> u64 {
        self.without(word, lane) | u64::from(fp.head()) << lane.shift
    }

    #[inline]
    pub(crate) fn with_tail(self, word: u64, lane: Lane, fp: Fingerprint) -> u64 {
        self.without(word, lane) | u64::from(fp.tail) << lane.shift
    }

    #[inline]
    pub(crate) fn with_whole(
        self,
        Words { heads, tails }: Words,
        lane: Lane,
        fp: Fingerprint,
    ) -> Words {
        Words { heads: self.with(heads, lane, fp), tails: self.with_tail(tails, lane, fp) }
    }

    #[inline]
    pub(crate) fn without(self, word: u64, lane: Lane) -> u64 {
        let lane_mask = u64::MAX >> (64 - self.bits);
        word & !(lane_mask << lane.shift)
    }

    /// Returns the word with the lowest `bits` bits of `lane` replaced by `value`.
    #[inline]
    pub(crate) fn replace_lowest(self, word: u64, lane: Lane, bits: u32, value: u64) -> u64 {
        let mask = (1 << bits) - 1;
        word & !(mask << lane.shift) | value << lane.shift
    }

    #[inline]
    pub(crate) fn without_whole(self, Words { heads, tails }: Words, lane: Lane) -> Words {
        Words { heads: self.without(heads, lane), tails: self.without(tails, lane) }
    }

    /// Returns the bucket with all other lanes emptied.
    pub(crate) fn only(self, Words { heads, tails }: Words, which: LaneSet) -> Words {
        let whole = (which.tops >> (self.bits - 1)) * self.last_head();
        Words { heads: heads & whole, tails: tails & whole }
    }

    /// Returns exactly the lanes in which the highest bit and the `compared` bits below it are zero. Adding the largest
    /// value of a lane's lower bits to them carries into the top bit unless they were zero, and never out of the lane.
    /// The top bit's own value is or'ed in afterwards.
    #[inline]
    fn equal_lanes(self, word: u64, compared: u64) -> LaneSet {
        let lower = self.tops - self.ones;
        let nonzero = ((word & compared) + lower) | word;
        LaneSet { tops: !nonzero & self.tops, bits: self.bits }
    }
}

/// The position of one lane in its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    shift: u8,
}

impl Lane {
    pub(crate) const LOWEST: Lane = Lane { shift: 0 };
}

/// A set of lanes of a word, each marked by its top bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneSet {
    tops: u64,
    bits: u8,
}

impl LaneSet {
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.tops == 0
    }

    /// Returns the highest bit of each lane.
    #[inline]
    pub(crate) fn tops(self) -> u64 {
        self.tops
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        self.tops.count_ones() as usize
    }

    #[inline]
    pub(crate) fn has_several(self) -> bool {
        self.tops & self.tops.wrapping_sub(1) != 0
    }

    /// Returns the number of lanes in this set and in that of another word, which takes no longer: each lane has a
    /// second bit.
    #[inline]
    pub(crate) fn len_with(self, other: Self) -> usize {
        (self.tops | other.tops >> 1).count_ones() as usize
    }

    /// Returns the lanes that are in both sets. The words of both sets have to be cut in the same way.
    #[inline]
    pub(crate) fn and(self, other: Self) -> Self {
        LaneSet { tops: self.tops & other.tops, bits: self.bits }
    }

    /// Returns the lanes of this set that are not in the other one. The words of both have to be cut in the same way.
    #[inline]
    pub(crate) fn without(self, other: Self) -> Self {
        LaneSet { tops: self.tops & !other.tops, bits: self.bits }
    }

    #[inline]
    pub(crate) fn only(self, lane: Lane) -> Self {
        LaneSet { tops: self.tops & 1 << (lane.shift + self.bits - 1), bits: self.bits }
    }

    /// Merges the sets of two words. The result only shows whether both sets are empty.
    #[inline]
    pub(crate) fn or(self, other: Self) -> Self {
        LaneSet { tops: self.tops | other.tops, bits: self.bits }
    }

    /// Returns whether a bucket with these lanes empty has more room than one with the `other` lanes empty. The
    /// comparison begins with the highest lanes. It is exact for buckets that were filled from the lowest lane up,
    /// without removals, and a good guess for others, at a quarter of the cost of counting.
    #[inline]
    pub(crate) fn is_emptier_than(self, other: Self) -> bool {
        self.tops > other.tops
    }

    #[inline]
    pub(crate) fn first(self) -> Option<Lane> {
        if self.tops == 0 {
            return None;
        }
        let top = self.tops.trailing_zeros() as u8;
        Some(Lane { shift: top + 1 - self.bits })
    }
}

impl Iterator for LaneSet {
    type Item = Lane;

    #[inline]
    fn next(&mut self) -> Option<Lane> {
        let lane = self.first()?;
        self.tops &= self.tops - 1;
        Some(lane)
    }
}

#[cfg(test)]
pub(crate) fn all_lanes() -> impl Iterator<Item = Lanes> {
    let narrow = [8, 9, 10, 12, 16, 21, 32].map(Lanes::of_bits);
    narrow.into_iter().chain([18, 20, 24, 32].map(Lanes::of_wide))
}

#[cfg(test)]
mod tests;
