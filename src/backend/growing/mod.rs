//! A filter that grows: shards of equal size, which are split when they are full.
//!
//! When an item finds no room in its shard, the shard is [split](mod@crate::guide::split). Each item keeps the number
//! of its bucket, in the old shard or in the new one, so the halves always have room for the items. Two halves that
//! together fit well into one shard are [joined](mod@crate::guide::join) again. [`shrinking`](crate::layout::shrinking)
//! has what the fingerprints lose.
//!
//! # The path to a shard
//!
//! 1. The hash has a [position](crate::layout::roots::Position) among the hashes of the shards that the filter began with.
//! 2. The [`directory`] has an entry there, which is valid as long as the [`lease`]: until the shard is split or joined.
//! 3. The entry is the address of the shard's [`site`]: its memory in one of the tables of the [`arena`].
//!
//! # Void lanes
//!
//! A [void](crate::layout::shrinking) lane goes to both halves of a split, and nothing tells which of its copies is the
//! item's own. So a void lane is *settled*: lookups find it, but no stripe counts it, and no removal takes it. A clear
//! and a tick erase it like any other lane. A filter is planned so that no lane becomes void before it has grown as far
//! as expected ([`sizing`](crate::layout::sizing)).

pub(crate) mod arena;
pub(crate) mod directory;
pub(crate) mod join;
pub(crate) mod lease;
pub(crate) mod site;
pub(crate) mod split;

use crate::backend::growing::arena::Arena;
use crate::backend::growing::directory::{Directory, SeenEntry, ShardsOfDepth};
use crate::backend::growing::lease::{Shared, UntilSplit, WasSplit};
use crate::backend::growing::site::Site;
use crate::backend::retry::{Located, Room, Shards};
use crate::error::{self, BuildError, BuildErrorKind, Full};
use crate::layout::geometry::{Bucket, Geometry, Mixed, Place, SHARD_BUCKETS};
use crate::layout::roots::{Parts, Position};
use crate::layout::sizing::{Layout, rate_of_a_lane};
use crate::layout::stamps::{ByStamp, Moment};
use crate::shard::raw::{Known, RawShard, items_by_stamp};
use crate::shard::{Copied, Shard};
use crate::sync::{Gauge, Mutex, RwLock, RwLockReadGuard};
use crate::table::ticking::{Goal, Ticking, Time};
use std::ops::Range;

/// The number of segments from which the rate of a larger filter is estimated: a power of two.
const SAMPLE: u64 = 128;

/// Returns the memory that a filter takes beside itself, its shards and the lists of its directory.
pub(crate) fn bytes_beside(layout: &Layout) -> usize {
    let ticking = if layout.lanes().forgets() { size_of::<Ticking>() } else { 0 };
    size_of::<Layout>() + size_of::<Arena>() + size_of::<ShardsOfDepth>() + ticking
}

pub(crate) struct Growing {
    pub(crate) directory: Directory,
    pub(crate) shared: Shared,
    /// Held while the tables or the directory grow, and while a shard is given back.
    growth: Mutex<()>,
    /// Held by the thread that joins shards.
    joins: Mutex<()>,
    /// Held for reading by a split or a join, which move items to another shard. Held for writing by a clear and by the
    /// beginning of a tick, which have to meet each item in one of the two. Locked before any lock of a shard. No
    /// thread waits to lock `copying` for writing, so `copying` may be locked before or after.
    resharding: RwLock<()>,
    /// Held for reading while the filter is copied shard by shard, and for writing by a join: no shard may begin or end
    /// where a copy does not expect it.
    copying: RwLock<()>,
    max_bytes: Gauge,
    /// The layout of the new filter. Its limit may have changed since. In a box, since a fixed filter takes as much
    /// room.
    layout: Box<Layout>,
}

pub(crate) type Leased<'a, W = bool> = Shard<UntilSplit<'a, W>>;

