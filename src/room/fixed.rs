//! A table that never grows: the room of a
//! [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter).

use crate::error::{Full, FullKind, Reason, union};
use crate::layout::bucket::Lanes;
use crate::layout::either;
use crate::layout::geometry::{Geometry, Mixed};
use crate::layout::roots::{Parts, Roots};
use crate::layout::sizing::rate_at;
use crate::layout::stagger::Stagger;
use crate::layout::stamps::Moment;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::room::guest::{Guest, Taken};
use crate::room::parts::{CannotRestore, Copied, Loaded, Plan};
use crate::room::shards::{Located, Shards};
use crate::room::{Room, Stage, sealed};
use crate::shard::Shard;
use crate::shard::adopt::Adopted;
use crate::shard::lease::Always;
use crate::table::Table;
use crate::table::ticking::{Passage, Ticking};
use std::convert::Infallible;
use std::fmt;
use std::ops::Range;

/// The number of shards from which the rate is estimated, if there are more.
const SAMPLE: usize = 16;

/// Makes a filter one of a fixed size, which is the default: the second parameter of
/// [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter).
pub struct Fixed {
    table: Table,
}

impl Fixed {
    pub(crate) fn new(geometry: Geometry) -> Result<Self, Reason> {
        let table = Table::new(geometry).map_err(|bytes| Reason::OutOfMemory { bytes })?;
        Ok(Fixed { table: table.of_fixed_filter() })
    }

    #[cfg(loom)]
    #[doc(hidden)]
    pub fn of(geometry: Geometry) -> Self {
        Fixed::new(geometry).expect("memory for a small table")
    }

    #[cfg(loom)]
    #[doc(hidden)]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Its shards, which are never split.
    fn roots(&self) -> Roots {
        Roots { count: self.table.geometry().shards(), stagger: Stagger::NONE }
    }

    fn shard<const WIDE: bool>(&self, index: usize) -> Shard<'_, Always<WIDE>> {
        Shard::new(&self.table, index)
    }

    fn of_segment<const WIDE: bool>(&self, segment: usize) -> Shard<'_, Always<WIDE>> {
        self.shard(segment / self.table.geometry().stripes() as usize)
    }
}

impl fmt::Debug for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixed").finish_non_exhaustive()
    }
}

impl sealed::Sealed for Fixed {}

impl Room for Fixed {
    type Shards = Fixed;
    type Passage = Fixed;
    const GROWS: bool = false;

    #[inline]
    fn stage(&self) -> Stage<'_, Fixed> {
        Stage::Shards(self)
    }

    fn time(&self) -> Option<(&Ticking, &Fixed)> {
        self.table.ticking().map(|ticking| (ticking, self))
    }

    fn restore(plan: Plan, loaded: Loaded) -> Result<Self, CannotRestore> {
        match (plan, loaded) {
            (Plan::Fixed(_), Loaded::Shards { table, time, .. }) => {
                let table = table.of_fixed_filter();
                if let Some((ticking, time)) = table.ticking().zip(time) {
                    ticking.continue_from(time);
                }
                Ok(Fixed { table })
            }
            _ => Err(CannotRestore::WrongKind { grows: true }),
        }
    }
}

impl Passage for Fixed {
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
        either!(self.is_wide(), WIDE => {
            segments.for_each(|segment| self.of_segment::<WIDE>(segment).sweep(segment, now, |_| 0));
        });
    }

    fn close(&self, _: Moment) {}
}

impl Shards for Fixed {
    type Lease<'a, const WIDE: bool> = Always<WIDE>;

    type Ahead<'a, const WIDE: bool> = Located<'a, Self, WIDE>;

    #[inline]
    fn is_wide(&self) -> bool {
        self.table.is_wide()
    }

    #[inline]
    fn is_ticking(&self) -> bool {
        self.table.ticking().is_some_and(|ticking| ticking.clock().is_passing())
    }

    #[cold]
    fn sweep_for(&self, hash: Mixed) {
        let Ok(()) = either!(self.is_wide(), WIDE => {
            let (shard, place) = self.locate::<WIDE>(hash);
            shard.sweep_both(place)
        });
    }

