//! The public type: it hashes an item, and passes the hash to its [backend](crate::backend).
//!
//! * `builder` validates the settings and builds a filter.
//! * `operations` has the operations on one item, and `batch` those on many.
//! * `time` has the ticks of filters that forget, and `growth` the limits of growing filters.
//! * `union` merges another filter into this one.
//! * `files` saves and loads filters, `pieces` sends and receives filters in pieces, and `serde` has them as bytes.

// In the order in which the documentation lists their methods.
pub mod builder;

mod operations;

pub mod batch;

mod time;

mod growth;

mod union;

mod files;

pub mod pieces;

#[cfg(feature = "serde")]
mod serde;

use crate::backend::Backend;
use crate::error::BuildError;
use crate::random_state::RandomState;
use crate::snapshot::read::copy;
use crate::stats::Stats;
use std::fmt;
use std::panic::RefUnwindSafe;

/// A concurrent cuckoo filter: an approximate set that many threads fill, query and empty at once.
///
/// It answers "was this item inserted?" with *no*, which is always right, or with *yes*, which is
/// wrong for a small fraction of the items that were not inserted. That fraction, the
/// false-positive rate, is chosen when the filter is built. The filter takes 8 to 38 bits an item,
/// depending on the rate and not on the size of the items. All operations take `&self`, so share
/// the filter by reference or in an [`Arc`](std::sync::Arc).
///
/// ```
/// use koel::ConcurrentCuckooFilter;
///
/// let seen = ConcurrentCuckooFilter::with_capacity(1_000_000);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| {
///             for url in ["https://a.example/", "https://b.example/"] {
///                 if seen.insert_if_absent(url).expect("room for a million") {
///                     println!("exactly one thread fetches {url}");
///                 }
///             }
///         });
///     }
/// });
/// assert_eq!(seen.len(), 2);
/// ```
///
/// # Remove only what you inserted
///
/// The filter keeps a fingerprint of each item. Two items whose fingerprints and buckets coincide
/// are one item to it. So it may contain or count an item that was never inserted, and
/// [`insert_if_absent`](Self::insert_if_absent) may take a new item for one that is already there.
///
/// Therefore **remove only what was inserted**. Removing an item that `contains` mistakes for
/// another one removes the other item's fingerprint, and the other item is then missing. Every item
/// is found until it is removed, provided that each [`remove`](Self::remove) is matched by an
/// [`insert`](Self::insert), or by an `insert_if_absent` that returned `true`. If
/// `insert_if_absent` returned `false`, there is nothing to remove.
///
/// # Types of items
///
/// The filter keeps no trace of an item's type. Query with the type that was inserted, or with one
/// that hashes the same: `String` and `&str` do, but `str` and `[u8]` do not. To keep several kinds
/// of items in one filter, insert `(kind, item)`.
///
/// In the place of an item, its hash can be passed, as [`Prehashed`](crate::Prehashed).
///
/// # Locks
///
/// [`contains`](Self::contains) takes no lock, unless items move in the segment of its second bucket
/// at every attempt. The other operations lock one or two of the filter's segments, of 512 buckets
/// each, for some nanoseconds. If items have to move, they lock the segments of the whole path.
/// `clear` and [`save`](Self::save) lock a shard (up to 2 MiB) for some hundred microseconds.
/// `insert_if_absent` of an item that is present, and `remove` of one that is not, change nothing:
/// they are lookups.
pub struct ConcurrentCuckooFilter<S = RandomState> {
    backend: Backend,
    capacity: usize,
    hasher: S,
}

impl<S> ConcurrentCuckooFilter<S> {
    pub(crate) fn from_parts(capacity: usize, backend: Backend, hasher: S) -> Self {
        ConcurrentCuckooFilter { backend, capacity, hasher }
    }

