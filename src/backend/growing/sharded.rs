//! The shards of a filter that grows.
//!
//! When an item finds no room in its shard, the shard is [split](mod@crate::backend::growing::split): half of
//! its items move to a new shard of the same size, and the [directory](crate::backend::growing::directory)
//! gets an entry for each half. The anchor of an item's fingerprint, which never changes, leads from either of
//! its buckets to the other, so each item keeps the number of its bucket, in the old shard or in the new one. No
//! item is hashed again, and the halves always have room for the items.
//! [`shrinking`](crate::layout::shrinking) describes what the fingerprints lose, and [`split_policy`] when a
//! split is refused.

mod joins;
pub(crate) mod shards;
pub(crate) mod split_policy;

use crate::backend::growing::directory::{Directory, MAX_ENTRIES, SeenEntry, ShardsOfDepth};
use crate::backend::growing::sharded::split_policy::split_helps;
use crate::backend::growing::split::{SplitFigures, split};
use crate::backend::growing::tables::{Entry, Site, Tables};
use crate::backend::growing::until_split::{Shared, UntilSplit};
use crate::backend::growing::void::VoidItems;
use crate::backend::shards::{Loaded, Memory, Room};
use crate::error::{self, BuildError, BuildErrorKind, Full, FullKind};
use crate::layout::geometry::{Mixed, Place};
use crate::layout::roots::Position;
use crate::layout::sizing::Layout;
use crate::shard::{AllLocks, Shard, path};
use crate::sync::{Gauge, Mutex, RwLock};
use crate::table::ticking::Ticking;

/// Returns the memory that a filter takes beside itself, its shards and the lists of its directory.
pub(crate) fn bytes_beside(layout: &Layout) -> usize {
    let ticking = if layout.lanes().forgets() { size_of::<Ticking>() } else { 0 };
    size_of::<Layout>() + size_of::<Tables>() + size_of::<ShardsOfDepth>() + ticking
}

pub(crate) struct Sharded {
    pub(crate) directory: Directory,
    pub(crate) shared: Shared,
    /// Held while the tables or the directory grow, and while a shard is given back.
    growth: Mutex<()>,
    /// Held by the thread that joins shards.
    joins: Mutex<()>,
    /// Held for reading while the filter is copied shard by shard, and for writing by a join: no shard may begin or end
    /// where a copy does not expect it.
    copying: RwLock<()>,
    max_bytes: Gauge,
    /// The layout of the new filter. Its limit may have changed since. (In a box, since a fixed filter takes as much
    /// room as this.)
    layout: Box<Layout>,
}

/// The number of shards below which a filter is split for a crowd however empty it is.
const FEW_SHARDS: usize = 16;

pub(crate) type Leased<'a, W = bool> = Shard<UntilSplit<'a, W>>;

impl Sharded {
    /// Makes the shards that a filter begins with.
    pub(crate) fn new(layout: Layout) -> Result<Self, BuildError> {
        let least = Self::initial_bytes(&layout);
        if least > layout.max_bytes {
            let text = format!(
                "a limit of {} bytes is too small: a filter of this capacity and rate begins with \
                 {least}, so allow at least that",
                layout.max_bytes
            );
            return Err(BuildError::new(BuildErrorKind::LimitTooSmall, text));
        }
        // The tables first: if the system refuses them, nothing has been written yet. The directory is
        // written when it is made.
        let tables =
            Box::new(Tables::new(layout.geometry.clone()).map_err(|_| error::NoMemory(least))?);
        let directory = Directory::new(layout.roots(), &tables).ok_or(error::NoMemory(least))?;
        Ok(Self::with(layout, directory, tables, 0))
    }

    /// Returns the memory that a filter of this layout begins with, including itself.
    pub(crate) fn initial_bytes(layout: &Layout) -> usize {
        let directory = Directory::bytes(layout.geometry.shards(), 0);
        layout.own_bytes + bytes_beside(layout) + Tables::bytes(&layout.geometry) + directory
    }

