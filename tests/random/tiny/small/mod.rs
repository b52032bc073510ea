//! Filters of every layout that begin with one shard of 8 buckets.

pub use crate::common::{Filter, Layout};

use crate::common::{GROWING, rounds};

/// The exact layout and a vague one of two words.
const FEW_LAYOUTS: [Layout; 2] = [EXACT, GROWING[7]];

/// The layouts of a test: in a short run, two stand for all.
pub fn layouts() -> &'static [Layout] {
    rounds(&FEW_LAYOUTS, &GROWING)
}

/// The layout that tells all items of a test apart. Its lanes become void after 15 splits.
pub const EXACT: Layout = GROWING[6];

/// What tests want of a layout here.
pub trait Tiny {
    /// A filter of one shard.
    fn tiny(&self) -> Filter;

    /// Whether a filter of this layout may have void lanes, which are found, and neither counted nor removed.
    fn may_have_void(&self, filter: &Filter) -> bool;

    /// Checks that the filter counts its items, of which this many were inserted and not removed. Void ones are not
    /// counted.
    fn check_len(&self, filter: &Filter, items: usize);
}

impl Tiny for Layout {
    fn tiny(&self) -> Filter {
        let filter = self.growing(1).build().expect("a filter of one shard");
        assert_eq!(filter.stats().fingerprint_bits, self.bits);
        assert_eq!(filter.stats().slots, 8 * self.slots());
        filter
    }

    fn may_have_void(&self, filter: &Filter) -> bool {
        let in_a_word = self.bits / self.words as u32;
        let suffix = if self.words == 2 { in_a_word } else { in_a_word - in_a_word / 2 };
        filter.stats().directory_depth >= suffix - 1
    }

    fn check_len(&self, filter: &Filter, items: usize) {
        let counted = filter.len();
        let is_right = counted == items || counted < items && self.may_have_void(filter);
        assert!(is_right, "{self:?}: {counted} of {items}");
    }
}
