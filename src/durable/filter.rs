//! The filter, its operations and their records.
//!
//! A batch is sorted by streams. Each stream is locked for some hundred items at a time.

use crate::backend::Backend;
use crate::disk::claim::Claim;
use crate::durable::error::DurableError;
use crate::durable::keeper::{Journaled, Threads};
use crate::error::{BuildError, Full, UnionError};
use crate::filter::ConcurrentCuckooFilter;
use crate::filter::batch::{self, Batch, Item, Sorted};
use crate::hash::{Key, PersistentHasher, Prehashed, StableHash};
use crate::journal::streams::{Change, MAX_RESERVED, STREAMS, Streams};
use crate::journal::writer::Writer;
use crate::layout::geometry::Mixed;
use crate::snapshot::{SaveReport, SnapshotError};
use crate::stats::Stats;
use crate::window::Window;
use std::fmt;
use std::io::Write;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::Path;
use std::sync::Arc;

/// A [`ConcurrentCuckooFilter`] whose answers survive the end of its process.
///
/// Every change is on record when the call that made it returns, and is there again when the filter is opened the next
/// time: what was added is found, what was removed is gone, and what expired has expired. [The
/// guide](crate::guide::durable) has [what a power failure takes](crate::guide::durable#what-a-crash-takes), how it
/// works, and what to know about its files. All operations take `&self`, so threads share one filter by reference or in
/// an [`Arc`].
///
/// ```
/// use koel::{ConcurrentCuckooFilter, DurableFilter, StableHash};
///
/// # let folder = std::env::temp_dir().join(format!("koel-durable-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("seen.koel");
/// let builder = ConcurrentCuckooFilter::builder().capacity(100_000).growing();
/// let builder = builder.hasher(StableHash::random());
///
/// let seen = DurableFilter::open(&path, builder.clone())?; // made by `builder` if it is not there
/// if seen.insert_if_absent("https://a.example/")? {
///     println!("fetch it");
/// }
/// drop(seen); // or the process is killed
///
/// let seen = DurableFilter::open(&path, builder)?;
/// assert!(seen.contains("https://a.example/"));
/// # drop(seen);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Its file, the *state*, is as [`save`](ConcurrentCuckooFilter::save) writes it. Beside it is a *journal*,
/// `seen.koel.journal.N`, with the changes since the state was written: move both together. One process at a time may
/// open a state. All changes are made through this type, which does not lend the filter itself.
/// [`try_clone`](Self::try_clone) makes a copy of it.
///
/// # Errors
///
/// An operation returns an error if its change could not be recorded, or if there is no room for its item: nothing has
/// changed then, and no tick has begun. Only after [`NotSynced`](crate::DurableErrorKind::NotSynced) the change is made.
pub struct DurableFilter<S: PersistentHasher = StableHash> {
    pub(super) filter: Arc<ConcurrentCuckooFilter<S>>,
    pub(super) shared: Arc<Journaled>,
    pub(super) threads: Threads,
    /// Dropped last. A child that drops it leaves it to its parent.
    pub(super) _claim: Claim,
    /// Whether items have an age, so that a refresh is a change.
    pub(super) forgets: bool,
    /// The number of changes that were lost behind damage.
    pub(super) lost: u64,
}

impl<S: PersistentHasher> DurableFilter<S> {
    fn mixed<K: Key + ?Sized>(&self, item: &K) -> Mixed {
        self.filter.mixed(item)
    }

    /// Changes an item, and records that if anything has changed.
    #[inline]
    fn change<A>(
        &self,
        hash: Mixed,
        change: impl FnOnce(&Backend) -> Result<(A, Option<Change>), Full>,
    ) -> Result<A, DurableError> {
        self.shared.check_process()?;
        let mut held = self.shared.streams.hold(Streams::<Writer>::index_of(hash));
        held.reserve(1).map_err(DurableError::no_space)?;
        let (answer, done) = change(self.backend())?;
        let Some(done) = done else { return Ok(answer) };
        held.write(hash, done);
        drop(held);
        self.shared.wait()?;
        Ok(answer)
    }

    /// Returns the answer of a lookup of an item, once the change that it may have seen is on record. Does not wait in
    /// a child, where the thread that holds the item's stream does not exist.
    #[inline]
    fn recorded<A>(&self, hash: Mixed, found: A) -> A {
        let streams = &self.shared.streams;
        if streams.is_busy(hash) && !self.shared.is_forked_child() {
            streams.until_free(hash);
        }
        found
    }

    #[inline]
    fn backend(&self) -> &Backend {
        self.filter.backend()
    }