    /// Makes the shards of a file or of pieces. The error is the number of bytes that could not be allocated.
    pub(crate) fn restore(layout: Layout, loaded: Loaded) -> Result<Self, usize> {
        let Loaded { memory: Memory::Tables(tables), blocks, void, time } = loaded else {
            return Err(0);
        };
        let depths = blocks.iter().map(|block| block.depth);
        let directory = Directory::restore(layout.roots(), &tables, depths);
        let directory = directory.ok_or(tables.heap_bytes())?;
        let sharded = Self::with(layout, directory, tables, void);
        if let Some((ticking, time)) = sharded.ticking().zip(time) {
            ticking.continue_from(time);
        }
        Ok(sharded)
    }

    /// Makes the backend of the shards that are in use in these tables, with their figures. Their void lanes stand for
    /// `void` items, but never for more than there are of them.
    fn with(layout: Layout, directory: Directory, tables: Box<Tables>, void: u64) -> Self {
        let shrinking = layout.shrinking();
        let void_lanes = |(_, site): (usize, &Site)| site.void_lanes(&shrinking, None) as u64;
        let void = VoidItems::new(void.min(tables.sites_from(0).map(void_lanes).sum()));
        let lanes = layout.lanes();
        let ticking = lanes.forgets().then(|| Box::new(Ticking::new(lanes.remembers())));
        let shared = Shared { shrinking, tables, void, ticking };
        let max_bytes = Gauge::new();
        max_bytes.set(layout.max_bytes as u64);
        Sharded {
            directory,
            shared,
            growth: Mutex::new(()),
            joins: Mutex::new(()),
            copying: RwLock::new(()),
            max_bytes,
            layout: Box::new(layout),
        }
    }

    /// Returns all memory that the filter holds, including itself.
    fn bytes(&self) -> usize {
        self.layout.own_bytes + self.heap_bytes()
    }

    #[inline]
    pub(crate) fn site<'a>(&'a self, seen: SeenEntry<'a>) -> &'a Site {
        self.shared.tables.at(seen.entry)
    }

    #[inline]
    pub(crate) fn is_wide(&self) -> bool {
        self.shared.shrinking.lanes().is_wide()
    }

    pub(crate) fn shard<'a>(&'a self, seen: SeenEntry<'a>) -> Leased<'a> {
        self.leased(seen, self.is_wide())
    }

