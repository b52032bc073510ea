//! Changes of many items.
//!
//! A batch is sorted by streams. Each stream is locked for some hundred items at a time.

use crate::durable::error::DurableError;
use crate::durable::filter::DurableFilter;
use crate::error::Full;
use crate::filter::ConcurrentCuckooFilter;
use crate::journal::file::write::Writer;
use crate::journal::streams::{Change, MAX_RESERVED, STREAMS, Sink, Streams};
use crate::key::{Key, Prehashed};
use crate::layout::geometry::Mixed;
use crate::stable_hash::PersistentHasher;
#[cfg(feature = "rayon")]
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// So many items are sorted at a time: their hashes fit in the cache of a core.
const ROUND: usize = 1 << 16;

/// The same where all cores take streams.
#[cfg(feature = "rayon")]
const PAR_ROUND: usize = 1 << 20;

/// What is done to the items of a batch, and what of it is recorded.
trait Operation: Copy + Send + Sync {
    type Answer: Clone + Send;

    /// The answer for an item that was not reached.
    const NONE: Self::Answer;

    fn perform<S: PersistentHasher>(
        filter: &ConcurrentCuckooFilter<S>,
        hashes: &[Prehashed],
    ) -> Vec<Self::Answer>;

    fn change(answer: &Self::Answer) -> Option<Change>;
}

macro_rules! operations {
    ($($name:ident: $method:ident -> $answer:ty = $none:expr, $change:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $name;

            impl Operation for $name {
                type Answer = $answer;

                const NONE: $answer = $none;

                fn perform<S: PersistentHasher>(
                    filter: &ConcurrentCuckooFilter<S>,
                    hashes: &[Prehashed],
                ) -> Vec<$answer> {
                    filter.$method(hashes)
                }

                fn change(answer: &$answer) -> Option<Change> {
                    let change: fn(&$answer) -> Option<Change> = $change;
                    change(answer)
                }
            }
        )*
    };
}

operations! {
    Insert: insert_many -> Result<(), Full> = Ok(()), |it| it.is_ok().then_some(Change::Added);
    InsertIfAbsent: insert_if_absent_many -> Result<bool, Full> = Ok(false), |it| (*it == Ok(true)).then_some(Change::Added);
    Remove: remove_many -> bool = false, |it| it.then_some(Change::Removed);
    Refresh: refresh_many -> bool = false, |it| it.then_some(Change::Refreshed);
    InsertOrRefresh: insert_or_refresh_many -> Result<bool, Full> = Ok(false), |it| match it {
        Ok(true) => Some(Change::Added),
        Ok(false) => Some(Change::Refreshed),
        Err(_) => None,
    };
}

/// The items of a part of a batch, by their streams.
struct Sorted {
    hashes: Vec<Prehashed>,
    /// The place of each in the part.
    places: Vec<u32>,
    /// Where each stream begins, and where the last ends.
    starts: [u32; STREAMS + 1],
}

impl Sorted {
    fn new(hashes: &[Prehashed]) -> Self {
        let stream = |hash: &Prehashed| Streams::<Writer>::of(Mixed::of(hash.0));
        let mut starts = [0; STREAMS + 1];
        hashes.iter().for_each(|hash| starts[stream(hash) + 1] += 1);
        (0..STREAMS).for_each(|stream| starts[stream + 1] += starts[stream]);
        let mut next = starts;
        let mut sorted = Sorted {
            hashes: vec![Prehashed(0); hashes.len()],
            places: vec![0; hashes.len()],
            starts,
        };
        for (place, hash) in (0..).zip(hashes) {
            let next = &mut next[stream(hash)];
            sorted.hashes[*next as usize] = *hash;
            sorted.places[*next as usize] = place;
            *next += 1;
        }
        sorted
    }

    fn of_stream(&self, stream: usize) -> (&[Prehashed], &[u32]) {
        let of_it = self.starts[stream] as usize..self.starts[stream + 1] as usize;
        (&self.hashes[of_it.clone()], &self.places[of_it])
    }
}

