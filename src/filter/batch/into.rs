//! The operations on batches that write their results into memory of the caller, so that a loop over
//! batches allocates nothing for them.

use crate::error::Full;
use crate::filter::ConcurrentCuckooFilter;
use crate::filter::batch::bulk;
use crate::room::Room;
use crate::room::shards::{Insert, InsertIfAbsent, Remove};
use std::hash::{BuildHasher, Hash};

/// # Many items at once, into a slice
///
/// These return nothing. They write the result of each item to the place in a slice that the item has
/// in its own.
///
/// # Panics
///
/// They panic if the two slices differ in length, before anything is done.
impl<S: BuildHasher, R: Room> ConcurrentCuckooFilter<S, R> {
    /// Looks up each item, like [`contains_many`](Self::contains_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("a")?;
    /// let mut found = [false; 2];
    /// filter.contains_many_into(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[track_caller]
    pub fn contains_many_into<T: Hash>(&self, items: &[T], found: &mut [bool]) {
        check_lengths(items, found);
        self.hashed(items, found, |hashes, found| self.contains_each(hashes, found));
    }

    /// Counts the copies of each item, like [`count_many`](Self::count_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("a")?;
    /// let mut counts = [0; 2];
    /// filter.count_many_into(&["a", "b"], &mut counts);
    /// assert_eq!(counts, [1, 0]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[track_caller]
    pub fn count_many_into<T: Hash>(&self, items: &[T], counts: &mut [usize]) {
        check_lengths(items, counts);
        self.hashed(items, counts, |hashes, counts| self.count_each(hashes, counts));
    }

    /// Adds a copy of each item, like [`insert_many`](Self::insert_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let mut answers = [Ok(()); 2];
    /// filter.insert_many_into(&["a", "b"], &mut answers);
    /// assert_eq!((answers, filter.len()), ([Ok(()); 2], 2));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[track_caller]
    pub fn insert_many_into<T: Hash>(&self, items: &[T], answers: &mut [Result<(), Full>]) {
        check_lengths(items, answers);
        self.hashed(items, answers, |hashes, answers| {
            bulk::write::<Insert, R>(self.room(), hashes, answers);
        });
    }

    /// Adds each item that is not in the filter yet, like
    /// [`insert_if_absent_many`](Self::insert_if_absent_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let mut answers = [Ok(false); 2];
    /// filter.insert_if_absent_many_into(&["a", "a"], &mut answers);
    /// assert_eq!(answers, [Ok(true), Ok(false)]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[track_caller]
    pub fn insert_if_absent_many_into<T: Hash>(
        &self,
        items: &[T],
        answers: &mut [Result<bool, Full>],
    ) {
        check_lengths(items, answers);
        self.hashed(items, answers, |hashes, answers| {
            bulk::write::<InsertIfAbsent, R>(self.room(), hashes, answers);
        });
    }

    /// Removes one copy of each item, like [`remove_many`](Self::remove_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("a")?;
    /// let mut answers = [false; 2];
    /// filter.remove_many_into(&["a", "a"], &mut answers);
    /// assert_eq!(answers, [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[track_caller]
    pub fn remove_many_into<T: Hash>(&self, items: &[T], answers: &mut [bool]) {
        check_lengths(items, answers);
        self.hashed(items, answers, |hashes, answers| {
            bulk::write::<Remove, R>(self.room(), hashes, answers);
        });
    }
}

/// # Many items at once, by their hashes, into a slice
impl<S, R: Room> ConcurrentCuckooFilter<S, R> {
    /// Looks up the item of each hash, like [`contains_hash_many`](Self::contains_hash_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert_hash(17)?;
    /// let mut found = [false; 2];
    /// filter.contains_hash_many_into(&[17, 18], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[track_caller]
    pub fn contains_hash_many_into(&self, hashes: &[u64], found: &mut [bool]) {
        check_lengths(hashes, found);
        self.contains_each(hashes, found);
    }

    /// Counts the copies of the item of each hash, like
    /// [`count_hash_many`](Self::count_hash_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert_hash(17)?;
    /// let mut counts = [0; 2];
    /// filter.count_hash_many_into(&[17, 18], &mut counts);
    /// assert_eq!(counts, [1, 0]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[track_caller]
    pub fn count_hash_many_into(&self, hashes: &[u64], counts: &mut [usize]) {
        check_lengths(hashes, counts);
        self.count_each(hashes, counts);
    }

    /// Adds a copy of the item of each hash, like [`insert_hash_many`](Self::insert_hash_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let mut answers = [Ok(()); 2];
    /// filter.insert_hash_many_into(&[17, 18], &mut answers);
    /// assert_eq!((answers, filter.len()), ([Ok(()); 2], 2));
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[track_caller]
    pub fn insert_hash_many_into(&self, hashes: &[u64], answers: &mut [Result<(), Full>]) {
        check_lengths(hashes, answers);
        bulk::write::<Insert, R>(self.room(), hashes, answers);
    }

    /// Adds the item of each hash that is not in the filter yet, like
    /// [`insert_hash_if_absent_many`](Self::insert_hash_if_absent_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let mut answers = [Ok(false); 2];
    /// filter.insert_hash_if_absent_many_into(&[17, 17], &mut answers);
    /// assert_eq!(answers, [Ok(true), Ok(false)]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[track_caller]
    pub fn insert_hash_if_absent_many_into(
        &self,
        hashes: &[u64],
        answers: &mut [Result<bool, Full>],
    ) {
        check_lengths(hashes, answers);
        bulk::write::<InsertIfAbsent, R>(self.room(), hashes, answers);
    }

    /// Removes one copy of the item of each hash, like
    /// [`remove_hash_many`](Self::remove_hash_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert_hash(17)?;
    /// let mut answers = [false; 2];
    /// filter.remove_hash_many_into(&[17, 17], &mut answers);
    /// assert_eq!(answers, [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[track_caller]
    pub fn remove_hash_many_into(&self, hashes: &[u64], answers: &mut [bool]) {
        check_lengths(hashes, answers);
        bulk::write::<Remove, R>(self.room(), hashes, answers);
    }
}

#[track_caller]
fn check_lengths<T, A>(items: &[T], answers: &[A]) {
    assert_eq!(items.len(), answers.len(), "there has to be a place for the result of each item");
}
