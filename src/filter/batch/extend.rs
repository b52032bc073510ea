//! Streams of items: each is added unless it is there, and the new ones are passed on.

use crate::error::{Full, Refused};
use crate::filter::ConcurrentCuckooFilter;
use crate::key::{Key, Prehashed};
use std::hash::BuildHasher;

/// The number of items that wait for each other, so that they can be added as a batch.
const CHUNK: usize = 1 << 10;

/// # Streams of items
impl<S: BuildHasher> ConcurrentCuckooFilter<S> {
    /// [Adds](Self::insert_if_absent) each item that is not in the filter yet, passes those that were
    /// new to `new`, in their order, and returns their number.
    ///
    /// The stream may be of any length: a thousand items (1,024) are in memory at once. An item that
    /// is repeated in the stream is new once. Other threads may do the same with streams of theirs,
    /// and an item of several streams is new in one of them.
    ///
    /// Every item is tried, even when the filter is full, and refusals are slow: see [`Full`].
    ///
    /// # Errors
    ///
    /// Returns [`Refused`] if some items did not fit. `new` was called for the others that were new.
    /// The error has their number, and the hashes of the items that did not fit.
    ///
    /// ```
    /// let seen = koel::ConcurrentCuckooFilter::with_capacity(100);
    /// seen.insert("/a").expect("room for a hundred");
    /// let mut to_fetch = Vec::new();
    /// let links = ["/a", "/b", "/c", "/b"];
    /// let count = seen.extend_if_absent(links, |link| to_fetch.push(link))?;
    /// assert_eq!((count, to_fetch), (2, vec!["/b", "/c"]));
    /// # Ok::<(), koel::Refused>(())
    /// ```
    pub fn extend_if_absent<K: Key>(
        &self,
        items: impl IntoIterator<Item = K>,
        mut new: impl FnMut(K),
    ) -> Result<usize, Refused> {
        let mut extension = Extension::default();
        for item in items {
            extension.push(self.hash_of(&item), item);
            if extension.has(CHUNK) {
                extension.flush(|hashes| self.insert_if_absent_many(hashes), &mut new);
            }
        }
        extension.flush(|hashes| self.insert_if_absent_many(hashes), new);
        extension.outcome()
    }
}

/// A filter that [grows](crate::Builder::growing), with each of the items once.
///
/// There is no `Extend`, because a filter may be [full](crate::Full), and that has to be told:
/// [`extend_if_absent`](ConcurrentCuckooFilter::extend_if_absent) does.
///
/// # Panics
///
/// If there is not enough memory.
///
/// ```
/// use koel::ConcurrentCuckooFilter;
///
/// let seen: ConcurrentCuckooFilter = ["/a", "/b", "/a"].into_iter().collect();
/// assert_eq!(seen.len(), 2);
/// assert!(seen.contains("/b"));
/// ```
impl<K: Key> FromIterator<K> for ConcurrentCuckooFilter {
    fn from_iter<I: IntoIterator<Item = K>>(items: I) -> Self {
        let items = items.into_iter();
        let expected = items.size_hint().0;
        let filter = Self::builder().capacity(expected).growing().build();
        let filter = filter.unwrap_or_else(|error| panic!("{error}"));
        if let Err(refused) = filter.extend_if_absent(items, |_| {}) {
            panic!("{refused}");
        }
        filter
    }
}

/// A stream, or one thread's share of it.
pub struct Extension<T> {
    /// Items that are added once there are enough for a batch, and their hashes.
    hashes: Vec<Prehashed>,
    items: Vec<T>,
    added: usize,
    refused: usize,
    /// The hashes of the first items that were refused.
    names: Vec<Prehashed>,
}

impl<T> Default for Extension<T> {
    fn default() -> Self {
        let (hashes, items, names) = (Vec::new(), Vec::new(), Vec::new());
        Extension { hashes, items, added: 0, refused: 0, names }
    }
}

impl<T> Extension<T> {
    pub fn push(&mut self, hash: Prehashed, item: T) {
        self.hashes.push(hash);
        self.items.push(item);
    }

    pub fn has(&self, items: usize) -> bool {
        self.items.len() >= items
    }

    /// Adds the items that are waiting, and passes on those that were new.
    pub fn flush(
        &mut self,
        add: impl FnOnce(&[Prehashed]) -> Vec<Result<bool, Full>>,
        mut new: impl FnMut(T),
    ) {
        let hashes = std::mem::take(&mut self.hashes);
        let mut items = std::mem::take(&mut self.items);
        for ((hash, answer), item) in hashes.iter().zip(add(&hashes)).zip(items.drain(..)) {
            match answer {
                Ok(true) => {
                    self.added += 1;
                    new(item);
                }
                Ok(false) => {}
                Err(Full { .. }) => self.refuse(1, &[*hash]),
            }
        }
        (self.hashes, self.items) = (hashes, items);
        self.hashes.clear();
    }

    fn refuse(&mut self, count: usize, names: &[Prehashed]) {
        self.refused += count;
        let room = Refused::MAX_NAMED - self.names.len();
        self.names.extend_from_slice(&names[..names.len().min(room)]);
    }

    #[cfg(feature = "rayon")]
    pub fn merge(mut self, other: Self) -> Self {
        self.added += other.added;
        self.refuse(other.refused, &other.names);
        self
    }

    /// The number of items that were new, or the error if some were refused.
    pub fn outcome(self) -> Result<usize, Refused> {
        match self.refused {
            0 => Ok(self.added),
            refused => Err(Refused::new(self.added, refused, self.names)),
        }
    }
}
