//! The shards of a growing filter with buckets of either width. Callers of this file do not depend on the
//! width.

use crate::backend::exchange::Block;
use crate::backend::growing::directory::Directory;
use crate::backend::growing::sharded::{AnySharded, Sharded, on_width};
use crate::backend::growing::tables::Tables;
use crate::backend::shards::Shards;
use crate::error::{Full, Reason};
use crate::layout::bucket::Lanes;
use crate::layout::geometry::Mixed;
use crate::layout::sizing::GrowthPlan;
use crate::layout::stamps::ByStamp;
use crate::layout::stamps::Moment;
use crate::sync::RwLockReadGuard;
use crate::table::Table;
use crate::table::ticking::{SweepTarget, Ticking};
use std::ops::Range;
use std::sync::Arc;

impl AnySharded {
    pub(crate) fn new(plan: GrowthPlan) -> Result<Self, Reason> {
        let (directory, tables) = Self::first(&plan)?;
        Ok(Self::with(plan, directory, tables, 0))
    }

    /// Makes the backend with all shards at this depth, as if they had been split while they were empty.
    pub(crate) fn new_at_depth(plan: GrowthPlan, depth: u32) -> Result<Self, Reason> {
        if depth == 0 {
            return Self::new(plan);
        }
        let shards = plan.geometry.shards() << depth;
        let least = plan.own_bytes + Self::bytes_when_restored(&plan, shards, depth);
        if least > plan.max_bytes {
            return Err(Reason::LimitTooSmall { least, most: plan.max_bytes });
        }
        let no_memory = |bytes| Reason::OutOfMemory { bytes };
        let table = Table::new(plan.geometry.with_shards(shards)).map_err(no_memory)?;
        let tables = Tables::restore(plan.geometry.shards(), table, shards).map_err(no_memory)?;
        Self::gathered(plan, tables, std::iter::repeat_n(depth, shards), 0)
            .map_err(|_| no_memory(least))
    }

    /// Makes the backend from the shards of a file, which are in one table in the order of these blocks.
    pub fn restore(
        plan: GrowthPlan,
        table: Table,
        blocks: &[Block],
        void: u64,
    ) -> Result<Self, usize> {
        let tables = Tables::restore(plan.geometry.shards(), table, blocks.len())?;
        for ((_, site), block) in tables.sites_from(0).zip(blocks) {
            site.surplus_gauge().set(block.surplus);
        }
        Self::gathered(plan, tables, blocks.iter().map(|block| block.depth), void)
    }

    /// Makes the backend from the shards that are in use in these tables, with their figures. They are in the
    /// order of their hashes and have these depths.
    pub fn gathered(
        plan: GrowthPlan,
        tables: Tables,
        depths: impl Iterator<Item = u32> + Clone,
        void: u64,
    ) -> Result<Self, usize> {
        let directory =
            Directory::restore(plan.roots(), &tables, depths).ok_or(tables.heap_bytes())?;
        Ok(Self::with(plan, directory, tables, void))
    }

    fn with(plan: GrowthPlan, directory: Directory, tables: Tables, void: u64) -> Self {
        match plan.geometry.lanes().is_wide() {
            false => AnySharded::Narrow(Sharded::new(plan, directory, tables, void)),
            true => AnySharded::Wide(Sharded::new(plan, directory, tables, void)),
        }
    }

    /// Sets the clock that the shards use from now on.
    pub fn keep_time(&mut self, ticking: Option<Arc<Ticking>>) {
        on_width!(self, shards => shards.keep_time(ticking));
    }

    /// Inserts an item of a list, without a limit of copies.
    pub fn insert_listed(&self, hash: Mixed) -> Result<(), Full> {
        on_width!(self, shards => shards.insert_listed(hash))
    }

    pub fn set_max_bytes(&self, bytes: usize) {
        on_width!(self, shards => shards.set_max_bytes(bytes));
    }

    pub fn buckets(&self) -> usize {
        on_width!(self, shards => shards.bucket_count())
    }

    pub fn items(&self) -> usize {
        on_width!(self, shards => shards.items())
    }

    pub fn clear(&self) {
        on_width!(self, shards => shards.clear());
    }

    /// Keeps shards from being joined until the result is dropped.
    pub fn keep_shards(&self) -> RwLockReadGuard<'_> {
        on_width!(self, shards => shards.keep_shards())
    }

    /// Visits some shards, and joins what leaves enough room. Returns where the next part begins.
    pub fn join_from(&self, cursor: u64, most: usize) -> Option<u64> {
        on_width!(self, shards => shards.join_from(cursor, most))
    }

    /// Joins all shards that leave enough room, unless another thread joins shards.
    pub fn join_all_if_alone(&self) {
        on_width!(self, shards => shards.join_all_if_alone());
    }

    /// Returns the number of items that void lanes stand for.
    pub fn void_items(&self) -> u64 {
        on_width!(self, shards => shards.void_items())
    }

    /// Returns the memory held, including `self`.
    pub fn heap_bytes(&self) -> usize {
        on_width!(self, shards => shards.heap_bytes())
    }

    /// Returns the number of items with each stamp.
    pub fn items_by_stamp(&self) -> ByStamp {
        on_width!(self, shards => shards.items_by_stamp())
    }

    /// Returns the present false-positive rate. The time that this takes does not depend on the number of
    /// shards.
    pub fn rate(&self) -> f64 {
        on_width!(self, shards => shards.rate())
    }

    /// Returns the depth of the deepest shard.
    pub fn level(&self) -> u32 {
        on_width!(self, shards => shards.level())
    }
}

impl SweepTarget for AnySharded {
    fn lanes(&self) -> Lanes {
        on_width!(self, shards => shards.lanes())
    }

    fn begin(&self, set: impl FnOnce() -> Option<Moment>) {
        on_width!(self, shards => shards.begin(set));
    }

    fn segments(&self) -> usize {
        on_width!(self, shards => shards.segments())
    }

    fn sweep(&self, segments: Range<usize>, now: Moment) {
        on_width!(self, shards => shards.sweep(segments, now));
    }

    fn finish_tick(&self, now: Moment) {
        on_width!(self, shards => shards.finish_tick(now));
    }
}
