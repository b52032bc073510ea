//! The operations on batches. Each returns, in order, what a loop over single items would.
//!
//! In the order of the batch, items go through a window between requesting their memory and using it, so that dozens of
//! memory accesses overlap. Writes to a table that does not fit the caches are processed part by part instead. A *part*
//! is a shard, or several adjacent shards. The items are taken in rounds, and each round is sorted by part, stably:
//! each part of the table comes into the cache once a round, and takes all its items.
//!
//! Items of different shards do not affect each other, so the results, and the table afterwards, are those of a loop,
//! but for the two exceptions of [batches](crate#what-you-can-rely-on).

use crate::backend::retry::{Adding, Located, Shards, ask, settle};
use crate::backend::{Backend, on_shards};
use crate::error::Full;
use crate::filter::ConcurrentCuckooFilter;
use crate::hash::{Key, Prehashed};
use crate::layout::SMALL;
use crate::layout::geometry::{Mixed, Place};
use crate::layout::roots::Parts;
use crate::shard::{Lease, Shard};
use std::hash::BuildHasher;
use std::mem::swap;

/// # Many items at once
///
/// [The guide](crate::guide::batches) says when a batch is faster than a loop. A batch returns, in order, what a loop
/// over the single operation would have [returned](crate#what-you-can-rely-on), and holds no lock for longer. If an
/// item's `Hash` panics, some of the items before it may have been written.
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
        self.perform(items, &mut found, look_up);
        found
    }

    /// [Adds](Self::insert) a copy of each item. Repeated items take room each time: see
    /// [`insert_if_absent_many`](Self::insert_if_absent_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(filter.insert_many(&["a", "b"]), [Ok(()), Ok(())]);
    /// assert_eq!(filter.len(), 2);
    /// ```
    #[must_use = "a refused item is not in the filter"]
    pub fn insert_many<K: Key>(&self, items: &[K]) -> Vec<Result<(), Full>> {
        self.answers(items, Ok(()), &INSERT)
    }

    /// [Adds](Self::insert_if_absent) each item that is not in the filter yet. Of a repeated item, the first occurrence
    /// is the new one.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(seen.insert_if_absent_many(&["a", "b", "a"]), [Ok(true), Ok(true), Ok(false)]);
    /// ```
    #[must_use = "a refused item is not in the filter"]
    pub fn insert_if_absent_many<K: Key>(&self, items: &[K]) -> Vec<Result<bool, Full>> {
        self.answers(items, Ok(false), &INSERT_IF_ABSENT)
    }

    /// [Removes](Self::remove) one copy of each item, and of a repeated item one for each occurrence.
    ///
    /// Remove only what was inserted: after `insert_if_absent_many`, only the items whose result was `Ok(true)`.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// let links = ["a", "b", "a"];
    /// let added = seen.insert_if_absent_many(&links);
    /// let new = links.iter().zip(added).filter(|(_, added)| *added == Ok(true));
    /// let mine: Vec<&str> = new.map(|(link, _)| *link).collect();
    /// assert_eq!(seen.remove_many(&mine), [true, true]);
    /// ```
    pub fn remove_many<K: Key>(&self, items: &[K]) -> Vec<bool> {
        self.answers(items, false, &REMOVE)
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
        self.answers(items, false, &REFRESH)
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
        self.answers(items, Ok(false), &INSERT_OR_REFRESH)
    }

    fn answers<K: Key, A: Clone>(&self, items: &[K], none: A, batch: &Batch<A>) -> Vec<A> {
        let mut answers = vec![none; items.len()];
        self.perform(items, &mut answers, batch.all);
        answers
    }

    pub(crate) fn perform<K: Key, A>(&self, items: &[K], answers: &mut [A], batch: OnAll<A>) {
        if let Some(hashes) = K::prehashed(items) {
            return batch(self.backend(), hashes, answers);
        }
        let round = round_of_items(items.len(), ROUND);
        let mut hashes = Vec::with_capacity(round);
        for (items, answers) in items.chunks(round).zip(answers.chunks_mut(round)) {
            hashes.clear();
            hashes.extend(items.iter().map(|item| self.hash_of(item)));
            batch(self.backend(), &hashes, answers);
        }
    }
}

/// The number of items that one thread sorts at once: enough to touch every cache line of a 1 MiB shard, and few enough
/// to stay in the caches themselves.
pub(crate) const ROUND: usize = if SMALL { 2 } else { 1 << 19 };

