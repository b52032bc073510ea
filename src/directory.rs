//! Which shard of a growing filter has an item now.
//!
//! The directory is a list of [`Entry`]s, each of which says where a shard is, and how many bits of a
//! hash, its *depth*, led to it. The hashes are first divided among `roots`, the shards that the
//! filter began with, and then halved by one bit after the other. A list of level `n` has `2^n`
//! entries for each root; a shard of a lower depth stands in several of them, side by side.
//!
//! A shard that is split gets another entry for each of its halves. When the list has no two entries
//! for it, a list of the next level is made, with each entry twice. Old lists stay until the filter
//! goes (together they are as long as the newest one); so readers need not be waited for.
//!
//! # How does a lookup stay right during a split?
//!
//! What a reader was told is a [`Tenure`]: it holds as long as the list is the newest one and the
//! entry is still in it. A shard is split in this order, under all its locks:
//!
//! ```text
//! S1  the versions of all its stripes become odd
//! S2  the items of the upper half are stored in a new shard, those of the lower stay in theirs
//! S3  the entries of both halves are stored in the directory
//! S4  the versions become even, two more than before
//! ```
//!
//! and the lookup does:
//!
//! ```text
//! L1  reads the newest list's level, and the entry        Acquire
//! L2  reads the version of one of the item's two stripes  Acquire
//! L3  reads both words                                    Acquire
//! L4  the version again: still the same, and even?
//! L5  the level and the entry again: still the same? Then the words answer, yes or no.
//! ```
//!
//! If L3 saw a word that S2 stored, the version that L4 reads is that of S1 or later. Then it differs
//! from that of L2, or is odd, or L2 came after S4. In the last case S3 is over for whoever read
//! the version of S4, and L5 finds another entry, unless L1 had the new one. And if L3 saw no word
//! that S2 stored, the words are those of before the split, as L1's entry was. A hit is not
//! believed sooner than a miss here, as it is in a fixed filter: a split changes what a lane means.
//!
//! A reader that finds the upper half's entry finds the items there, since S3 is `Release` and L1 is
//! `Acquire`. One that comes too early takes a lock in the end, and so waits for one split at most.
//!
//! Writers ask for their tenure again when they have a lock of the shard. Who splits it holds all of
//! them from S1 to S4, so with one lock in hand the answer stays true.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | an entry, stored | `Release` | L1: the words of the upper half are seen. Twin `an_entry_is_stored_relaxed` |
//! | an entry, L1 | `Acquire` | the same. Twin `an_entry_is_read_relaxed` |
//! | the level, stored | `Release` | L1: the entries of the new list are seen. (The list itself comes through a `OnceLock`.) |
//! | the level, L1 | `Acquire` | the same |
//! | both, L5 | `Relaxed` | after L3 and L4 in the reader, whose loads are `Acquire`; S3 before S4 in the writer, whose store is `Release` |

use crate::aging::GROWING_BUCKETS;
use crate::geometry::Mixed;
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering};
use std::sync::OnceLock;

/// More than the most bits of a hash that lead to a shard.
pub const MOST_LEVELS: usize = 32;

/// Where a shard is, and how many bits of the hash are the same for all its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub depth: u32,
    /// In which of the filter's tables.
    pub table: usize,
    /// The first of its buckets in that table.
    pub base: usize,
}

impl Entry {
    #[inline]
    fn packed(self) -> u64 {
        (self.base as u64) << 16 | (self.table as u64) << 8 | u64::from(self.depth)
    }

    #[inline]
    fn unpacked(packed: u64) -> Self {
        Entry {
            depth: packed as u32 & 0xFF,
            table: (packed >> 8) as usize & 0xFF,
            base: (packed >> 16) as usize,
        }
    }
}

type List = Box<[AtomicU64]>;

pub struct Directory {
    /// The shards of the beginning.
    roots: usize,
    /// Of the newest list.
    level: AtomicU32,
    lists: [OnceLock<List>; MOST_LEVELS],
    /// Held by whoever stores entries or adds a list.
    changes: Mutex<()>,
}

/// What the directory said about an item.
#[derive(Clone, Copy)]
pub struct Tenure<'a> {
    directory: &'a Directory,
    slot: &'a AtomicU64,
    level: u32,
    packed: u64,
    hash: Mixed,
}

impl Directory {
    /// A directory of shards that are all in the first table.
    pub fn new(roots: usize) -> Option<Self> {
        let bases = (0..roots).map(|root| root * GROWING_BUCKETS as usize);
        let list = list_of(roots, bases.map(|base| Entry { depth: 0, table: 0, base }.packed()))?;
        let lists = std::array::from_fn(|_| OnceLock::new());
        let directory =
            Directory { roots, level: AtomicU32::new(0), lists, changes: Mutex::new(()) };
        let _ = directory.lists[0].set(list);
        Some(directory)
    }

