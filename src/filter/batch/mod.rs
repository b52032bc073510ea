//! The operations on batches. Each returns, in order, what a loop over single items would.
//!
//! * `bulk` has the two orders in which a batch is processed, and [`ahead`] requests the memory of items
//!   before they are processed;
//! * `parallel` processes batches on many threads;
//! * `extend` adds streams of items.

pub mod ahead;
pub mod bulk;
mod extend;
#[cfg(feature = "rayon")]
mod parallel;

use crate::backend::Backend;
use crate::error::Full;
use crate::filter::ConcurrentCuckooFilter;
use crate::filter::batch::bulk::{ROUND, batch, in_order, write};
use crate::key::{Key, Prehashed};
use std::hash::BuildHasher;

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
impl<S: BuildHasher> ConcurrentCuckooFilter<S> {
    /// Returns for each item whether the filter [contains](Self::contains) it.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("a")?;
    /// assert_eq!(filter.contains_many(&["a", "b"]), [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[must_use]
    pub fn contains_many<K: Key>(&self, items: &[K]) -> Vec<bool> {
        let mut found = vec![false; items.len()];
        self.look_up(items, &mut found);
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
    pub fn insert_many<K: Key>(&self, items: &[K]) -> Vec<Result<(), Full>> {
        let mut answers = vec![Ok(()); items.len()];
        self.insert_many_into(items, &mut answers);
        answers
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
    pub fn insert_if_absent_many<K: Key>(&self, items: &[K]) -> Vec<Result<bool, Full>> {
        let mut answers = vec![Ok(false); items.len()];
        self.insert_if_absent_many_into(items, &mut answers);
        answers
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
    pub fn remove_many<K: Key>(&self, items: &[K]) -> Vec<bool> {
        let mut answers = vec![false; items.len()];
        self.hashed(items, &mut answers, |hashes, answers| {
            batch!(self.backend(), write, Remove, hashes, answers);
        });
        answers
    }

    /// [Refreshes](Self::refresh) each item that is in the filter.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(1).build()?;
    /// filter.insert("a").expect("room for a hundred");
    /// assert_eq!(filter.refresh_many(&["a", "b"]), [true, false]);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn refresh_many<K: Key>(&self, items: &[K]) -> Vec<bool> {
        let mut answers = vec![false; items.len()];
        self.hashed(items, &mut answers, |hashes, answers| {
            batch!(self.backend(), write, Refresh, hashes, answers);
        });
        answers
    }

    /// [Adds or refreshes](Self::insert_or_refresh) each item.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(1).build()?;
    /// assert_eq!(filter.insert_or_refresh_many(&["a", "a"]), [Ok(true), Ok(false)]);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use = "a refused item is not in the filter"]
    pub fn insert_or_refresh_many<K: Key>(&self, items: &[K]) -> Vec<Result<bool, Full>> {
        let mut answers = vec![Ok(false); items.len()];
        self.hashed(items, &mut answers, |hashes, answers| {
            batch!(self.backend(), write, InsertOrRefresh, hashes, answers);
        });
        answers
    }

    /// [Looks up](Self::contains_many) each item, and writes the results into a slice, so that a loop over batches
    /// allocates nothing for them.
    ///
    /// # Panics
    ///
    /// Panics if the two slices differ in length, before anything is done. So do the other methods that
    /// end in `_into`.
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
    pub fn contains_many_into<K: Key>(&self, items: &[K], found: &mut [bool]) {
        check_lengths(items, found);
        self.look_up(items, found);
    }

    /// [Adds](Self::insert_many) a copy of each item, and writes the results into a slice.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let mut answers = [Ok(()); 2];
    /// filter.insert_many_into(&["a", "b"], &mut answers);
    /// assert_eq!((answers, filter.len()), ([Ok(()); 2], 2));
    /// ```
    #[track_caller]
    pub fn insert_many_into<K: Key>(&self, items: &[K], answers: &mut [Result<(), Full>]) {
        check_lengths(items, answers);
        self.hashed(items, answers, |hashes, answers| {
            batch!(self.backend(), write, Insert, hashes, answers);
        });
    }

    /// [Adds](Self::insert_if_absent_many) each item that is not in the filter yet, and writes the results into a
    /// slice.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let mut answers = [Ok(false); 2];
    /// seen.insert_if_absent_many_into(&["a", "a"], &mut answers);
    /// assert_eq!(answers, [Ok(true), Ok(false)]);
    /// ```
    #[track_caller]
    pub fn insert_if_absent_many_into<K: Key>(
        &self,
        items: &[K],
        answers: &mut [Result<bool, Full>],
    ) {
        check_lengths(items, answers);
        self.hashed(items, answers, |hashes, answers| {
            batch!(self.backend(), write, InsertIfAbsent, hashes, answers);
        });
    }

    pub(crate) fn look_up<K: Key>(&self, items: &[K], found: &mut [bool]) {
        self.hashed(items, found, |hashes, found| match self.backend() {
            Backend::Fixed(fixed) => fixed.have(hashes, found),
            Backend::FixedWide(fixed) => fixed.have(hashes, found),
            backend => batch!(backend, in_order, Contains, hashes, found),
        });
    }

    /// Passes the hashes of the items to `act`, round by round.
    pub(crate) fn hashed<K: Key, A>(
        &self,
        items: &[K],
        answers: &mut [A],
        mut act: impl FnMut(&[Prehashed], &mut [A]),
    ) {
        if let Some(hashes) = K::prehashed(items) {
            return act(hashes, answers);
        }
        let round = bulk::round_of_items(items.len(), ROUND);
        let mut hashes = Vec::with_capacity(round);
        for (items, answers) in items.chunks(round).zip(answers.chunks_mut(round)) {
            hashes.clear();
            hashes.extend(items.iter().map(|item| self.hash_of(item)));
            act(&hashes, answers);
        }
    }
}

#[track_caller]
fn check_lengths<T, A>(items: &[T], answers: &[A]) {
    assert_eq!(items.len(), answers.len(), "there has to be a place for the result of each item");
}
