//! A shard's site: its memory in a table, and what it is used for.
//!
//! An [`Entry`] of the [directory](crate::backend::growing::directory) is the address of a shard's site, with
//! the shard's depth in the bits that are zero in every such address. So a lookup gets from the entry to the
//! shard with one load, and address and depth change together.

use crate::layout::geometry::Geometry;
use crate::layout::shrinking::GROWING_BUCKETS;
use crate::shard::raw::RawShard;
use crate::sync::Gauge;
use crate::table::{ShardVersions, ShardWords, Table};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// A shard of a table. Lookups read the site, so it is only written when the shard comes into use or out of it. It shares
/// the table, and has the addresses of the words and versions there, so that a lookup gets from here to the words with
/// one load.
#[repr(align(64))] // A line of the cache. Its address leaves six bits for a depth.
pub(crate) struct Site {
    table: Arc<Table>,
    /// The first of as many [`ShardWords`] as a bucket has words, which are adjacent.
    words: NonNull<ShardWords>,
    versions: NonNull<ShardVersions>,
    words_of_a_bucket: u32,
    /// The shard's number in the table.
    number: u32,
    /// What the shard is used for: a [`Use`].
    used_for: Gauge,
}

const _: () = assert!(size_of::<Site>() == 64);

/// What a shard is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It waits for a split and has no items. So many bytes of its memory were given back to the system.
    Spare { given_back: u64 },
    /// The directory has its entry, or will have it before any of its locks is released.
    Items,
}

// SAFETY: a `Site` is a share of the table, and lends references to parts of the table.
#[allow(unsafe_code)]
unsafe impl Send for Site {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Site {}

impl Site {
    /// Returns `None` if the table does not have that shard.
    pub(crate) fn new(table: &Arc<Table>, number: usize) -> Option<Self> {
        let (words, versions) = table.parts_of_shard(number * GROWING_BUCKETS as usize)?;
        Some(Site {
            words: NonNull::from(words).cast(),
            versions: NonNull::from(versions),
            words_of_a_bucket: words.len().try_into().ok()?,
            number: number.try_into().ok()?,
            used_for: Gauge::new(),
            table: Arc::clone(table),
        })
    }

    /// Returns the memory of the sites of a table of this geometry, in bytes.
    pub(crate) fn bytes(geometry: &Geometry) -> usize {
        geometry.shards() * size_of::<Site>()
    }

    /// Returns the memory that lookups read: one array of words, or two of wide buckets, and the versions.
    #[inline(always)]
    pub(crate) fn memory(&self, is_wide: bool) -> (&[ShardWords], &ShardVersions) {
        // Tells the compiler that all later indices are in bounds.
        let count = if is_wide { 2 } else { 1 };
        assert!(!is_wide || self.words_of_a_bucket == 2, "a shard of wide buckets");
        // SAFETY: the addresses are those of parts of the table, which has `words_of_a_bucket` arrays of words there,
        // and at least one. The table stays where it is and is not dropped while this site shares it, and no code has
        // mutable access to it meanwhile, since a share is only ever lent for reading.
        #[allow(unsafe_code)]
        unsafe {
            let words = std::slice::from_raw_parts(self.words.as_ptr(), count);
            (words, self.versions.as_ref())
        }
    }

    #[inline]
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    #[inline]
    pub(crate) fn number(&self) -> usize {
        self.number as usize
    }

    /// Returns the shard itself, whichever items it owns.
    #[inline(always)]
    pub(crate) fn raw<W: Into<bool> + Copy>(&self, is_wide: W) -> RawShard<'_, W> {
        RawShard::from_base(self.table(), self.number() * GROWING_BUCKETS as usize, is_wide)
    }

    pub(crate) fn shard(&self) -> RawShard<'_> {
        self.raw(self.words_of_a_bucket == 2)
    }

    pub(crate) fn used_for(&self) -> Use {
        match self.used_for.get() {
            u64::MAX => Use::Items,
            given_back => Use::Spare { given_back },
        }
    }

    pub(crate) fn is_in_use(&self) -> bool {
        self.used_for() == Use::Items
    }

    /// The number of bytes of the shard that were given back to the system.
    pub(crate) fn given_back(&self) -> u64 {
        match self.used_for() {
            Use::Spare { given_back } => given_back,
            Use::Items => 0,
        }
    }

    /// Either no other thread has access to the shard, or the caller takes shards into use or out of it, one thread at
    /// a time. That it has items changes under all its locks.
    pub(crate) fn set_used_for(&self, purpose: Use) {
        self.used_for.set(match purpose {
            Use::Items => u64::MAX,
            Use::Spare { given_back } => given_back,
        });
    }
}

/// The mask of the depth, the lowest bits of an entry.
const DEPTH: usize = 63;

/// The site of a shard and the shard's depth, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(pub *mut Site);

impl Entry {
    /// Stands in place of an entry.
    pub(crate) const NONE: Entry = Entry(null_mut());

    /// Makes the entry of a site, which has to stay where it is for as long as any of its entries is used.
    pub(crate) fn new(site: &Site, depth: u32) -> Self {
        let site = std::ptr::from_ref(site).cast_mut();
        Entry(site.map_addr(|address| address | depth as usize & DEPTH))
    }

    #[inline]
    pub(crate) fn depth(self) -> u32 {
        (self.0.addr() & DEPTH) as u32
    }

    /// Returns the address of the site.
    #[inline]
    pub(crate) fn address(self) -> *const Site {
        self.0.map_addr(|address| address & !DEPTH)
    }
}
