//! The memory of a filter: its buckets, and the stripes that guard them.
//!
//! Buckets lie shard after shard in one row, and so do stripes, since shards are a whole number of
//! stripes (or there is only one). Everything here is counted over the whole table; who works in one
//! shard adds where it begins. Whoever stores a bucket shows the lock of its stripe.

use crate::geometry::{Geometry, STRIPE_BUCKETS};
use crate::memory::{prefer_huge_pages, prefetch};
use crate::stripe::{Locks, Stripes};
use crate::sync::{AtomicU64, Ordering, read_owned, zeroed_words};

pub struct Table {
    geometry: Geometry,
    words: Box<[AtomicU64]>,
    stripes: Stripes,
}

impl Table {
    /// An empty table, or the number of bytes that could not be had.
    pub fn new(geometry: Geometry) -> Result<Self, usize> {
        let segments = geometry.shards() * geometry.stripes() as usize;
        let buckets = geometry.shards() * geometry.buckets() as usize;
        let bytes = buckets * size_of::<u64>() + Stripes::bytes(segments);
        let stripes = Stripes::new(segments).ok_or(bytes)?;
        let words = zeroed_words(buckets).ok_or(bytes)?;
        prefer_huge_pages(&words);
        Ok(Table { geometry, words, stripes })
    }

    #[inline]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    #[inline]
    pub fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    pub fn buckets(&self) -> usize {
        self.words.len()
    }

    /// What is kept beside `self`.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.words) + Stripes::bytes(self.stripes.count())
    }

    /// The stripe that guards a bucket.
    #[inline]
    pub fn stripe_of(bucket: usize) -> usize {
        bucket / STRIPE_BUCKETS as usize
    }

    #[inline]
    pub fn prefetch(&self, bucket: usize) {
        prefetch(&self.words[bucket]);
    }

    #[inline]
    pub fn read(&self, bucket: usize) -> u64 {
        self.words[bucket].load(Ordering::Acquire)
    }

    #[inline]
    pub fn read_locked(&self, locked: &impl Locks, bucket: usize) -> u64 {
        debug_assert!(locked.include(&self.stripes, Self::stripe_of(bucket)));
        read_owned(&self.words[bucket])
    }

    #[inline]
    pub fn write(&self, locked: &impl Locks, bucket: usize, word: u64) {
        debug_assert!(locked.include(&self.stripes, Self::stripe_of(bucket)));
        self.words[bucket].store(word, Ordering::Release);
    }
}
