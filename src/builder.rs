//! What the caller asks for, checked once.

use crate::ConcurrentCuckooFilter;
use crate::error::{BuildError, Reason};
use crate::sizing;
use ahash::RandomState;

/// What the 16-bit layout keeps.
const DEFAULT_RATE: f64 = 0.000_12;

/// Says what a filter has to hold and how sure it has to be; made by
/// [`ConcurrentCuckooFilter::builder`].
///
/// ```
/// use koel::ConcurrentCuckooFilter;
///
/// let filter = ConcurrentCuckooFilter::builder()
///     .capacity(1_000_000)
///     .false_positive_rate(0.01)
///     .build()?;
/// assert_eq!(filter.capacity(), 1_000_000);
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until .build() is called"]
pub struct Builder<S = RandomState> {
    capacity: Option<usize>,
    false_positive_rate: f64,
    hasher: S,
}

impl Builder<RandomState> {
    pub(crate) fn new() -> Self {
        Builder { capacity: None, false_positive_rate: DEFAULT_RATE, hasher: RandomState::new() }
    }
}

impl<S> Builder<S> {
    /// How many distinct items have to fit. There is no default.
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// let filter = ConcurrentCuckooFilter::builder().capacity(10).build()?;
    /// assert!((0..10).all(|item| filter.insert(&item).is_ok()));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn capacity(mut self, items: usize) -> Self {
        self.capacity = Some(items);
        self
    }

    /// How often at most an item that was never inserted may be taken for one that was, when the
    /// filter is full: more than 0, less than 1. The default is 0.00012.
    ///
    /// There are seven sizes of fingerprints, and the smallest that keeps the rate is chosen: 8 bits
    /// from 0.061 on, 9 from 0.027, 10 from 0.012, 12 from 0.0024, 16 from 0.00012, 21 from 2.7e-6,
    /// and 32 from 8e-10. [The front page](crate#inside) says what they take.
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// let filter = ConcurrentCuckooFilter::builder()
    ///     .capacity(1_000_000)
    ///     .false_positive_rate(0.065)
    ///     .build()?;
    /// assert_eq!(filter.stats().fingerprint_bits(), 8);
    /// assert!(filter.size_in_bytes() < 1_100_000);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.false_positive_rate = rate;
        self
    }

    /// Hashes items with this instead of a randomly keyed [`RandomState`](crate::RandomState).
    ///
    /// A fixed hasher makes the filter repeatable: the same inserts in the same order give the
    /// same table. It also lets whoever knows it choose items that meet in one bucket.
    ///
    /// The filter mixes each hash once, so it does no harm if a hasher's low or high bits are weak,
    /// or if it passes integers on as they are. But mixing adds nothing: items with equal hashes are
    /// one item to the filter, so a hasher of 32 bits errs far more often than the rate says.
    ///
    /// ```
    /// use koel::ConcurrentCuckooFilter;
    /// use std::hash::{BuildHasherDefault, DefaultHasher};
    ///
    /// let filter = ConcurrentCuckooFilter::builder()
    ///     .capacity(100)
    ///     .hasher(BuildHasherDefault::<DefaultHasher>::default())
    ///     .build()?;
    /// filter.insert("an item").unwrap();
    /// assert!(filter.contains("an item"));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn hasher<H>(self, hasher: H) -> Builder<H> {
        let Builder { capacity, false_positive_rate, hasher: _ } = self;
        Builder { capacity, false_positive_rate, hasher }
    }

    /// Builds the filter, or says what cannot be had.
    ///
    /// # Errors
    ///
    /// If no capacity was given, if the rate is not strictly between 0 and 1 or smaller than 8e-10, or if the table does not fit in memory.
    ///
    /// ```
    /// use koel::{BuildErrorKind, ConcurrentCuckooFilter};
    ///
    /// let error = ConcurrentCuckooFilter::builder().capacity(usize::MAX).build().unwrap_err();
    /// assert_eq!(error.kind(), BuildErrorKind::CapacityOverflow);
    /// ```
    pub fn build(self) -> Result<ConcurrentCuckooFilter<S>, BuildError> {
        let capacity = self.capacity.ok_or(Reason::NoCapacity)?;
        let geometry = sizing::geometry_for(capacity, self.false_positive_rate)?;
        ConcurrentCuckooFilter::from_parts(capacity, geometry, self.hasher)
    }
}
