//! Tracks which hashes the blocks of a filter cover so far, and whether they cover all.
//!
//! Blocks come in the order of the hashes that lead to their shards. A block of depth `d` covers
//! 2^(-d) of its root, so the place where it begins is a whole number of [`UNITS`]. A place is also
//! the cursor of a [piece](crate::snapshot::piece).

use crate::backend::growing::directory::{MAX_LEVELS, is_balanced};
use crate::snapshot::error::SnapshotError;

/// The number of units in a root. Places are counted in these units, each of which is what a shard of the greatest
/// depth covers.
pub const UNITS: u64 = 1 << (MAX_LEVELS - 1);

/// Returns the number of units that a block of this depth covers.
pub fn part_of(depth: u32) -> u64 {
    UNITS >> depth
}

/// A block does not continue where the previous one ended.
#[derive(Debug)]
pub struct Gap;

impl Gap {
    /// The error for a block that begins at byte `at`.
    pub fn at(self, at: u64) -> SnapshotError {
        SnapshotError::damaged(at + 8, "the block does not continue where the previous one ended")
    }
}

/// The hashes that blocks cover, from the first hash on.
#[derive(Clone, Debug)]
pub struct Coverage {
    roots: u64,
    /// Where the next block begins.
    place: u64,
    blocks: u64,
    deepest: u32,
}

impl Coverage {
    /// Begins the coverage of a filter with `roots` roots.
    pub fn of(roots: usize) -> Self {
        Self::from(roots, 0)
    }

    /// Begins the coverage of such a filter at a later place.
    pub fn from(roots: usize, place: u64) -> Self {
        Coverage { roots: roots as u64, place, blocks: 0, deepest: 0 }
    }

    /// Adds the next block. Fails if it does not continue where the previous one ended.
    pub fn add(&mut self, depth: u32) -> Result<(), Gap> {
        let part = part_of(depth);
        if self.is_complete() || !self.place.is_multiple_of(part) {
            return Err(Gap);
        }
        self.place += part;
        self.deepest = self.deepest.max(depth);
        self.blocks += 1;
        Ok(())
    }

    /// Whether the blocks make up every root.
    pub fn is_complete(&self) -> bool {
        self.place / UNITS == self.roots
    }

    /// The place where the next block begins.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// The place where the next block begins, or `None` if there is no other block.
    pub fn next(&self) -> Option<u64> {
        (!self.is_complete()).then_some(self.place)
    }

    /// The greatest depth of all blocks.
    pub fn deepest(&self) -> u32 {
        self.deepest
    }

    /// Whether the directory of these shards is [not much larger](is_balanced) than the shards themselves.
    pub fn is_balanced(&self) -> bool {
        is_balanced(self.roots, self.deepest, self.blocks)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn coverage(roots: usize, depths: &[u32]) -> (Coverage, bool) {
        let mut coverage = Coverage::of(roots);
        let right = depths.iter().all(|depth| coverage.add(*depth).is_ok());
        let complete = coverage.is_complete();
        (coverage, right && complete)
    }

    #[test]
    fn blocks_have_to_make_up_every_root() {
        for whole in [&[0, 0][..], &[1, 1, 0], &[0, 2, 2, 1], &[1, 2, 3, 3, 1, 1], &[31; 0]] {
            assert_eq!(coverage(2, whole).1, !whole.is_empty(), "{whole:?}");
        }
        for broken in [&[0][..], &[0, 0, 0], &[1, 0], &[2, 1, 2, 0], &[1, 1, 1], &[0, 31]] {
            assert!(!coverage(2, broken).1, "{broken:?}");
        }
    }

    #[test]
    fn a_deep_shard_needs_others() {
        for (depth, is_fine) in [(20, true), (21, false), (31, false)] {
            let chain: Vec<u32> = (1..=depth).chain([depth]).collect();
            let (coverage, whole) = coverage(1, &chain);
            assert!(whole);
            assert_eq!(coverage.is_balanced(), is_fine);
        }
    }
}
