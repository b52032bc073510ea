//! The filter: hash the item, and ask the room.

pub mod ahead;
pub mod builder;
pub mod bulk;
mod by_hash;
mod files;
mod many;
#[cfg(feature = "rayon")]
mod parallel;

use crate::error::Full;
use crate::room::Room;
use crate::room::fixed::Fixed;
use crate::room::growing::Growing;
use crate::stats::Stats;
use ahash::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::panic::RefUnwindSafe;

/// An approximate set that many threads fill, ask and empty at once.
///
/// It answers "was this inserted?" with *no*, which is certain, or *yes*, which is wrong for a
/// chosen small part of the items that were not. It takes 8 to 38 bits an item, depending on that
/// part and not on the items. Everything takes `&self`: share it by reference or in an
/// [`Arc`](std::sync::Arc).
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
/// # Items are what they hash to
///
/// Two items whose fingerprints and buckets coincide are one item to the filter: an item that was
/// never inserted may be contained, counted, or in the way of
/// [`insert_if_absent`](Self::insert_if_absent). Therefore **remove only what was inserted**. An
/// item that `contains` takes for another could be removed in its stead, and the other would be
/// gone; if each [`remove`](Self::remove) answers to an [`insert`](Self::insert) or to an
/// `insert_if_absent` that returned `true`, every item is found for as long as it is in. After
/// `insert_if_absent` returned `false` there is nothing to remove.
///
/// Nothing is kept of an item's type. Ask with the type that was inserted, or one that hashes the
/// same, as `String` and `&str` do, but `str` and `[u8]` do not; and to have several kinds of items
/// in one filter, insert `(kind, item)`.
///
/// The methods with `hash` in their names take what [`hash_of`](Self::hash_of) gives, or any other
/// 64-bit hash of the item; to mix the two kinds for one item, use `hash_of`. With the default
/// hasher, what it gives is good for this filter in this process: the keys are random.
///
/// # Under threads
///
/// An operation sees what happened before it, by any synchronisation of yours; each change is
/// made under the lock of the bucket that it changes, and what depends on both buckets of an item
/// under the locks of both; whoever finds an item sees what its inserter
/// had done before. Different items have no common order: two threads that each insert one and then
/// look for the other's may both miss it. [`len`](Self::len), [`stats`](Self::stats) and
/// [`clear`](Self::clear), which go through all items, are exact when nothing else runs.
///
/// [`contains`](Self::contains) takes no lock, unless items move in the segment of its first bucket
/// each time it looks. The others lock one or two of the filter's segments (of 512 buckets) for some
/// nanoseconds, those of a path when items have to move; `clear` and [`save`](Self::save) lock a shard (1 MiB) for some
/// hundred microseconds. What is not changed is not locked:
/// `insert_if_absent` of an item that is there, and `remove` of one that is not, are lookups.
pub struct ConcurrentCuckooFilter<S = RandomState, R = Fixed> {
    room: R,
    capacity: usize,
    hasher: S,
}

