//! The public type: it hashes an item, and passes the hash to its [backend](crate::backend).

// The documentation lists the methods in the order of these modules.
pub(crate) mod builder;

mod operations;

pub(crate) mod batch;

pub(crate) mod files;

#[cfg(feature = "serde")]
mod serde;

use crate::backend::Backend;
use crate::error::BuildError;
use crate::hash::RandomState;
use crate::snapshot::read::copy;
use crate::stats::Stats;
use std::fmt;
use std::panic::RefUnwindSafe;

/// A concurrent cuckoo filter: an approximate set that many threads fill, query and empty at once.
///
/// It answers "was this item inserted?" with *no*, which is always right, or with *yes*, which is wrong for a small
/// fraction of the items that were not inserted, the *false-positive rate*. The filter takes 8 to 38 bits an item,
/// depending on that rate and not on the size of the items. All operations take `&self`, so share the filter by
/// reference or in an [`Arc`](std::sync::Arc).
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
/// The filter keeps a fingerprint of each item. Two items whose fingerprints and buckets coincide are one item to it.
/// So removing an item that was never inserted, and that `contains` mistakes for another one, removes the other item's
/// fingerprint, and the other item is then missing. Every item is found until it is removed, provided that each
/// [`remove`](Self::remove) is matched by an [`insert`](Self::insert), or by an
/// [`insert_if_absent`](Self::insert_if_absent) that returned `true`.
///
/// # Types of items
///
/// The filter keeps no trace of an item's type. Query with the type that was inserted, or with one [that hashes the
/// same](crate::StableHash#what-is-equal-to-what). To keep several kinds of items in one filter, insert `(kind, item)`.
/// In the place of an item, its hash can be passed, as [`Prehashed`](crate::Prehashed).
pub struct ConcurrentCuckooFilter<S = RandomState> {
    backend: Backend,
    hasher: S,
}

impl<S> ConcurrentCuckooFilter<S> {
    pub(crate) fn from_parts(backend: Backend, hasher: S) -> Self {
        ConcurrentCuckooFilter { backend, hasher }
    }

    #[inline]
    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Returns the number of copies of items in the filter: inserts minus removals. Beyond its expected growth, a
    /// filter does not count the items whose fingerprints [have no bits
    /// left](crate::guide::growth#beyond-the-expected-growth). This adds up one count for each segment of 512 buckets,
    /// one after the other.
    #[must_use]
    pub fn len(&self) -> usize {
        self.backend.items()
    }

    /// Returns `true` if the filter is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.backend.items() == 0
    }

    /// Returns the number of distinct items that fit, as it was [asked for](crate::Builder::capacity).
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.backend.capacity()
    }

    /// Removes all items.
    ///
    /// Everything that was inserted before the call is gone when it returns. Items that other threads insert during the
    /// call may stay or go. A filter that has grown keeps its memory until it [shrinks](Self::shrink), but its
    /// false-positive rate no longer includes what growth had added.
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
    /// What it [gave back](Self::shrink) is not among them. That stays reserved, so an allocator's figures, and the
    /// virtual size of the process, still count it.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of_val(self) + self.backend.heap_bytes()
    }

    /// Returns the false-positive rate with the present number of items.
    ///
    /// This is an estimate from the load, for a filter filled by `insert_if_absent`. One filled by `insert` errs at most
    /// as often. It takes some microseconds at any size: of more than 16 shards, a sample is looked at. In a filter that
    /// grows it takes some hundreds of microseconds, and is right to within a percent or so.
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

    /// Returns the false-positive rate of the filter with `capacity` items, or after its [expected
    /// growth](crate::Builder::expected_growth) if it grows.
    #[must_use]
    pub fn false_positive_rate_at_capacity(&self) -> f64 {
        self.backend.layout().rate
    }

    /// Returns the figures of the filter: its contents, layout, memory and false-positive rates. Print them for a
    /// readable summary. This counts the items like [`len`](Self::len), and reads none of them.
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(1_000_000);
    /// println!("{}", filter.stats());
    /// assert_eq!(filter.stats().slots_per_bucket, 4);
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats { size_in_bytes: self.size_in_bytes(), ..self.backend.stats() }
    }

    /// Copies the filter, while other threads may change it. The copy has the same layout, hasher, limit and contents:
    /// all that was in the filter when the call began, and any of what came or went during it.
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
        Ok(Self::from_parts(backend, self.hasher.clone()))
    }

    /// Returns the hasher of the items.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }
}

