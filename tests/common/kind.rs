//! The two kinds of saved filters, for tests that run on both.

use koel::{ConcurrentCuckooFilter, StableHash};

pub type Saved = ConcurrentCuckooFilter<StableHash>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Fixed,
    Growing,
}

pub use Kind::{Fixed, Growing};

#[allow(dead_code)] // not every test program uses all of it
impl Kind {
    pub fn name(self) -> &'static str {
        if self == Fixed { "fixed" } else { "growing" }
    }

    /// Returns the kind of this name.
    pub fn named(name: &str) -> Self {
        if name == Fixed.name() { Fixed } else { Growing }
    }

    /// Returns an empty filter for `capacity` items. Its rate is so low that tests can rely on a
    /// few thousand items without false positives among them. The growing filter begins much
    /// smaller.
    pub fn filter(self, capacity: usize) -> Saved {
        let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7));
        let builder = match self {
            Fixed => builder.capacity(capacity).false_positive_rate(1e-9),
            Growing => {
                let builder = builder.capacity(capacity / 100).false_positive_rate(1e-6);
                builder.growing().expected_growth(100.0)
            }
        };
        builder.build().expect("a filter")
    }
}
