//! A durable filter as its readers see it.

use crate::error::BuildError;
use crate::filter::ConcurrentCuckooFilter;
use crate::key::{Key, Prehashed};
use crate::snapshot::{SaveReport, SnapshotError};
use crate::stable_hash::PersistentHasher;
use crate::stats::Stats;
use std::fmt;
use std::io::Write;

/// The filter of a [`DurableFilter`](crate::DurableFilter), for its figures and lookups. Nothing can be changed through it.
///
/// Its methods are those of [`ConcurrentCuckooFilter`] with the same names. Its lookups do not wait for the record of a
/// change that they see, so their answers need not survive the end of the process.
pub struct FilterView<'a, S>(pub(super) &'a ConcurrentCuckooFilter<S>);

macro_rules! figures {
    ($($name:ident -> $answer:ty;)*) => {
        $(
            #[doc = concat!("See [`ConcurrentCuckooFilter::", stringify!($name), "`].")]
            #[must_use]
            pub fn $name(&self) -> $answer {
                self.0.$name()
            }
        )*
    };
}

impl<'a, S> FilterView<'a, S> {
    figures! {
        len -> usize;
        is_empty -> bool;
        stats -> Stats;
        capacity -> usize;
        size_in_bytes -> usize;
        max_bytes -> usize;
        buckets -> usize;
        shards -> usize;
        false_positive_rate -> f64;
        false_positive_rate_at_capacity -> f64;
        grows -> bool;
        remembers -> Option<u32>;
        present_tick -> Option<u64>;
        expiring -> Vec<usize>;
        hasher -> &'a S;
    }
}

impl<S: PersistentHasher> FilterView<'_, S> {
    /// See [`ConcurrentCuckooFilter::hash_of`].
    pub fn hash_of<K: Key + ?Sized>(&self, item: &K) -> Prehashed {
        self.0.hash_of(item)
    }

    /// See [`ConcurrentCuckooFilter::part_of`].
    #[must_use]
    pub fn part_of<K: Key + ?Sized>(&self, item: &K, parts: usize) -> usize {
        self.0.part_of(item, parts)
    }

    /// See [`ConcurrentCuckooFilter::contains`].
    #[must_use]
    pub fn contains<K: Key + ?Sized>(&self, item: &K) -> bool {
        self.0.contains(item)
    }

    /// See [`ConcurrentCuckooFilter::contains_many`].
    #[must_use]
    pub fn contains_many<K: Key>(&self, items: &[K]) -> Vec<bool> {
        self.0.contains_many(items)
    }

    /// See [`ConcurrentCuckooFilter::count`].
    #[must_use]
    pub fn count<K: Key + ?Sized>(&self, item: &K) -> usize {
        self.0.count(item)
    }

    /// See [`ConcurrentCuckooFilter::age`].
    #[must_use]
    pub fn age<K: Key + ?Sized>(&self, item: &K) -> Option<u64> {
        self.0.age(item)
    }

    /// Returns a copy in memory, as [`ConcurrentCuckooFilter::try_clone`]. It can be changed and
    /// [saved](ConcurrentCuckooFilter::save) to any path but that of the state.
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub fn try_clone(&self) -> Result<ConcurrentCuckooFilter<S>, BuildError>
    where
        S: Clone,
    {
        self.0.try_clone()
    }

    /// Writes a copy, as [`ConcurrentCuckooFilter::write_to`].
    ///
    /// # Errors
    ///
    /// Returns an error if the writer does.
    pub fn write_to(&self, writer: impl Write) -> Result<SaveReport, SnapshotError> {
        self.0.write_to(writer)
    }
}

impl<S> fmt::Debug for FilterView<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
