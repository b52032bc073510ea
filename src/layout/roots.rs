//! Maps a hash to a shard of a growing filter, by the root of the hash and its position there.
//!
//! The hashes are first divided equally into *roots*, the shards that a filter begins with. The
//! [position](crate::layout::stagger) of a hash in its root chooses one of the shards that the root was split into. At
//! level `n`, a root consists of `2^n` equal ranges of positions. The ranges of all roots are numbered in the order of
//! their hashes.

use crate::layout::geometry::Mixed;
use crate::layout::stagger::Stagger;

/// The root of a hash, and the position of the hash in that root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub root: usize,
    pub in_root: u64,
}

impl Position {
    /// Returns the number of the range that contains this position, at a level.
    #[inline]
    pub fn range(self, level: u32) -> usize {
        self.range_of(1 << level)
    }

    /// The same at the level at which each root has so many ranges.
    #[inline]
    pub fn range_of(self, each: u64) -> usize {
        let range = (u128::from(self.in_root) * u128::from(each)) >> u64::BITS;
        self.root.wrapping_mul(each as usize) + range as usize
    }
}

/// The roots of a filter, and the division of the hashes of each root among its shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roots {
    pub count: usize,
    pub stagger: Stagger,
}

impl Roots {
    /// Returns the position of a hash.
    #[inline]
    pub fn position(self, hash: Mixed) -> Position {
        let (root, fraction) = hash.scaled(self.count);
        Position { root, in_root: self.stagger.position(fraction) }
    }

    /// Returns the first hash in a range of a level, or `None` if there is no such range.
    pub fn first_hash(self, range: usize, level: u32) -> Option<Mixed> {
        self.first_from(Position {
            root: range >> level,
            in_root: (range as u64) << 1 << (63 - level),
        })
    }

    /// Returns the first hash at or after a position, or `None` if there is none.
    pub fn first_from(self, Position { mut root, in_root }: Position) -> Option<Mixed> {
        let fraction = self.stagger.fraction(in_root).unwrap_or_else(|| {
            root += 1;
            0
        });
        // Most filters have one root. The division would then take longer than all the rest.
        if self.count == 1 {
            return (root == 0).then_some(Mixed(fraction));
        }
        // The lowest hash `h` with `h × roots ≥ root × 2^64 + fraction`.
        let least = (root as u128) << 64 | u128::from(fraction);
        (root < self.count).then(|| Mixed(least.div_ceil(self.count as u128) as u64))
    }

    /// Returns the fraction of all hashes that are in a range.
    pub fn share(self, range: usize, level: u32) -> f64 {
        let start = self.first_hash(range, level).map_or(u64::MAX, |hash| hash.0);
        let end = self.first_hash(range + 1, level).map_or(u64::MAX, |hash| hash.0);
        (end - start) as f64 * (-64f64).exp2()
    }
}

/// Parts of the table into which a batch may be sorted: groups of adjacent ranges.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    roots: Roots,
    level: u32,
    /// The binary logarithm of the number of ranges in a part.
    together: u32,
}

impl Parts {
    /// Groups the ranges of a level by a power of two. There are at most `most` groups, unless the number of ranges
    /// cannot be halved often enough.
    pub fn at_most(most: usize, roots: Roots, level: u32) -> Self {
        let mut parts = Parts { roots, level, together: 0 };
        let ranges = roots.count << level;
        while parts.count() > most && (ranges >> parts.together).is_multiple_of(2) {
            parts.together += 1;
        }
        parts
    }

    /// Returns the number of parts.
    pub fn count(self) -> usize {
        self.roots.count << self.level >> self.together
    }

    /// Returns the number of the part that contains a hash.
    #[inline]
    pub fn of(self, hash: Mixed) -> usize {
        self.roots.position(hash).range(self.level) >> self.together
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn roots() -> impl Iterator<Item = Roots> {
        let staggers = [Stagger::NONE, Stagger::FULL];
        let counts = [1, 2, 3, 5, 16, 1_000];
        staggers.into_iter().flat_map(move |stagger| counts.map(|count| Roots { count, stagger }))
    }

    #[test]
    fn each_range_begins_with_its_first_hash() {
        for roots in roots() {
            for level in [0, 1, 2, 5, 20] {
                let ranges = roots.count << level;
                for range in (0..ranges).step_by(ranges / 50 + 1) {
                    let first = roots.first_hash(range, level).expect("a range");
                    assert_eq!(roots.position(first).range(level), range, "{roots:?} {level}");
                    let before =
                        first.0.checked_sub(1).map(|hash| roots.position(Mixed(hash)).range(level));
                    assert!(before.is_none_or(|before| before == range - 1), "{roots:?} {level}");
                }
                assert!(roots.first_hash(ranges, level).is_none());
            }
        }
    }

    #[test]
    fn the_shares_of_all_ranges_are_one() {
        for roots in roots() {
            for level in [0, 1, 6] {
                let shares = (0..roots.count << level).map(|range| roots.share(range, level));
                assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn ranges_of_one_part_are_adjacent() {
        for roots in roots() {
            for (level, most) in [(0, 1), (0, 100), (3, 4), (3, 1_000)] {
                let parts = Parts::at_most(most, roots, level);
                assert!(parts.count() <= most || !parts.count().is_multiple_of(2));
                let of = |range| parts.of(roots.first_hash(range, level).expect("a range"));
                let all: Vec<usize> = (0..roots.count << level).map(of).collect();
                assert!(all.is_sorted());
                assert_eq!((all[0], all[all.len() - 1]), (0, parts.count() - 1));
            }
        }
    }
}