    /// As [`ConcurrentCuckooFilter::contains`].
    #[inline]
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, item: &K) -> bool {
        let hash = self.mixed(item);
        self.recorded(hash, self.backend().contains(hash))
    }

    /// As [`ConcurrentCuckooFilter::count`].
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, item: &K) -> usize {
        let hash = self.mixed(item);
        self.recorded(hash, self.backend().count(hash))
    }

    /// As [`ConcurrentCuckooFilter::insert`].
    #[doc(alias = "add")]
    pub fn insert<K: Key + ?Sized>(&self, item: &K) -> Result<(), DurableError> {
        let hash = self.mixed(item);
        self.change(hash, |filter| filter.insert(hash).map(|()| ((), Some(Change::Added))))
    }

    /// As [`ConcurrentCuckooFilter::insert_if_absent`]. If the item is not new, the call that added it may not have
    /// been synced yet.
    #[inline]
    pub fn insert_if_absent<K: Key + ?Sized>(&self, item: &K) -> Result<bool, DurableError> {
        // In a child, a lookup may wait for a lock that a thread of the parent held.
        self.shared.check_process()?;
        let hash = self.mixed(item);
        // While a tick passes, what a lookup finds may have expired.
        let is_passing = self.forgets
            && self.backend().ticking().is_some_and(|ticking| ticking.clock().is_passing());
        if !is_passing && self.backend().contains(hash) {
            return Ok(self.recorded(hash, false));
        }
        self.change(hash, |filter| {
            filter.insert_if_still_absent(hash).map(|new| (new, new.then_some(Change::Added)))
        })
    }

    /// As [`ConcurrentCuckooFilter::remove`].
    #[doc(alias = "delete")]
    pub fn remove<K: Key + ?Sized>(&self, item: &K) -> Result<bool, DurableError> {
        self.shared.check_process()?;
        let hash = self.mixed(item);
        if !self.backend().contains(hash) {
            return Ok(self.recorded(hash, false));
        }
        self.change(hash, |filter| {
            let removed = filter.remove(hash);
            Ok((removed, removed.then_some(Change::Removed)))
        })
    }

    /// As [`ConcurrentCuckooFilter::refresh`].
    pub fn refresh<K: Key + ?Sized>(&self, item: &K) -> Result<bool, DurableError> {
        let hash = self.mixed(item);
        self.change(hash, |filter| {
            let is_in = filter.refresh(hash);
            Ok((is_in, (is_in && self.forgets).then_some(Change::Refreshed)))
        })
    }

    /// As [`ConcurrentCuckooFilter::insert_or_refresh`].
    pub fn insert_or_refresh<K: Key + ?Sized>(&self, item: &K) -> Result<bool, DurableError> {
        let hash = self.mixed(item);
        self.change(hash, |filter| {
            let new = filter.insert_or_refresh(hash)?;
            let refreshed = self.forgets.then_some(Change::Refreshed);
            Ok((new, if new { Some(Change::Added) } else { refreshed }))
        })
    }

    /// As [`ConcurrentCuckooFilter::tick`].
    pub fn tick(&self) -> Result<(), DurableError> {
        self.shared.check_process()?;
        let filter = &self.filter;
        if !self.forgets {
            return Ok(());
        }
        filter.backend().join_all_if_alone();
        self.of_all(Change::Ticked, Mixed(0), || filter.begin_tick())?;
        self.shared.wait()
    }

    /// As [`ConcurrentCuckooFilter::tick_to`].
    pub fn tick_to(&self, number: u64) -> Result<u64, DurableError> {
        self.shared.check_process()?;
        let filter = &self.filter;
        let mut passed = 0;
        if self.forgets && filter.present_tick().is_some_and(|now| now < number) {
            filter.backend().join_all_if_alone();
        }
        while self.forgets && filter.present_tick().is_none_or(|now| now < number) {
            let mut begun = 0;
            self.of_all(Change::TickedTo, Mixed(number), || {
                begun = filter.begin_tick_to(number);
                begun > 0 || filter.present_tick().is_some_and(|now| now >= number)
            })?;
            passed += begun;
        }
        if self.forgets {
            // Another thread may have begun the tick, and not recorded it yet. It holds all streams.
            self.shared.streams.until_free(Mixed(0));
        }
        self.shared.wait()?;
        Ok(passed)
    }

    /// As [`ConcurrentCuckooFilter::keep_up`]. Opening the filter does it once.
    #[doc(alias = "expire")]
    pub fn keep_up(&self) -> Result<u64, DurableError> {
        match self.window().map(Window::number_now) {
            Some(number) if self.present_tick() < Some(number) => self.tick_to(number),
            // Usually none is due, so nothing is synced either.
            _ => Ok(0),
        }
    }

    /// As [`ConcurrentCuckooFilter::window`].
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        self.filter.window()
    }

    /// As [`ConcurrentCuckooFilter::clear`].
    pub fn clear(&self) -> Result<(), DurableError> {
        self.shared.check_process()?;
        self.of_all(Change::Cleared, Mixed(0), || {
            self.filter.clear();
            true
        })?;
        self.shared.wait()
    }

    /// As [`ConcurrentCuckooFilter::shrink`]. Nothing is recorded: the contents stay the same. The state gets smaller
    /// with the next checkpoint. During a checkpoint, and in a forked child, this gives nothing back.
    pub fn shrink(&self) -> usize {
        if self.shared.is_forked_child() { 0 } else { self.filter.shrink() }
    }

    /// Changes all items, and records that in all streams. If `act` returns `false`, because a tick is passing, tries
    /// again after that tick.
    fn of_all(
        &self,
        change: Change,
        word: Mixed,
        mut act: impl FnMut() -> bool,
    ) -> Result<(), DurableError> {
        loop {
            // So there is no second writer either.
            let _no_checkpoint = self.shared.journals.pause();
            let mut held = self.shared.streams.hold_all();
            for stream in &mut held {
                stream.reserve(1).map_err(DurableError::no_space)?;
            }
            let done = act();
            if done {
                held.iter_mut().for_each(|stream| stream.write(word, change));
            }
            drop(held);
            while !self.filter.tick_in_parts(1 << 10) {
                std::thread::yield_now();
            }
            if done {
                return Ok(());
            }
        }
    }

    /// Replaces the state by the present one, and the journal by an empty one. The filter does so by itself [when the
    /// journal is long](crate::guide::durable#how-it-works).
    ///
    /// # Errors
    ///
    /// Returns an error if the state cannot be replaced. The journal has all changes then.
    pub fn checkpoint(&self) -> Result<(), DurableError> {
        self.shared.check_process()?;
        Ok(self.shared.checkpoint()?)
    }

    /// Ends the use of the filter, and leaves the state as its only file, with all changes.
    ///
    /// Close a filter before its file is moved or copied, or to open it faster later. A filter that is only dropped has
    /// its changes in its journal.
    ///
    /// Threads of a [scope](std::thread::scope) borrow the filter, so it can be closed after the scope. If threads share
    /// it in an [`Arc`], the last of them gets it from [`Arc::into_inner`]:
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, DurableFilter, StableHash};
    /// use std::sync::Arc;
    /// use std::thread;
    ///
    /// # let folder = std::env::temp_dir().join(format!("koel-close-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("seen.koel");
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).growing();
    /// let seen = DurableFilter::open(&path, builder.hasher(StableHash::random()))?;
    /// let seen = Arc::new(seen);
    /// let add = |page: u64| {
    ///     let seen = Arc::clone(&seen);
    ///     thread::spawn(move || seen.insert_if_absent(&page).map(drop))
    /// };
    /// let workers: Vec<_> = (0..8).map(add).collect();
    /// for worker in workers {
    ///     worker.join().expect("no panic")?;
    /// }
    /// let seen = Arc::into_inner(seen).expect("the threads have ended");
    /// seen.close()?;
    /// assert_eq!(std::fs::read_dir(path.parent().unwrap())?.count(), 1); // the state
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`Arc::into_inner`] returns `None` as long as another thread has the filter. Of several threads that end with
    /// it, exactly one gets the filter. If threads never end, call [`checkpoint`](Self::checkpoint) before the process
    /// does: the journal then has only later changes.
    ///
    /// # Errors
    ///
    /// Returns an error if the state cannot be replaced, or if its lock file is gone. The changes are in the
    /// journal then.
    pub fn close(mut self) -> Result<(), DurableError> {
        self.shared.check_process()?;
        self.threads.end(&self.shared);
        self.shared.journals.check_claim()?;
        if !self.shared.journals.is_empty() {
            self.shared.checkpoint()?;
        }
        self.shared.journals.close();
        Ok(())
    }

    /// Returns the path of the state, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.shared.journals.state()
    }

    /// Returns the size of the chunks of the journal that are in use, in bytes, and of both journals during a
    /// checkpoint.
    #[must_use]
    pub fn journal_bytes(&self) -> u64 {
        self.shared.journals.bytes()
    }

    /// Returns the number of changes in the journal that were not made again when the filter was opened, because what
    /// comes before them is damaged: they may be removals of items whose inserts are lost.
    ///
    /// A process that is killed leaves none. A power failure may leave some of what was not synced, and so may a disk
    /// that fails. Changes that are gone without a trace are not counted.
    #[must_use]
    pub fn lost_changes(&self) -> u64 {
        self.lost
    }

    /// As [`ConcurrentCuckooFilter::union`]. Nothing of it is on record before the next checkpoint, so no other thread
    /// may use the filter until the caller has made one.
    #[doc(hidden)]
    pub fn union_unrecorded(&self, other: &ConcurrentCuckooFilter<S>) -> Result<usize, UnionError> {
        self.filter.union(other)
    }

    /// Makes all changes so far survive a power failure.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be synced.
    pub fn sync(&self) -> Result<(), DurableError> {
        self.shared.check_process()?;
        self.shared.sync(u64::MAX)
    }

    /// As [`ConcurrentCuckooFilter::len`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.filter.len()
    }

    /// As [`ConcurrentCuckooFilter::is_empty`].
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filter.is_empty()
    }

    /// As [`ConcurrentCuckooFilter::stats`].
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.filter.stats()
    }

    /// As [`ConcurrentCuckooFilter::set_max_bytes`]. This is not recorded: the limit is in the state from the next
    /// checkpoint on.
    pub fn set_max_bytes(&self, bytes: usize) {
        self.filter.set_max_bytes(bytes);
    }

    /// As [`ConcurrentCuckooFilter::age`].
    #[must_use]
    pub fn age<K: Key + ?Sized>(&self, item: &K) -> Option<u64> {
        let hash = self.mixed(item);
        self.recorded(hash, self.backend().age(hash))
    }

    /// As [`ConcurrentCuckooFilter::present_tick`].
    #[must_use]
    pub fn present_tick(&self) -> Option<u64> {
        self.filter.present_tick()
    }

    /// As [`ConcurrentCuckooFilter::remembers`].
    #[must_use]
    pub fn remembers(&self) -> Option<u32> {
        self.filter.remembers()
    }

    /// As [`ConcurrentCuckooFilter::expiring`].
    #[must_use]
    pub fn expiring(&self) -> Vec<usize> {
        self.filter.expiring()
    }

    /// As [`ConcurrentCuckooFilter::hasher`].
    #[must_use]
    pub fn hasher(&self) -> &S {
        self.filter.hasher()
    }

    /// As [`ConcurrentCuckooFilter::hash_of`].
    #[must_use]
    pub fn hash_of<K: Key + ?Sized>(&self, item: &K) -> Prehashed {
        self.filter.hash_of(item)
    }

    /// Returns a copy in memory, as [`ConcurrentCuckooFilter::try_clone`]. It can be changed, and
    /// [saved](ConcurrentCuckooFilter::save) to any path but that of the state.
    pub fn try_clone(&self) -> Result<ConcurrentCuckooFilter<S>, BuildError>
    where
        S: Clone,
    {
        self.filter.try_clone()
    }

    /// Writes a copy, as [`ConcurrentCuckooFilter::write_to`].
    pub fn write_to(&self, writer: impl Write) -> Result<SaveReport, SnapshotError> {
        self.filter.write_to(writer)
    }
}