    #[inline]
    fn locate<const WIDE: bool>(&self, hash: Mixed) -> Located<'_, Self, WIDE> {
        let (index, place) = self.table.geometry().locate_mixed::<WIDE>(hash);
        (self.shard(index), place)
    }

    fn relocate<const WIDE: bool>(
        &self,
        _: Always<WIDE>,
        lapsed: Infallible,
    ) -> Located<'_, Self, WIDE> {
        match lapsed {}
    }

    fn make_room<const WIDE: bool>(
        &self,
        _: Always<WIDE>,
        kind: FullKind,
    ) -> Result<Located<'_, Self, WIDE>, Full> {
        Err(Full::new(kind))
    }

    #[inline]
    fn fetch<const WIDE: bool>(&self, hash: Mixed) -> Located<'_, Self, WIDE> {
        let (shard, place) = self.locate(hash);
        shard.prefetch(place);
        (shard, place)
    }

    #[inline]
    fn fetched<'a, const WIDE: bool>(
        &'a self,
        ahead: Located<'a, Self, WIDE>,
    ) -> Located<'a, Self, WIDE> {
        ahead
    }

    fn parts(&self) -> Parts {
        Parts::at_most(usize::MAX, self.roots(), 0)
    }

    #[inline]
    fn buckets(&self) -> usize {
        self.table.buckets()
    }

    fn items(&self) -> usize {
        self.table.stripes().all_items().try_into().unwrap_or(0)
    }

    fn clear(&self) {
        for index in 0..self.table.geometry().shards() {
            let Ok(()) = either!(self.is_wide(), WIDE => self.shard::<WIDE>(index).clear(|| ()));
        }
    }

    fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }

    fn plan(&self) -> Plan {
        Plan::Fixed(self.table.geometry().clone())
    }

    fn copy_shard(&self, next: &mut Option<u64>, buckets: &mut [u64]) -> Option<Copied> {
        let index = (*next)?;
        let shard = index as usize;
        let Ok(items) =
            either!(self.is_wide(), WIDE => self.shard::<WIDE>(shard).copy(buckets, || 0));
        *next = Some(index + 1).filter(|next| *next < self.table.geometry().shards() as u64);
        Some(Copied { depth: 0, items, used_up: ByStamp::default() })
    }

    fn item_in(&self, next: u64) -> Mixed {
        self.roots().first_hash(next as usize, 0).unwrap_or(Mixed(0))
    }

    fn take_over(&self, guest: &Guest<'_>, taken: &mut Taken) -> Result<(), union::Reason> {
        let index = either!(self.is_wide(), WIDE => {
            self.table.geometry().locate_mixed::<WIDE>(guest.start).0
        });
        let mut next = 0;
        while next < guest.end() {
            let unplaced = either!(self.is_wide(), WIDE => {
                let shard = self.shard::<WIDE>(index);
                let Ok(locked) = shard.lock_all();
                guest.merge(&mut next, shard, |place, _| {
                    let adopted = shard.adopt(&locked, place, true);
                    taken.added += usize::from(matches!(adopted, Adopted::Added));
                    adopted
                })
            });
            if let Some(unplaced) = unplaced {
                unplaced.refuse(Full::new(FullKind::NoRoomNearby), taken)?;
                next += 1;
            }
        }
        Ok(())
    }

    fn items_by_stamp(&self) -> ByStamp {
        let mut items = ByStamp::default();
        either!(self.is_wide(), WIDE => {
            let lanes = self.table.geometry().lanes();
            let shards = (0..self.table.geometry().shards()).map(|shard| self.shard::<WIDE>(shard));
            for words in shards.flat_map(|shard| shard.all_words()) {
                let taken = lanes.taken(words.heads);
                taken.for_each(|lane| items.add(lanes.stamp(words, lane), 1));
            }
        });
        items
    }

    /// By the load of all shards, or of some that lie equally far apart.
    fn rate(&self) -> f64 {
        let (geometry, lanes) = (self.table.geometry(), self.table.geometry().lanes());
        let sample = geometry.shards().min(SAMPLE);
        let shards = (0..sample).map(|part| part * (geometry.shards() / sample));
        let items: i64 = either!(self.is_wide(), WIDE => {
            shards.map(|shard| self.shard::<WIDE>(shard).all_items()).sum()
        });
        let slots = sample * geometry.buckets() as usize * lanes.slots();
        rate_at(lanes, items.max(0) as f64 / slots as f64)
    }
}
