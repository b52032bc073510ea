//! Maps a hash to a shard of a growing filter, by the root of the hash and its position there.
//!
//! The hashes are first divided equally into *roots*, the shards that a filter begins with. At level `n`, a root
//! consists of `2^n` equal ranges of [positions](Position), each of which leads to one of the shards that the root was
//! split into. The ranges of all roots are numbered in the order of their hashes. A fixed filter has nothing but roots.
//!
//! # Why the shards of a root have unequal shares
//!
//! With equal shares, [the memory would double at one moment](mod@crate::guide::design#growth). So a position rises with
//! the hash, faster at the low end of the root than at the high end:
//!
//! ```text
//! position(x) = x + x (1 - x) / 3        for x from 0 to 1
//! ```
//!
//! Its slope falls from 4/3 to 2/3. So a shard at the high end gets twice the items of one at the low end, and is split
//! when the filter holds half as many items. The function is increasing, so a range of hashes is a range of positions.

use crate::layout::SMALL;
use crate::layout::geometry::Mixed;

/// The root of a hash, and the position of the hash in that root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub root: usize,
    pub in_root: u64,
}

impl Position {
    /// Returns the number of the range that contains this position, at a level.
    #[inline]
    pub(crate) fn range(self, level: u32) -> usize {
        self.range_of(1 << level)
    }

    /// The same at the level at which each root has `each` ranges.
    #[inline]
    pub(crate) fn range_of(self, each: u64) -> usize {
        let range = (u128::from(self.in_root) * u128::from(each)) >> u64::BITS;
        self.root.wrapping_mul(each as usize) + range as usize
    }
}

/// The roots of a filter, and the division of the hashes of each root among its shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Roots {
    pub count: usize,
}

impl Roots {
    #[inline]
    pub(crate) fn position(self, hash: Mixed) -> Position {
        let (root, fraction) = hash.scaled(self.count);
        Position { root, in_root: position_of(fraction) }
    }

    /// Returns the first hash in a range of a level, or `None` if there is no such range.
    pub(crate) fn first_hash(self, range: usize, level: u32) -> Option<Mixed> {
        self.first_from(Position {
            root: range >> level,
            in_root: (range as u64) << 1 << (63 - level),
        })
    }

    /// Returns the first hash at or after a position, or `None` if there is none.
    pub(crate) fn first_from(self, Position { mut root, in_root }: Position) -> Option<Mixed> {
        let fraction = fraction_of(in_root).unwrap_or_else(|| {
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
    pub(crate) fn share(self, range: usize, level: u32) -> f64 {
        let start = self.first_hash(range, level).map_or(u64::MAX, |hash| hash.0);
        let end = self.first_hash(range + 1, level).map_or(u64::MAX, |hash| hash.0);
        (end - start) as f64 * (-64f64).exp2()
    }
}

/// Returns the position of a fraction of a root, which never decreases from one fraction to the next: the added term
/// changes by at most a third of a unit, or by one unit after rounding down. Models have no use for unequal shares.
#[inline]
pub(crate) fn position_of(fraction: u64) -> u64 {
    if SMALL {
        fraction
    } else {
        fraction + high_half(high_half(fraction, !fraction), u64::MAX / 3)
    }
}

/// Returns the least fraction whose position is at least this one, or `None` if there is none.
fn fraction_of(position: u64) -> Option<u64> {
    if SMALL || position == 0 {
        return Some(position);
    }
    if position_of(u64::MAX) < position {
        return None;
    }
    // Solves the equation as precisely as floating point allows, then refines the solution by the slope.
    let unit = 64f64.exp2();
    let root = (16.0 / 9.0 - 4.0 / 3.0 * (position as f64 / unit)).sqrt();
    let mut fraction = ((4.0 / 3.0 - root) * 1.5 * unit) as u64;
    let missing = position.wrapping_sub(position_of(fraction)).cast_signed();
    // The slope there is `root`.
    fraction = fraction.saturating_add_signed((missing as f64 / root) as i64);
    // The remaining error is a few units.
    while position_of(fraction) < position {
        fraction += 1;
    }
    while fraction > 0 && position_of(fraction - 1) >= position {
        fraction -= 1;
    }
    Some(fraction)
}

fn high_half(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// Parts of the table into which a batch may be sorted: groups of adjacent ranges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    roots: Roots,
    level: u32,
    /// The binary logarithm of the number of ranges in a part.
    together: u32,
}

impl Parts {
    /// Groups the ranges of a level by a power of two, into at most `most` groups unless the number of ranges cannot be
    /// halved often enough.
    pub(crate) fn at_most(most: usize, roots: Roots, level: u32) -> Self {
        let mut parts = Parts { roots, level, together: 0 };
        let ranges = roots.count << level;
        while parts.count() > most && (ranges >> parts.together).is_multiple_of(2) {
            parts.together += 1;
        }
        parts
    }

    pub(crate) fn count(self) -> usize {
        self.roots.count << self.level >> self.together
    }

    #[inline]
    pub(crate) fn of(self, hash: Mixed) -> usize {
        self.roots.position(hash).range(self.level) >> self.together
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots() -> impl Iterator<Item = Roots> {
        [1, 2, 3, 5, 16, 1_000].into_iter().map(|count| Roots { count })
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

    /// Fractions of all magnitudes, each with its neighbours.
    fn fractions() -> impl Iterator<Item = u64> {
        let powers = (0..64).map(|bit| 1 << bit);
        let even = (0..10_000).map(|step| step * (u64::MAX / 10_000));
        powers.chain(even).flat_map(|x: u64| [x.wrapping_sub(1), x, x + 1])
    }

    #[test]
    fn positions_never_fall_and_cover_the_root() {
        assert_eq!(position_of(0), 0);
        assert!(position_of(u64::MAX) >= u64::MAX - 1);
        for x in fractions().filter(|x| *x < u64::MAX) {
            assert!(position_of(x) <= position_of(x + 1), "{x}");
        }
    }

    #[test]
    fn a_position_yields_the_least_fraction_that_reaches_it() {
        for position in fractions() {
            let Some(x) = fraction_of(position) else {
                assert!(position_of(u64::MAX) < position);
                continue;
            };
            assert!(position_of(x) >= position, "{position}");
            assert!(x == 0 || position_of(x - 1) < position, "{position}");
        }
    }

    #[test]
    fn the_high_end_gets_twice_the_items_of_the_low_end() {
        let parts = 1 << 10;
        let border = |part: u64| fraction_of(part << 54).expect("a fraction");
        let (low, high) = (border(1), u64::MAX - border(parts - 1));
        assert!((high as f64 / low as f64 - 2.0).abs() < 0.01);
    }
}
