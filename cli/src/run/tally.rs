//! The counts of a run.

use crate::lines::chunk::Counts;
use crate::state::seen::Seen;

#[derive(Clone, Default)]
pub struct Tally {
    /// The sum of the chunks that were written.
    pub counts: Counts,
    /// Those of the files that are in place, if there is one for each input.
    pub placed: Counts,
    /// Lines that were seen again and are remembered from then on.
    pub refreshed: u64,
    /// Inputs that could be opened.
    pub opened: u64,
    pub doubt: Doubt,
}

/// The expected number of new lines that were taken for lines already seen: the sum, over all new
/// lines, of the rate at the time.
#[derive(Clone, Default)]
pub struct Doubt {
    expected: f64,
    added: u64,
    rate: Option<f64>,
}

/// How often the filter was changed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Lines that were added or removed.
    pub lines: u64,
    pub refreshed: u64,
}

impl Tally {
    /// Whether the inputs have lines that were not processed.
    pub fn lacks_lines(&self) -> bool {
        self.counts.unreadable > 0 || self.counts.too_long > 0
    }

    /// What was done to the filter, and written.
    pub fn changes(&self) -> Changes {
        Changes { lines: self.counts.yes, refreshed: self.refreshed }
    }
}

impl Doubt {
    /// Updates the sum after `added` lines. The rate changes slowly, so it is computed only once in
    /// a while, and at the end.
    pub fn update(&mut self, seen: &Seen, added: u64, at_the_end: bool) {
        // What is not in place in the end was not added.
        let since = added.saturating_sub(self.added);
        if since < (added / 64).max(4_096) && !at_the_end && self.rate.is_some() {
            return;
        }
        let rate = seen.false_positive_rate();
        let mean = (self.rate.unwrap_or(rate) + rate) / 2.0;
        // Only the new lines that were not dropped are counted in `added`.
        self.expected += since as f64 * mean / (1.0 - mean).max(0.01);
        (self.added, self.rate) = (added, Some(rate));
    }

    /// Returns the expected number of dropped lines. It is zero if no line seemed to be repeated.
    pub fn expected(&self, repeated: u64) -> f64 {
        match repeated {
            0 => 0.0,
            _ => (self.expected + self.rate.unwrap_or(0.0)).min(repeated as f64),
        }
    }
}
