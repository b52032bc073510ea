//! The constructors by the type of the filter.
//!
//! `ConcurrentCuckooFilter::builder()` has to mean one type, so that nobody has to name the others:
//! its functions are of the type itself. Those of the other types are of a trait.

use crate::filter::ConcurrentCuckooFilter;
use crate::filter::builder::{Builder, GrowingBuilder};
use crate::filter::growing::GrowingCuckooFilter;

/// Constructors for filters that are named by their type: that grow, or with another hasher than the
/// random one.
///
/// ```
/// use koel::{Buildable, ConcurrentCuckooFilter, GrowingCuckooFilter, StableHash};
///
/// let seen: GrowingCuckooFilter = GrowingCuckooFilter::with_capacity(1_000);
/// let growing = GrowingCuckooFilter::<StableHash>::builder().capacity(1_000).max_bytes(1 << 20);
/// growing.build()?.write_to(std::io::sink())?;
/// let fixed = ConcurrentCuckooFilter::<StableHash>::with_capacity(1_000);
/// fixed.write_to(std::io::sink())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Buildable: Sized {
    /// [`Builder`], or [`GrowingBuilder`] for a filter that grows.
    type Builder;

    /// Returns a builder, which has the default hasher of this type.
    fn builder() -> Self::Builder;

    /// Creates a filter in which `capacity` distinct items fit, or that begins with room for so many
    /// and grows.
    ///
    /// # Panics
    ///
    /// Panics if the table exceeds the address space or cannot be allocated. The
    /// [`builder`](Self::builder) returns an error instead.
    #[must_use]
    #[track_caller]
    fn with_capacity(capacity: usize) -> Self;
}

impl<S: Default> Buildable for ConcurrentCuckooFilter<S> {
    type Builder = Builder<S>;

    fn builder() -> Builder<S> {
        Builder::new().hasher(S::default())
    }

    #[track_caller]
    fn with_capacity(capacity: usize) -> Self {
        let filter = <Self as Buildable>::builder().capacity(capacity).build();
        filter.unwrap_or_else(|error| panic!("{error}"))
    }
}

impl<S: Default> Buildable for GrowingCuckooFilter<S> {
    type Builder = GrowingBuilder<S>;

    fn builder() -> GrowingBuilder<S> {
        Builder::new().hasher(S::default()).growing()
    }

    #[track_caller]
    fn with_capacity(capacity: usize) -> Self {
        let filter = <Self as Buildable>::builder().capacity(capacity).build();
        filter.unwrap_or_else(|error| panic!("{error}"))
    }
}
