//! Sets of lanes of a word.

/// The position of one lane in its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    pub(super) shift: u8,
}

impl Lane {
    pub const LOWEST: Lane = Lane { shift: 0 };
}

/// A set of lanes of a word, each marked by its top bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSet {
    pub(super) tops: u64,
    pub(super) bits: u8,
}

impl LaneSet {
    #[inline]
    pub fn is_empty(self) -> bool {
        self.tops == 0
    }

    /// Returns the highest bit of each lane.
    #[inline]
    pub fn tops(self) -> u64 {
        self.tops
    }

    #[inline]
    pub fn len(self) -> usize {
        self.tops.count_ones() as usize
    }

    /// Returns the lanes that are in both sets. The words of both sets have to be cut in the same way.
    #[inline]
    pub fn and(self, other: Self) -> Self {
        LaneSet { tops: self.tops & other.tops, bits: self.bits }
    }

    /// Returns the set restricted to this lane.
    #[inline]
    pub fn only(self, lane: Lane) -> Self {
        LaneSet { tops: self.tops & 1 << (lane.shift + self.bits - 1), bits: self.bits }
    }

    /// Merges the sets of two words. The result only shows whether both sets are empty.
    #[inline]
    pub fn or(self, other: Self) -> Self {
        LaneSet { tops: self.tops | other.tops, bits: self.bits }
    }

    /// Returns whether a bucket with these lanes empty has more room than one with the `other`
    /// lanes empty.
    ///
    /// The comparison begins with the highest lanes. It is exact for buckets that were filled from the lowest lane up,
    /// without removals, and a good guess for others, at a quarter of the cost of counting.
    #[inline]
    pub fn is_emptier_than(self, other: Self) -> bool {
        self.tops > other.tops
    }

    /// Returns the lowest lane of the set.
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
