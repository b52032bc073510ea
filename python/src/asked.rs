//! A new filter: its arguments as those of the library.

use koel::{BuildError, Builder, ConcurrentCuckooFilter, StableHash};
use std::time::Duration;

/// The arguments of a new filter.
#[derive(Clone, Copy)]
pub struct Plan {
    pub rate: Option<f64>,
    pub capacity: Option<usize>,
    /// The seconds for which items are remembered, if not for ever.
    pub remembers: Option<u64>,
    pub max_bytes: usize,
    pub seed: Option<u64>,
}

impl Plan {
    /// Builds the filter, at the present time.
    pub fn build(&self) -> Result<ConcurrentCuckooFilter<StableHash>, BuildError> {
        self.builder().max_bytes(self.max_bytes).build()
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
