//! Changes of many items.
//!
//! A batch is sorted by streams. Each stream is locked for some hundred items at a time.

use crate::backend::on_shards;
use crate::durable::error::DurableError;
use crate::durable::filter::DurableFilter;
use crate::error::Full;
use crate::filter::batch::{
    Insert, InsertIfAbsent, InsertOrRefresh, Item, Operation, Refresh, Remove, Sorted, act_on,
};
use crate::journal::file::write::Writer;
use crate::journal::streams::{Change, MAX_RESERVED, STREAMS, Sink, Streams};
use crate::key::{Key, Prehashed};
use crate::layout::geometry::Mixed;
use crate::stable_hash::PersistentHasher;
#[cfg(feature = "rayon")]
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// The number of items that are sorted at a time: their hashes fit in the cache of a core.
const ROUND: usize = 1 << 16;

/// The same where all cores take streams.
#[cfg(feature = "rayon")]
const PAR_ROUND: usize = 1 << 20;

// The change that an answer of each operation stands for.

fn added(answer: &Result<(), Full>) -> Option<Change> {
    answer.is_ok().then_some(Change::Added)
}

fn new(answer: &Result<bool, Full>) -> Option<Change> {
    (*answer == Ok(true)).then_some(Change::Added)
}

fn removed(answer: &bool) -> Option<Change> {
    answer.then_some(Change::Removed)
}

fn refreshed(answer: &bool) -> Option<Change> {
    answer.then_some(Change::Refreshed)
}

fn added_or_refreshed(answer: &Result<bool, Full>) -> Option<Change> {
    answer.ok().map(|new| if new { Change::Added } else { Change::Refreshed })
}

fn sorted(hashes: &[Prehashed]) -> Sorted {
    Sorted::new(STREAMS, Streams::<Writer>::of, hashes)
}

impl<S: PersistentHasher> DurableFilter<S> {
    fn hashes<K: Key>(&self, items: &[K]) -> Vec<Prehashed> {
        items.iter().map(|item| self.shared.filter.hash_of(item)).collect()
    }

    /// Performs an operation on items of one stream, and records it.
    fn in_stream<O: Operation>(
        &self,
        operation: O,
        (stream, items): (usize, &[Item]),
        change: impl Fn(&O::Answer) -> Option<Change>,
        mut answer: impl FnMut(Item, O::Answer),
    ) -> Result<(), DurableError> {
        for items in items.chunks(MAX_RESERVED) {
            let mut held = self.shared.streams.hold(stream);
            held.reserve(items.len()).map_err(DurableError::no_space)?;
            let record = |item: Item, done: O::Answer| {
                // Without ages, a refresh is no change.
                let change = change(&done).filter(|it| self.forgets || *it != Change::Refreshed);
                if let Some(change) = change {
                    held.writer(item.hash()).write(item.hash(), change);
                }
                answer(item, done);
            };
            on_shards!(self.shared.filter.backend(), shards => act_on(shards, items, operation, record));
        }
        Ok(())
    }

    fn batch<O: Operation, K: Key>(
        &self,
        operation: O,
        items: &[K],
        change: impl Fn(&O::Answer) -> Option<Change>,
    ) -> Result<Vec<O::Answer>, DurableError> {
        self.keeper.check_process()?;
        let hashes = self.hashes(items);
        let mut answers = vec![O::NONE; hashes.len()];
        for (hashes, answers) in hashes.chunks(ROUND).zip(answers.chunks_mut(ROUND)) {
            let sorted = sorted(hashes);
            for stream in 0..STREAMS {
                let items = (stream, sorted.of_part(stream));
                self.in_stream(operation, items, &change, |item, answer| {
                    answers[item.index as usize] = answer;
                })?;
            }
        }
        self.keeper.wait()?;
        Ok(answers)
    }

    #[cfg(feature = "rayon")]
    fn par_batch<O: Operation<Answer: Send> + Sync, K: Key + Sync>(
        &self,
        operation: O,
        items: &[K],
        change: impl Fn(&O::Answer) -> Option<Change> + Sync,
    ) -> Result<Vec<O::Answer>, DurableError>
    where
        S: Send + Sync,
    {
        self.keeper.check_process()?;
        let hashes = self.hashes(items);
        let mut answers = vec![O::NONE; hashes.len()];
        for (hashes, answers) in hashes.chunks(PAR_ROUND).zip(answers.chunks_mut(PAR_ROUND)) {
            let sorted = sorted(hashes);
            let of_stream = |stream| {
                let items = sorted.of_part(stream);
                let mut found = Vec::with_capacity(items.len());
                let push = |item: Item, answer| found.push((item.index, answer));
                self.in_stream(operation, (stream, items), &change, push).map(|()| found)
            };
            let found: Result<Vec<_>, _> = (0..STREAMS).into_par_iter().map(of_stream).collect();
            for (index, answer) in found?.into_iter().flatten() {
                answers[index as usize] = answer;
            }
        }
        self.keeper.wait()?;
        Ok(answers)
    }
}