/// # Growth
///
/// A filter that [grows](crate::Builder::growing) is for an unknown number of items. [The guide](crate::guide::growth)
/// has how it grows and shrinks, and what that costs in memory, time and errors.
///
/// ## When it returns `Full`
///
/// A growing filter refuses an item for two reasons:
///
/// 1. There is no memory, or the filter would exceed its [limit](crate::Builder::max_bytes).
/// 2. The filter has as many copies of the item as it takes: as many as a bucket has slots, or four or five with 8 to 10
///    bits. Items with the same fingerprint and buckets count as copies of each other. One copy more may come if all
///    were in one bucket and the item's other bucket gets room, or if threads insert the item at the same moment.
///
/// **Other items are not the reason**, however many copies of them there are, with three exceptions:
///
/// 1. With less than 12 bits, not counting those of a window, a filter may refuse some items if thousands, or most, of
///    its items have all the copies that it takes.
/// 2. Someone who knows the keys of the hasher can choose items that meet in a few buckets. For these the filter grows
///    to eight times the slots that its items take, or by a megabyte or two, and then refuses them, each in a
///    millisecond at most for every billion items that it has. Other items still fit. The default keys are random.
/// 3. A filter that has grown so far [beyond its expected growth](crate::guide::growth#beyond-the-expected-growth) that
///    most of its fingerprints have no bits left stops growing.
///
/// A refusal leaves the contents unchanged, although the filter may have grown in the attempt.
impl<S> ConcurrentCuckooFilter<S> {
    /// Returns whether the filter [grows](crate::Builder::growing) when it is full.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.backend().grows()
    }

    /// Gives memory back that the filter has grown to and does not need any more. Returns the number of bytes by which
    /// [`size_in_bytes`](Self::size_in_bytes) is less than before.
    ///
    /// [The guide](crate::guide::growth#how-it-shrinks) has how far a filter shrinks, and where the memory goes back.
    /// This visits all shards, which takes a few milliseconds for each gigabyte, and some two hundred microseconds for
    /// each shard that it gives back. While another thread copies the filter, to save it, clone it or merge it, this
    /// gives nothing back. While others insert, the number of bytes is a rough one.
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// let filter = ConcurrentCuckooFilter::builder().capacity(1_000).growing().build()?;
    /// (0..1_000_000).try_for_each(|item| filter.insert(&item))?;
    /// let before = filter.size_in_bytes();
    /// (10_000..1_000_000).for_each(|item| assert!(filter.remove(&item)));
    /// let given_back = filter.shrink();
    /// assert!(given_back > before / 10 * 9 || cfg!(not(target_os = "linux")));
    /// assert!((0..10_000).all(|item| filter.contains(&item)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shrink(&self) -> usize {
        let before = self.size_in_bytes();
        self.shrink_part(0, usize::MAX);
        before.saturating_sub(self.size_in_bytes())
    }

    /// Does a part of what [`shrink`](Self::shrink) does, for event loops: visits at most `most_shards` shards,
    /// beginning at `cursor`, which is 0 at first, and gives back what it can there. Returns the cursor of the next
    /// part, or `None` after the last.
    ///
    /// One visit may give back several shards: at most one for each bit of
    /// [`directory_depth`](crate::Stats::directory_depth). While the filter is copied, this goes through it without
    /// giving anything back: begin again at 0 later. Nothing is kept between two parts, so two filters to which the
    /// same is done in the same order stay equal.
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// let filter = ConcurrentCuckooFilter::builder().capacity(1_000).growing().build()?;
    /// (0..1_000_000).try_for_each(|item| filter.insert(&item))?;
    /// filter.clear();
    /// let mut next = Some(0);
    /// while let Some(cursor) = next {
    ///     next = filter.shrink_part(cursor, 8);
    ///     // Serve a request.
    /// }
    /// assert_eq!(filter.stats().shards, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shrink_part(&self, cursor: u64, most_shards: usize) -> Option<u64> {
        self.backend().join_from(cursor, most_shards)
    }

    /// Returns the number of shards: as [`stats`](Self::stats) does, but in the same time however many there are.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.backend().shards()
    }

    /// Replaces the limit of the filter's memory, which [`max_bytes`](crate::Builder::max_bytes) of the builder had
    /// set.
    ///
    /// If the filter already takes more than the new limit, it keeps its memory until it [shrinks](Self::shrink), and
    /// stops growing. It grows by at least a 64th at a time, so raise the limit by more than that. `usize::MAX` is no
    /// limit. A filter of fixed size has none: this leaves it as it is.
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).growing();
    /// let filter = builder.max_bytes(100_000).build()?;
    /// assert!((0..100_000).any(|item| filter.insert(&item).is_err()));
    /// filter.set_max_bytes(1_000_000);
    /// assert!((100_000..200_000).all(|item| filter.insert(&item).is_ok()));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn set_max_bytes(&self, bytes: usize) {
        self.backend().set_max_bytes(bytes);
    }

    /// Returns the [limit](crate::Builder::max_bytes) of the filter's memory, or `usize::MAX` if there is none.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        self.backend().max_bytes()
    }
}

// A panic in an item's `Hash` leaves nothing half done, because hashing comes first.
impl<S: RefUnwindSafe> RefUnwindSafe for ConcurrentCuckooFilter<S> {}

/// Without the number of items, which takes longer the larger the filter is.
impl<S> fmt::Debug for ConcurrentCuckooFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrentCuckooFilter")
            .field("capacity", &self.capacity())
            .field("fingerprint_bits", &self.backend.layout().lanes().fingerprint_bits())
            .field("size_in_bytes", &self.size_in_bytes())
            .finish_non_exhaustive()
    }
}