/// The number of items of a batch that are hashed at once. It is at most half of the batch, so that hashes and sorting
/// take less memory for each item of the batch.
pub(crate) fn round_of_items(items: usize, most: usize) -> usize {
    items.div_ceil(2).clamp(1, most)
}

/// The most buckets of a table that is assumed to fit, more or less, the cache of a core.
const CACHED_BUCKETS: usize = (4 << 20) / size_of::<u64>();

/// The number of items in each part from which sorting pays, for tables that are not cached.
pub(crate) const SORTED_PER_PART: usize = if SMALL { 1 } else { 256 };

/// An operation on items of a batch. None is generic, so the crates that use koel do not compile it.
pub(crate) struct Batch<A> {
    all: OnAll<A>,
    #[allow(dead_code, reason = "only parallel batches and those of a durable filter take parts")]
    pub part: OnPart<A>,
}

/// Performs an operation on all items with these hashes.
type OnAll<A> = fn(&Backend, &[Prehashed], &mut [A]);

/// Performs an operation on these items of one part, and passes each answer on.
type OnPart<A> = fn(&Backend, &[Item], &mut dyn FnMut(Item, A));

/// What a batch does to each item, as a type: a function that is passed is not always inlined.
pub(crate) trait Operation: Copy {
    type Answer;

    /// Tries the operation in the item's shard.
    fn at_once<'a, L: Lease<'a>>(self, shard: Shard<L>, place: Place) -> Option<Self::Answer>;

    /// Does what the attempt has not done.
    fn settle<'a, S: Shards<'a>>(self, shards: S, hash: Mixed) -> Self::Answer;
}

macro_rules! batches {
    ($(
        $name:ident, $operation:ident -> $answer:ty:
        $shard:ident, $place:ident => $at_once:expr,
        $shards:ident, $hash:ident => $settle:expr;
    )*) => {
        $(
            #[derive(Clone, Copy)]
            pub(crate) struct $operation;

            impl Operation for $operation {
                type Answer = $answer;

                #[inline(always)]
                fn at_once<'a, L: Lease<'a>>(self, $shard: Shard<L>, $place: Place) -> Option<$answer> {
                    $at_once
                }

                fn settle<'a, S: Shards<'a>>(self, $shards: S, $hash: Mixed) -> $answer {
                    $settle
                }
            }

            pub(crate) static $name: Batch<$answer> = Batch {
                all: |backend, hashes, answers| {
                    on_shards!(backend, shards => write(shards, hashes, answers, $operation));
                },
                part: |backend, items, answer| {
                    on_shards!(backend, shards => act_on(shards, items, $operation, answer));
                },
            };
        )*
    };
}

batches! {
    INSERT, Insert -> Result<(), Full>:
        shard, place => shard.insert_at_once(place).map(Ok),
        shards, hash => settle(shards, hash, Adding::Copy).map(|_| ());
    INSERT_IF_ABSENT, InsertIfAbsent -> Result<bool, Full>:
        shard, place => shard.insert_if_absent_at_once(place).map(Ok),
        shards, hash => settle(shards, hash, Adding::IfAbsent);
    INSERT_OR_REFRESH, InsertOrRefresh -> Result<bool, Full>:
        shard, place => shard.insert_or_refresh_at_once(place).map(Ok),
        shards, hash => settle(shards, hash, Adding::OrRefresh);
    REMOVE, Remove -> bool:
        shard, place => shard.remove(place).ok(),
        shards, hash => ask(shards, hash, Shard::remove);
    REFRESH, Refresh -> bool:
        shard, place => shard.refresh(place).ok(),
        shards, hash => ask(shards, hash, Shard::refresh);
}

#[cfg_attr(loom, inline)]
fn look_up(backend: &Backend, hashes: &[Prehashed], found: &mut [bool]) {
    on_shards!(backend, shards => have(shards, hashes, found));
}

/// The size of a lot: the number of lookups whose memory is requested at once. Those of two lots are in flight.
const LOT: usize = 16;

