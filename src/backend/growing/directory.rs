//! The directory: which shard of a growing filter owns an item now.
//!
//! The directory is a list of entries. An [`Entry`] says where a shard is and how deep it is, that is, how many bits of
//! a hash led to it. The hash range is first divided among the `roots`, the shards that the filter began with, and then
//! halved bit by bit. A list of level `n` has `2^n` entries for each root; a shard of lower depth is in several
//! adjacent entries.
//!
//! 1. A split replaces the shard's entry by one for each half. If the list has no two entries for the shard, a list of
//!    the next level is made first, with each entry twice.
//! 2. All lists up to the level of the one in use are kept up to date, each as far as it can be: it has the entries of
//!    all shards that are no deeper than its level. Where a shard is deeper, it has [`SPLIT`], and the list in use has
//!    the entries. A filter loaded from a file has no shorter lists at first.
//! 3. A join stores the entry of the whole shard in every list from its depth on. The directory never gets shorter.
//!
//! A [`SeenEntry`] of a lookup is valid for as long as the entry is unchanged: [`split`](mod@crate::guide::split) and
//! [`join`](mod@crate::guide::join) explain why lookups stay right.

use crate::backend::growing::arena::Arena;
use crate::backend::growing::site::{Entry, Site};
use crate::error::FullKind;
use crate::layout::SMALL;
use crate::layout::geometry::Mixed;
use crate::layout::roots::{Position, Roots};
use crate::sync::{AppendList, AtomicPtr, Gauge, Mutex, Ordering};

/// One more than the greatest depth of a shard.
pub(crate) const MAX_LEVELS: usize = 32;

/// The most entries of the directory per shard. With random hashes there are two or four. If someone chose all items so
/// that they share their first bits, splits do not help, and each would double the directory.
pub(crate) const MAX_ENTRIES: usize = if SMALL { 1 << 16 } else { 64 };

/// Whether the directory of this number of shards, the deepest of which has this depth, has at most [`MAX_ENTRIES`]
/// entries for each shard, or somewhat more: shards that were copied early to a file may have been split since.
pub(crate) fn is_balanced(roots: u64, deepest: u32, shards: u64) -> bool {
    let entries = u128::from(roots) << deepest;
    entries <= MAX_ENTRIES as u128 * u128::from(shards) + (1 << 20)
}

/// In place of an entry: the shard is deeper than this list.
pub(crate) const SPLIT: Entry = Entry::NONE;

type Slot = AtomicPtr<Site>;

struct List {
    slots: Box<[Slot]>,
    /// The number of entries for each root: two to the power of the list's level.
    each: u64,
}

/// The number of shards of each depth.
pub(crate) type ShardsOfDepth = [Gauge; MAX_LEVELS];

pub(crate) struct Directory {
    pub roots: Roots,
    lists: AppendList<List>,
    /// In a box, since a fixed filter takes as much room as this.
    shards_of_depth: Box<ShardsOfDepth>,
    /// Held while entries are stored or a list is added.
    changes: Mutex<()>,
}

/// The directory's entry for an item, as a lookup read it.
#[derive(Clone, Copy)]
pub(crate) struct SeenEntry<'a> {
    slot: &'a Slot,
    pub entry: Entry,
    pub hash: Mixed,
}

impl Directory {
    /// Makes a directory of the first shards of these tables, all of depth 0.
    pub(crate) fn new(roots: Roots, tables: &Arena) -> Option<Self> {
        Self::restore(roots, tables, std::iter::repeat_n(0, roots.count))
    }

    /// Makes a directory of the first shards of these tables, which have these depths, in the order of their hashes. It
    /// needs no old lists, since no reader has seen one.
    pub(crate) fn restore(
        roots: Roots,
        tables: &Arena,
        depths: impl Iterator<Item = u32> + Clone,
    ) -> Option<Self> {
        let level = depths.clone().max().unwrap_or(0);
        let sites = tables.sites_from(0).map(|(_, site)| site);
        let entries = sites.zip(depths.clone()).flat_map(|(site, depth)| {
            std::iter::repeat_n(Entry::new(site, depth), 1 << (level - depth))
        });
        let shards_of_depth = Box::new([const { Gauge::new() }; MAX_LEVELS]);
        for depth in depths {
            shards_of_depth[depth as usize % MAX_LEVELS].add(1);
        }
        let list = List::of(level, roots.count << level, entries)?;
        let (lists, changes) = (AppendList::new(list), Mutex::new(()));
        Some(Directory { roots, lists, shards_of_depth, changes })
    }

