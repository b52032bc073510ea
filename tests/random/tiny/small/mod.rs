//! Filters of every layout that begin with one shard of 8 buckets.

// Every test file is a crate of its own and uses a part of this.
#![allow(dead_code)]

use crate::common::{Fixed, rounds};
use koel::{Builder, ConcurrentCuckooFilter};

pub type Filter = ConcurrentCuckooFilter<Fixed>;

#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub bits: u32,
    /// A false-positive rate that selects this layout when no growth is expected.
    pub rate: f64,
    /// The number of words in a bucket.
    pub words: u32,
}

pub const LAYOUTS: [Layout; 11] = [
    Layout { bits: 8, rate: 0.13, words: 1 },
    Layout { bits: 9, rate: 0.06, words: 1 },
    Layout { bits: 10, rate: 0.025, words: 1 },
    Layout { bits: 12, rate: 0.005, words: 1 },
    Layout { bits: 16, rate: 0.000_25, words: 1 },
    Layout { bits: 21, rate: 6e-6, words: 1 },
    Layout { bits: 32, rate: 2e-9, words: 1 },
    Layout { bits: 18, rate: 1.2e-4, words: 2 },
    Layout { bits: 32, rate: 4e-9, words: 2 },
    Layout { bits: 20, rate: 2.3e-5, words: 2 },
    Layout { bits: 24, rate: 1.3e-6, words: 2 },
];

/// The exact layout and a vague one of two words.
const FEW_LAYOUTS: [Layout; 2] = [EXACT, LAYOUTS[7]];

/// The layouts of a test: in a short run, two stand for all.
pub fn layouts() -> &'static [Layout] {
    rounds(&FEW_LAYOUTS, &LAYOUTS)
}

/// The layout that tells all items of a test apart. Its lanes become void after 15 splits.
pub const EXACT: Layout = LAYOUTS[6];

impl Layout {
    pub fn builder(self) -> Builder<Fixed> {
        let builder = ConcurrentCuckooFilter::builder().capacity(1).growing();
        let builder = builder.false_positive_rate(self.rate).expected_growth(1.0);
        builder.hasher(Fixed { key: 0 })
    }

    pub fn filter(self) -> Filter {
        let filter = self.builder().build().expect("a filter of one shard");
        assert_eq!(filter.stats().fingerprint_bits, self.bits);
        assert_eq!(filter.stats().slots, 8 * self.slots());
        filter
    }

    /// Whether a filter of this layout may have void lanes, which are found, and neither counted nor removed.
    pub fn may_have_void(self, filter: &Filter) -> bool {
        let in_a_word = self.bits / self.words;
        let suffix = if self.words == 2 { in_a_word } else { in_a_word - in_a_word / 2 };
        filter.stats().directory_depth >= suffix - 1
    }

    /// Checks that the filter counts its items, of which this many were inserted and not removed. Void ones are not
    /// counted.
    pub fn check_len(self, filter: &Filter, items: usize) {
        let counted = filter.len();
        let is_right = counted == items || counted < items && self.may_have_void(filter);
        assert!(is_right, "{self:?}: {counted} of {items}");
    }

    /// Returns the number of slots in a bucket.
    pub fn slots(self) -> usize {
        (64 / (self.bits / self.words)) as usize
    }
}