/// Looks for all items of a batch, lot by lot: the memory of each is requested before the previous one is looked at.
#[inline(never)]
fn have<'a, S: Shards<'a>>(shards: S, hashes: &[Prehashed], found: &mut [bool]) {
    let Some(first) = hashes.first() else { return };
    let [one, other] = &mut [[shards.spot(Mixed::of(first.0)); LOT]; 2];
    let (mut requested, mut ahead) = (one, other);
    let mut lots = hashes.chunks(LOT).zip(found.chunks_mut(LOT)).peekable();
    if let Some((hashes, _)) = lots.peek() {
        request(shards, hashes, requested);
    }
    while let Some((hashes, found)) = lots.next() {
        if let Some((hashes, _)) = lots.peek() {
            request(shards, hashes, ahead);
        }
        for ((found, hash), spot) in found.iter_mut().zip(hashes).zip(&*requested) {
            *found = match shards.look_at(*spot) {
                Some(found) => found,
                None => ask(shards, Mixed::of(hash.0), Shard::contains),
            };
        }
        swap(&mut requested, &mut ahead);
    }
}

#[inline(never)]
fn request<'a, S: Shards<'a>>(shards: S, hashes: &[Prehashed], spots: &mut [S::Spot; LOT]) {
    for (spot, hash) in spots.iter_mut().zip(hashes) {
        *spot = shards.spot(Mixed::of(hash.0));
        shards.request(*spot);
    }
}

#[inline(always)]
fn perform<'a, S: Shards<'a>, O: Operation>(
    shards: S,
    (shard, place): Located<'a, S>,
    operation: O,
    hash: impl FnOnce() -> Mixed,
) -> O::Answer {
    match operation.at_once(shard, place) {
        Some(answer) => answer,
        None => operation.settle(shards, hash()),
    }
}

#[inline]
fn in_order<'a, S: Shards<'a>, O: Operation>(
    shards: S,
    hashes: &[Prehashed],
    answers: &mut [O::Answer],
    operation: O,
) {
    let hash = |index: usize| Mixed::of(hashes[index].0);
    // So few items would be done before their first prefetch is.
    let few = if shards.bucket_count() <= CACHED_BUCKETS { 16 } else { 4 };
    let ahead = if hashes.len() < few { 0 } else { AHEAD - 1 };
    for_each_ahead(
        hashes.len(),
        ahead,
        |index| shards.fetch(hash(index)),
        |index, item| {
            answers[index] = perform(shards, shards.fetched(item), operation, || hash(index));
        },
    );
}

#[inline(never)]
pub(crate) fn write<'a, S: Shards<'a>, O: Operation>(
    shards: S,
    hashes: &[Prehashed],
    answers: &mut [O::Answer],
    operation: O,
) {
    let cached = shards.bucket_count() <= CACHED_BUCKETS && !SMALL;
    let may_be_sorted = !cached && hashes.len() >= SORTED_PER_PART;
    let parts = may_be_sorted.then(|| shards.parts());
    let enough = |parts: &Parts| hashes.len().min(ROUND) / SORTED_PER_PART >= parts.count();
    let Some(parts) = parts.filter(enough) else {
        if shards.is_ticking() {
            hashes.iter().for_each(|hash| shards.sweep_for(Mixed::of(hash.0)));
        }
        return in_order(shards, hashes, answers, operation);
    };
    for (hashes, answers) in hashes.chunks(ROUND).zip(answers.chunks_mut(ROUND)) {
        let sorted = Sorted::new(parts.count(), |hash| parts.of(hash), hashes);
        for part in 0..parts.count() {
            act_on(shards, sorted.of_part(part), operation, |item, answer| {
                answers[item.index as usize] = answer;
            });
        }
    }
}

#[inline]
fn act_on<'a, S: Shards<'a>, O: Operation>(
    shards: S,
    items: &[Item],
    operation: O,
    mut answer: impl FnMut(Item, O::Answer),
) {
    if shards.is_ticking() {
        items.iter().for_each(|item| shards.sweep_for(item.hash()));
    }
    for_each_ahead(
        items.len(),
        AHEAD - 1,
        |index| shards.fetch(items[index].hash()),
        |index, item| {
            let at = shards.fetched(item);
            answer(items[index], perform(shards, at, operation, || items[index].hash()));
        },
    );
}

/// One item of a round. It has 12 bytes, because the hash is split in two halves.
#[derive(Clone, Copy)]
pub(crate) struct Item {
    hash: [u32; 2],
    /// The item's index in the round.
    pub index: u32,
}

impl Item {
    const NONE: Item = Item { hash: [0, 0], index: 0 };

    #[inline]
    fn new(Mixed(hash): Mixed, index: usize) -> Self {
        Item { hash: [hash as u32, (hash >> 32) as u32], index: index as u32 }
    }

    #[inline]
    pub(crate) fn hash(self) -> Mixed {
        Mixed(u64::from(self.hash[0]) | u64::from(self.hash[1]) << 32)
    }
}

