//! What a run has done so far.

use crate::state::seen::Seen;

#[derive(Clone, Default)]
pub struct Tally {
    pub lines: u64,
    /// Their bytes, unpacked.
    pub bytes: u64,
    /// Lines that were added, found, or taken out.
    pub yes: u64,
    /// Lines that were written, or would have been.
    pub selected: u64,
    pub not_urls: u64,
    /// Inputs that could not be read, or not to their end.
    pub unreadable: u64,
    pub doubt: Doubt,
}

/// How many new lines may have been taken for ones that were seen: the sum, over the new lines, of what the rate was when
/// they came.
#[derive(Clone, Default)]
pub struct Doubt {
    expected: f64,
    added: u64,
    rate: Option<f64>,
}

impl Doubt {
    /// The rate changes slowly, so it is asked for once in a while, or at the end.
    pub fn update(&mut self, seen: &Seen, added: u64, at_the_end: bool) {
        let since = added - self.added;
        if since < (added / 64).max(4_096) && !at_the_end && self.rate.is_some() {
            return;
        }
        let rate = seen.false_positive_rate();
        let mean = (self.rate.unwrap_or(rate) + rate) / 2.0;
        // Of the new lines, those that were added are the rest.
        self.expected += since as f64 * mean / (1.0 - mean).max(0.01);
        (self.added, self.rate) = (added, Some(rate));
    }

    /// If no line seemed to be repeated, none was dropped. Otherwise one of them may be a new one, too.
    pub fn expected(&self, repeated: u64) -> f64 {
        match repeated {
            0 => 0.0,
            _ => (self.expected + self.rate.unwrap_or(0.0)).min(repeated as f64),
        }
    }
}
