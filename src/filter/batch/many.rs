//! The operations on batches. Each returns, in order, what a loop over single items would.

use crate::error::Full;
use crate::filter::ConcurrentCuckooFilter;
use crate::filter::batch::bulk::{self, ROUND};
use crate::room::shards::{Contains, Insert, InsertIfAbsent, Remove};
use crate::room::{Act, Room};
use std::hash::{BuildHasher, Hash};

/// # Many items at once
///
/// With a batch, the filter knows in advance which memory it will need. So a batch is faster than a
/// loop if the table does not fit the caches: at 128 MiB, lookups are twice as fast, and inserts
/// half as fast again. (For two or three items, a loop is as fast.)
///
/// A batch returns, in order, what a loop over the single operation would have returned. Other
/// threads see such a loop too, but the order of different items in it is unspecified. No lock is
/// held for longer than by the single operation.
///
/// A large batch takes up to 12 bytes an item in addition to its results. It is processed in
/// rounds, so this is never more than 11 MiB. If an item's `Hash` panics, some of the items before
/// it may have been written.
impl<S: BuildHasher, R: Room> ConcurrentCuckooFilter<S, R> {
    /// Returns for each item whether the filter [contains](Self::contains) it.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("a")?;
    /// assert_eq!(filter.contains_many(&["a", "b"]), [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[must_use]
    pub fn contains_many<T: Hash>(&self, items: &[T]) -> Vec<bool> {
        let mut found = vec![false; items.len()];
        self.hashed(items, &mut found, |hashes, found| self.contains_each(hashes, found));
        found
    }

    /// [Adds](Self::insert) a copy of each item. Repeated items are added repeatedly.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.insert_many(&["a", "b"]), [Ok(()), Ok(())]);
    /// assert_eq!(filter.len(), 2);
    /// ```
    #[must_use = "a refused item is not in the filter"]
    pub fn insert_many<T: Hash>(&self, items: &[T]) -> Vec<Result<(), Full>> {
        self.write_items::<Insert, _>(items, Ok(()))
    }

    /// [Adds](Self::insert_if_absent) each item that is not in the filter yet.
    ///
    /// If an item is repeated in the batch, its first occurrence is the new one.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(seen.insert_if_absent_many(&["a", "b", "a"]), [Ok(true), Ok(true), Ok(false)]);
    /// ```
    #[must_use = "a refused item is not in the filter"]
    pub fn insert_if_absent_many<T: Hash>(&self, items: &[T]) -> Vec<Result<bool, Full>> {
        self.write_items::<InsertIfAbsent, _>(items, Ok(false))
    }

    /// [Removes](Self::remove) one copy of each item, and of a repeated item one for each
    /// occurrence.
    ///
    /// Remove only what was inserted: after `insert_if_absent_many`, only the items whose result
    /// was `Ok(true)`.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let links = ["a", "b", "a"];
    /// let added = seen.insert_if_absent_many(&links);
    /// let new = links.iter().zip(added).filter(|(_, added)| *added == Ok(true));
    /// let mine: Vec<&str> = new.map(|(link, _)| *link).collect();
    /// assert_eq!(seen.remove_many(&mine), [true, true]);
    /// ```
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("a")?;
    /// assert_eq!(filter.remove_many(&["a", "a"]), [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    pub fn remove_many<T: Hash>(&self, items: &[T]) -> Vec<bool> {
        self.write_items::<Remove, _>(items, false)
    }

    pub(crate) fn write_items<O: Act<Answer: Clone>, T: Hash>(
        &self,
        items: &[T],
        unanswered: O::Answer,
    ) -> Vec<O::Answer> {
        let mut answers = vec![unanswered; items.len()];
        self.hashed(items, &mut answers, |hashes, answers| {
            bulk::write::<O, R>(self.room(), hashes, answers);
        });
        answers
    }

    /// Passes the hashes of the items to `act`, round by round.
    pub(crate) fn hashed<T: Hash, A>(
        &self,
        items: &[T],
        answers: &mut [A],
        mut act: impl FnMut(&[u64], &mut [A]),
    ) {
        let round = bulk::round_of_items(items.len(), ROUND);
        let mut hashes = Vec::with_capacity(round);
        for (items, answers) in items.chunks(round).zip(answers.chunks_mut(round)) {
            hashes.clear();
            hashes.extend(items.iter().map(|item| self.hash_of(item)));
            act(&hashes, answers);
        }
    }
}

/// # Many items at once, by their hashes
impl<S, R: Room> ConcurrentCuckooFilter<S, R> {
    /// Returns for each hash whether the filter contains its item, like
    /// [`contains_many`](Self::contains_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert_hash(17)?;
    /// assert_eq!(filter.contains_hash_many(&[17, 18]), [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[must_use]
    pub fn contains_hash_many(&self, hashes: &[u64]) -> Vec<bool> {
        let mut found = vec![false; hashes.len()];
        self.contains_each(hashes, &mut found);
        found
    }

    pub(crate) fn contains_each(&self, hashes: &[u64], found: &mut [bool]) {
        bulk::in_order::<Contains, R>(self.room(), hashes, found);
    }

    /// Adds a copy of the item of each hash, like [`insert_many`](Self::insert_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.insert_hash_many(&[17, 18]), [Ok(()), Ok(())]);
    /// assert!(filter.contains_hash(18));
    /// ```
    #[must_use = "a refused item is not in the filter"]
    pub fn insert_hash_many(&self, hashes: &[u64]) -> Vec<Result<(), Full>> {
        self.write_hashes::<Insert>(hashes, Ok(()))
    }

    /// Adds the item of each hash that is not in the filter yet, like
    /// [`insert_if_absent_many`](Self::insert_if_absent_many).
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(seen.insert_hash_if_absent_many(&[17, 17]), [Ok(true), Ok(false)]);
    /// ```
    #[must_use = "a refused item is not in the filter"]
    pub fn insert_hash_if_absent_many(&self, hashes: &[u64]) -> Vec<Result<bool, Full>> {
        self.write_hashes::<InsertIfAbsent>(hashes, Ok(false))
    }

    /// Removes one copy of the item of each hash, like [`remove_many`](Self::remove_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert_hash(17)?;
    /// assert_eq!(filter.remove_hash_many(&[17, 18]), [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    pub fn remove_hash_many(&self, hashes: &[u64]) -> Vec<bool> {
        self.write_hashes::<Remove>(hashes, false)
    }

    pub(crate) fn write_hashes<O: Act<Answer: Clone>>(
        &self,
        hashes: &[u64],
        unanswered: O::Answer,
    ) -> Vec<O::Answer> {
        let mut answers = vec![unanswered; hashes.len()];
        bulk::write::<O, R>(self.room(), hashes, &mut answers);
        answers
    }
}