    pub fn roots(&self) -> usize {
        self.roots
    }

    #[inline]
    fn list(&self, level: u32) -> &[AtomicU64] {
        self.lists[level as usize % MOST_LEVELS].get().map_or(&[], |list| list)
    }

    pub fn level(&self) -> u32 {
        self.level.load(Ordering::Acquire)
    }

    /// The shard that has the item now.
    #[inline]
    pub fn look_up(&self, hash: Mixed) -> Tenure<'_> {
        let level = self.level.load(Ordering::Acquire);
        let slot = &self.list(level)[self.index(hash, level)];
        let packed = slot.load(Ordering::Acquire);
        Tenure { directory: self, slot, level, packed, hash }
    }

    /// The number of a hash's entry in the list of a level.
    #[inline]
    fn index(&self, hash: Mixed, level: u32) -> usize {
        let (root, rest) = hash.scaled(self.roots);
        // Two shifts, since there is none by 64.
        (root << (level & 63)) + (rest >> 1 >> (63 - (level & 63))) as usize
    }

    /// What so many lists take, up to the one of this level.
    fn bytes(&self, level: u32) -> usize {
        ((self.roots << (level + 1)) - self.roots) * size_of::<AtomicU64>()
    }

    pub fn heap_bytes(&self) -> usize {
        self.bytes(self.level())
    }

    /// How many bytes more it takes to have entries for shards of this depth.
    pub fn missing_bytes(&self, depth: u32) -> usize {
        self.bytes(depth.max(self.level())) - self.heap_bytes()
    }

    /// Makes sure that there are entries for shards of this depth.
    pub fn deepen(&self, depth: u32) -> Result<(), NoMemory> {
        let _alone = self.changes.lock();
        while self.level() < depth {
            let level = self.level();
            let old = self.list(level);
            let entries = old.iter().map(|entry| entry.load(Ordering::Relaxed));
            let list = list_of(2 * old.len(), entries.flat_map(|entry| [entry, entry]));
            let next = self.lists.get(level as usize + 1).ok_or(NoMemory)?;
            let _ = next.set(list.ok_or(NoMemory)?);
            self.level.store(level + 1, Ordering::Release);
        }
        Ok(())
    }

    /// Puts two shards where the one of this tenure was. The list has to be deep enough.
    pub fn replace(&self, tenure: Tenure<'_>, lower: Entry, upper: Entry) {
        let _alone = self.changes.lock();
        let level = self.level();
        let depth = tenure.entry().depth;
        let first = self.index(tenure.hash, depth) << (level - depth);
        let half = 1 << (level - depth - 1);
        let slots = &self.list(level)[first..first + 2 * half];
        for (number, slot) in slots.iter().enumerate() {
            let entry = if number < half { lower } else { upper };
            slot.store(entry.packed(), Ordering::Release);
        }
    }

    /// The shards in the order of the hashes that lead to them.
    pub fn shards(&self) -> impl Iterator<Item = Tenure<'_>> {
        let mut next = Some(Mixed(0));
        std::iter::from_fn(move || {
            let tenure = self.look_up(next?);
            next = tenure.end();
            Some(tenure)
        })
    }

    /// The lowest depth of a shard.
    pub fn shallowest(&self) -> u32 {
        let entries = self.list(self.level()).iter();
        entries.map(|slot| Entry::unpacked(slot.load(Ordering::Relaxed)).depth).min().unwrap_or(0)
    }
}

/// No more lists can be had.
#[derive(Debug)]
pub struct NoMemory;

fn list_of(count: usize, entries: impl Iterator<Item = u64>) -> Option<List> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).ok()?;
    list.extend(entries.map(AtomicU64::new));
    Some(list.into())
}

impl<'a> Tenure<'a> {
    #[inline]
    pub fn entry(self) -> Entry {
        Entry::unpacked(self.packed)
    }

    #[inline]
    pub fn hash(self) -> Mixed {
        self.hash
    }

    /// Whether the directory still says the same.
    #[inline]
    pub fn holds(self) -> bool {
        self.directory.level.load(Ordering::Relaxed) == self.level
            && self.slot.load(Ordering::Relaxed) == self.packed
    }

    /// The first hash that belongs to the next shard, if there is one.
    pub fn end(self) -> Option<Mixed> {
        let depth = self.entry().depth;
        let next = self.directory.index(self.hash, depth) + 1;
        let parts = self.directory.roots << depth;
        // The lowest hash of which `parts` times are `next` times 2^64 and more.
        (next < parts).then(|| Mixed(((next as u128) << 64).div_ceil(parts as u128) as u64))
    }
}