/// The number of items that are sorted at a time: their hashes fit in the cache of a core.
const ROUND: usize = 1 << 16;

impl<S: PersistentHasher> DurableFilter<S> {
    fn hashes<K: Key>(&self, items: &[K]) -> Vec<Prehashed> {
        items.iter().map(|item| self.filter.hash_of(item)).collect()
    }

    /// Performs an operation on each item, and records the change that its answer stands for. It is compiled once for
    /// items of all types.
    fn batch<A: Clone>(
        &self,
        batch: &Batch<A>,
        none: A,
        hashes: &[Prehashed],
        change: fn(&A) -> Option<Change>,
    ) -> Result<Vec<A>, DurableError> {
        self.shared.check_process()?;
        let mut answers = vec![none; hashes.len()];
        for (hashes, answers) in hashes.chunks(ROUND).zip(answers.chunks_mut(ROUND)) {
            let sorted = Sorted::new(STREAMS, Streams::<Writer>::index_of, hashes);
            let lots_of =
                |stream| sorted.of_part(stream).chunks(MAX_RESERVED).map(move |lot| (stream, lot));
            for (stream, lot) in (0..STREAMS).flat_map(lots_of) {
                let mut held = self.shared.streams.hold(stream);
                held.reserve(lot.len()).map_err(DurableError::no_space)?;
                let mut record = |item: Item, answer: A| {
                    // Without ages, a refresh is no change.
                    let is_one = |change: &Change| self.forgets || *change != Change::Refreshed;
                    if let Some(change) = change(&answer).filter(is_one) {
                        held.write(item.hash(), change);
                    }
                    answers[item.index as usize] = answer;
                };
                (batch.part)(self.backend(), lot, &mut record);
            }
        }
        self.shared.wait()?;
        Ok(answers)
    }
}