    /// Returns the shard of this entry. `is_wide` is whether buckets are wide, as a value or a type.
    #[inline(always)]
    fn leased<'a, W: Into<bool> + Copy>(
        &'a self,
        seen: SeenEntry<'a>,
        is_wide: W,
    ) -> Leased<'a, W> {
        let site = self.site(seen);
        let (words, versions) = site.memory(is_wide.into());
        let raw = site.raw(is_wide);
        Shard(UntilSplit { seen, shared: &self.shared, raw, words, versions })
    }

    /// Returns the shard of this entry, and the place of the entry's item there.
    #[inline(always)] // Like the operations: the place must not pass through memory.
    fn located<'a, W: Into<bool> + Copy>(
        &'a self,
        seen: SeenEntry<'a>,
        position: Position,
        is_wide: W,
    ) -> (Leased<'a, W>, Place) {
        let (hash, depth) = (seen.hash, seen.depth());
        let place = self.shared.shrinking.place(hash, position.in_root, depth, is_wide.into());
        (self.leased(seen, is_wide), place)
    }

    #[inline]
    pub(crate) fn position(&self, hash: Mixed) -> Position {
        self.directory.roots.position(hash)
    }

    /// Makes room for an item that found none in its shard, by splitting the shard.
    ///
    /// # Errors
    ///
    /// [`Full`] if [a split would not help](split_helps) the item, or if there is no memory for the split.
    #[cold]
    #[inline(never)]
    pub(crate) fn make_room(&self, shard: Leased<'_>, place: Place) -> Result<Room, Full> {
        let (seen, shrinking) = (shard.seen, &self.shared.shrinking);
        let site = self.site(seen);
        {
            // A refusal is decided under the item's own locks. A split or a clear holds all locks of the
            // shard, so neither is half done then, and the writes of earlier ones are visible.
            let Ok(own) = shard.lock(place) else { return Ok(Room::Found) };
            if let Err(kind) = split_helps(
                shard,
                &own,
                place,
                || site.void_lanes(shrinking, None),
                || self.is_dense(),
            ) {
                return path::find(shard, place).map(|_| Room::Found).ok_or(Full::new(kind));
            }
        }
        let _a_split = self.shared.void.splits.read();
        let Ok(locked) = shard.lock_all() else { return Ok(Room::Found) };
        let void = || site.void_lanes(shrinking, None);
        let helps = split_helps(shard, &locked, place, void, || self.is_dense()).is_ok();
        if !helps {
            return Ok(Room::Found);
        }
        self.split_locked(shard, &locked)
    }

    /// Splits a shard that is too small for the entries of another filter, whatever its own load.
    #[cold]
    #[inline(never)]
    pub(crate) fn split_for_all(&self, shard: Leased<'_>) -> Result<Room, Full> {
        let _a_split = self.shared.void.splits.read();
        let Ok(locked) = shard.lock_all() else { return Ok(Room::Found) };
        self.split_locked(shard, &locked)
    }

    /// Splits a shard. The caller holds the `splits` of void items for reading.
    fn split_locked(&self, shard: Leased<'_>, locked: &AllLocks<'_>) -> Result<Room, Full> {
        let seen = shard.seen;
        let (site, depth) = (self.site(seen), seen.depth() + 1);
        let shrinking = &self.shared.shrinking;
        let (new, new_locked) = self.allocate(depth)?;
        let upper = (new.shard(), &new_locked);
        let now = shard.now();
        if now.is_passing() {
            // The shard has been swept. After a tick that expired everything, entries of another filter may have come
            // that are older than it.
            upper.0.mark_swept(&new_locked, now);
        }
        split((shard.raw, locked), upper, shrinking, |SplitFigures { surplus, newly_void }| {
            let halves = [site, new];
            halves
                .iter()
                .zip(surplus)
                .for_each(|(site, surplus)| site.surplus_gauge().set(surplus));
            self.shared.void.add(newly_void);
            let [lower, upper] = halves.map(|site| Entry::new(site, depth));
            self.directory.replace(seen, lower, upper);
        });
        Ok(Room::Made)
    }

    /// Whether the filter may be split further [for a crowd](split_policy), because it is small, or because
    /// an eighth of all slots are taken.
    fn is_dense(&self) -> bool {
        let slots = self.buckets() * self.layout.geometry.lanes().slots();
        self.shared.tables.shards() < FEW_SHARDS || self.items() >= slots / 8
    }

    /// Provides what a split needs: an unused shard, and entries in the directory for shards of this depth.
    /// Returns the shard with all its locks: ticks go through it from now on, and have to wait until it has
    /// its items and figures.
    ///
    /// The caller holds all locks of the shard that is to be split, and other splits wait here for their
    /// turn. Usually an unused shard is at hand and the directory is deep enough. Per doubling of the filter,
    /// a table is allocated a few dozen times, and the directory is copied once or twice.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is not enough memory, or
    ///
    /// * if the directory would have more than [`MAX_ENTRIES`] entries per shard. It has two or four when
    ///   hashes are random. Items that someone chose so that they share their first bits would otherwise
    ///   double it with each split;
    /// * if the filter would exceed its limit of bytes. A new table leaves room for the directory's next
    ///   level, so that its shards can be used.
    fn allocate(&self, depth: u32) -> Result<(&Site, AllLocks<'_>), Full> {
        let _alone = self.growth.lock();
        let limit = Full::new(FullKind::LimitReached);
        let entries = self.directory.missing_bytes(depth);
        let most = MAX_ENTRIES * (self.shared.tables.shards() + 1);
        if self.directory.roots.count << depth > most {
            return Err(Full::new(FullKind::NoRoomNearby));
        }
        let left = self.max_bytes().checked_sub(self.bytes() + entries).ok_or(limit)?;
        let for_a_table = left.saturating_sub(self.directory.bytes_of(depth + 1));
        let tables = &self.shared.tables;
        let spare = tables.next_unused(for_a_table).map_err(Full::new)?;
        self.directory.deepen(depth).map_err(Full::new)?;
        let locked = spare.site.shard().lock_raw();
        tables.take_into_use(spare);
        Ok((spare.site, locked))
    }
}

#[cfg(test)]
mod tests;
