//! The operations on batches, on the threads of the caller's rayon pool.
//!
//! A batch of lookups is cut into pieces. A batch of writes is sorted by part of the table, which
//! is one shard or several: all threads sort the pieces of a round, and then each part takes its
//! items of all pieces, in their order, on one thread. So no two threads write to the same shard,
//! and the results are those of a loop.

use crate::backend::shards::Shards;
use crate::backend::{Backend, on_shards};
use crate::error::{Full, Refused};
use crate::filter::ConcurrentCuckooFilter;
use crate::filter::batch::{
    BatchOperation, Extension, Insert, InsertIfAbsent, ROUND, Remove, SORTED_PER_PART, Sorted,
    act_on, round_of_items,
};
use crate::hash::{Key, Prehashed};
use crate::layout::roots::Parts;
use rayon::prelude::*;
use std::hash::BuildHasher;

/// The number of items that a thread takes at once. Fewer than two pieces are not worth waking
/// another thread.
const CHUNK: usize = 1 << 13;

/// The most items that all threads together sort at once.
const MAX_SORTED: usize = 1 << 21;

/// # Many items at once, on many threads
///
/// These use the [rayon](https://docs.rs/rayon) pool that they are called in, and return their
/// results in order, like the methods without `par_`. A large batch takes less than 15 bytes an
/// item in addition to its results. It is processed in rounds, so this is never more than 48 MiB.
/// If an item's `Hash` panics, any of the other items may have been written.
impl<S: BuildHasher + Sync> ConcurrentCuckooFilter<S> {
    /// Returns for each item whether the filter contains it, like
    /// [`contains_many`](Self::contains_many), on many threads.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("a")?;
    /// assert_eq!(filter.par_contains_many(&["a", "b"]), [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[must_use]
    pub fn par_contains_many<K: Key + Sync>(&self, items: &[K]) -> Vec<bool> {
        let mut found = vec![false; items.len()];
        in_pieces(items, &mut found, |items, found| {
            self.look_up(items, found);
        });
        found
    }

    /// Adds a copy of each item, like [`insert_many`](Self::insert_many), on many threads.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100_000);
    /// let rows: Vec<u32> = (0..100_000).collect();
    /// assert!(filter.par_insert_many(&rows).iter().all(Result::is_ok));
    /// ```
    #[must_use = "a refused item is not in the filter"]
    pub fn par_insert_many<K: Key + Sync>(&self, items: &[K]) -> Vec<Result<(), Full>> {
        self.par_answers(items, Insert)
    }

    /// Adds each item that is not in the filter yet, like
    /// [`insert_if_absent_many`](Self::insert_if_absent_many), on many threads.
    ///
    /// If an item is repeated in the batch, its first occurrence is still the new one.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(seen.par_insert_if_absent_many(&["a", "a"]), [Ok(true), Ok(false)]);
    /// ```
    #[must_use = "a refused item is not in the filter"]
    pub fn par_insert_if_absent_many<K: Key + Sync>(&self, items: &[K]) -> Vec<Result<bool, Full>> {
        self.par_answers(items, InsertIfAbsent)
    }

    /// Removes one copy of each item, like [`remove_many`](Self::remove_many), on many threads.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("a")?;
    /// assert_eq!(filter.par_remove_many(&["a", "b"]), [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    pub fn par_remove_many<K: Key + Sync>(&self, items: &[K]) -> Vec<bool> {
        self.par_answers(items, Remove)
    }

    /// Adds each item of a parallel iterator that is not in the filter yet, in any order, passes those
    /// that were new to `new`, and returns their number: [`extend_if_absent`](Self::extend_if_absent)
    /// on many threads.
    ///
    /// `new` is called on the threads that added the items, by each with one after the other.
    ///
    /// # Errors
    ///
    /// Returns [`Refused`] if some items did not fit. `new` was called for the others that were new.
    /// The error has their number, and the hashes of the items that did not fit.
    ///
    /// ```
    /// use rayon::prelude::*;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(10_000);
    /// let (new, bytes) = (koel::ConcurrentCuckooFilter::with_capacity(100), AtomicUsize::new(0));
    /// let pages = (0..20_000).into_par_iter().map(|page| format!("/{}", page % 100));
    /// let count = seen.par_extend_if_absent(pages, |page| {
    ///     bytes.fetch_add(page.len(), Ordering::Relaxed);
    ///     new.insert(&page).expect("room for a hundred");
    /// })?;
    /// assert_eq!((count, new.len(), bytes.into_inner()), (100, 100, 10 * 2 + 90 * 3));
    /// # Ok::<(), koel::Refused>(())
    /// ```
    pub fn par_extend_if_absent<K: Key + Send>(
        &self,
        items: impl IntoParallelIterator<Item = K>,
        new: impl Fn(K) + Sync,
    ) -> Result<usize, Refused> {
        let push = |mut extension: Extension<K>, item: K| {
            extension.push(item, CHUNK, self, &new);
            extension
        };
        let flush = |mut extension: Extension<K>| {
            extension.flush(self, &new);
            extension.outcome
        };
        let merge = |mut outcome: Refused, other: Refused| {
            outcome.inserted += other.inserted;
            outcome.refuse(other.count(), other.hashes());
            outcome
        };
        let outcomes = items.into_par_iter().fold(Extension::default, push).map(flush);
        outcomes.reduce(Refused::default, merge).result()
    }

    /// Performs an operation on all items, which are hashed on all threads.
    fn par_answers<K: Key + Sync, O: ParOperation>(
        &self,
        items: &[K],
        operation: O,
    ) -> Vec<O::Answer> {
        let mut answers = vec![O::NONE; items.len()];
        if items.len() < 2 * CHUNK || K::prehashed(items).is_some() {
            self.hashed(items, &mut answers, |hashes, answers| {
                operation.par_write(self.backend(), hashes, answers);
            });
            return answers;
        }
        let mut hashes = Vec::new();
        let round = round_of_items(items.len(), MAX_SORTED);
        for (items, answers) in items.chunks(round).zip(answers.chunks_mut(round)) {
            self.par_hash(items, &mut hashes);
            operation.par_write(self.backend(), &hashes, answers);
        }
        answers
    }

    fn par_hash<K: Key + Sync>(&self, items: &[K], hashes: &mut Vec<Prehashed>) {
        items.par_iter().map(|item| self.hash_of(item)).collect_into_vec(hashes);
    }
}