    /// Returns the entries in the list of a level, if there is one.
    fn list(&self, level: u32) -> &[Slot] {
        let list = self.lists.all().find(|list| list.level() == level);
        list.map_or(&[], |list| &list.slots)
    }

    /// Returns the level of the newest list: the greatest depth that any shard has had.
    pub(crate) fn level(&self) -> u32 {
        self.lists.newest().level()
    }

    /// Finds the shard that owns the item now.
    #[inline]
    pub(crate) fn look_up(&self, hash: Mixed) -> SeenEntry<'_> {
        self.look_up_at(hash, self.roots.position(hash))
    }

    /// The same for a caller that has the hash's position.
    #[inline]
    pub(crate) fn look_up_at(&self, hash: Mixed, position: Position) -> SeenEntry<'_> {
        loop {
            // Before `SPLIT` was stored there, another list had come into use.
            if let Some(seen) = self.look_up_once(hash, position) {
                return seen;
            }
        }
    }

    /// Reads the entry in the newest list. Returns `None` if it is [`SPLIT`].
    #[inline(always)]
    pub(crate) fn look_up_once(&self, hash: Mixed, position: Position) -> Option<SeenEntry<'_>> {
        let list = self.lists.newest();
        let slot = &list.slots[position.range_of(list.each)];
        // Acquire: pairs with `store`. A reader of the entry sees the words of the upper half, and a reader of `SPLIT`
        // finds the list that came before it.
        let entry = Entry(slot.load(Ordering::Acquire));
        (entry != SPLIT).then_some(SeenEntry { slot, entry, hash })
    }

    /// Returns the index of a hash's entry in the list of a level.
    #[inline]
    fn index(&self, hash: Mixed, level: u32) -> usize {
        self.roots.position(hash).range(level)
    }

    /// Returns the size of all lists in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let bytes = |list: &List| size_of_val(&*list.slots) + AppendList::<List>::BYTES_OF_EACH;
        self.lists.all().map(bytes).sum()
    }

    /// Returns the size in bytes of the list of a level, in a directory that began with `roots` shards.
    pub(crate) fn bytes(roots: usize, level: u32) -> usize {
        (roots << (level as usize % MAX_LEVELS)) * size_of::<Slot>()
            + AppendList::<List>::BYTES_OF_EACH
    }

    /// Returns the size in bytes of the list of a level.
    pub(crate) fn bytes_of(&self, level: u32) -> usize {
        Self::bytes(self.roots.count, level)
    }

    /// Returns the bytes that [`deepen`](Self::deepen) would add, to the only thread that may call it.
    pub(crate) fn missing_bytes(&self, depth: u32) -> usize {
        if self.lists.newest_alone().level() >= depth { 0 } else { self.bytes_of(depth) }
    }

    /// Ensures that there are entries for shards of this depth, which is at most one more than the level of the newest
    /// list.
    pub(crate) fn deepen(&self, depth: u32) -> Result<(), FullKind> {
        let _alone = self.changes.lock();
        let old = self.lists.newest_alone();
        if depth <= old.level() {
            return Ok(());
        }
        if depth as usize == MAX_LEVELS {
            return Err(FullKind::NoMemory);
        }
        let twice = old.entries().flat_map(|entry| [entry, entry]);
        self.lists.add(List::of(depth, 2 * old.slots.len(), twice).ok_or(FullKind::NoMemory)?);
        Ok(())
    }

    /// Whether the filter can do with a shard less. The directory of a file is not much larger than the shards of the
    /// file, so that a small file never takes much memory.
    pub(crate) fn allows_join(&self) -> bool {
        let all: u64 = self.shards_of_depth.iter().map(Gauge::get).sum();
        let deepest = self.shards_of_depth.iter().rposition(|shards| shards.get() > 0);
        is_balanced(self.roots.count as u64, deepest.unwrap_or(0) as u32, all.saturating_sub(1))
    }

    /// Replaces the entries of the seen shard by those of its two halves, for whose depth a list has to exist. The
    /// caller holds the shard's locks.
    pub(crate) fn replace(&self, seen: SeenEntry<'_>, lower: Entry, upper: Entry) {
        let _alone = self.changes.lock();
        let depth = seen.depth();
        let index = self.index(seen.hash, depth);
        let newest = self.lists.newest_alone().level();
        for level in depth + 1..=newest {
            self.store(level, (2 * index, depth + 1), lower);
            self.store(level, (2 * index + 1, depth + 1), upper);
        }
        if let Some(slot) = self.list(depth).get(index) {
            // Release: pairs with `look_up_once`. A reader of `SPLIT` finds the list with the halves' entries.
            slot.store(SPLIT.0, Ordering::Release);
        }
        self.shards_of_depth[lower.depth() as usize % MAX_LEVELS].add(2);
        self.shards_of_depth[depth as usize % MAX_LEVELS].add(-1);
    }

    /// Replaces the entries of two halves by that of the shard that they make up together. The caller holds the locks
    /// of both.
    pub(crate) fn unite(&self, lower: SeenEntry<'_>, whole: Entry) {
        let _alone = self.changes.lock();
        let depth = whole.depth();
        let index = self.index(lower.hash, depth);
        for level in depth..=self.lists.newest_alone().level() {
            self.store(level, (index, depth), whole);
        }
        self.shards_of_depth[depth as usize % MAX_LEVELS].add(1);
        self.shards_of_depth[lower.depth() as usize % MAX_LEVELS].add(-2);
    }

    /// Stores the entry of the shard with this index among those of its depth in the list of a level, if there is one.
    fn store(&self, level: u32, (index, depth): (usize, u32), entry: Entry) {
        let each = 1 << (level - depth);
        let slots = self.list(level).get(each * index..each * (index + 1));
        for slot in slots.unwrap_or(&[]) {
            // Release: pairs with `look_up_once` and `is_unchanged`.
            slot.store(entry.0, Ordering::Release);
        }
    }

    /// Returns the shard of the other half, if that has not been split itself. A root has none.
    pub(crate) fn sibling(&self, seen: SeenEntry<'_>) -> Option<SeenEntry<'_>> {
        let depth = seen.depth();
        if depth == 0 {
            return None;
        }
        let other = self.roots.first_hash(self.index(seen.hash, depth) ^ 1, depth)?;
        Some(self.look_up(other)).filter(|other| other.depth() == depth)
    }

    /// Whether the shard is the upper half of what it was split from.
    pub(crate) fn is_upper(&self, seen: SeenEntry<'_>) -> bool {
        self.index(seen.hash, seen.depth()) % 2 == 1
    }

    /// Returns the shards, in the order of their hashes.
    pub(crate) fn shards(&self) -> impl Iterator<Item = SeenEntry<'_>> {
        let mut next = Some(Mixed(0));
        std::iter::from_fn(move || {
            let seen = self.look_up(next?);
            next = self.end(seen);
            Some(seen)
        })
    }

    /// Returns the first hash of the next shard, if there is one.
    pub(crate) fn end(&self, seen: SeenEntry<'_>) -> Option<Mixed> {
        let depth = seen.depth();
        self.roots.first_hash(self.index(seen.hash, depth) + 1, depth)
    }

    /// Returns the fraction of all hashes that lead to the shard.
    pub(crate) fn share(&self, seen: SeenEntry<'_>) -> f64 {
        let depth = seen.depth();
        self.roots.share(self.index(seen.hash, depth), depth)
    }

    /// Returns the least depth of any shard. While other threads split shards, it may be out of date.
    pub(crate) fn shallowest(&self) -> u32 {
        let any = self.shards_of_depth.iter().position(|shards| shards.get() > 0);
        any.unwrap_or(0) as u32
    }
}

impl List {
    fn level(&self) -> u32 {
        self.each.trailing_zeros()
    }

    /// Returns the entries to a caller that holds the lock of the changes.
    fn entries(&self) -> impl Iterator<Item = Entry> {
        // Relaxed: every store is made under that lock.
        self.slots.iter().map(|slot| Entry(slot.load(Ordering::Relaxed)))
    }

    fn of(level: u32, count: usize, entries: impl Iterator<Item = Entry>) -> Option<Self> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(count).ok()?;
        slots.extend(entries.map(|entry| Slot::new(entry.0)));
        Some(List { slots: slots.into(), each: 1 << level })
    }
}

impl<'a> SeenEntry<'a> {
    #[inline]
    pub(crate) fn depth(self) -> u32 {
        self.entry.depth()
    }

    /// Whether the entry is unchanged, or the same again.
    #[inline]
    pub(crate) fn is_unchanged(self) -> bool {
        // Acquire: the entry may be the same as before because of a split and a join. Then the reader's last load of
        // the version sees that of the join.
        self.slot.load(Ordering::Acquire) == self.entry.0
    }
}

#[cfg(test)]
mod tests;