/// The items of a round, sorted by part, and within a part in the order of the batch.
pub(crate) struct Sorted {
    items: Vec<Item>,
    /// The end of each part's items.
    ends: Vec<u32>,
}

impl Sorted {
    /// Sorts items by the part that `part_of` returns for each.
    #[inline]
    pub(crate) fn new(
        parts: usize,
        part_of: impl Fn(Mixed) -> usize,
        hashes: &[Prehashed],
    ) -> Self {
        let mut ends = vec![0; parts];
        for hash in hashes {
            ends[part_of(Mixed::of(hash.0))] += 1;
        }
        // First the start of each part. Placing an item moves it on, so that it becomes the end.
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut items = vec![Item::NONE; hashes.len()];
        for (index, hash) in hashes.iter().enumerate() {
            let hash = Mixed::of(hash.0);
            let at = &mut ends[part_of(hash)];
            items[*at as usize] = Item::new(hash, index);
            *at += 1;
        }
        Sorted { items, ends }
    }

    pub(crate) fn of_part(&self, part: usize) -> &[Item] {
        let start = if part == 0 { 0 } else { self.ends[part - 1] };
        &self.items[start as usize..self.ends[part] as usize]
    }
}

/// The number of items whose memory is in flight at once. With half as many, the memory is partly idle. Twice as many
/// gain nothing more, and small batches get slower.
const AHEAD: usize = 32;

/// Visits items 0 to `count - 1`, each after `fetch` has requested the memory of the `ahead` items that follow it.
#[inline]
fn for_each_ahead<T: Copy>(
    count: usize,
    ahead: usize,
    mut fetch: impl FnMut(usize) -> T,
    mut visit: impl FnMut(usize, T),
) {
    let mut window = [const { None }; AHEAD];
    // There is one call of either function, so that they are inlined, and an item goes through memory once.
    for step in 0..count + ahead {
        if step < count {
            window[step % AHEAD] = Some(fetch(step));
        }
        if let Some(index) = step.checked_sub(ahead)
            && let Some(item) = window[index % AHEAD]
        {
            visit(index, item);
        }
    }
}

/// The number of items of a stream that are added as one batch.
const LOT_OF_A_STREAM: usize = 1 << 10;

/// # Streams of items
impl<S: BuildHasher> ConcurrentCuckooFilter<S> {
    /// [Adds](Self::insert_if_absent) each item that is not in the filter yet, and passes each item to `answered` with
    /// its answer, in the order of the stream.
    ///
    /// The stream may be of any length: 1,024 items are in memory at once. An item that is repeated in the stream is new
    /// once. Other threads may do the same with streams of theirs, and an item of several streams is new in one of them.
    /// Every item is tried, even when the filter is full, and refusals are slow: see [`Full`].
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// seen.insert("/a").expect("room for a hundred");
    /// let mut to_fetch = Vec::new();
    /// seen.extend_if_absent(["/a", "/b", "/c", "/b"], |link, added| {
    ///     if added.expect("room for a hundred") {
    ///         to_fetch.push(link);
    ///     }
    /// });
    /// assert_eq!(to_fetch, ["/b", "/c"]);
    /// ```
    pub fn extend_if_absent<K: Key>(
        &self,
        items: impl IntoIterator<Item = K>,
        mut answered: impl FnMut(K, Result<bool, Full>),
    ) {
        let (mut items, mut lot) = (items.into_iter().fuse(), Vec::new());
        loop {
            lot.extend(items.by_ref().take(LOT_OF_A_STREAM));
            if lot.is_empty() {
                return;
            }
            let answers = self.insert_if_absent_many(&lot);
            lot.drain(..).zip(answers).for_each(|(item, answer)| answered(item, answer));
        }
    }
}

/// The operations on batches, on the threads of the caller's rayon pool. All threads sort the pieces of a round by
/// part, and then each part takes its items of all pieces, in their order, on one thread. So no two threads write to
/// the same shard, and the results are those of a loop.
#[cfg(feature = "rayon")]
mod parallel {
    use super::*;
    use rayon::prelude::*;

    /// The number of items that a thread takes at once. Fewer than two pieces are not worth waking another thread.
    const CHUNK: usize = 1 << 13;

    /// The most items that all threads together sort at once.
    const MAX_SORTED: usize = 1 << 21;

