//! The backend of a filter of fixed size: one table that never grows.

use crate::backend::incoming::{IncomingShard, MergeReport};
use crate::backend::shards::{Block, Loaded, Located, Memory, Shards};
use crate::error::{BuildError, Full, FullKind, NoMemory, UnionError};
use crate::layout::bucket::{Fingerprint, Lanes};
use crate::layout::geometry::{Bucket, Geometry, Mixed, Place, Spot};
use crate::layout::roots::{Parts, Roots};
use crate::layout::sizing::{Layout, rate_at};
use crate::layout::stagger::Stagger;
use crate::layout::stamps::Moment;
use crate::layout::stamps::{ByStamp, STAMPS};
use crate::shard::Shard;
use crate::shard::lease::Permanent;
use crate::shard::merge::Merged;
use crate::sync::RwLockReadGuard;
use crate::table::Table;
use crate::table::ticking::{SweepTarget, Ticking};
use std::convert::Infallible;
use std::ops::Range;

/// The number of shards from which the rate is estimated, if there are more.
const SAMPLE: usize = 16;

/// The table of a filter of fixed size.
pub struct Fixed<const WIDE: bool> {
    table: Table,
    capacity: usize,
}

impl<const WIDE: bool> Fixed<WIDE> {
    pub(crate) fn new(Layout { geometry, capacity, .. }: Layout) -> Result<Self, BuildError> {
        let table = Table::new(geometry).map_err(NoMemory)?;
        Ok(Fixed { table: table.of_fixed_filter(), capacity })
    }

    pub fn restore(capacity: usize, loaded: Loaded) -> Result<Self, usize> {
        // A filter of fixed size has one table.
        let Memory::Table(table) = loaded.memory else { return Err(0) };
        let table = table.of_fixed_filter();
        if let Some((ticking, time)) = table.ticking().zip(loaded.time) {
            ticking.continue_from(time);
        }
        Ok(Fixed { table, capacity })
    }

    /// Returns its shards as roots, which are never split.
    fn roots(&self) -> Roots {
        Roots { count: self.table.geometry().shards(), stagger: Stagger::NONE }
    }

    #[inline]
    fn shard(&self, index: usize) -> Shard<'_, Permanent<WIDE>> {
        Shard::new(&self.table, index)
    }

    /// Retries an operation on an item. (The parts of its place are passed one by one, so that the first attempt keeps
    /// them in registers.)
    #[cold]
    fn act_again<'a, A>(
        &'a self,
        base: usize,
        first: Bucket,
        second: Bucket,
        fp: Fingerprint,
        act: impl FnOnce(&'a Self, Located<'a, Self>) -> A,
    ) -> A {
        act(self, (Shard::leased(&self.table, base, Permanent), Place { first, second, fp }))
    }

    fn of_segment(&self, segment: usize) -> Shard<'_, Permanent<WIDE>> {
        self.shard(segment / self.table.geometry().stripes() as usize)
    }
}

/// What a filter that does not grow answers.
impl<const WIDE: bool> Fixed<WIDE> {
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn layout(&self) -> Layout {
        Layout::fixed(self.geometry().clone(), self.capacity)
    }

    pub fn keep_shards(&self) -> Option<RwLockReadGuard<'_>> {
        None
    }

    pub fn join_from(&self, _cursor: u64, _most: usize) -> Option<u64> {
        None
    }

    pub fn join_all_if_alone(&self) {}

    pub fn void_items(&self) -> u64 {
        0
    }

    pub fn level(&self) -> u32 {
        0
    }

    pub fn max_bytes(&self) -> usize {
        usize::MAX
    }

    pub fn set_max_bytes(&self, _bytes: usize) {}
}

/// Figures.
impl<const WIDE: bool> Fixed<WIDE> {
    pub fn geometry(&self) -> &Geometry {
        self.table.geometry()
    }

    /// Returns its clock and ticks, if the filter forgets.
    pub fn ticking(&self) -> Option<&Ticking> {
        self.table.ticking()
    }

    pub fn items(&self) -> usize {
        self.table.stripes().all_items().try_into().unwrap_or(0)
    }

    pub fn clear(&self) {
        for index in 0..self.table.geometry().shards() {
            let Ok(()) = self.shard(index).clear(|| ());
        }
    }

    pub fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }

    /// Returns the number of items with each stamp.
    pub fn items_by_stamp(&self) -> ByStamp {
        let (mut items, lanes) = ([0; STAMPS], self.table.geometry().lanes());
        let shards = (0..self.table.geometry().shards()).map(|shard| self.shard(shard));
        for words in shards.flat_map(|shard| shard.all_words()) {
            let taken = lanes.taken(words.heads);
            taken.for_each(|lane| items[lanes.stamp(words, lane)] += 1);
        }
        items
    }

    /// Estimates the false-positive rate from the load of all shards, or of a sample at equal distances.
    pub fn rate(&self) -> f64 {
        let (geometry, lanes) = (self.table.geometry(), self.table.geometry().lanes());
        let sample = geometry.shards().min(SAMPLE);
        let shards = (0..sample).map(|part| part * (geometry.shards() / sample));
        let items: i64 = shards.map(|shard| self.shard(shard).all_items()).sum();
        let slots = sample * geometry.buckets() as usize * lanes.slots();
        rate_at(lanes, items.max(0) as f64 / slots as f64)
    }
}

