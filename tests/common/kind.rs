//! The two kinds of saved filters, for tests that run on both.

use koel::{ConcurrentCuckooFilter, StableHash};

pub type Saved = ConcurrentCuckooFilter<StableHash>;

pub struct Fixed;
pub struct Growing;

pub trait Kind: 'static {
    #[allow(dead_code)] // not every test program uses it
    const NAME: &'static str;

    /// Returns an empty filter for `capacity` items. Its rate is so low that tests can rely on a
    /// few thousand items without false positives among them. The growing filter begins much
    /// smaller.
    fn filter(capacity: usize) -> Saved;
}

impl Kind for Fixed {
    const NAME: &'static str = "fixed";

    fn filter(capacity: usize) -> Saved {
        let builder = ConcurrentCuckooFilter::builder().capacity(capacity);
        let builder = builder.false_positive_rate(1e-9).hasher(StableHash::with_seed(7));
        builder.build().expect("a filter")
    }
}

impl Kind for Growing {
    const NAME: &'static str = "growing";

    fn filter(capacity: usize) -> Saved {
        let builder = ConcurrentCuckooFilter::builder().capacity(capacity / 100);
        let builder = builder.false_positive_rate(1e-6).hasher(StableHash::with_seed(7));
        builder.growing().expected_growth(100.0).build().expect("a filter")
    }
}
