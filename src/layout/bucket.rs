//! Lanes in a word: the arithmetic of one bucket.
//!
//! A bucket is one 64-bit word cut into equal lanes, as many as fit, from the low end up; the bits
//! that are left over at the top stay zero. A lane holds one [`Fingerprint`], or zero when empty.
//! Everything here works on a copy of the word and knows nothing of atomics, locks or tables: it
//! never fails and never looks at a lane twice.
//!
//! ```text
//! 12 × 5    63 60 59     48 47     36 35     24 23     12 11      0
//!          [ 0000 | lane 4 | lane 3 | lane 2 | lane 1 | lane 0 ]
//! ```

use std::num::NonZeroU32;

/// What is kept of an item: between 1 and `2^bits - 1`, so that zero can mean "empty".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(NonZeroU32);

impl Fingerprint {
    /// `None` for zero, which is no fingerprint.
    #[inline]
    pub fn new(value: u32) -> Option<Self> {
        NonZeroU32::new(value).map(Self)
    }

    /// Counted from zero: the smallest fingerprint, the next, ...
    #[inline]
    pub fn nth(index: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index))
    }

    /// The lowest bit is one, whatever it is in `value`.
    #[inline]
    pub fn odd(value: u32) -> Self {
        Self(NonZeroU32::MIN | value)
    }

    #[inline]
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

/// The place of one lane in its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    shift: u8,
}

impl Lane {
    pub const LOWEST: Lane = Lane { shift: 0 };
}

/// Some lanes of a word, each marked by its top bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSet {
    tops: u64,
    bits: u8,
}

impl LaneSet {
    #[inline]
    pub fn is_empty(self) -> bool {
        self.tops == 0
    }

    /// The highest bit of each.
    #[inline]
    pub fn tops(self) -> u64 {
        self.tops
    }

    #[inline]
    pub fn len(self) -> usize {
        self.tops.count_ones() as usize
    }

    /// Lanes of this set and another's; of use only to ask whether there are any.
    #[inline]
    pub fn or(self, other: Self) -> Self {
        LaneSet { tops: self.tops | other.tops, bits: self.bits }
    }

    /// Whether a bucket with these lanes empty has more room than one with those. It compares the
    /// highest ones first, which is exact for buckets that were filled from the lowest lane up and
    /// not removed from, and a good guess for others, at a quarter of the price of counting.
    #[inline]
    pub fn is_roomier_than(self, other: Self) -> bool {
        self.tops > other.tops
    }

    /// The lowest lane of the set.
    #[inline]
    pub fn first(self) -> Option<Lane> {
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

/// How words are cut: `slots` lanes of `bits` bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    bits: u8,
    slots: u8,
    /// The lowest bit of every lane.
    ones: u64,
    /// The highest bit of every lane.
    tops: u64,
}

impl Lanes {
    /// Lanes of `bits` bits (2 to 32), as many as a word holds.
    pub const fn of_bits(bits: u32) -> Self {
        assert!(bits >= 2 && bits <= 32);
        let slots = 64 / bits;
        let mut ones = 0;
        let mut slot = 0;
        while slot < slots {
            ones |= 1 << (slot * bits);
            slot += 1;
        }
        Lanes { bits: bits as u8, slots: slots as u8, ones, tops: ones << (bits - 1) }
    }

    #[inline]
    pub const fn bits(self) -> u32 {
        self.bits as u32
    }

    #[inline]
    pub const fn slots(self) -> usize {
        self.slots as usize
    }

    /// The lowest bit of every lane.
    #[inline]
    pub const fn ones(self) -> u64 {
        self.ones
    }

    /// The highest bit of every lane.
    #[inline]
    pub const fn tops(self) -> u64 {
        self.tops
    }

    /// The lanes whose highest bits these are.
    #[inline]
    pub fn set_of(self, tops: u64) -> LaneSet {
        LaneSet { tops, bits: self.bits }
    }

    /// How many values a fingerprint can take.
    #[inline]
    pub const fn fingerprints(self) -> u64 {
        (1 << self.bits) - 1
    }

    /// The lanes that hold `fp`.
    #[inline]
    pub fn holding(self, word: u64, fp: Fingerprint) -> LaneSet {
        self.zero_lanes(word ^ (self.ones * u64::from(fp.get())))
    }

    /// The lanes that hold nothing.
    #[inline]
    pub fn empty(self, word: u64) -> LaneSet {
        self.zero_lanes(word)
    }

    /// The lanes that hold something.
    #[inline]
    pub fn taken(self, word: u64) -> LaneSet {
        let LaneSet { tops, bits } = self.zero_lanes(word);
        LaneSet { tops: tops ^ self.tops, bits }
    }

    /// How many lanes of all these words hold something.
    ///
    /// Each lane counts for itself, in a word of counts, until one might be full: without a branch or
    /// a count of bits for every word, many words go at once.
    pub fn count_taken(self, words: &[u64]) -> usize {
        let count = |words: &[u64]| {
            let sum: u64 = words.iter().map(|word| self.taken(*word).tops >> (self.bits - 1)).sum();
            (0..self.slots)
                .map(|slot| (sum >> (slot * self.bits)) & self.fingerprints())
                .sum::<u64>()
        };
        // No more words than the smallest lanes can count. (Those of a test count three.)
        words.chunks(self.fingerprints().min(128) as usize).map(|words| count(words) as usize).sum()
    }