/// An operation that many threads perform on a batch.
trait ParOperation: BatchOperation<Answer: Copy + Send + Sync> + Sync {
    /// Performs the operation on a batch. It is not generic, so that the crates that use koel do not compile it.
    fn par_write(self, backend: &Backend, hashes: &[Prehashed], answers: &mut [Self::Answer]);
}

macro_rules! par_operations {
    ($($name:ident)*) => {
        $(
            impl ParOperation for $name {
                fn par_write(self, backend: &Backend, hashes: &[Prehashed], answers: &mut [Self::Answer]) {
                    par_write(backend, hashes, answers, self);
                }
            }
        )*
    };
}

par_operations! { Insert InsertIfAbsent Remove }

/// Processes a batch of writes on all threads, if that is faster.
fn par_write<O: ParOperation>(
    backend: &Backend,
    hashes: &[Prehashed],
    answers: &mut [O::Answer],
    operation: O,
) {
    let threads = rayon::current_num_threads();
    if threads == 1 || hashes.len() < 2 * CHUNK {
        return operation.write(backend, hashes, answers);
    }
    let parts = on_shards!(backend, shards => shards.parts());
    if parts.count() == 1 || hashes.len() / SORTED_PER_PART < parts.count() {
        return operation.write(backend, hashes, answers);
    }
    let round = (ROUND * threads).min(MAX_SORTED);
    for (hashes, answers) in hashes.chunks(round).zip(answers.chunks_mut(round)) {
        // Each piece stores where its parts end, in 4 bytes a part. Pieces of this size keep
        // that to a byte an item.
        let piece = hashes.len().div_ceil(threads).max(4 * parts.count());
        let pieces = sorted_in_pieces(&parts, hashes, piece);
        // The answers of each part's items, piece after piece.
        let by_part: Vec<Vec<O::Answer>> = (0..parts.count())
            .into_par_iter()
            .map(|part| {
                let items = pieces.iter().map(|piece| piece.of_part(part));
                let mut answers = Vec::with_capacity(items.clone().map(<[_]>::len).sum());
                items.for_each(|items| {
                    on_shards!(backend, shards => act_on(shards, items, operation, |_, answer| {
                        answers.push(answer);
                    }));
                });
                answers
            })
            .collect();
        answers.par_chunks_mut(piece).enumerate().for_each(|(number, answers)| {
            for (part, of_part) in by_part.iter().enumerate() {
                let before = pieces[..number].iter().map(|piece| piece.of_part(part).len());
                let of_piece = &of_part[before.sum()..];
                for (item, answer) in pieces[number].of_part(part).iter().zip(of_piece) {
                    answers[item.index as usize] = *answer;
                }
            }
        });
    }
}

fn sorted_in_pieces(parts: &Parts, hashes: &[Prehashed], piece: usize) -> Vec<Sorted> {
    let pieces = hashes.par_chunks(piece);
    pieces.map(|hashes| Sorted::new(parts.count(), |hash| parts.of(hash), hashes)).collect()
}

/// Processes the pieces of a batch on all threads.
fn in_pieces<T: Sync, A: Send>(
    items: &[T],
    answers: &mut [A],
    act: impl Fn(&[T], &mut [A]) + Sync,
) {
    if items.len() < 2 * CHUNK {
        return act(items, answers);
    }
    let pieces = items.par_chunks(CHUNK).zip(answers.par_chunks_mut(CHUNK));
    pieces.for_each(|(items, answers)| act(items, answers));
}