/// A filter that grows when it is full, for those who do not know how many items will come.
///
/// Its methods are those of [`ConcurrentCuckooFilter`], from [`insert`](ConcurrentCuckooFilter::insert) to
/// [`par_extend`](ConcurrentCuckooFilter::par_extend), since it is the same type with another
/// [`Room`]. It has no constructors of its own: begin with
/// `ConcurrentCuckooFilter::builder()`, and call [`growing`](Builder::growing).
///
/// ```
/// use koel::{ConcurrentCuckooFilter, GrowingCuckooFilter};
///
/// let seen: GrowingCuckooFilter =
///     ConcurrentCuckooFilter::builder().capacity(10_000).growing().build()?;
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
/// # How it grows
///
/// It is made of shards of 64 KiB. An item that finds no room splits its shard: half of the shard's
/// items move to a new one. That takes a tenth of a millisecond, and a lookup is what it was before, of
/// two buckets, however often it happens. Whoever wants something of that shard meanwhile waits; nobody
/// else does, unless another split needs memory or a longer directory at that moment. All shards are
/// equally full, more or less, so most are split at about the same number of items: the memory doubles
/// then. It goes up and down between 1 and 2 times what a fixed filter of the same fingerprints would
/// take for as many items. Nothing is ever given back.
///
/// # How often it errs
///
/// With each split, the fingerprints of the shard lose a bit. Those of new items are whole. So each item
/// adds to the rate what it adds when it comes: with `b` bits a fingerprint and so many buckets at
/// that time, `2 / (buckets × 2^(b - 1))`; and a split leaves the rate as it is. A filter that has
/// grown to `2^g` times its first size errs `1 + g / 2` times as often as when it was first full.
/// That was planned for up to the [expected growth](crate::GrowingBuilder::expected_growth), and goes on
/// at the same pace beyond it. [`stats`](ConcurrentCuckooFilter::stats) tells how often it errs now, in
/// a time that goes with the number of shards.
///
/// When an item's fingerprint has no bit to lose any more (after half of its bits' number of splits), it
/// goes to both halves. One of the two is nobody's: it stays when the item is removed, and takes a
/// little room. [`len`](ConcurrentCuckooFilter::len) counts the item once. Whoever removes only what
/// was inserted never meets the other. (With 8 bits, most of a shard is of that kind after growing
/// a hundred thousand times as large. Then splits stop helping, and items are refused; such a filter
/// says "seen" of nearly everything by then.)
///
/// # When it is full
///
/// [`Full`] says that no memory could be had, or no more than the
/// [limit](crate::GrowingBuilder::max_bytes); or that the item was inserted as often as its two buckets
/// have slots, or met others that were. Growing does not help against those, so it is not done: a shard
/// is split only if it is half full. (Somebody who knows the keys of the hasher can choose items that
/// meet in a few buckets, and those are refused. The default keys are random.) After a refusal the items
/// are what they were before, and other items may still go in.
pub type GrowingCuckooFilter<S = RandomState> = ConcurrentCuckooFilter<S, Growing>;

impl<S, R: Room> ConcurrentCuckooFilter<S, R> {
    pub(crate) fn from_parts(capacity: usize, room: R, hasher: S) -> Self {
        ConcurrentCuckooFilter { room, capacity, hasher }
    }

    #[inline]
    pub(crate) fn room(&self) -> &R {
        &self.room
    }

    /// How many copies of items are in: inserts less removes.
    ///
    /// It adds up one number for each segment (of 512 buckets). While other threads insert and
    /// remove, it is the sum of numbers read one after the other.
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
        self.room.items()
    }

    /// Whether the filter is empty.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert!(filter.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.room.items() == 0
    }

    /// How many distinct items fit: what was asked for. (A filter that grows makes room for more.)
    ///
    /// Cuckoo filters place items by chance, so this is not certain, but a refusal before the
    /// capacity is reached happens in less than one of a million filters.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.capacity(), 100);
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Takes everything out.
    ///
    /// Whatever was inserted before the call is gone when it returns. It goes shard by shard, and
    /// holds up the writers of one shard at a time; what others insert meanwhile stays or goes. A filter
    /// that has grown stays as large as it is, and what errors its growth has brought are gone.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// filter.clear();
    /// assert!(filter.is_empty() && !filter.contains("an item"));
    /// # Ok::<(), koel::Full>(())
    /// ```
    pub fn clear(&self) {
        self.room.clear();
    }

    /// All the memory that the filter holds, itself included.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(10);
    /// assert!(filter.size_in_bytes() < 400);
    /// ```
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of_val(self) + self.room.heap_bytes()
    }

    /// How often an item that is not in is taken for one that is, with as many items as are in
    /// now: an estimate from the load, for a filter filled by `insert_if_absent`; one filled by
    /// `insert` errs at most as often. [`Stats`] has the same for a full filter.
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
        self.stats().false_positive_rate()
    }

    /// The filter in figures; print it to read it.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(1_000_000);
    /// println!("{}", filter.stats());
    /// assert_eq!(filter.stats().slots_per_bucket(), 4);
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let stats = self.room.stats(self.capacity);
        Stats { size_in_bytes: self.size_in_bytes(), ..stats }
    }

    /// What hashes the items.
    ///
    /// ```
    /// use std::hash::BuildHasher;
    ///
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.hasher().hash_one("an item"), filter.hash_of("an item"));
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }
}