/// # Batches
///
/// These answer as the methods of [`ConcurrentCuckooFilter`] with the same names. If a change cannot be recorded, the
/// batch returns an error. That change is not made, and neither are those that come after it; changes before it are made
/// and recorded, in an order of the filter's own.
impl<S: PersistentHasher> DurableFilter<S> {
    /// As [`ConcurrentCuckooFilter::contains_many`].
    #[must_use]
    pub fn contains_many<K: Key>(&self, items: &[K]) -> Vec<bool> {
        let hashes = self.hashes(items);
        let found = self.filter.contains_many(&hashes);
        hashes.iter().for_each(|hash| self.recorded(Mixed::of(hash.0), ()));
        found
    }

    /// As [`ConcurrentCuckooFilter::insert_many`].
    pub fn insert_many<K: Key>(&self, items: &[K]) -> Result<Vec<Result<(), Full>>, DurableError> {
        self.batch(&batch::INSERT, Ok(()), &self.hashes(items), |answer| {
            answer.is_ok().then_some(Change::Added)
        })
    }

    /// As [`ConcurrentCuckooFilter::insert_if_absent_many`].
    pub fn insert_if_absent_many<K: Key>(
        &self,
        items: &[K],
    ) -> Result<Vec<Result<bool, Full>>, DurableError> {
        self.batch(&batch::INSERT_IF_ABSENT, Ok(false), &self.hashes(items), |new| {
            (*new == Ok(true)).then_some(Change::Added)
        })
    }

