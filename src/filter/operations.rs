//! The operations on one item.

use crate::error::Full;
use crate::filter::ConcurrentCuckooFilter;
use crate::key::{Key, Prehashed};
use crate::layout::geometry::Mixed;
use std::hash::BuildHasher;

impl<S: BuildHasher> ConcurrentCuckooFilter<S> {
    /// Returns the item's hash in this filter, which can be passed to it in place of the item.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let hash = filter.hash_of("an item");
    /// if !filter.contains(&hash) {
    ///     filter.insert(&hash)?;
    /// }
    /// assert!(filter.contains("an item"));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash_of<K: Key + ?Sized>(&self, item: &K) -> Prehashed {
        Prehashed(item.hash_with(&self.hasher))
    }

    /// Prefetches the memory that an operation on this item reads, and returns the item's hash, which the operation takes
    /// in its place.
    ///
    /// In a table beyond the caches, an operation mostly waits for memory. A caller that knows its next item early lets
    /// that wait pass beside other work. (Batches do this by themselves: [`contains_many`](Self::contains_many).)
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let next = seen.prefetch("https://a.example/");
    /// // Meanwhile, the page before it is parsed.
    /// assert!(seen.insert_if_absent(&next)?);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    pub fn prefetch<K: Key + ?Sized>(&self, item: &K) -> Prehashed {
        let hash = self.hash_of(item);
        self.backend.prefetch(Mixed::of(hash.0));
        hash
    }

    /// The item's hash, from which its shard and its buckets follow.
    #[inline]
    pub(crate) fn mixed<K: Key + ?Sized>(&self, item: &K) -> Mixed {
        Mixed::of(item.hash_with(&self.hasher))
    }

    /// Adds a copy of the item, whether or not the filter already contains it.
    ///
    /// # Errors
    ///
    /// Returns [`Full`] if there is no room for the item, or if the filter has as many copies of it as it takes: as
    /// many as its two buckets have slots (4 to 16); or, if the filter grows, as many as one bucket has, or four or
    /// five with fingerprints of 8 to 10 bits. Nothing has changed in that case.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// filter.insert("an item")?;
    /// assert_eq!(filter.count("an item"), 2);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, item: &K) -> Result<(), Full> {
        self.backend.insert(self.mixed(item))
    }

    /// Adds the item if it is not in the filter yet, and returns `true` if it was new.
    ///
    /// If several threads call this with the same new item, exactly one of them gets `true`.
    ///
    /// # Errors
    ///
    /// Returns [`Full`] if the item is not in the filter and there is no room for it. Nothing has
    /// changed in that case.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert!(seen.insert_if_absent("https://a.example/")?);
    /// assert!(!seen.insert_if_absent("https://a.example/")?);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    pub fn insert_if_absent<K: Key + ?Sized>(&self, item: &K) -> Result<bool, Full> {
        self.backend.insert_if_absent(self.mixed(item))
    }

    /// Returns `true` if the filter contains the item.
    ///
    /// `false` is always right. `true` is wrong at the false-positive rate that the filter was
    /// built for.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// assert!(filter.contains("an item"));
    /// assert!(!filter.contains("another"));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline(always)] // a call takes a fifth of the time
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, item: &K) -> bool {
        // To look again, the item is hashed again, so that nothing is kept for it.
        self.backend.look(self.mixed(item)).unwrap_or_else(|| self.contains_again(item))
    }

    #[cold]
    #[inline(never)]
    fn contains_again<K: Key + ?Sized>(&self, item: &K) -> bool {
        self.backend.contains(self.mixed(item))
    }

    /// Returns the number of copies of the item in the filter.
    ///
    /// The number may be too high, at the filter's false-positive rate, but is never too low.
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
    pub fn count<K: Key + ?Sized>(&self, item: &K) -> usize {
        self.backend.count(self.mixed(item))
    }

    /// Removes one copy of the item, and returns `true` if there was one.
    ///
    /// [Remove only what you inserted](Self#remove-only-what-you-inserted). Otherwise another item
    /// may be lost.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("an item")?;
    /// assert!(filter.remove("an item"));
    /// assert!(!filter.remove("an item"));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    pub fn remove<K: Key + ?Sized>(&self, item: &K) -> bool {
        self.backend.remove(self.mixed(item))
    }

    /// Returns which of `parts` equal parts of all hashes this item's hash is in: from 0 to `parts - 1`, or 0
    /// if there are no parts.
    ///
    /// Items of different parts are in different shards of the table, except for the shards at the
    /// borders of a part. So threads that take one part each write to different memory, and do not
    /// contend for cache lines.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let mut parts = [const { Vec::new() }; 4];
    /// for item in 0..1_000 {
    ///     parts[filter.part_of(&item, 4)].push(item);
    /// }
    /// assert!(parts.iter().all(|part| part.len() > 100)); // 250, give or take a few
    /// assert_eq!(filter.part_of(&17, 0), 0);
    /// ```
    #[inline]
    #[must_use]
    pub fn part_of<K: Key + ?Sized>(&self, item: &K, parts: usize) -> usize {
        self.mixed(item).scaled(parts).0
    }
}
