//! A count of lanes for each stamp.

use crate::layout::stamps::STAMPS;

/// A count of lanes for each [stamp](crate::layout::stamps). In a filter that does not forget, all lanes have stamp 0.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub struct ByStamp([i64; STAMPS]);

impl Default for ByStamp {
    fn default() -> Self {
        ByStamp([0; STAMPS])
    }
}

impl ByStamp {
    /// Creates the counts for the stamps from 0 on.
    pub fn of(figures: impl IntoIterator<Item = i64>) -> Self {
        let mut by_stamp = ByStamp::default();
        by_stamp.0.iter_mut().zip(figures).for_each(|(own, figure)| *own = figure);
        by_stamp
    }

    pub fn total(&self) -> i64 {
        self.0.iter().sum()
    }

    /// The counts for the stamps from 0 on.
    pub fn figures(&self) -> &[i64] {
        &self.0
    }

    pub fn add(&mut self, stamp: usize, lanes: i64) {
        self.0[stamp] += lanes;
    }

    /// The count `lanes` for this stamp, and 0 for all others.
    pub fn only(stamp: usize, lanes: i64) -> Self {
        let mut only = ByStamp::default();
        only.add(stamp, lanes);
        only
    }

    /// Adds the counts of another.
    pub fn add_all(&mut self, other: &ByStamp) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own += other);
    }

    /// The stamps whose counts are not zero, each with its count.
    pub fn each(&self) -> impl Iterator<Item = (usize, i64)> {
        self.0.iter().copied().enumerate().filter(|(_, lanes)| *lanes != 0)
    }
}