    /// As [`ConcurrentCuckooFilter::remove_many`].
    pub fn remove_many<K: Key>(&self, items: &[K]) -> Result<Vec<bool>, DurableError> {
        self.batch(&batch::REMOVE, false, &self.hashes(items), |removed| {
            removed.then_some(Change::Removed)
        })
    }

    /// As [`ConcurrentCuckooFilter::refresh_many`].
    pub fn refresh_many<K: Key>(&self, items: &[K]) -> Result<Vec<bool>, DurableError> {
        self.batch(&batch::REFRESH, false, &self.hashes(items), |is_in| {
            is_in.then_some(Change::Refreshed)
        })
    }

    /// As [`ConcurrentCuckooFilter::insert_or_refresh_many`].
    pub fn insert_or_refresh_many<K: Key>(
        &self,
        items: &[K],
    ) -> Result<Vec<Result<bool, Full>>, DurableError> {
        self.batch(&batch::INSERT_OR_REFRESH, Ok(false), &self.hashes(items), |answer| {
            answer.ok().map(|new| if new { Change::Added } else { Change::Refreshed })
        })
    }
}

impl<S: PersistentHasher> Drop for DurableFilter<S> {
    fn drop(&mut self) {
        self.threads.leave(&self.shared);
    }
}

// A panic in an item's `Hash` leaves nothing half done, because hashing comes first. No lock is poisoned.
impl<S: PersistentHasher + RefUnwindSafe> UnwindSafe for DurableFilter<S> {}
impl<S: PersistentHasher + RefUnwindSafe> RefUnwindSafe for DurableFilter<S> {}

impl<S: PersistentHasher> fmt::Debug for DurableFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableFilter")
            .field("path", &self.shared.journals.state())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_expires_with_a_passing_tick_is_new() {
        let folder = tempfile::tempdir().expect("a folder");
        for rate in [1e-3, 1e-7] {
            let builder = ConcurrentCuckooFilter::builder().capacity(1_000).remembers(1);
            let builder = builder.false_positive_rate(rate).hasher(StableHash::with_seed(7));
            let filter = DurableFilter::open(folder.path().join(rate.to_string()), builder);
            let filter = filter.expect("a new state");
            filter.insert("a").expect("room");
            filter.tick().expect("space");
            assert!(filter.backend().begin_tick() && filter.contains("a"));
            assert!(filter.insert_if_absent("a").expect("room"));
            assert!(!filter.insert_if_absent("a").expect("room"));
        }
    }
}