    #[inline]
    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Returns the number of copies of items in the filter: inserts minus removals.
    ///
    /// This adds up one count for each segment (of 512 buckets): up to 0.2 ms for a hundred million
    /// items. The counts are read one after the other, while other threads may insert and remove.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// filter.insert("an item")?;
    /// assert_eq!(filter.len(), 2);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.backend.items()
    }

    /// Returns `true` if the filter is empty.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert!(filter.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.backend.items() == 0
    }

    /// Returns the number of distinct items that fit, as it was asked for.
    ///
    /// Cuckoo filters place items by chance, so this is not certain. But less than one filter in a
    /// million refuses an item before its capacity is reached. A filter that grows makes room for
    /// more items.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.capacity(), 100);
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Removes all items.
    ///
    /// Everything that was inserted before the call is gone when it returns. Items that other
    /// threads insert during the call may stay or go. The shards are cleared one by one, and
    /// writers wait only for the one that is being cleared. A filter that has grown keeps its
    /// memory until it [shrinks](Self::shrink), but its false-positive rate no longer includes what growth had added.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// filter.clear();
    /// assert!(filter.is_empty() && !filter.contains("an item"));
    /// # Ok::<(), koel::Full>(())
    /// ```
    pub fn clear(&self) {
        self.backend.clear();
    }

    /// Returns the number of bytes that the filter takes, itself included.
    ///
    /// What it [gave back](Self::shrink) is not among them. That stays reserved, so an allocator's figures, and the virtual
    /// size of the process, still count it.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(10);
    /// assert!(filter.size_in_bytes() < 500);
    /// ```
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of_val(self) + self.backend.heap_bytes()
    }

    /// Returns the false-positive rate with the present number of items.
    ///
    /// This is an estimate from the load, for a filter filled by `insert_if_absent`. One filled by
    /// `insert` errs at most as often. In a filter of many shards it looks at the load of some of them, and
    /// takes some microseconds at any size.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(1_000);
    /// assert_eq!(filter.false_positive_rate(), 0.0);
    /// for item in 0..1_000 {
    ///     filter.insert(&item)?;
    /// }
    /// assert!(filter.false_positive_rate() > 0.000_05);
    /// assert!(filter.false_positive_rate() < 0.000_12);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.backend.rate()
    }

    /// Returns the false-positive rate of the filter with `capacity` items, or after its
    /// [expected growth](crate::Builder::expected_growth) if it grows.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(1_000);
    /// assert!(filter.false_positive_rate_at_capacity() < 0.000_12);
    /// ```
    #[must_use]
    pub fn false_positive_rate_at_capacity(&self) -> f64 {
        self.backend.plan().rate_at_capacity(self.capacity)
    }

    /// Returns the number of buckets.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(1_000_000);
    /// let stats = filter.stats();
    /// assert_eq!(filter.buckets(), stats.slots / stats.slots_per_bucket);
    /// ```
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.backend.buckets()
    }

    /// Returns the figures of the filter: its contents, layout, memory and false-positive rates.
    ///
    /// Print them for a readable summary. This counts the items like [`len`](Self::len), and reads none of
    /// them.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(1_000_000);
    /// println!("{}", filter.stats());
    /// assert_eq!(filter.stats().slots_per_bucket, 4);
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats { size_in_bytes: self.size_in_bytes(), ..self.backend.stats(self.capacity) }
    }

    /// Copies the filter, while other threads may change it.
    ///
    /// The copy has the same layout, hasher, limit and contents: all that was in the filter when the
    /// call began, and any of what came or went during it. Writers to the shard that is being copied
    /// wait for some hundred microseconds.
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item").expect("room for a hundred");
    /// let copy = filter.try_clone()?;
    /// filter.remove("an item");
    /// assert!(copy.contains("an item"));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        let backend = copy(&self.backend)?;
        Ok(Self::from_parts(self.capacity, backend, self.hasher.clone()))
    }

    /// Returns the hasher of the items.
    ///
    /// ```
    /// use std::hash::BuildHasher;
    ///
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.hasher().hash_one("an item"), filter.hash_of("an item").0);
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }
}

// A panic in an item's `Hash` leaves nothing half done, because hashing comes first.
impl<S: RefUnwindSafe> RefUnwindSafe for ConcurrentCuckooFilter<S> {}

/// Without the number of items, which takes longer the larger the filter is.
impl<S> fmt::Debug for ConcurrentCuckooFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lanes = self.backend.plan().geometry().lanes();
        f.debug_struct("ConcurrentCuckooFilter")
            .field("capacity", &self.capacity)
            .field("fingerprint_bits", &lanes.fingerprint_bits())
            .field("size_in_bytes", &self.size_in_bytes())
            .finish_non_exhaustive()
    }
}
