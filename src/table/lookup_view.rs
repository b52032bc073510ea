//! The part of a growing filter's shard that lookups read: its words and its versions.
//!
//! All shards of a growing filter have the same size, which the compiler knows. So an index within a shard
//! needs no bounds check here, and no offset. (For a shard with wide buckets, all words have to be here. A
//! [site](crate::backend::growing::site) checks that once.)

use crate::layout::geometry::{Bucket, STRIPE_BUCKETS};
use crate::layout::shrinking::GROWING_BUCKETS;
use crate::sync::AtomicU64;
use crate::table::{Table, load};

const BUCKETS: usize = GROWING_BUCKETS as usize;
const STRIPES: usize = BUCKETS / STRIPE_BUCKETS as usize;

/// As many words as a shard has buckets: all words of a shard, or half of them if its buckets are wide.
pub type Words = [AtomicU64; BUCKETS];

pub type Versions = [AtomicU64; STRIPES];

#[derive(Clone, Copy)]
pub struct LookupView<'a> {
    /// One array of words, or two of wide buckets.
    words: &'a [Words],
    versions: &'a Versions,
}

impl<'a> LookupView<'a> {
    #[inline(always)]
    pub fn new(words: &'a [Words], versions: &'a Versions) -> Self {
        LookupView { words, versions }
    }

    /// Returns the words and versions of a table from this bucket on, if there are enough of them.
    pub fn find(table: &Table, base: usize) -> Option<(&[Words], &Versions)> {
        let each = table.geometry().lanes().words();
        let words = table.words.get(base * each..)?.as_chunks().0.get(..each)?;
        let versions = table.stripes().versions_from(Table::stripe_of(base))?;
        Some((words, versions.first_chunk()?))
    }

    /// Returns the first word of a bucket.
    #[inline(always)]
    pub fn heads(self, bucket: Bucket, is_wide: bool) -> &'a AtomicU64 {
        let index = bucket.0 as usize % BUCKETS;
        match is_wide {
            false => &self.words[0][index],
            true => &self.words.as_flattened()[2 * index],
        }
    }

    /// Reads the second word of a wide bucket.
    #[inline(always)]
    pub fn read_second(self, bucket: Bucket) -> u64 {
        load(&self.words.as_flattened()[2 * (bucket.0 as usize % BUCKETS) + 1])
    }

    /// Returns the version of the bucket's stripe.
    #[inline(always)]
    pub fn version(self, bucket: Bucket) -> &'a AtomicU64 {
        &self.versions[Table::stripe_of(bucket.0 as usize) % STRIPES]
    }
}
