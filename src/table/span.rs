//! What lookups read of one shard of a growing filter: its versions, and its words if they are narrow.
//!
//! All shards of a growing filter have the same size, which the compiler knows. So an index that is
//! within a shard needs no check here, and there is nothing to add to it. (Wide buckets have twice the
//! words. They are read through the [`Table`].)

use crate::layout::aging::GROWING_BUCKETS;
use crate::layout::geometry::{Bucket, STRIPE_BUCKETS};
use crate::sync::AtomicU64;
use crate::table::memory::prefetch;
use crate::table::stripe::Stamp;
use crate::table::{Table, load};

const BUCKETS: usize = GROWING_BUCKETS as usize;
const STRIPES: usize = BUCKETS / STRIPE_BUCKETS as usize;

/// The first of a shard's words: all of them, if they are narrow.
pub type Words = [AtomicU64; BUCKETS];

pub type Versions = [AtomicU64; STRIPES];

#[derive(Clone, Copy)]
pub struct Span<'a> {
    words: &'a Words,
    versions: &'a Versions,
}

impl<'a> Span<'a> {
    #[inline]
    pub fn new((words, versions): (&'a Words, &'a Versions)) -> Self {
        Span { words, versions }
    }

    /// The parts of a table that begin with this bucket, if they are large enough.
    pub fn find(table: &Table, base: usize) -> Option<(&Words, &Versions)> {
        let words = table.words.get(base * table.geometry().lanes().words()..)?;
        let versions = table.stripes().versions_from(Table::stripe_of(base))?;
        words.first_chunk().zip(versions.first_chunk())
    }

    #[inline]
    fn word(self, bucket: Bucket) -> &'a AtomicU64 {
        &self.words[bucket.0 as usize % BUCKETS]
    }

    #[inline]
    fn version(self, bucket: Bucket) -> &'a AtomicU64 {
        &self.versions[Table::stripe_of(bucket.0 as usize) % STRIPES]
    }

    /// Reads a narrow bucket.
    #[inline]
    pub fn read(self, bucket: Bucket) -> u64 {
        load(self.word(bucket))
    }

    /// Takes the stamp of the bucket's stripe.
    #[inline]
    pub fn stamp(self, bucket: Bucket) -> Stamp<'a> {
        Stamp::of(self.version(bucket))
    }

    #[inline]
    pub fn prefetch(self, bucket: Bucket) {
        prefetch(self.word(bucket));
    }

    #[inline]
    pub fn prefetch_stamp(self, bucket: Bucket) {
        prefetch(self.version(bucket));
    }
}