    /// What is above the lanes, which should be nothing.
    #[inline]
    pub fn above(self, word: u64) -> u64 {
        word & !(self.ones * self.fingerprints())
    }

    /// What `lane` holds.
    #[inline]
    pub fn get(self, word: u64, lane: Lane) -> Option<Fingerprint> {
        let lane_mask = u64::MAX >> (64 - self.bits);
        Fingerprint::new(((word >> lane.shift) & lane_mask) as u32)
    }

    /// The word with `fp` in `lane`, whatever was there.
    #[inline]
    pub fn with(self, word: u64, lane: Lane, fp: Fingerprint) -> u64 {
        self.without(word, lane) | u64::from(fp.get()) << lane.shift
    }

    /// The word with `lane` empty.
    #[inline]
    pub fn without(self, word: u64, lane: Lane) -> u64 {
        let lane_mask = u64::MAX >> (64 - self.bits);
        word & !(lane_mask << lane.shift)
    }

    /// The lanes whose bits are all zero, exactly.
    ///
    /// Adding the largest value of a lane's lower bits carries into its top bit unless those bits
    /// were zero, and never out of the lane; what the top bit was itself is or'ed in after.
    #[inline]
    fn zero_lanes(self, word: u64) -> LaneSet {
        let lower = self.tops - self.ones;
        let nonzero = ((word & lower) + lower) | word;
        LaneSet { tops: !nonzero & self.tops, bits: self.bits }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const ALL: [Lanes; 8] = [
        Lanes::of_bits(2),
        Lanes::of_bits(8),
        Lanes::of_bits(9),
        Lanes::of_bits(10),
        Lanes::of_bits(12),
        Lanes::of_bits(16),
        Lanes::of_bits(21),
        Lanes::of_bits(32),
    ];

    /// The same answers, a lane at a time.
    fn lanes_where(lanes: Lanes, word: u64, wanted: impl Fn(u64) -> bool) -> Vec<u8> {
        let mask = lanes.fingerprints();
        (0..lanes.slots)
            .map(|slot| slot * lanes.bits)
            .filter(|&shift| wanted((word >> shift) & mask))
            .collect()
    }

    fn shifts(set: LaneSet) -> Vec<u8> {
        set.map(|lane| lane.shift).collect()
    }

    #[test]
    fn matches_empties_and_taken_are_exact_for_neighbouring_values() {
        for lanes in ALL {
            let top = lanes.fingerprints();
            // The values at which borrows and carries would cross into the next lane.
            let values = [0, 1, 2, top / 2, top / 2 + 1, top - 1, top];
            let mut seed = 1u64;
            for _ in 0..20_000 {
                let mut word = 0;
                for slot in 0..lanes.slots {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    word |= values[(seed >> 33) as usize % values.len()] << (slot * lanes.bits);
                }
                assert_eq!(shifts(lanes.empty(word)), lanes_where(lanes, word, |v| v == 0));
                assert_eq!(shifts(lanes.taken(word)), lanes_where(lanes, word, |v| v != 0));
                for value in &values[1..] {
                    let fp = Fingerprint::new(*value as u32).unwrap();
                    let found = lanes.holding(word, fp);
                    assert_eq!(shifts(found), lanes_where(lanes, word, |v| v == *value));
                    assert_eq!(found.len(), shifts(found).len());
                    assert_eq!(found.is_empty(), shifts(found).is_empty());
                }
            }
        }
    }

    #[test]
    fn taken_lanes_are_counted_over_many_words() {
        for lanes in ALL {
            let mut seed = 1u64;
            let mut random = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                seed ^ seed >> 29
            };
            let full = lanes.ones * lanes.fingerprints();
            for length in [0, 1, 100, 128, 129, 1_000] {
                let words: Vec<u64> = (0..length).map(|_| random() & random() & random()).collect();
                let expected = words.iter().map(|word| lanes.taken(*word).len()).sum();
                assert_eq!(lanes.count_taken(&words), expected);
                assert_eq!(lanes.count_taken(&vec![full; length]), length * lanes.slots());
            }
        }
    }

    #[test]
    fn a_lane_written_is_read_back_and_leaves_its_neighbours_alone() {
        for lanes in ALL {
            let full = Fingerprint::new(lanes.fingerprints() as u32).unwrap();
            let one = Fingerprint::new(1).unwrap();
            let word = lanes.empty(0).fold(0, |word, lane| lanes.with(word, lane, full));
            assert_eq!(lanes.taken(word).len(), lanes.slots());
            for lane in lanes.taken(word) {
                let changed = lanes.with(word, lane, one);
                assert_eq!(lanes.get(changed, lane), Some(one));
                assert_eq!(lanes.holding(changed, full).len(), lanes.slots() - 1);
                let cleared = lanes.without(word, lane);
                assert_eq!(lanes.get(cleared, lane), None);
                assert_eq!(lanes.empty(cleared).first(), Some(lane));
                assert_eq!(lanes.holding(cleared, full).len(), lanes.slots() - 1);
            }
        }
    }
}
