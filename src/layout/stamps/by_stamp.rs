//! A number of lanes for each stamp.

use crate::layout::stamps::STAMPS;

/// A number of lanes for each [stamp](crate::layout::stamps). In a filter that does not forget, all have the
/// stamp 0.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub struct ByStamp([i64; STAMPS]);

impl Default for ByStamp {
    fn default() -> Self {
        ByStamp([0; STAMPS])
    }
}

impl ByStamp {
    /// So many lanes in a filter that does not forget.
    pub fn unstamped(lanes: i64) -> Self {
        ByStamp::of([lanes])
    }

    /// With these figures for the stamps from 0 on.
    pub fn of(figures: impl IntoIterator<Item = i64>) -> Self {
        let mut by_stamp = ByStamp::default();
        by_stamp.0.iter_mut().zip(figures).for_each(|(own, figure)| *own = figure);
        by_stamp
    }

    pub fn total(&self) -> i64 {
        self.0.iter().sum()
    }

    /// The figures for the stamps from 0 on.
    pub fn figures(&self) -> &[i64] {
        &self.0
    }

    pub fn add(&mut self, stamp: usize, lanes: i64) {
        self.0[stamp] += lanes;
    }

    /// Takes off the figures of another.
    pub fn take_off(&mut self, other: &ByStamp) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own -= other);
    }

    /// Takes out the figures of some stamps.
    pub fn take(&mut self, stamps: impl Iterator<Item = usize>) -> ByStamp {
        let mut taken = ByStamp::default();
        stamps.for_each(|stamp| taken.0[stamp] = std::mem::take(&mut self.0[stamp]));
        taken
    }

    /// Shares the figure of each stamp out in equal parts. What is odd goes to the second half and to the
    /// first in turns, so that the totals are equal too.
    pub fn halves(&self) -> [ByStamp; 2] {
        let mut halves = [ByStamp::default(), ByStamp::default()];
        let mut is_first = false;
        for (stamp, &lanes) in self.0.iter().enumerate() {
            let more = usize::from(!is_first);
            halves[1 - more].0[stamp] = lanes.div_euclid(2);
            halves[more].0[stamp] = lanes - lanes.div_euclid(2);
            is_first ^= lanes.rem_euclid(2) == 1;
        }
        halves
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn halves_have_equal_parts_of_each_stamp_and_of_all() {
        for lanes in
            [vec![0], vec![1], vec![7, 2, 1], vec![1; 5], vec![3; 64], vec![4, 5, 6], vec![-3, 2]]
        {
            let [lower, upper] = ByStamp::of(lanes.iter().copied()).halves();
            for (stamp, both) in lanes.iter().enumerate() {
                let halves = [&lower, &upper].map(|half| half.figures()[stamp]);
                assert_eq!(halves[0] + halves[1], *both);
                assert!(halves[0].abs_diff(halves[1]) <= 1);
            }
            assert!((0..=1).contains(&(upper.total() - lower.total())), "{lanes:?}");
        }
    }
}
