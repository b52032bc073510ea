//! Batches of items that are seen again, in a filter that forgets.

use crate::error::Full;
use crate::filter::ConcurrentCuckooFilter;
use crate::room::Room;
use crate::room::shards::{InsertOrRefresh, Refresh};
use std::hash::{BuildHasher, Hash};

/// # Many items that are seen again
impl<S: BuildHasher, R: Room> ConcurrentCuckooFilter<S, R> {
    /// [Refreshes](Self::refresh) each item that is in the filter.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(1).build()?;
    /// filter.insert("a").expect("room for a hundred");
    /// assert_eq!(filter.refresh_many(&["a", "b"]), [true, false]);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn refresh_many<T: Hash>(&self, items: &[T]) -> Vec<bool> {
        self.write_items::<Refresh, _>(items, false)
    }

    /// [Adds or refreshes](Self::insert_or_refresh) each item.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(1).build()?;
    /// assert_eq!(filter.insert_or_refresh_many(&["a", "a"]), [Ok(true), Ok(false)]);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use = "a refused item is not in the filter"]
    pub fn insert_or_refresh_many<T: Hash>(&self, items: &[T]) -> Vec<Result<bool, Full>> {
        self.write_items::<InsertOrRefresh, _>(items, Ok(false))
    }
}

/// # Many items that are seen again, by their hashes
impl<S, R: Room> ConcurrentCuckooFilter<S, R> {
    /// Refreshes the item of each hash that is in the filter, like
    /// [`refresh_many`](Self::refresh_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(1).build()?;
    /// filter.insert_hash(17).expect("room for a hundred");
    /// assert_eq!(filter.refresh_hash_many(&[17, 18]), [true, false]);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn refresh_hash_many(&self, hashes: &[u64]) -> Vec<bool> {
        self.write_hashes::<Refresh>(hashes, false)
    }

    /// Adds or refreshes the item of each hash, like
    /// [`insert_or_refresh_many`](Self::insert_or_refresh_many).
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(1).build()?;
    /// assert_eq!(filter.insert_or_refresh_hash_many(&[17, 17]), [Ok(true), Ok(false)]);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use = "a refused item is not in the filter"]
    pub fn insert_or_refresh_hash_many(&self, hashes: &[u64]) -> Vec<Result<bool, Full>> {
        self.write_hashes::<InsertOrRefresh>(hashes, Ok(false))
    }
}

/// # Many items that are seen again, and ticks, on many threads
#[cfg(feature = "rayon")]
impl<S: Sync, R: Room> ConcurrentCuckooFilter<S, R> {
    /// Lets a tick pass, like [`tick`](Self::tick), on the threads of the rayon pool that this is
    /// called in.
    ///
    /// ```
    /// let filter = koel::ConcurrentCuckooFilter::builder().capacity(100).remembers(1).build()?;
    /// filter.insert("an item").expect("room for a hundred");
    /// filter.par_tick();
    /// filter.par_tick();
    /// assert!(filter.is_empty());
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn par_tick(&self) {
        let Some((ticking, through)) = self.room().time() else { return };
        // The other threads help this one.
        rayon::scope(|scope| {
            while !ticking.begin(through) {
                ticking.work(through, usize::MAX);
            }
            for _ in 1..rayon::current_num_threads() {
                scope.spawn(|_| {
                    ticking.work(through, usize::MAX);
                });
            }
            ticking.work(through, usize::MAX);
        });
    }
}