impl Growing {
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
        // The tables first: if the system refuses them, nothing has been written yet.
        let tables =
            Box::new(Arena::new(layout.geometry.clone()).map_err(|_| error::NoMemory(least))?);
        let directory = Directory::new(layout.roots(), &tables).ok_or(error::NoMemory(least))?;
        Ok(Self::with(layout, directory, tables))
    }

    /// Returns the memory that a filter of this layout begins with, including itself.
    pub(crate) fn initial_bytes(layout: &Layout) -> usize {
        let directory = Directory::bytes(layout.geometry.shards(), 0);
        layout.own_bytes + bytes_beside(layout) + Arena::bytes(&layout.geometry) + directory
    }

    /// Makes a filter of all shards that are in use in these tables, which have these depths. The error is the number
    /// of bytes that could not be allocated.
    pub(crate) fn restore(
        layout: Layout,
        tables: Box<Arena>,
        depths: impl Iterator<Item = u32> + Clone,
        time: Option<Time>,
    ) -> Result<Self, usize> {
        let directory = Directory::restore(layout.roots(), &tables, depths);
        let directory = directory.ok_or(tables.heap_bytes())?;
        let growing = Self::with(layout, directory, tables);
        growing.shared.may_have_void.set(1);
        if let Some((ticking, time)) = growing.ticking().zip(time) {
            ticking.continue_from(time);
        }
        Ok(growing)
    }

    /// Makes the backend of the shards that are in use in these tables.
    fn with(layout: Layout, directory: Directory, tables: Box<Arena>) -> Self {
        let lanes = layout.lanes();
        let ticking = lanes.forgets().then(|| Box::new(Ticking::new(lanes.remembers())));
        let may_have_void = Gauge::new();
        let shared = Shared { shrinking: layout.shrinking(), tables, ticking, may_have_void };
        let max_bytes = Gauge::new();
        max_bytes.set(layout.max_bytes as u64);
        Growing {
            directory,
            shared,
            growth: Mutex::new(()),
            joins: Mutex::new(()),
            resharding: RwLock::new(()),
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

    /// Returns the shard of this entry. `is_wide` is a value or a type.
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
}

impl Growing {
    /// Returns how many absent items the lanes of a shard match, in units of a new lane.
    fn match_weight(&self, site: &Site) -> f64 {
        let shard = site.shard();
        self.match_weight_of(shard, shard.buckets())
    }

    fn match_weight_of(&self, shard: RawShard<'_>, buckets: impl Iterator<Item = Bucket>) -> f64 {
        let weight = |words| self.shared.shrinking.match_weight(words);
        shard.recent_words(buckets).map(weight).sum::<u64>() as f64
    }

    /// Returns the match weight of a shard, on average over all hashes.
    pub(crate) fn match_weight_of_all(&self) -> f64 {
        let part = |seen| self.directory.share(seen) * self.match_weight(self.site(seen));
        self.directory.shards().map(part).sum()
    }

    /// Returns the same average over a sample: a segment for each hash in the middle of equal parts of all hashes.
    pub(crate) fn match_weight_of_some(&self) -> f64 {
        let middle = |part| Mixed((2 * part + 1) << (u64::BITS - SAMPLE.ilog2() - 1));
        let of_part = |part| {
            let shard = self.site(self.directory.look_up(middle(part))).shard();
            let stripes = shard.own_stripes();
            let one = stripes.start + part as usize % stripes.len();
            self.match_weight_of(shard, shard.buckets_of(one)) * stripes.len() as f64
        };
        (0..SAMPLE).map(of_part).sum::<f64>() / SAMPLE as f64
    }
}

impl Growing {
    pub(crate) fn geometry(&self) -> &Geometry {
        &self.layout.geometry
    }

    pub(crate) fn capacity(&self) -> usize {
        self.layout.capacity
    }

    pub(crate) fn layout(&self) -> Layout {
        Layout { max_bytes: self.max_bytes(), ..(*self.layout).clone() }
    }

    pub(crate) fn ticking(&self) -> Option<&Ticking> {
        self.shared.ticking.as_deref()
    }

    pub(crate) fn buckets(&self) -> usize {
        self.shared.tables.shards() * self.layout.geometry.buckets() as usize
    }

    pub(crate) fn items(&self) -> usize {
        self.shared.tables.items().try_into().unwrap_or(0)
    }

    pub(crate) fn items_by_stamp(&self) -> ByStamp {
        let shards = self.shared.tables.sites_from(0).map(|(_, site)| site.shard());
        items_by_stamp(self.geometry().lanes(), shards)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let shards = self.directory.heap_bytes() + self.shared.tables.heap_bytes();
        bytes_beside(&self.layout) + shards
    }

    /// The rate is the expected number of lanes in the two buckets of an absent item that match it.
    pub(crate) fn rate(&self) -> f64 {
        let is_small = self.segments() as u64 <= SAMPLE;
        let match_weight =
            if is_small { self.match_weight_of_all() } else { self.match_weight_of_some() };
        match_weight * rate_of_a_lane(self.layout.geometry.lanes())
            / f64::from(self.layout.geometry.buckets())
    }

    pub(crate) fn clear(&self) {
        let _no_resharding = self.resharding.write();
        for seen in self.directory.shards() {
            let _cleared = self.site(seen).shard().clear();
        }
    }

    pub(crate) fn copy_shard(
        &self,
        next: &mut Option<u64>,
        buckets: &mut [u64],
    ) -> Option<(u32, Copied)> {
        loop {
            let seen = self.directory.look_up(Mixed((*next)?));
            // If the shard has been split meanwhile, its halves are copied one after the other.
            if let Ok(copied) = self.shard(seen).copy(buckets) {
                *next = self.directory.end(seen).map(|hash| hash.0);
                return Some((seen.depth(), copied));
            }
        }
    }

    pub(crate) fn after(&self, next: u64) -> Option<u64> {
        self.directory.end(self.directory.look_up(Mixed(next))).map(|hash| hash.0)
    }

    pub(crate) fn hash_in(&self, next: u64) -> Mixed {
        Mixed(next)
    }

    /// Returns the number of segments of all shards that are in use, or were.
    pub(crate) fn segments(&self) -> usize {
        self.shared.tables.segments()
    }

    pub(crate) fn sweep(&self, segments: Range<usize>, now: Moment) {
        let in_a_shard = self.layout.geometry.stripes() as usize;
        let sites = self.shared.tables.all_from(segments.start / in_a_shard);
        for (number, site) in sites.take_while(|(number, _)| number * in_a_shard < segments.end) {
            let (shard, first) = (site.shard(), number * in_a_shard);
            for segment in segments.start.max(first)..segments.end.min(first + in_a_shard) {
                // A shard that is out of use may have no memory either. A split that reuses it must observe the time.
                let stripe = shard.own_stripes().start + segment - first;
                shard.sweep(
                    stripe,
                    now,
                    || site.is_in_use(),
                    |words| self.shared.expired_void_lanes(words, now),
                );
            }
        }
    }

    /// Begins a tick, while no shard is split or joined.
    pub(crate) fn begin_tick(&self, goal: Goal) -> Option<u64> {
        let _no_resharding = self.resharding.write();
        self.ticking()?.begin(goal)
    }

    pub(crate) fn level(&self) -> u32 {
        self.directory.level()
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.max_bytes.get() as usize
    }

    pub(crate) fn set_max_bytes(&self, bytes: usize) {
        self.max_bytes.set(bytes as u64);
    }

    pub(crate) fn keep_shards(&self) -> RwLockReadGuard<'_> {
        self.copying.read()
    }

    pub(crate) fn join_from(&self, cursor: u64, most: usize) -> Option<u64> {
        let _alone = self.joins.lock();
        self.join_alone(cursor, most)
    }

    pub(crate) fn join_all_if_alone(&self) {
        if let Some(_alone) = self.joins.try_lock() {
            self.join_alone(0, usize::MAX);
        }
    }

    /// Splits the shard of this item, whatever its load. Returns whether it was possible.
    #[cfg(all(unix, feature = "durable"))]
    pub(crate) fn split_shard_of(&self, hash: Mixed) -> bool {
        self.split_for_all(self.shard(self.directory.look_up(hash))).is_ok()
    }
}

