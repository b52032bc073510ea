//! The operations on batches that write their results into memory of the caller, so that a loop over
//! batches allocates nothing for them.

use crate::error::Full;
use crate::filter::ConcurrentCuckooFilter;
use crate::filter::batch::bulk;
use crate::room::Room;
use crate::room::shards::{Insert, InsertIfAbsent};

/// # Many items at once, by their hashes, into a slice
///
/// These return nothing. They write the result of each item to the place in a slice that its hash has
/// in the other one.
///
/// # Panics
///
/// They panic if the two slices differ in length, before anything is done.
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
}

#[track_caller]
fn check_lengths<T, A>(items: &[T], answers: &[A]) {
    assert_eq!(items.len(), answers.len(), "there has to be a place for the result of each item");
}
