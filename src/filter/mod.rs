//! The public type: it hashes an item, and passes the hash to its [backend](crate::backend).
//!
//! * `builder` validates the settings and builds a filter.
//! * `operations` has the operations on one item, and ticks; `batch` has those on many, on one thread or on several.
//! * `files` saves and loads filters, sends and receives them in pieces, and merges another filter into this one.

// In the order in which the documentation lists their methods.
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
/// The filter keeps no trace of an item's type. Query with the type that was inserted, or with one that hashes the
/// same: integers of equal value do, up to 64 bits, and so do `String` and `&str`. With the default hasher, `str` and
/// `[u8]` do not. [What is equal to what](crate::StableHash#what-is-equal-to-what) lists all, for both of koel's
/// hashers. To keep several kinds of items in one filter, insert `(kind, item)`.
///
/// In the place of an item, its hash can be passed, as [`Prehashed`](crate::Prehashed).
///
/// # Locks
///
/// [`contains`](Self::contains) takes no lock, unless items move, expire or are cleared at every attempt where it
/// looks. The other operations lock one or two of the filter's segments, of 512 buckets
/// each, for some nanoseconds. If items have to move, they lock the segments of the whole path.
/// `clear` and [`save`](Self::save) lock a shard (up to 2 MiB) for some hundred microseconds.
/// `insert_if_absent` of an item that is present changes nothing: it is a lookup.
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

    /// Returns the number of copies of items in the filter: inserts minus removals. Beyond its expected growth, a filter
    /// does not count the items whose fingerprints [have no bits
    /// left](crate::guide::growth#beyond-the-expected-growth).
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
        self.backend.capacity()
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
    /// What it [gave back](Self::shrink) is not among them. That stays reserved, so an allocator's figures, and the
    /// virtual size of the process, still count it.
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
        self.backend.layout().rate
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
        Stats { size_in_bytes: self.size_in_bytes(), ..self.backend.stats() }
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
        Ok(Self::from_parts(backend, self.hasher.clone()))
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

/// # Growth
///
/// A filter that grows is for an unknown number of items. To build one, call [`growing`](crate::Builder::growing)
/// of the builder.
///
/// ```
/// use koel::ConcurrentCuckooFilter;
///
/// let seen = ConcurrentCuckooFilter::builder().capacity(10_000).growing().build()?;
/// std::thread::scope(|scope| {
///     for thread in 0..4 {
///         let seen = &seen;
///         scope.spawn(move || {
///             for page in 0..50_000 {
///                 let url = format!("https://example.org/{thread}/{page}");
///                 seen.insert_if_absent(&url).expect("memory for some more shards");
///             }
///         });
///     }
/// });
/// assert!(seen.len() > 199_900); // all, but for false positives
/// println!("{}", seen.stats());
/// # Ok::<(), koel::BuildError>(())
/// ```
///
/// ## How it grows
///
/// The filter consists of shards of 64 or 128 KiB: at least one, and as many as its first capacity
/// needs. An item that finds no room in its shard splits the shard: half of the shard's items move to
/// a new one. A split takes a tenth of a millisecond. However often the filter has grown, a lookup
/// reads two buckets, as before.
///
/// Operations on items of the shard wait for the end of the split. No others do, except that
/// another split waits if it needs memory or a longer directory at that moment.
///
/// ## What it costs in memory
///
/// Shards get unequal shares of the items and are split one after another, so the memory grows with
/// the items. Once the filter has grown to some dozen shards, it takes about one and a half times what
/// a fixed filter with the same fingerprints takes. A filter that begins with several shards begins
/// with equal ones, which are all split soon after its first capacity.
///
/// ## How it shrinks
///
/// When items have gone, their room waits for others. [`shrink`](Self::shrink) gives back what is not needed:
/// where two halves of a split leave enough room in one shard together, they become one again, and the memory
/// of the other goes back to the system (on Linux). So a filter that has lost most of its items takes about
/// a quarter more than it took when it had as many before, and one that lost them all is as large as at its beginning,
/// and up to a hundredth of its largest size more. It never becomes smaller than it began: choose the capacity for
/// usual times, and not for the peak. Lookups, writes, ticks and other splits go on meanwhile; those of the two shards
/// wait for some hundred microseconds. Whole ticks ([`tick`](Self::tick), [`tick_to`](Self::tick_to)) begin with this.
///
/// Fingerprints get back the bit that a split took, so the false-positive rate is about what it was when the filter had
/// as many items on its way up.
///
/// ## How the false-positive rate rises
///
/// A split takes one bit off each fingerprint in the shard. New items get whole fingerprints. As a
/// result, a split leaves the false-positive rate unchanged, and each item adds to it as much as it
/// did when it was inserted: `2 / (buckets × 2^(b - 1))`, with `b` bits a fingerprint and the
/// number of buckets at that time. A filter that has grown to `2^g` times its first size errs
/// `1 + g / 2` times as often as when it was first full.
///
/// The layout is chosen so that the filter keeps its rate up to its
/// [expected growth](crate::Builder::expected_growth). Beyond that, the rate rises at the
/// same pace. [`false_positive_rate`](Self::false_positive_rate) is the present
/// rate. In a filter of more than 128 shards, it is estimated from 128 of them, within a percent or so.
///
/// Up to the expected growth, every fingerprint has bits left. Beyond it, [old ones lose their
/// last](crate::guide::growth#beyond-the-expected-growth): such an item is found, and neither counted nor removed, until
/// it expires or the filter is cleared.
///
/// ## When it returns `Full`
///
/// An insert returns [`Full`](crate::Full) in two cases:
///
/// * There is no memory, or the filter would exceed its [limit](crate::Builder::max_bytes).
/// * The filter has as many copies of the item as it takes: as many as a bucket has slots, or four or five with 8 to 10
///   bits. (One more comes if all of these were in one bucket and the item's other bucket gets room, or if threads
///   insert the item at the same moment. Items with the same fingerprint and buckets count as copies of each other.)
///
/// **Other items are not the reason**, however many copies it has of some of them, with three exceptions:
///
/// * With less than 12 bits (without those of a window) a filter may refuse some items if thousands, or most, of its
///   items have all the copies that it takes.
/// * Someone who knows the keys of the hasher can choose items that meet in a few buckets. For these the filter grows
///   to eight times the slots that its items take, or by a megabyte or two, and then refuses them, each in a
///   millisecond at most for every billion items that it has. Other items still fit. The default keys are random.
/// * A filter that has grown so far [beyond its expected growth](#how-the-false-positive-rate-rises) that most of its
///   fingerprints have no bits left stops growing.
///
/// A refusal leaves the contents unchanged, although the filter may have grown in the attempt.
impl<S> ConcurrentCuckooFilter<S> {
    /// Returns whether the filter grows when it is full.
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// assert!(!ConcurrentCuckooFilter::with_capacity(100).grows());
    /// assert!(ConcurrentCuckooFilter::builder().capacity(100).growing().build()?.grows());
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn grows(&self) -> bool {
        self.backend().grows()
    }

