//! The interface of a growing filter's shards: to operations on items and batches, and to all that concerns the filter
//! as a whole.

use crate::backend::growing::directory::SeenEntry;
use crate::backend::growing::sharded::{Sharded, bytes_beside};
use crate::backend::growing::until_split::{Shared, UntilSplit, WasSplit};
use crate::backend::shards::{Block, Located, Room, Shards};
use crate::error::Full;
use crate::layout::geometry::{Geometry, Mixed, Place, SHARD_BUCKETS};
use crate::layout::roots::Parts;
use crate::layout::sizing::{Layout, rate_of_a_lane};
use crate::layout::stamps::{ByStamp, Moment};
use crate::shard::Shard;
use crate::shard::raw::{Known, items_by_stamp};
use crate::sync::RwLockReadGuard;
use crate::table::ticking::{Goal, Ticking};
use std::ops::Range;

/// The number of shards from which the rate is estimated, if there are more: a power of two.
const SAMPLE: u64 = 128;

impl Sharded {
    /// Returns the match weight of a shard, on average over all hashes.
    pub(crate) fn match_weight_of_all(&self) -> f64 {
        let part = |seen| self.directory.share(seen) * self.site(seen).match_weight();
        self.directory.shards().map(part).sum()
    }

    /// Returns the same average over a sample: the hashes in the middle of equal parts of all hashes.
    pub(crate) fn match_weight_of_some(&self) -> f64 {
        let middle = |part| Mixed((2 * part + 1) << (u64::BITS - SAMPLE.ilog2() - 1));
        let of_part = |part| self.site(self.directory.look_up(middle(part))).match_weight();
        (0..SAMPLE).map(of_part).sum::<f64>() / SAMPLE as f64
    }
}

impl Sharded {
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
        let counted = self.shared.tables.items().max(0) as u64;
        (counted + self.shared.void.number()).try_into().unwrap_or(usize::MAX)
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
        let is_small = self.shared.tables.shards() as u64 <= SAMPLE;
        let match_weight =
            if is_small { self.match_weight_of_all() } else { self.match_weight_of_some() };
        match_weight * rate_of_a_lane(self.layout.geometry.lanes())
            / f64::from(self.layout.geometry.buckets())
    }

    pub(crate) fn clear(&self) {
        let void = &self.shared.void;
        let _no_split = void.splits.write();
        for seen in self.directory.shards() {
            let site = self.site(seen);
            let _cleared = site.shard().clear();
            site.surplus_gauge().set(0);
        }
        void.limit(0);
    }

    pub(crate) fn copy_shard(&self, next: &mut Option<u64>, buckets: &mut [u64]) -> Option<Block> {
        loop {
            let seen = self.directory.look_up(Mixed((*next)?));
            // If the shard has been split meanwhile, its halves are copied one after the other.
            let copied = self.shard(seen).copy(buckets);
            if let Ok((items, time)) = copied {
                *next = self.directory.end(seen).map(|hash| hash.0);
                return Some(Block { depth: seen.depth(), items, time, ..Block::EMPTY });
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
        let shrinking = &self.shared.shrinking;
        let in_a_shard = self.layout.geometry.stripes() as usize;
        let sites = self.shared.tables.all_from(segments.start / in_a_shard);
        for (number, site) in sites.take_while(|(number, _)| number * in_a_shard < segments.end) {
            let (shard, first) = (site.shard(), number * in_a_shard);
            for segment in segments.start.max(first)..segments.end.min(first + in_a_shard) {
                let expiring = |words: &[u64]| site.expiring(shrinking, words, now);
                // A shard that is out of use may have no memory either. A split that reuses it must observe the time.
                let stripe = shard.own_stripes().start + segment - first;
                shard.sweep(stripe, now, || site.is_in_use(), expiring);
            }
        }
    }

    /// Begins a tick, while no shard is split or joined. Then counts the void lanes that stay, so that the number of
    /// their items does not depend on the progress of the tick.
    pub(crate) fn begin_tick(&self, goal: Goal) -> Option<u64> {
        let Shared { void, tables, shrinking, .. } = &self.shared;
        let _no_splits = void.splits.write();
        let (passes, now) = self.ticking()?.begin(goal)?;
        let mut stay = 0;
        for (_, site) in tables.sites_from(0).filter(|(_, site)| site.may_have_void(shrinking)) {
            // A writer that holds a lock may refresh a lane by the time before.
            let _locked = site.shard().lock_raw();
            stay += site.void_lanes(shrinking, Some(now)) as u64;
        }
        void.limit(stay);
        Some(passes)
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

    pub(crate) fn void_items(&self) -> u64 {
        self.shared.void.number()
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
}

impl Sharded {
    /// Splits the shard of this item, whatever its load. Returns whether it was possible.
    #[cfg(all(unix, feature = "durable"))]
    pub(crate) fn split_shard_of(&self, hash: Mixed) -> bool {
        self.split_for_all(self.shard(self.directory.look_up(hash))).is_ok()
    }
}

/// The shards, for operations on items.
#[derive(Clone, Copy)]
pub(crate) struct GrowingShards<'a, const WIDE: bool>(pub &'a Sharded);

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
