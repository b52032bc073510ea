//! The backend of a filter of fixed size: one table that never grows.

use crate::backend::retry::{Located, Room, Shards};
use crate::error::{BuildError, Full, FullKind, NoMemory};
use crate::layout::geometry::{Geometry, Mixed, Place, Spot};
use crate::layout::roots::{Parts, Roots};
use crate::layout::sizing::{Layout, rate_at};
use crate::layout::stamps::{ByStamp, Moment};
use crate::shard::raw::{Known, RawShard, items_by_stamp};
use crate::shard::{Copied, Permanent, Shard};
use crate::table::Table;
use crate::table::ticking::{Ticking, Time};
use std::convert::Infallible;
use std::ops::Range;

/// The number of shards from which the rate is estimated, if there are more.
const SAMPLE: usize = 16;

/// The table of a filter of fixed size.
pub(crate) struct Fixed {
    table: Table,
    capacity: usize,
}

impl Fixed {
    pub(crate) fn new(Layout { geometry, capacity, .. }: Layout) -> Result<Self, BuildError> {
        let table = Table::new(geometry).map_err(NoMemory)?;
        Ok(Fixed { table: table.of_fixed_filter(), capacity })
    }

    /// Returns the memory that a filter of this layout holds beside itself.
    pub(crate) fn heap_bytes_of(layout: &Layout) -> usize {
        let ticking = if layout.lanes().forgets() { size_of::<Ticking>() } else { 0 };
        Table::bytes(&layout.geometry) + ticking
    }

    /// Makes a filter of this table of all shards.
    pub(crate) fn restore(capacity: usize, table: Table, time: Option<Time>) -> Self {
        let table = table.of_fixed_filter();
        if let Some((ticking, time)) = table.ticking().zip(time) {
            ticking.continue_from(time);
        }
        Fixed { table, capacity }
    }

    fn roots(&self) -> Roots {
        Roots { count: self.table.geometry.shards() }
    }

    #[inline]
    pub(crate) fn is_wide(&self) -> bool {
        self.table.is_wide()
    }

    pub(crate) fn shard_of(&self, hash: Mixed) -> Shard<Permanent<'_>> {
        Shard::new(&self.table, hash.scaled(self.table.geometry.shards()).0)
    }

    fn shards(&self) -> impl Iterator<Item = RawShard<'_>> {
        (0..self.table.geometry.shards()).map(|shard| RawShard::new(&self.table, shard))
    }
}

impl Fixed {
    pub(crate) fn geometry(&self) -> &Geometry {
        &self.table.geometry
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn layout(&self) -> Layout {
        Layout::fixed(self.geometry().clone(), self.capacity)
    }

    pub(crate) fn ticking(&self) -> Option<&Ticking> {
        self.table.ticking()
    }

    pub(crate) fn buckets(&self) -> usize {
        self.table.buckets()
    }

    pub(crate) fn items(&self) -> usize {
        self.table.stripes.all_items().try_into().unwrap_or(0)
    }

    pub(crate) fn items_by_stamp(&self) -> ByStamp {
        items_by_stamp(self.geometry().lanes(), self.shards())
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }

    /// Estimates the rate from the load of all shards, or of a sample at equal distances.
    pub(crate) fn rate(&self) -> f64 {
        let geometry = self.geometry();
        let lanes = geometry.lanes();
        let sample = geometry.shards().min(SAMPLE);
        let shards = self.shards().step_by(geometry.shards() / sample).take(sample);
        let items: i64 = shards.map(RawShard::all_items).sum();
        let slots = sample * geometry.buckets() as usize * lanes.slots();
        rate_at(lanes, items.max(0) as f64 / slots as f64, geometry.all_buckets())
    }

    pub(crate) fn clear(&self) {
        self.shards().for_each(|shard| drop(shard.clear()));
    }

    pub(crate) fn segments(&self) -> usize {
        self.table.stripes.count()
    }

    pub(crate) fn sweep(&self, segments: Range<usize>, now: Moment) {
        let in_a_shard = self.geometry().stripes() as usize;
        for segment in segments {
            RawShard::new(&self.table, segment / in_a_shard).sweep(segment, now, || true, |_| 0);
        }
    }

    pub(crate) fn copy_shard(
        &self,
        next: &mut Option<u64>,
        buckets: &mut [u64],
    ) -> Option<(u32, Copied)> {
        let index = (*next)?;
        let shard = index as usize;
        let Ok(copied) = Shard::new(&self.table, shard).copy(buckets);
        *next = Some(index + 1).filter(|next| *next < self.geometry().shards() as u64);
        Some((0, copied))
    }

    pub(crate) fn after(&self, next: u64) -> Option<u64> {
        Some(next + 1).filter(|next| *next < self.geometry().shards() as u64)
    }

    pub(crate) fn hash_in(&self, next: u64) -> Mixed {
        self.roots().first_hash(next as usize, 0).unwrap_or(Mixed(0))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct FixedShards<'a, const WIDE: bool>(pub &'a Fixed);

impl<'a, const WIDE: bool> Shards<'a> for FixedShards<'a, WIDE> {
    type Lease = Permanent<'a, Known<WIDE>>;

    type Spot = Spot;

    #[inline(always)]
    fn spot(self, hash: Mixed) -> Spot {
        self.0.table.geometry.spot(hash, WIDE)
    }

    #[inline(always)]
    fn request(self, spot: Spot) {
        self.0.table.request(spot, WIDE);
    }

    #[inline(always)]
    fn look_at(self, spot: Spot) -> Option<bool> {
        if WIDE { self.0.table.look_wide(spot) } else { self.0.table.look(spot) }
    }

    type Ahead = Located<'a, Self>;

    #[inline]
    fn is_ticking(self) -> bool {
        self.0.table.ticking().is_some_and(|ticking| ticking.clock().is_passing())
    }

    #[inline]
    fn locate(self, hash: Mixed) -> Located<'a, Self> {
        let table = &self.0.table;
        let (index, place) = table.geometry.locate_mixed(hash, WIDE);
        let base = index * table.geometry.buckets() as usize;
        (Shard(Permanent { raw: RawShard::from_base(table, base, Known::<WIDE>) }), place)
    }

    fn takes_another(self, _: Shard<Self::Lease>, _: Place) -> Result<bool, Infallible> {
        Ok(true)
    }

    /// There is no other room. The reason is told by recent words.
    fn make_room(self, shard: Shard<Self::Lease>, place: Place) -> Result<Room, Full> {
        let only_copies = shard.matches_of(place).lanes == 2 * shard.lanes().slots();
        let kind = if only_copies { FullKind::TooManyCopies } else { FullKind::NoRoomNearby };
        Err(Full::new(kind))
    }

    #[inline(always)]
    fn fetch(self, hash: Mixed) -> Located<'a, Self> {
        let (shard, place) = self.locate(hash);
        shard.prefetch(place);
        (shard, place)
    }

    #[inline(always)]
    fn fetched(self, ahead: Located<'a, Self>) -> Located<'a, Self> {
        ahead
    }

    fn parts(self) -> Parts {
        Parts::at_most(usize::MAX, self.0.roots(), 0)
    }

    #[inline]
    fn bucket_count(self) -> usize {
        self.0.table.buckets()
    }
}