impl<S> GrowingCuckooFilter<S> {
    /// Sets another limit than the one that it was [built](crate::GrowingBuilder::max_bytes) with: when it
    /// was loaded on a larger machine, say. If it holds more by now, it only does not grow any more.
    ///
    /// ```
    /// # use koel::ConcurrentCuckooFilter;
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).growing();
    /// let mut filter = builder.max_bytes(100_000).build()?;
    /// assert!((0..100_000).any(|item| filter.insert(&item).is_err()));
    /// filter.set_max_bytes(1_000_000);
    /// assert!((100_000..200_000).all(|item| filter.insert(&item).is_ok()));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn set_max_bytes(&mut self, bytes: usize) {
        self.room.set_max_bytes(bytes);
    }
}

impl<S: BuildHasher, R: Room> ConcurrentCuckooFilter<S, R> {
    /// The hash by which this filter knows the item, for the methods that end in `_hash`.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let hash = filter.hash_of("an item");
    /// if !filter.contains_hash(hash) {
    ///     filter.insert_hash(hash)?;
    /// }
    /// assert!(filter.contains("an item"));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash_of<T: Hash + ?Sized>(&self, item: &T) -> u64 {
        self.hasher.hash_one(item)
    }

    /// Adds a copy of the item, whether there is one or not.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no room for it, or if it was inserted as often as its two
    /// buckets have slots (4 to 16). Nothing has changed then.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// filter.insert("an item")?;
    /// assert_eq!(filter.count("an item"), 2);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    pub fn insert<T: Hash + ?Sized>(&self, item: &T) -> Result<(), Full> {
        self.insert_hash(self.hash_of(item))
    }

    /// Adds the item if it is not in yet, and says whether it was new. Of any number of threads
    /// that call this with one new item, exactly one gets `true`.
    ///
    /// # Errors
    ///
    /// [`Full`] if it is not in and there is no room for it. Nothing has changed then.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert!(seen.insert_if_absent("https://a.example/")?);
    /// assert!(!seen.insert_if_absent("https://a.example/")?);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    pub fn insert_if_absent<T: Hash + ?Sized>(&self, item: &T) -> Result<bool, Full> {
        self.insert_hash_if_absent(self.hash_of(item))
    }

    /// Whether the item is in: `false` is certain, `true` is wrong at the rate that the filter was
    /// built for.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// assert!(filter.contains("an item"));
    /// assert!(!filter.contains("another"));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains<T: Hash + ?Sized>(&self, item: &T) -> bool {
        self.contains_hash(self.hash_of(item))
    }

    /// How many copies of the item are in; at the filter's rate some more, never fewer.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.count("an item"), 0);
    /// for _ in 0..3 {
    ///     filter.insert("an item")?;
    /// }
    /// assert_eq!(filter.count("an item"), 3);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn count<T: Hash + ?Sized>(&self, item: &T) -> usize {
        self.count_hash(self.hash_of(item))
    }

    /// Takes one copy of the item out; says whether there was one. Remove only what was inserted:
    /// see [the type's page](Self#items-are-what-they-hash-to).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// assert!(filter.remove("an item"));
    /// assert!(!filter.remove("an item"));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    pub fn remove<T: Hash + ?Sized>(&self, item: &T) -> bool {
        self.remove_hash(self.hash_of(item))
    }
}

// A panic in an item's `Hash` cannot leave anything half done: hashing comes first.
impl<S: RefUnwindSafe, R: Room> RefUnwindSafe for ConcurrentCuckooFilter<S, R> {}

impl<S, R: Room> fmt::Debug for ConcurrentCuckooFilter<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrentCuckooFilter")
            .field("items", &self.len())
            .field("capacity", &self.capacity)
            .field("fingerprint_bits", &self.stats().fingerprint_bits())
            .finish_non_exhaustive()
    }
}
