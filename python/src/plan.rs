//! A new filter: its arguments, and the limits of these.

use koel::Window;
use koel::{BuildError, ConcurrentCuckooFilter, StableHash};

/// The arguments of a new filter.
#[derive(Clone, Copy)]
pub struct Plan {
    pub rate: f64,
    pub capacity: Option<usize>,
    /// The seconds for which items are remembered, if not for ever.
    pub remembers: Option<u64>,
    pub max_bytes: usize,
    pub seed: Option<u64>,
}

/// The rate if none is given: that of the command.
pub const DEFAULT_RATE: f64 = 1e-6;

/// Little enough to begin with one shard.
const FIRST_CAPACITY: usize = 10_000;

/// The growth up to which the rate stays below the default rate: some 200 million items.
const EXPECTED_GROWTH: f64 = 8_192.0;

/// The same for another rate. At a higher one, fingerprints are too short for more.
const EXPECTED_GROWTH_OF_RATE: f64 = 256.0;

/// The same, if items are forgotten: ages take up to 6 of the bits that growth would take.
const EXPECTED_GROWTH_OF_WINDOW: f64 = 128.0;

/// The same, if the number of items is known.
const EXPECTED_GROWTH_OF_KNOWN: f64 = 4.0;

impl Plan {
    /// Builds the filter, at the present time.
    pub fn build(&self) -> Result<ConcurrentCuckooFilter<StableHash>, BuildError> {
        self.build_for(self.capacity.unwrap_or(FIRST_CAPACITY).max(1))
    }

    fn build_for(&self, items: usize) -> Result<ConcurrentCuckooFilter<StableHash>, BuildError> {
        let growth = match (self.capacity, self.remembers) {
            (Some(_), _) => EXPECTED_GROWTH_OF_KNOWN,
            (None, Some(_)) => EXPECTED_GROWTH_OF_WINDOW,
            (None, None) if self.rate == DEFAULT_RATE => EXPECTED_GROWTH,
            (None, None) => EXPECTED_GROWTH_OF_RATE,
        };
        let window = self.remembers.map(Window::of_seconds);
        let hasher = self.seed.map_or_else(StableHash::random, StableHash::with_seed);
        let mut builder = ConcurrentCuckooFilter::builder()
            .capacity(items)
            .false_positive_rate(self.rate)
            .hasher(hasher);
        if let Some(window) = window {
            builder = builder.remembers(window.ticks());
        }
        let filter = builder.growing().expected_growth(growth).max_bytes(self.max_bytes).build()?;
        if let Some(window) = window {
            filter.tick_to(window.number_now());
        }
        Ok(filter)
    }

    /// The lowest rate, to two digits, that a filter with the same other arguments can keep. It depends on the expected
    /// growth, and not on the size of the first table, so a filter for one item shows it.
    pub fn least_rate(&self) -> f64 {
        let is_kept = |rate| Plan { rate, max_bytes: usize::MAX, ..*self }.build_for(1).is_ok();
        let (mut refused, mut kept) = (self.rate, 0.5_f64);
        while kept / refused > 1.001 {
            let between = refused.sqrt() * kept.sqrt();
            *(if is_kept(between) { &mut kept } else { &mut refused }) = between;
        }
        // Two digits are off by a twentieth at most.
        1.05 * kept
    }

    /// The size in bytes of the new filter, if there is memory for it.
    pub fn least_bytes(&self) -> Option<usize> {
        let filter = Plan { max_bytes: usize::MAX, ..*self }.build();
        filter.ok().map(|filter| filter.size_in_bytes())
    }
}
