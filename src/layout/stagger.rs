//! Distributes a root's hashes over its shards, so that the shards do not all fill up at once.
//!
//! If all shards of a root got equal shares of its hashes, all would fill up at the same moment, and the memory of a
//! filter would double from one item to the next. So a hash is mapped to a *position* by a function that rises faster
//! at the low end of the root than at the high end, and the bits of the position choose the shard:
//!
//! ```text
//! position(x) = x + x (1 - x) / 3        for x from 0 to 1
//! ```
//!
//! Its slope falls from 4/3 to 2/3. So a shard at the high end gets twice the items of one at the low end, and is split
//! when the filter holds half as many items: at any size, some shards have just been split, and others are about to be.
//! With many shards, the memory is 1.39 to 1.50 times that of a fixed filter, instead of 1 to 2 times
//! (`benches/README.md` has the curve).
//!
//! The function is increasing, so a range of hashes is a range of positions.

/// How unequal the shares are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stagger {
    /// The factor of `x (1 - x)`, in units of 2^-64.
    factor: u64,
}

impl Stagger {
    /// All shards get equal shares, as in a fixed filter.
    pub const NONE: Stagger = Stagger { factor: 0 };
    pub const FULL: Stagger = Stagger { factor: u64::MAX / 3 };

    /// Returns the position of a fraction of a root.
    ///
    /// The position never decreases from one fraction to the next: the added term changes by at most a third of a unit,
    /// or by one unit after rounding down.
    #[inline]
    pub fn position(self, fraction: u64) -> u64 {
        fraction + high_half(high_half(fraction, !fraction), self.factor)
    }

    /// Returns the least fraction whose position is at least this one, or `None` if there is none.
    pub fn fraction(self, position: u64) -> Option<u64> {
        if self.position(u64::MAX) < position {
            return None;
        }
        if self == Self::NONE {
            return Some(position);
        }
        // Solves the equation as precisely as floating point allows, then refines the solution by the slope.
        let unit = 64f64.exp2();
        let (factor, target) = (self.factor as f64 / unit, position as f64 / unit);
        let root = ((1.0 + factor).powi(2) - 4.0 * factor * target).sqrt();
        let mut fraction = ((1.0 + factor - root) / (2.0 * factor) * unit) as u64;
        let missing = position.wrapping_sub(self.position(fraction)).cast_signed();
        // The slope there is `root`.
        fraction = fraction.saturating_add_signed((missing as f64 / root) as i64);
        // The remaining error is a few units.
        while self.position(fraction) < position {
            fraction += 1;
        }
        while fraction > 0 && self.position(fraction - 1) >= position {
            fraction -= 1;
        }
        Some(fraction)
    }
}

fn high_half(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const BOTH: [Stagger; 2] = [Stagger::NONE, Stagger::FULL];

    /// Fractions of all magnitudes, each with its neighbours.
    fn fractions() -> impl Iterator<Item = u64> {
        let powers = (0..64).map(|bit| 1 << bit);
        let even = (0..10_000).map(|step| step * (u64::MAX / 10_000));
        powers.chain(even).flat_map(|x: u64| [x.wrapping_sub(1), x, x + 1])
    }

    #[test]
    fn positions_never_fall_and_cover_the_root() {
        for stagger in BOTH {
            assert_eq!(stagger.position(0), 0);
            assert!(stagger.position(u64::MAX) >= u64::MAX - 1);
            for x in fractions().filter(|x| *x < u64::MAX) {
                assert!(stagger.position(x) <= stagger.position(x + 1), "{x}");
            }
        }
    }

    #[test]
    fn a_position_yields_the_least_fraction_that_reaches_it() {
        for stagger in BOTH {
            for position in fractions() {
                let Some(x) = stagger.fraction(position) else {
                    assert!(stagger.position(u64::MAX) < position);
                    continue;
                };
                assert!(stagger.position(x) >= position, "{position}");
                assert!(x == 0 || stagger.position(x - 1) < position, "{position}");
            }
        }
    }

    #[test]
    fn the_high_end_gets_twice_the_items_of_the_low_end() {
        let parts = 1 << 10;
        let border = |part: u64| Stagger::FULL.fraction(part << 54).expect("a fraction");
        let (low, high) = (border(1), u64::MAX - border(parts - 1));
        assert!((high as f64 / low as f64 - 2.0).abs() < 0.01);
        assert_eq!(Stagger::NONE.position(12_345), 12_345);
    }
}
