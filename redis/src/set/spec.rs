//! What a set was made of: all that a replica needs to make the same one.

use koel::{
    BuildError, Builder, ConcurrentCuckooFilter, PersistentHasher, Plan, StableHash, Window,
};

/// A filter of koel: of fixed size, or one that grows.
pub type Filter = ConcurrentCuckooFilter<StableHash>;

/// What a set was made of, and what clients are told of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterSpec {
    /// The items that fit at first. A set of fixed size takes at least as many.
    pub capacity: u64,
    /// The false-positive rate that was asked for.
    pub rate: f64,
    pub hasher: StableHash,
    /// Told to clients, like the two below: koel chooses these by itself.
    pub bucket_size: u8,
    pub max_iterations: u16,
    /// 0 for a set of fixed size.
    pub expansion: u16,
    /// For how many seconds items are remembered at least, or 0 if for ever.
    pub forget_after: u64,
    /// How many items were deleted since the set was made or compacted.
    pub deleted: u64,
}

/// A growing set keeps its rate up to this number of items.
const EXPECTED_ITEMS: f64 = (1u64 << 22) as f64;

/// What the first shard of a growing filter has room for, at least. Its growth counts from there.
const FIRST_ITEMS: f64 = 32_768.0;

/// From this capacity on, a growing set takes the memory of its filter at once.
const SMALL_CAPACITY: u64 = 16_384;

/// A growing set of large capacity keeps its rate while it grows by this factor at least.
const MIN_GROWTH: f64 = 16.0;

impl FilterSpec {
    /// The most items that a set can be made for.
    pub const MAX_CAPACITY: u64 = 1 << 30;
    pub const BUCKET_SIZE: u8 = 2;
    pub const MAX_ITERATIONS: u16 = 20;
    pub const EXPANSION: u16 = 1;

    /// A set of this capacity and rate that grows, with a seed of its own.
    pub fn new(capacity: u64, rate: f64) -> Self {
        FilterSpec {
            capacity,
            rate,
            hasher: StableHash::random(),
            bucket_size: Self::BUCKET_SIZE,
            max_iterations: Self::MAX_ITERATIONS,
            expansion: Self::EXPANSION,
            forget_after: 0,
            deleted: 0,
        }
    }

    /// What can be told of a filter that was made elsewhere.
    pub fn of(filter: &Filter) -> Self {
        // A filter may be made for nothing, and have no rate.
        let capacity = filter.capacity().max(1) as u64;
        let rate = filter.false_positive_rate_at_capacity().clamp(1e-300, 0.999);
        let window = filter.window();
        FilterSpec {
            hasher: *filter.hasher(),
            expansion: if filter.grows() { Self::EXPANSION } else { 0 },
            forget_after: window.map_or(0, Window::seconds),
            ..Self::new(capacity, rate)
        }
    }

    /// For how long a set of it remembers items, or `None` if for ever.
    pub fn window(&self) -> Option<Window> {
        (self.forget_after > 0).then(|| Window::of_seconds(self.forget_after))
    }

    pub fn seed(&self) -> u64 {
        self.hasher.seed() as u64
    }

    pub fn grows(&self) -> bool {
        self.expansion > 0
    }

    /// Makes a filter of it, without items.
    pub fn build(&self) -> Result<Filter, BuildError> {
        self.builder().build()
    }

    /// What a filter of it would be.
    pub fn plan(&self) -> Result<Plan, BuildError> {
        self.builder().plan()
    }

    fn builder(&self) -> Builder<StableHash> {
        let mut builder = ConcurrentCuckooFilter::builder()
            .capacity(usize::try_from(self.capacity).unwrap_or(usize::MAX))
            .false_positive_rate(self.rate)
            .hasher(self.hasher);
        if let Some(window) = self.window() {
            builder = builder.remembers(window.ticks());
        }
        if self.grows() {
            let growth = EXPECTED_ITEMS / (self.capacity as f64).max(FIRST_ITEMS);
            builder = builder.growing().expected_growth(growth.max(MIN_GROWTH));
        }
        builder
    }

    /// Whether a set of it begins with few items. One of large capacity takes its memory at once.
    pub fn begins_small(&self) -> bool {
        self.grows() && self.forget_after == 0 && self.capacity < SMALL_CAPACITY
    }
}