    /// # Many items at once, on many threads
    ///
    /// These use the [rayon](https://docs.rs/rayon) pool that they are called in. Results are in order, as without
    /// `par_`. If an item's `Hash` panics, any of the other items may have been written.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// assert_eq!(seen.par_insert_if_absent_many(&["a", "a"]), [Ok(true), Ok(false)]);
    /// assert_eq!(seen.par_insert_many(&["b"]), [Ok(())]);
    /// assert_eq!(seen.par_contains_many(&["a", "c"]), [true, false]);
    /// assert_eq!(seen.par_remove_many(&["a", "a"]), [true, false]);
    /// ```
    impl<S: BuildHasher + Sync> ConcurrentCuckooFilter<S> {
        /// As [`contains_many`](Self::contains_many).
        #[must_use]
        pub fn par_contains_many<K: Key + Sync>(&self, items: &[K]) -> Vec<bool> {
            let mut found = vec![false; items.len()];
            if items.len() < 2 * CHUNK {
                self.perform(items, &mut found, look_up);
            } else {
                let pieces = items.par_chunks(CHUNK).zip(found.par_chunks_mut(CHUNK));
                pieces.for_each(|(items, found)| self.perform(items, found, look_up));
            }
            found
        }

        /// As [`insert_many`](Self::insert_many).
        #[must_use = "a refused item is not in the filter"]
        pub fn par_insert_many<K: Key + Sync>(&self, items: &[K]) -> Vec<Result<(), Full>> {
            self.par_answers(items, Ok(()), &INSERT)
        }

        /// As [`insert_if_absent_many`](Self::insert_if_absent_many).
        #[must_use = "a refused item is not in the filter"]
        pub fn par_insert_if_absent_many<K: Key + Sync>(
            &self,
            items: &[K],
        ) -> Vec<Result<bool, Full>> {
            self.par_answers(items, Ok(false), &INSERT_IF_ABSENT)
        }

        /// As [`remove_many`](Self::remove_many).
        pub fn par_remove_many<K: Key + Sync>(&self, items: &[K]) -> Vec<bool> {
            self.par_answers(items, false, &REMOVE)
        }

        fn par_answers<K: Key + Sync, A: Copy + Send + Sync>(
            &self,
            items: &[K],
            none: A,
            batch: &Batch<A>,
        ) -> Vec<A> {
            let mut answers = vec![none; items.len()];
            if items.len() < 2 * CHUNK {
                self.perform(items, &mut answers, batch.all);
                return answers;
            }
            if let Some(hashes) = K::prehashed(items) {
                write_on_all_threads(self.backend(), hashes, &mut answers, batch);
                return answers;
            }
            let mut hashes = Vec::new();
            let round = round_of_items(items.len(), MAX_SORTED);
            for (items, answers) in items.chunks(round).zip(answers.chunks_mut(round)) {
                items.par_iter().map(|item| self.hash_of(item)).collect_into_vec(&mut hashes);
                write_on_all_threads(self.backend(), &hashes, answers, batch);
            }
            answers
        }
    }

    /// Processes a batch of writes on all threads, if that is faster.
    fn write_on_all_threads<A: Copy + Send + Sync>(
        backend: &Backend,
        hashes: &[Prehashed],
        answers: &mut [A],
        batch: &Batch<A>,
    ) {
        let threads = rayon::current_num_threads();
        if threads == 1 || hashes.len() < 2 * CHUNK {
            return (batch.all)(backend, hashes, answers);
        }
        let parts = on_shards!(backend, shards => shards.parts());
        if parts.count() == 1 || hashes.len() / SORTED_PER_PART < parts.count() {
            return (batch.all)(backend, hashes, answers);
        }
        let round = (ROUND * threads).min(MAX_SORTED);
        for (hashes, answers) in hashes.chunks(round).zip(answers.chunks_mut(round)) {
            // Each piece stores where its parts end, in 4 bytes a part. Pieces of this size keep
            // that to a byte an item.
            let piece = hashes.len().div_ceil(threads).max(4 * parts.count());
            let sorted = |hashes| Sorted::new(parts.count(), |hash| parts.of(hash), hashes);
            let pieces: Vec<Sorted> = hashes.par_chunks(piece).map(sorted).collect();
            // The answers of each part's items, piece after piece.
            let by_part: Vec<Vec<A>> = (0..parts.count())
                .into_par_iter()
                .map(|part| {
                    let items = pieces.iter().map(|piece| piece.of_part(part));
                    let mut answers = Vec::with_capacity(items.clone().map(<[_]>::len).sum());
                    items.for_each(|items| {
                        (batch.part)(backend, items, &mut |_, answer| answers.push(answer));
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
