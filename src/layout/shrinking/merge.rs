//! Entries of another filter: which lanes match them, and how buckets are converted to another depth.

use crate::layout::bucket::{Fingerprint, LaneSet, Words};
use crate::layout::shrinking::Shrinking;

/// The lanes that agree with an entry of another filter in all bits that neither has lost.
#[derive(Clone, Copy, Debug)]
pub struct MergeMatches {
    /// The lanes that have lost at least as many bits as the entry.
    pub covering: LaneSet,
    /// The lanes that have lost fewer bits than the entry.
    pub finer: LaneSet,
}

impl Shrinking {
    /// Returns the taken lanes that agree with an entry of another filter in all bits that neither has lost.
    #[inline]
    pub fn merge_matches(&self, words: Words, fp: Fingerprint) -> MergeMatches {
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

    /// Returns how many bits the suffix of a fingerprint has lost.
    #[inline]
    pub fn lost_by(&self, fp: Fingerprint) -> u32 {
        (self.suffix_lane(fp) >> self.stamp).trailing_zeros()
    }

    /// The half of a fingerprint that has its suffix.
    #[inline]
    fn suffix_lane(&self, fp: Fingerprint) -> u32 {
        if self.lanes.is_wide() { fp.tail() } else { fp.head() }
    }

    /// Undoes a split: returns what the bucket of one half was before. A lane that has lost no bits loses its last one.
    pub fn joined(&self, words: Words, is_upper: bool) -> Words {
        let suffixes = self.suffixes(words);
        let [first, rest] = self.first_and_rest();
        let taken = self.lanes.taken(words.heads).tops() >> self.anchor_bits();
        let shifted = ((suffixes & (first | rest)) >> 1) & rest | suffixes & self.units;
        let other = suffixes & !(first | rest);
        let joined = shifted | other | if is_upper { taken } else { 0 };
        match self.lanes.is_wide() {
            false => Words { heads: joined, tails: 0 },
            true => Words { tails: joined, ..words },
        }
    }

    /// Converts the buckets of a shard of depth `from` to those of a shard of depth `to`. The hashes of one shard must
    /// be a part of the hashes of the other, and `position` must be that of a hash in both.
    pub fn bring_to_depth(&self, words: &mut [u64], (from, to): (u32, u32), position: u64) {
        let is_upper = |depth: u32| position << (depth & 63) >> 63 == 1;
        for depth in from..to {
            match is_upper(depth) {
                false => self.lanes.replace_each(words, |words| self.split(words).lower),
                true => self.lanes.replace_each(words, |words| self.split(words).upper),
            }
        }
        for depth in (to..from).rev() {
            let is_upper = is_upper(depth);
            self.lanes.replace_each(words, |words| self.joined(words, is_upper));
        }
    }
}
