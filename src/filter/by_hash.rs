//! The operations on one item that take its hash. The ones that take the item call these.

use crate::error::Full;
use crate::filter::ConcurrentCuckooFilter;
use crate::layout::geometry::Mixed;
use crate::room::shards::{Contains, Count, Insert, InsertIfAbsent, Remove};
use crate::room::{self, Room};

impl<S, R: Room> ConcurrentCuckooFilter<S, R> {
    /// Adds a copy of the item with this hash, like [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// Returns [`Full`] in the same cases as `insert`.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let hash = filter.hash_of("an item");
    /// filter.insert_hash(hash)?;
    /// assert!(filter.contains("an item") && filter.contains_hash(hash));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<(), Full> {
        room::perform::<Insert, R>(self.room(), Mixed::of(hash))
    }

    /// Adds the item with this hash if it is not in the filter yet, like
    /// [`insert_if_absent`](Self::insert_if_absent).
    ///
    /// # Errors
    ///
    /// Returns [`Full`] in the same cases as `insert_if_absent`.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let hash = filter.hash_of("an item");
    /// assert!(filter.insert_hash_if_absent(hash)?);
    /// assert!(!filter.insert_if_absent("an item")?);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    pub fn insert_hash_if_absent(&self, hash: u64) -> Result<bool, Full> {
        room::perform::<InsertIfAbsent, R>(self.room(), Mixed::of(hash))
    }

    /// Returns `true` if the filter contains the item with this hash, like
    /// [`contains`](Self::contains).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert!(!filter.contains_hash(17));
    /// filter.insert_hash(17)?;
    /// assert!(filter.contains_hash(17));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline(always)] // a call takes a fifth of the time
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        room::perform::<Contains, R>(self.room(), Mixed::of(hash))
    }

    /// Returns the number of copies of the item with this hash, like [`count`](Self::count).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert_hash(17)?;
    /// assert_eq!(filter.count_hash(17), 1);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> usize {
        room::perform::<Count, R>(self.room(), Mixed::of(hash))
    }

    /// Removes one copy of the item with this hash, like [`remove`](Self::remove).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert_hash(17)?;
    /// assert!(filter.remove_hash(17));
    /// assert!(!filter.remove_hash(17));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[inline]
    pub fn remove_hash(&self, hash: u64) -> bool {
        room::perform::<Remove, R>(self.room(), Mixed::of(hash))
    }

    /// Returns which of `parts` equal parts of all hashes this one is in: from 0 to `parts - 1`, or 0
    /// if there are no parts.
    ///
    /// Items of different parts are in different shards of the table, except for the shards at the
    /// borders of a part. So threads that take one part each write to different memory, and do not
    /// contend for cache lines.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let mut parts = [const { Vec::new() }; 4];
    /// for hash in (0..1_000).map(|item| filter.hash_of(&item)) {
    ///     parts[filter.part_of_hash(hash, 4)].push(hash);
    /// }
    /// assert!(parts.iter().all(|part| part.len() > 100)); // 250, give or take a few
    /// assert_eq!(filter.part_of_hash(17, 0), 0);
    /// ```
    #[inline]
    #[must_use]
    pub fn part_of_hash(&self, hash: u64, parts: usize) -> usize {
        Mixed::of(hash).scaled(parts).0
    }
}