impl<S: PersistentHasher> DurableFilter<S> {
    fn hashes<K: Key>(&self, items: &[K]) -> Vec<Prehashed> {
        items.iter().map(|item| self.shared.filter.hash_of(item)).collect()
    }

    /// Performs an operation on items of one stream, and records it.
    fn in_stream<O: Operation>(
        &self,
        _: O,
        stream: usize,
        hashes: &[Prehashed],
    ) -> Result<Vec<O::Answer>, DurableError> {
        let mut all = Vec::with_capacity(hashes.len());
        for hashes in hashes.chunks(MAX_RESERVED) {
            let mut held = self.shared.streams.hold(stream);
            held.reserve(hashes.len()).map_err(DurableError::no_space)?;
            let answers = O::perform(&self.shared.filter, hashes);
            for (hash, answer) in hashes.iter().zip(&answers) {
                let change = O::change(answer);
                // Without ages, a refresh is no change.
                if let Some(change) = change.filter(|it| self.forgets || *it != Change::Refreshed) {
                    let hash = Mixed::of(hash.0);
                    held.writer(hash).write(hash, change);
                }
            }
            all.extend(answers);
        }
        Ok(all)
    }

    fn batch<O: Operation, K: Key>(
        &self,
        operation: O,
        items: &[K],
    ) -> Result<Vec<O::Answer>, DurableError> {
        self.keeper.check_process()?;
        let hashes = self.hashes(items);
        let mut answers = vec![O::NONE; hashes.len()];
        for (hashes, answers) in hashes.chunks(ROUND).zip(answers.chunks_mut(ROUND)) {
            let sorted = Sorted::new(hashes);
            for stream in 0..STREAMS {
                let (hashes, places) = sorted.of_stream(stream);
                let found = self.in_stream(operation, stream, hashes)?;
                places.iter().zip(found).for_each(|(place, it)| answers[*place as usize] = it);
            }
        }
        self.keeper.wait()?;
        Ok(answers)
    }

    #[cfg(feature = "rayon")]
    fn par_batch<O: Operation, K: Key + Sync>(
        &self,
        operation: O,
        items: &[K],
    ) -> Result<Vec<O::Answer>, DurableError>
    where
        S: Send + Sync,
    {
        self.keeper.check_process()?;
        let hashes = self.hashes(items);
        let mut answers = vec![O::NONE; hashes.len()];
        for (hashes, answers) in hashes.chunks(PAR_ROUND).zip(answers.chunks_mut(PAR_ROUND)) {
            let sorted = Sorted::new(hashes);
            let of_stream = |stream| self.in_stream(operation, stream, sorted.of_stream(stream).0);
            let found: Result<Vec<_>, _> = (0..STREAMS).into_par_iter().map(of_stream).collect();
            for (stream, found) in found?.into_iter().enumerate() {
                let (_, places) = sorted.of_stream(stream);
                places.iter().zip(found).for_each(|(place, it)| answers[*place as usize] = it);
            }
        }
        self.keeper.wait()?;
        Ok(answers)
    }
}

/// # Batches
///
/// These answer as the methods of [`ConcurrentCuckooFilter`] with the same names. If a change cannot be recorded, it is
/// not made, and neither are those that come after it; changes before it are made and recorded, in an order of the
/// filter's own.
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
        self.batch(Insert, items)
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
        self.batch(InsertIfAbsent, items)
    }

    /// Removes one copy of each item, and returns `true` where there was one.
    ///
    /// # Errors
    ///
    /// Returns an error if a change could not be recorded.
    pub fn remove_many<K: Key>(&self, items: &[K]) -> Result<Vec<bool>, DurableError> {
        self.batch(Remove, items)
    }

    /// Lets each item expire as if it had been inserted now, and returns `true` for those that are in the filter.
    ///
    /// # Errors
    ///
    /// Returns an error if a change could not be recorded.
    pub fn refresh_many<K: Key>(&self, items: &[K]) -> Result<Vec<bool>, DurableError> {
        self.batch(Refresh, items)
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
        self.batch(InsertOrRefresh, items)
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
        self.par_batch(Insert, items)
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
        self.par_batch(InsertIfAbsent, items)
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
        self.par_batch(Remove, items)
    }
}
