//! The many-forms on the threads of the caller's rayon pool.
//!
//! Lookups are cut into pieces. Writes go by parts of the hashes, of one shard or some: the pieces of a
//! round are sorted on all threads, and then each part takes its items of all pieces, in their order,
//! on one thread. So no two threads write to the same shard, and the answers are those of a loop.

use crate::error::Full;
use crate::error::Refused;
use crate::filter::ConcurrentCuckooFilter;
use crate::filter::bulk::{self, ROUND, Sorted, act_on};
use crate::room::{self, Located, Room};
use rayon::prelude::*;
use std::hash::{BuildHasher, Hash};

/// Items that a thread takes at once; fewer than two of these are not worth waking another.
const PIECE: usize = 1 << 13;

/// The most items that are sorted at once, by all threads.
const MOST_SORTED: usize = 1 << 21;

/// # Many items at once, on many threads
///
/// These use the [rayon](https://docs.rs/rayon) pool that they are called in, and answer in order,
/// as the forms without `par_` do. A large batch takes less than 15 bytes an item beside the answers,
/// and goes in rounds, so never more than 48 MiB. If an item's `Hash` panics, any of the others may
/// have been written.
#[cfg_attr(docsrs, doc(cfg(feature = "rayon")))]
impl<S: BuildHasher + Sync, R: Room> ConcurrentCuckooFilter<S, R> {
    /// [`contains_many`](Self::contains_many) on many threads.
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

    /// [`insert_many`](Self::insert_many) on many threads.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100_000);
    /// let rows: Vec<u32> = (0..100_000).collect();
    /// assert!(filter.par_insert_many(&rows).iter().all(Result::is_ok));
    /// ```
    #[must_use = "an item that was refused is not in"]
    pub fn par_insert_many<T: Hash + Sync>(&self, items: &[T]) -> Vec<Result<(), Full>> {
        self.par_write_items(items, Ok(()), room::insert)
    }

    /// [`insert_if_absent_many`](Self::insert_if_absent_many) on many threads: of those that come
    /// more than once, still the first is the new one.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(seen.par_insert_if_absent_many(&["a", "a"]), [Ok(true), Ok(false)]);
    /// ```
    #[must_use = "an item that was refused is not in"]
    pub fn par_insert_if_absent_many<T: Hash + Sync>(
        &self,
        items: &[T],
    ) -> Vec<Result<bool, Full>> {
        self.par_write_items(items, Ok(false), room::insert_if_absent)
    }

    /// [`remove_many`](Self::remove_many) on many threads.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert("a")?;
    /// assert_eq!(filter.par_remove_many(&["a", "b"]), [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    pub fn par_remove_many<T: Hash + Sync>(&self, items: &[T]) -> Vec<bool> {
        self.par_write_items(items, false, room::remove)
    }

    /// Adds a copy of all that comes, as [`insert`](Self::insert) does, in any order; says how many
    /// that were. Of items that come more than once, all are counted; for a set of what comes, collect
    /// it and call [`par_insert_if_absent_many`](Self::par_insert_if_absent_many).
    ///
    /// It tries every item, also when the filter is full, and refusals are slow: see [`Full`].
    ///
    /// # Errors
    ///
    /// [`Refused`] if some did not fit. The others are in; the error says how many, and names those
    /// that are not by their hashes.
    ///
    /// ```
    /// use rayon::prelude::*;
    ///
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(10_000);
    /// let inserted = filter.par_extend((0..10_000).into_par_iter().map(|page| format!("/{page}")))?;
    /// assert_eq!(inserted, 10_000);
    /// assert!(filter.contains("/4711"));
    /// # Ok::<(), koel::Refused>(())
    /// ```
    pub fn par_extend<T: Hash + Send>(
        &self,
        items: impl IntoParallelIterator<Item = T>,
    ) -> Result<usize, Refused> {
        let outcome = items
            .into_par_iter()
            .map(|item| self.hash_of(&item))
            .fold(Extension::default, |extension, hash| extension.push(self, hash))
            .map(|extension| extension.flush(self))
            .reduce(Extension::default, Extension::merge);
        if outcome.refused == 0 {
            return Ok(outcome.inserted);
        }
        Err(Refused::new(outcome.inserted, outcome.refused, outcome.names))
    }

    fn par_write_items<'a, T: Hash + Sync, A: Copy + Send + Sync>(
        &'a self,
        items: &[T],
        unanswered: A,
        act: impl Fn(&'a R, Located<'a, R>) -> A + Sync,
    ) -> Vec<A> {
        if items.len() < 2 * PIECE {
            return self.write_items(items, unanswered, act);
        }
        let mut answers = vec![unanswered; items.len()];
        let mut hashes = Vec::new();
        let round = bulk::round_of_items(items.len(), MOST_SORTED);
        for (items, answers) in items.chunks(round).zip(answers.chunks_mut(round)) {
            items.par_iter().map(|item| self.hash_of(item)).collect_into_vec(&mut hashes);
            self.par_write(&hashes, answers, &act);
        }
        answers
    }
}