impl<const WIDE: bool> SweepTarget for Fixed<WIDE> {
    fn lanes(&self) -> Lanes {
        self.table.geometry().lanes()
    }

    fn begin(&self, set: impl FnOnce() -> Option<Moment>) {
        set();
    }

    fn segments(&self) -> usize {
        self.table.stripes().count()
    }

    fn sweep(&self, segments: Range<usize>, now: Moment) {
        segments.for_each(|segment| self.of_segment(segment).sweep(segment, now, |_| 0));
    }

    fn finish_tick(&self, _: Moment) {}
}

impl<const WIDE: bool> Shards for Fixed<WIDE> {
    type Lease<'a> = Permanent<WIDE>;

    type Spot<'a> = Spot;

    #[inline(always)]
    fn spot(&self, hash: Mixed) -> Spot {
        self.table.geometry().spot::<WIDE>(hash)
    }

    #[inline(always)]
    fn request(&self, spot: Spot) {
        self.table.request::<WIDE>(spot);
    }

    #[inline(always)]
    fn look_at(&self, spot: Spot) -> Option<bool> {
        if WIDE { self.table.look_wide(spot) } else { self.table.look(spot) }
    }

    type Ahead<'a> = Located<'a, Self>;

    #[inline]
    fn is_ticking(&self) -> bool {
        self.table.ticking().is_some_and(|ticking| ticking.clock().is_passing())
    }

    #[cold]
    fn sweep_for(&self, hash: Mixed) {
        let (shard, place) = self.locate(hash);
        let Ok(()) = shard.sweep_both(place);
    }

    #[inline]
    fn locate(&self, hash: Mixed) -> Located<'_, Self> {
        let (index, place) = self.table.geometry().locate_mixed::<WIDE>(hash);
        (self.shard(index), place)
    }

    #[inline(always)]
    fn again<'a, A>(
        &'a self,
        (shard, Place { first, second, fp }): Located<'a, Self>,
        act: impl FnOnce(&'a Self, Located<'a, Self>) -> A,
    ) -> A {
        self.act_again(shard.base(), first, second, fp, act)
    }

    fn relocate(&self, _: Permanent<WIDE>, lapsed: Infallible) -> Located<'_, Self> {
        match lapsed {}
    }

    fn make_room(&self, _: Permanent<WIDE>, kind: FullKind) -> Result<Located<'_, Self>, Full> {
        Err(Full::new(kind))
    }

    #[inline]
    fn fetch(&self, hash: Mixed) -> Located<'_, Self> {
        let (shard, place) = self.locate(hash);
        shard.prefetch(place);
        (shard, place)
    }

    #[inline]
    fn fetched<'a>(&'a self, ahead: Located<'a, Self>) -> Located<'a, Self> {
        ahead
    }

    fn parts(&self) -> Parts {
        Parts::at_most(usize::MAX, self.roots(), 0)
    }

    #[inline]
    fn bucket_count(&self) -> usize {
        self.table.buckets()
    }

    fn copy_shard(&self, next: &mut Option<u64>, buckets: &mut [u64]) -> Option<Block> {
        let index = (*next)?;
        let shard = index as usize;
        let Ok((items, time)) = self.shard(shard).copy(self.ticking(), buckets);
        *next = Some(index + 1).filter(|next| *next < self.table.geometry().shards() as u64);
        Some(Block { items, time, ..Block::EMPTY })
    }

    fn after(&self, next: u64) -> Option<u64> {
        Some(next + 1).filter(|next| *next < self.table.geometry().shards() as u64)
    }

    fn item_in(&self, next: u64) -> Mixed {
        self.roots().first_hash(next as usize, 0).unwrap_or(Mixed(0))
    }

    fn merge_shard(
        &self,
        incoming: &IncomingShard<'_>,
        report: &mut MergeReport,
    ) -> Result<(), UnionError> {
        let shard = self.locate(incoming.start).0;
        let mut next = 0;
        while next < incoming.end() {
            let Ok(locked) = shard.lock_all();
            let present = incoming.present(shard, &locked);
            let unplaced = incoming.merge(&mut next, shard, present, |place, _| {
                let merged = shard.merge_entry(&locked, place, present.moment, true);
                report.added += usize::from(matches!(merged, Merged::Added));
                merged
            });
            drop(locked);
            if let Some(unplaced) = unplaced {
                unplaced.refuse(Full::new(FullKind::NoRoomNearby), report)?;
                next += 1;
            }
        }
        Ok(())
    }
}
