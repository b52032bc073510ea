//! The operations on batches, on the threads of the caller's rayon pool.
//!
//! A batch of lookups is cut into pieces. A batch of writes is sorted by part of the table, which
//! is one shard or several: all threads sort the pieces of a round, and then each part takes its
//! items of all pieces, in their order, on one thread. So no two threads write to the same shard,
//! and the results are those of a loop.

use crate::error::Full;
use crate::error::Refused;
use crate::filter::ConcurrentCuckooFilter;
use crate::filter::batch::bulk::{self, ROUND, Sorted, act_on};
use crate::filter::batch::extend::Extension;
use crate::room::shards::{Insert, InsertIfAbsent, Remove, Shards};
use crate::room::{Act, Room, Stage};
use rayon::prelude::*;
use std::hash::{BuildHasher, Hash};

/// The number of items that a thread takes at once. Fewer than two pieces are not worth waking
/// another thread.
const PIECE: usize = 1 << 13;

/// The most items that all threads together sort at once.
const MOST_SORTED: usize = 1 << 21;

/// # Many items at once, on many threads
///
/// These use the [rayon](https://docs.rs/rayon) pool that they are called in, and return their
/// results in order, like the methods without `par_`. A large batch takes less than 15 bytes an
/// item in addition to its results. It is processed in rounds, so this is never more than 48 MiB.
/// If an item's `Hash` panics, any of the other items may have been written.
impl<S: BuildHasher + Sync, R: Room> ConcurrentCuckooFilter<S, R> {
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
    pub fn par_contains_many<T: Hash + Sync>(&self, items: &[T]) -> Vec<bool> {
        let mut found = vec![false; items.len()];
        in_pieces(items, &mut found, |items, found| {
            self.hashed(items, found, |hashes, found| self.contains_each(hashes, found));
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
    pub fn par_insert_many<T: Hash + Sync>(&self, items: &[T]) -> Vec<Result<(), Full>> {
        self.par_write_items::<Insert, _>(items, Ok(()))
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
    pub fn par_insert_if_absent_many<T: Hash + Sync>(
        &self,
        items: &[T],
    ) -> Vec<Result<bool, Full>> {
        self.par_write_items::<InsertIfAbsent, _>(items, Ok(false))
    }

    /// Removes one copy of each item, like [`remove_many`](Self::remove_many), on many threads.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("a")?;
    /// assert_eq!(filter.par_remove_many(&["a", "b"]), [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    pub fn par_remove_many<T: Hash + Sync>(&self, items: &[T]) -> Vec<bool> {
        self.par_write_items::<Remove, _>(items, false)
    }

    /// Adds a copy of every item of a parallel iterator, in any order, and returns the number of
    /// items.
    ///
    /// Items are added as by [`insert`](Self::insert), so repeated items are added and counted
    /// repeatedly. To add each item once, use [`par_extend_if_absent`](Self::par_extend_if_absent).
    ///
    /// Every item is tried, even when the filter is full, and refusals are slow: see [`Full`].
    ///
    /// # Errors
    ///
    /// Returns [`Refused`] if some items did not fit. The others were inserted. The error has their
    /// number, and the hashes of the items that were not.
    ///
    /// ```
    /// use rayon::prelude::*;
    ///
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(10_000);
    /// let pages = (0..10_000).into_par_iter().map(|page| format!("/{page}"));
    /// let inserted = filter.par_extend(pages)?;
    /// assert_eq!(inserted, 10_000);
    /// assert!(filter.contains("/4711"));
    /// # Ok::<(), koel::Refused>(())
    /// ```
    pub fn par_extend<T: Hash + Send>(
        &self,
        items: impl IntoParallelIterator<Item = T>,
    ) -> Result<usize, Refused> {
        let insert = |hashes: &[u64]| {
            self.insert_hash_many(hashes).into_iter().map(|answer| answer.map(|()| true)).collect()
        };
        self.par_add(items, |_| (), insert, |()| ())
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
    pub fn par_extend_if_absent<T: Hash + Send>(
        &self,
        items: impl IntoParallelIterator<Item = T>,
        new: impl Fn(T) + Sync,
    ) -> Result<usize, Refused> {
        let insert = |hashes: &[u64]| self.insert_hash_if_absent_many(hashes);
        self.par_add(items, |item| item, insert, new)
    }

    /// Adds all items with `add`. Keeps of each what is passed to `new` if it was new.
    fn par_add<T: Hash + Send, K: Send>(
        &self,
        items: impl IntoParallelIterator<Item = T>,
        keep: impl Fn(T) -> K + Sync,
        add: impl Fn(&[u64]) -> Vec<Result<bool, Full>> + Sync,
        new: impl Fn(K) + Sync,
    ) -> Result<usize, Refused> {
        let push = |mut extension: Extension<K>, item: T| {
            extension.push(self.hash_of(&item), keep(item));
            if extension.has(PIECE) {
                extension.flush(&add, &new);
            }
            extension
        };
        let flush = |mut extension: Extension<K>| {
            extension.flush(&add, &new);
            extension
        };
        let extensions = items.into_par_iter().fold(Extension::default, push).map(flush);
        extensions.reduce(Extension::default, Extension::merge).outcome()
    }

    pub(crate) fn par_write_items<O: Act<Answer: Copy + Send + Sync>, T: Hash + Sync>(
        &self,
        items: &[T],
        unanswered: O::Answer,
    ) -> Vec<O::Answer> {
        if items.len() < 2 * PIECE {
            return self.write_items::<O, T>(items, unanswered);
        }
        let mut answers = vec![unanswered; items.len()];
        let mut hashes = Vec::new();
        let round = bulk::round_of_items(items.len(), MOST_SORTED);
        for (items, answers) in items.chunks(round).zip(answers.chunks_mut(round)) {
            items.par_iter().map(|item| self.hash_of(item)).collect_into_vec(&mut hashes);
            self.par_write::<O>(&hashes, answers);
        }
        answers
    }
}

/// # Many items at once, on many threads, by their hashes
impl<S: Sync, R: Room> ConcurrentCuckooFilter<S, R> {
    /// Returns for each hash whether the filter contains its item, like
    /// [`par_contains_many`](Self::par_contains_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert_hash(17)?;
    /// assert_eq!(filter.par_contains_hash_many(&[17, 18]), [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    #[must_use]
    pub fn par_contains_hash_many(&self, hashes: &[u64]) -> Vec<bool> {
        let mut found = vec![false; hashes.len()];
        in_pieces(hashes, &mut found, |hashes, found| self.contains_each(hashes, found));
        found
    }

    /// Adds a copy of the item of each hash, like [`par_insert_many`](Self::par_insert_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.par_insert_hash_many(&[17, 18]), [Ok(()), Ok(())]);
    /// ```
    #[must_use = "a refused item is not in the filter"]
    pub fn par_insert_hash_many(&self, hashes: &[u64]) -> Vec<Result<(), Full>> {
        self.par_write_hashes::<Insert>(hashes, Ok(()))
    }

    /// Adds the item of each hash that is not in the filter yet, like
    /// [`par_insert_if_absent_many`](Self::par_insert_if_absent_many).
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(seen.par_insert_hash_if_absent_many(&[17, 17]), [Ok(true), Ok(false)]);
    /// ```
    #[must_use = "a refused item is not in the filter"]
    pub fn par_insert_hash_if_absent_many(&self, hashes: &[u64]) -> Vec<Result<bool, Full>> {
        self.par_write_hashes::<InsertIfAbsent>(hashes, Ok(false))
    }

    /// Removes one copy of the item of each hash, like [`par_remove_many`](Self::par_remove_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert_hash(17)?;
    /// assert_eq!(filter.par_remove_hash_many(&[17, 18]), [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    pub fn par_remove_hash_many(&self, hashes: &[u64]) -> Vec<bool> {
        self.par_write_hashes::<Remove>(hashes, false)
    }

    pub(crate) fn par_write_hashes<O: Act<Answer: Copy + Send + Sync>>(
        &self,
        hashes: &[u64],
        unanswered: O::Answer,
    ) -> Vec<O::Answer> {
        let mut answers = vec![unanswered; hashes.len()];
        self.par_write::<O>(hashes, &mut answers);
        answers
    }

    fn par_write<O: Act<Answer: Copy + Send + Sync>>(
        &self,
        hashes: &[u64],
        answers: &mut [O::Answer],
    ) {
        let room = self.room();
        let Stage::Shards(shards) = room.stage() else {
            return bulk::write::<O, R>(room, hashes, answers);
        };
        let threads = rayon::current_num_threads();
        if threads == 1 || hashes.len() < 2 * PIECE {
            return bulk::write::<O, R>(room, hashes, answers);
        }
        let parts = shards.parts();
        if parts.count() == 1 || hashes.len() / bulk::SORTED_PER_PART < parts.count() {
            return bulk::write::<O, R>(room, hashes, answers);
        }
        let round = (ROUND * threads).min(MOST_SORTED);
        for (hashes, answers) in hashes.chunks(round).zip(answers.chunks_mut(round)) {
            // Each piece stores where its parts end, in 4 bytes a part. Pieces of this size keep
            // that to a byte an item.
            let piece = hashes.len().div_ceil(threads).max(4 * parts.count());
            let pieces: Vec<Sorted> =
                hashes.par_chunks(piece).map(|hashes| Sorted::new(parts, hashes)).collect();
            // The answers of each part's items, piece after piece.
            let by_part: Vec<Vec<O::Answer>> = (0..parts.count())
                .into_par_iter()
                .map(|part| {
                    let items = pieces.iter().map(|piece| piece.of_part(part));
                    let mut answers = Vec::with_capacity(items.clone().map(<[_]>::len).sum());
                    items.for_each(|items| {
                        act_on::<O, _>(shards, items, |_, answer| answers.push(answer));
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
}

/// Processes the pieces of a batch on all threads.
fn in_pieces<T: Sync, A: Send>(
    items: &[T],
    answers: &mut [A],
    act: impl Fn(&[T], &mut [A]) + Sync,
) {
    if items.len() < 2 * PIECE {
        return act(items, answers);
    }
    let pieces = items.par_chunks(PIECE).zip(answers.par_chunks_mut(PIECE));
    pieces.for_each(|(items, answers)| act(items, answers));
}