    /// Gives memory back that the filter has grown to and does not need any more. Returns the number of bytes by which
    /// [`size_in_bytes`](Self::size_in_bytes) is less than before.
    ///
    /// This visits all shards, which takes a few milliseconds for each gigabyte, and some two hundred microseconds for
    /// each shard that it gives back. While another thread copies the filter (saves it, clones it, or merges it with
    /// another one), shards stay as they are, and this gives nothing back: `stats().shards` tells what it has. While
    /// others insert, the number of bytes is a rough one. Memory goes back on Linux only; elsewhere, it waits for the
    /// next splits.
    ///
    /// A filter of fixed size, or one that has not grown, has nothing to give back.
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

    /// Does a part of what [`shrink`](Self::shrink) does: visits at most `most_shards` shards, beginning at `cursor`,
    /// which is 0 at first, and gives back what it can there. Returns the cursor of the next part, or `None` after the
    /// last.
    ///
    /// This is for event loops, which have little time for each turn. A shard that is given back takes some two hundred
    /// microseconds, and any other less than one. One visit may give back several: at most one for each bit of
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
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(1_000_000);
    /// assert_eq!(filter.shards(), filter.stats().shards);
    /// ```
    #[must_use]
    pub fn shards(&self) -> usize {
        self.backend().shards()
    }

    /// Replaces the limit of the filter's memory, which
    /// [`max_bytes`](crate::Builder::max_bytes) of the builder had set.
    ///
    /// This is useful when a filter is loaded on a larger machine, for example, or when inserts are refused because the
    /// limit is [reached](crate::FullKind::LimitReached). If the filter already takes more than the new limit, it keeps
    /// its memory until it [shrinks](Self::shrink), and stops growing. It grows by at least a 64th at a time, so raise
    /// the limit by more than that. `usize::MAX` is no limit. A filter of fixed size has none: this leaves it as it is.
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

    /// Returns the limit of the filter's memory, or `usize::MAX` if there is none.
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).growing();
    /// assert_eq!(builder.max_bytes(100_000).build()?.max_bytes(), 100_000);
    /// assert_eq!(ConcurrentCuckooFilter::with_capacity(100).max_bytes(), usize::MAX);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
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
