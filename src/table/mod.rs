//! The memory of a filter: its buckets, and the stripes that guard them.
//!
//! Buckets lie shard after shard in one row, and so do stripes, since shards are a whole number of
//! stripes (or there is only one). Everything here is counted over the whole table; who works in one
//! shard adds where it begins. Whoever stores a bucket shows the lock of its stripe.

pub mod lock;
pub mod memory;
pub mod stripe;

use crate::layout::geometry::{Geometry, STRIPE_BUCKETS};
use crate::sync::{AtomicU64, Ordering, read_owned, zeroed_words};
use crate::table::memory::{huge_pages, prefetch};
use crate::table::stripe::{Locks, Stripes};

pub struct Table {
    geometry: Geometry,
    words: Box<[AtomicU64]>,
    /// The first word that is a bucket.
    start: usize,
    stripes: Stripes,
}

impl Table {
    /// An empty table, or the number of bytes that could not be had.
    pub fn new(geometry: Geometry) -> Result<Self, usize> {
        let segments = geometry.shards() * geometry.stripes() as usize;
        let buckets = geometry.shards() * geometry.buckets() as usize;
        let bytes = Self::bytes(&geometry);
        let stripes = Stripes::new(segments).ok_or(bytes)?;
        let words = zeroed_words(buckets + huge_pages::slack::<AtomicU64>(buckets)).ok_or(bytes)?;
        let start = huge_pages::prefer(&words, buckets);
        Ok(Table { geometry, words, start, stripes })
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
        self.geometry.shards() * self.geometry.buckets() as usize
    }

    /// What a table takes beside itself.
    pub fn bytes(geometry: &Geometry) -> usize {
        let of_one = geometry.buckets() as usize * size_of::<u64>()
            + Stripes::bytes(geometry.stripes() as usize);
        geometry.shards() * of_one
    }

    /// What is kept beside `self`. (Not what was left out for the sake of huge pages, which nobody ever
    /// touches.)
    pub fn heap_bytes(&self) -> usize {
        Self::bytes(&self.geometry)
    }

    /// The stripe that guards a bucket.
    #[inline]
    pub fn stripe_of(bucket: usize) -> usize {
        bucket / STRIPE_BUCKETS as usize
    }

    #[inline]
    pub fn prefetch(&self, bucket: usize) {
        prefetch(&self.words[self.start + bucket]);
    }

    #[inline]
    pub fn read(&self, bucket: usize) -> u64 {
        self.words[self.start + bucket].load(Ordering::Acquire)
    }

    #[inline]
    pub fn read_locked(&self, locked: &impl Locks, bucket: usize) -> u64 {
        debug_assert!(locked.include(&self.stripes, Self::stripe_of(bucket)));
        read_owned(&self.words[self.start + bucket])
    }

    #[inline]
    pub fn write(&self, locked: &impl Locks, bucket: usize, word: u64) {
        debug_assert!(locked.include(&self.stripes, Self::stripe_of(bucket)));
        self.words[self.start + bucket].store(word, Ordering::Release);
    }
}