/// # Many items at once, on many threads, for callers that have hashed them
#[cfg_attr(docsrs, doc(cfg(feature = "rayon")))]
impl<S: Sync, R: Room> ConcurrentCuckooFilter<S, R> {
    /// [`par_contains_many`](Self::par_contains_many) for a caller that has the hashes.
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

    /// [`par_insert_many`](Self::par_insert_many) for a caller that has the hashes.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.par_insert_hash_many(&[17, 18]), [Ok(()), Ok(())]);
    /// ```
    #[must_use = "an item that was refused is not in"]
    pub fn par_insert_hash_many(&self, hashes: &[u64]) -> Vec<Result<(), Full>> {
        self.par_write_hashes(hashes, Ok(()), room::insert)
    }

    /// [`par_insert_if_absent_many`](Self::par_insert_if_absent_many) for a caller that has the
    /// hashes.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(seen.par_insert_hash_if_absent_many(&[17, 17]), [Ok(true), Ok(false)]);
    /// ```
    #[must_use = "an item that was refused is not in"]
    pub fn par_insert_hash_if_absent_many(&self, hashes: &[u64]) -> Vec<Result<bool, Full>> {
        self.par_write_hashes(hashes, Ok(false), room::insert_if_absent)
    }

    /// [`par_remove_many`](Self::par_remove_many) for a caller that has the hashes.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// filter.insert_hash(17)?;
    /// assert_eq!(filter.par_remove_hash_many(&[17, 18]), [true, false]);
    /// # Ok::<(), koel::Full>(())
    /// ```
    pub fn par_remove_hash_many(&self, hashes: &[u64]) -> Vec<bool> {
        self.par_write_hashes(hashes, false, room::remove)
    }

    fn par_write_hashes<'a, A: Copy + Send + Sync>(
        &'a self,
        hashes: &[u64],
        unanswered: A,
        act: impl Fn(&'a R, Located<'a, R>) -> A + Sync,
    ) -> Vec<A> {
        let mut answers = vec![unanswered; hashes.len()];
        self.par_write(hashes, &mut answers, &act);
        answers
    }

    fn par_write<'a, A: Copy + Send + Sync>(
        &'a self,
        hashes: &[u64],
        answers: &mut [A],
        act: &(impl Fn(&'a R, Located<'a, R>) -> A + Sync),
    ) {
        let room = self.room();
        let threads = rayon::current_num_threads();
        let parts = if threads == 1 || hashes.len() < 2 * PIECE { 1 } else { room.parts() };
        if parts == 1 || hashes.len() / bulk::SORTED_PER_PART < parts {
            return bulk::write(room, hashes, answers, act);
        }
        let round = (ROUND * threads).min(MOST_SORTED);
        for (hashes, answers) in hashes.chunks(round).zip(answers.chunks_mut(round)) {
            // Where each part's items end in a piece is to take less than a byte for each of them.
            let piece = hashes.len().div_ceil(threads).max(4 * parts);
            let pieces: Vec<Sorted> =
                hashes.par_chunks(piece).map(|hashes| Sorted::new(parts, hashes)).collect();
            // For each part the answers of its items, piece after piece.
            let by_part: Vec<Vec<A>> = (0..parts)
                .into_par_iter()
                .map(|part| {
                    let items = pieces.iter().map(|piece| piece.of_part(part));
                    let mut answers = Vec::with_capacity(items.clone().map(<[_]>::len).sum());
                    items.for_each(|items| {
                        act_on(room, items, |_, at| answers.push(act(room, at)));
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

/// Goes through pieces of a batch on all threads.
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

/// What one thread has done of an extension, and the hashes that wait for enough others.
#[derive(Default)]
struct Extension {
    waiting: Vec<u64>,
    inserted: usize,
    refused: usize,
    names: Vec<u64>,
}

impl Extension {
    fn push<S, R: Room>(mut self, filter: &ConcurrentCuckooFilter<S, R>, hash: u64) -> Self {
        self.waiting.push(hash);
        if self.waiting.len() < PIECE { self } else { self.flush(filter) }
    }

    fn flush<S, R: Room>(mut self, filter: &ConcurrentCuckooFilter<S, R>) -> Self {
        let hashes = std::mem::take(&mut self.waiting);
        for (hash, answer) in hashes.iter().zip(filter.insert_hash_many(&hashes)) {
            match answer {
                Ok(()) => self.inserted += 1,
                Err(Full { .. }) => self.refuse(1, &[*hash]),
            }
        }
        self.waiting = hashes;
        self.waiting.clear();
        self
    }

    fn refuse(&mut self, count: usize, names: &[u64]) {
        self.refused += count;
        let room = Refused::MOST_NAMED - self.names.len();
        self.names.extend_from_slice(&names[..names.len().min(room)]);
    }

    fn merge(mut self, other: Self) -> Self {
        self.inserted += other.inserted;
        self.refuse(other.refused, &other.names);
        self
    }
}