#[derive(Clone, Copy)]
pub(crate) struct GrowingShards<'a, const WIDE: bool>(pub &'a Growing);

impl<'a, const WIDE: bool> Shards<'a> for GrowingShards<'a, WIDE> {
    type Lease = UntilSplit<'a, Known<WIDE>>;

    type Spot = Self::Ahead;

    #[inline(always)]
    fn spot(self, hash: Mixed) -> Self::Spot {
        let (shard, place) = self.locate(hash);
        (shard.seen, place)
    }

    #[inline(always)]
    fn request(self, spot: Self::Spot) {
        let (shard, place) = self.fetched(spot);
        shard.prefetch(place);
    }

    #[inline(always)]
    fn look_at(self, spot: Self::Spot) -> Option<bool> {
        let (shard, place) = self.fetched(spot);
        shard.look(place)
    }

    #[inline(always)]
    fn look(self, hash: Mixed) -> Option<bool> {
        let position = self.0.position(hash);
        let seen = self.0.directory.look_up_once(hash, position)?;
        let (shard, place) = self.0.located(seen, position, Known::<WIDE>);
        shard.look(place)
    }

    /// Finding the table again is cheaper than keeping its address.
    type Ahead = (SeenEntry<'a>, Place);

    #[inline]
    fn is_ticking(self) -> bool {
        self.0.shared.ticking.as_deref().is_some_and(|ticking| ticking.clock().is_passing())
    }

    #[inline(always)]
    fn locate(self, hash: Mixed) -> Located<'a, Self> {
        let position = self.0.position(hash);
        self.0.located(self.0.directory.look_up_at(hash, position), position, Known::<WIDE>)
    }

    /// Recent words decide that it does. So of threads that race, each may add one copy too many.
    fn takes_another(self, shard: Shard<Self::Lease>, place: Place) -> Result<bool, WasSplit> {
        let takes = || self.0.shared.shrinking.takes_another(shard.matches_of(place));
        if takes() {
            return Ok(true);
        }
        // Words that a split is changing may be compared with one bit too few, so a refusal is decided under the locks.
        let _own = shard.lock(place)?;
        Ok(takes())
    }

    fn make_room(self, shard: Shard<Self::Lease>, place: Place) -> Result<Room, Full> {
        self.0.make_room(self.0.shard(shard.seen), place)
    }

    #[inline(always)]
    fn fetch(self, hash: Mixed) -> (SeenEntry<'a>, Place) {
        let (shard, place) = self.locate(hash);
        shard.prefetch(place);
        (shard.seen, place)
    }

    #[inline(always)]
    fn fetched(self, (seen, place): (SeenEntry<'a>, Place)) -> Located<'a, Self> {
        (self.0.leased(seen, Known::<WIDE>), place)
    }

    fn parts(self) -> Parts {
        // The parts are ranges of the least depth, so no deeper shard is in two parts. Parts as large as the
        // largest shard are small enough.
        let most = self.0.buckets() / SHARD_BUCKETS as usize;
        Parts::at_most(most, self.0.directory.roots, self.0.directory.shallowest())
    }

    #[inline]
    fn bucket_count(self) -> usize {
        self.0.buckets()
    }
}

#[cfg(test)]
mod tests;