/// # Batches
///
/// These answer as the methods of [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter) with the same names. If a
/// change cannot be recorded, it is not made, and neither are those that come after it; changes before it are made and
/// recorded, in an order of the filter's own.
impl<S: PersistentHasher> DurableFilter<S> {
    /// Returns which items the filter contains, in their order.
    #[must_use]
    pub fn contains_many<K: Key>(&self, items: &[K]) -> Vec<bool> {
        let hashes = self.hashes(items);
        let found = self.shared.filter.contains_many(&hashes);
        hashes.iter().for_each(|hash| self.until_recorded(Mixed::of(hash.0)));
        found
    }

    /// Adds a copy of each item.
    ///
    /// # Errors
    ///
    /// Returns an error if a change could not be recorded.
    pub fn insert_many<K: Key>(&self, items: &[K]) -> Result<Vec<Result<(), Full>>, DurableError> {
        self.batch(Insert, items, added)
    }

    /// Adds each item that is not in the filter yet, and returns `true` for those that were new.
    ///
    /// # Errors
    ///
    /// Returns an error if a change could not be recorded.
    pub fn insert_if_absent_many<K: Key>(
        &self,
        items: &[K],
    ) -> Result<Vec<Result<bool, Full>>, DurableError> {
        self.batch(InsertIfAbsent, items, new)
    }

    /// Removes one copy of each item, and returns `true` where there was one.
    ///
    /// # Errors
    ///
    /// Returns an error if a change could not be recorded.
    pub fn remove_many<K: Key>(&self, items: &[K]) -> Result<Vec<bool>, DurableError> {
        self.batch(Remove, items, removed)
    }

    /// Lets each item expire as if it had been inserted now, and returns `true` for those that are in the filter.
    ///
    /// # Errors
    ///
    /// Returns an error if a change could not be recorded.
    pub fn refresh_many<K: Key>(&self, items: &[K]) -> Result<Vec<bool>, DurableError> {
        self.batch(Refresh, items, refreshed)
    }

    /// Adds each item or refreshes it, and returns `true` for those that were new.
    ///
    /// # Errors
    ///
    /// Returns an error if a change could not be recorded.
    pub fn insert_or_refresh_many<K: Key>(
        &self,
        items: &[K],
    ) -> Result<Vec<Result<bool, Full>>, DurableError> {
        self.batch(InsertOrRefresh, items, added_or_refreshed)
    }

    /// Returns which items the filter contains, in their order, on all threads of the caller's rayon pool.
    #[cfg(feature = "rayon")]
    #[must_use]
    pub fn par_contains_many<K: Key + Sync>(&self, items: &[K]) -> Vec<bool>
    where
        S: Send + Sync,
    {
        let hashes = self.hashes(items);
        let found = self.shared.filter.par_contains_many(&hashes);
        hashes.iter().for_each(|hash| self.until_recorded(Mixed::of(hash.0)));
        found
    }

    /// Adds a copy of each item, on all threads of the caller's rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a change could not be recorded.
    #[cfg(feature = "rayon")]
    pub fn par_insert_many<K: Key + Sync>(
        &self,
        items: &[K],
    ) -> Result<Vec<Result<(), Full>>, DurableError>
    where
        S: Send + Sync,
    {
        self.par_batch(Insert, items, added)
    }

    /// Adds each item that is not in the filter yet, and returns `true` for those that were new, on all threads of the
    /// caller's rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a change could not be recorded.
    #[cfg(feature = "rayon")]
    pub fn par_insert_if_absent_many<K: Key + Sync>(
        &self,
        items: &[K],
    ) -> Result<Vec<Result<bool, Full>>, DurableError>
    where
        S: Send + Sync,
    {
        self.par_batch(InsertIfAbsent, items, new)
    }

    /// Removes one copy of each item, and returns `true` where there was one, on all threads of the caller's rayon
    /// pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a change could not be recorded.
    #[cfg(feature = "rayon")]
    pub fn par_remove_many<K: Key + Sync>(&self, items: &[K]) -> Result<Vec<bool>, DurableError>
    where
        S: Send + Sync,
    {
        self.par_batch(Remove, items, removed)
    }
}
