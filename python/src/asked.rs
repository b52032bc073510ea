//! The arguments of a filter, and a new one that is built by them.

use koel::{BuildError, Builder, ConcurrentCuckooFilter, StableHash};
use std::time::Duration;

/// The arguments of `Filter`, as far as they are of the filter.
#[derive(Default)]
pub struct Asked {
    pub rate: Option<f64>,
    pub capacity: Option<usize>,
    /// The seconds for which items are remembered, if not for ever.
    pub remembers: Option<u64>,
    pub refresh: bool,
    pub max_bytes: Option<usize>,
    pub seed: Option<u64>,
    pub create: bool,
}

impl Asked {
    /// Builds a new filter, at the present time.
    pub fn new_filter(&self) -> Result<ConcurrentCuckooFilter<StableHash>, BuildError> {
        self.builder().max_bytes(self.most_bytes()).build()
    }

    /// The most memory to take.
    pub fn most_bytes(&self) -> usize {
        self.max_bytes.unwrap_or(usize::MAX)
    }

    fn builder(&self) -> Builder<StableHash> {
        let hasher = self.seed.map_or_else(StableHash::random, StableHash::with_seed);
        let mut builder = ConcurrentCuckooFilter::builder().hasher(hasher).seen_set();
        if let Some(items) = self.capacity {
            builder = builder.capacity(items.max(1));
        }
        if let Some(rate) = self.rate {
            builder = builder.false_positive_rate(rate);
        }
        if let Some(seconds) = self.remembers {
            builder = builder.forgets_after(Duration::from_secs(seconds));
        }
        builder
    }

    /// The size in bytes of the new filter, if it can be had.
    pub fn least_bytes(&self) -> Option<usize> {
        self.builder().plan().ok().map(|plan| plan.initial_bytes)
    }
}
