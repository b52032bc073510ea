//! The operations on one item. They hash it and call [those](crate::filter::by_hash) that take its
//! hash.

use crate::error::Full;
use crate::filter::ConcurrentCuckooFilter;
use crate::room::Room;
use std::hash::{BuildHasher, Hash};

impl<S: BuildHasher, R: Room> ConcurrentCuckooFilter<S, R> {
    /// Returns the item's hash in this filter, for the methods with `hash` in their names.
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
        self.hasher().hash_one(item)
    }

    /// Adds a copy of the item, whether or not the filter already contains it.
    ///
    /// # Errors
    ///
    /// Returns [`Full`] if there is no room for the item, or if the filter has as many copies of it as it
    /// takes: as many as its two buckets have slots (4 to 16), or half of that if the filter grows. Nothing has changed in that case.
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
    pub fn insert_if_absent<T: Hash + ?Sized>(&self, item: &T) -> Result<bool, Full> {
        self.insert_hash_if_absent(self.hash_of(item))
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
    #[inline]
    #[must_use]
    pub fn contains<T: Hash + ?Sized>(&self, item: &T) -> bool {
        self.contains_hash(self.hash_of(item))
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
    pub fn count<T: Hash + ?Sized>(&self, item: &T) -> usize {
        self.count_hash(self.hash_of(item))
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
    pub fn remove<T: Hash + ?Sized>(&self, item: &T) -> bool {
        self.remove_hash(self.hash_of(item))
    }
}
