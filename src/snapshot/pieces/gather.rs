//! What has been gathered of a filter while its pieces come.
//!
//! Memory is taken only for what has come, whatever a header claims, and no push does more work than
//! a few pieces are worth:
//!
//! * The shards of a growing filter go into the [tables](Tables) where they stay. These are bought one
//!   after another, as by a filter that grows. Only the directory is made at the end.
//! * A fixed filter has one table. Pieces wait until half of its shards have come. Then the table is
//!   allocated, which the system provides page by page as it is written, and for each further piece,
//!   two that wait go into it. So hardly any are left at the end.

use crate::room::growing::grown::Grown;
use crate::room::growing::tables::Tables;
use crate::room::parts::{Block, Loaded, Plan};
use crate::shard::whole::{fill, read_shard, refill};
use crate::snapshot::allocate::{table_of, zeros};
use crate::snapshot::blocks::BlockReader;
use crate::snapshot::error::Reason;
use crate::snapshot::format::{block_words, buckets_in};
use crate::snapshot::list::Listing;
use crate::snapshot::time::lag;
use crate::table::Table;
use crate::table::ticking::Time;
use std::collections::VecDeque;

pub enum Gathered {
    Fixed(InOneTable),
    Growing(InTables),
    List(Listing),
}

/// The blocks of a piece, in the words that they were validated in.
pub struct Blocks {
    pub words: Vec<u64>,
    pub found: Vec<Block>,
    /// In place of all that, if the filter has a list.
    pub list: Option<Listing>,
}

impl Blocks {
    /// The buckets of each.
    fn buckets(&self, plan: &Plan) -> impl Iterator<Item = &[u64]> {
        let buckets = buckets_in(plan);
        self.words.chunks_exact(block_words(plan)).map(move |words| &words[buckets.clone()])
    }
}

impl Gathered {
    pub fn nothing(plan: &Plan, is_list: bool) -> Self {
        match plan {
            _ if is_list => Gathered::List(Listing::default()),
            Plan::Fixed(_) => Gathered::Fixed(InOneTable::default()),
            Plan::Growing(_) => Gathered::Growing(InTables::default()),
        }
    }

    /// Adds the blocks of the next piece. If there is no memory for them, nothing has changed.
    pub fn add(&mut self, plan: &Plan, blocks: Blocks) -> Result<(), Reason> {
        match self {
            Gathered::Fixed(shards) => shards.add(plan, blocks),
            Gathered::Growing(shards) => shards.add(plan, &blocks.found, blocks.buckets(plan)),
            Gathered::List(list) => {
                *list = blocks.list.unwrap_or_default();
                Ok(())
            }
        }
    }

    /// All of it, at the time at which the last shard was copied.
    pub fn finish(
        self,
        plan: &Plan,
        reader: &BlockReader,
        time: Option<Time>,
    ) -> Result<Loaded, Reason> {
        match self {
            Gathered::Fixed(shards) => shards.finish(plan, reader, time),
            Gathered::Growing(shards) => shards.finish(plan, reader, time),
            Gathered::List(list) => Ok(list.loaded()),
        }
    }
}

/// The shards of a fixed filter.
#[derive(Default)]
pub struct InOneTable {
    /// Allocated when half of the shards have come.
    table: Option<Table>,
    /// Pieces that are not in the table yet.
    waiting: VecDeque<Blocks>,
    /// The shards that have come, and those of them that are in the table.
    come: usize,
    placed: usize,
    /// The times of those in the table, if the filter forgets.
    times: Vec<Time>,
}

impl InOneTable {
    /// With a table for all shards, which are to be placed one by one.
    pub fn of(plan: &Plan) -> Result<Self, Reason> {
        let shards = plan.geometry().shards();
        let mut times = Vec::new();
        let no_memory = |_| Reason::OutOfMemory { bytes: shards * size_of::<Time>() };
        times.try_reserve_exact(shards).map_err(no_memory)?;
        Ok(InOneTable { table: Some(table_of(plan, shards)?), times, ..InOneTable::default() })
    }

    /// Places the next shard, if there is a table.
    pub fn place_shard(&mut self, buckets: &[u64], items: i64, time: Option<Time>) {
        let Some(table) = &self.table else { return };
        fill(table, self.placed, buckets, items);
        self.times.extend(time);
        self.placed += 1;
    }

    fn add(&mut self, plan: &Plan, blocks: Blocks) -> Result<(), Reason> {
        let come = self.come + blocks.found.len();
        self.waiting
            .try_reserve(1)
            .map_err(|_| Reason::OutOfMemory { bytes: size_of::<Blocks>() })?;
        self.times
            .try_reserve(come - self.times.len())
            .map_err(|_| Reason::OutOfMemory { bytes: come * size_of::<Time>() })?;
        if self.table.is_none() && come >= plan.geometry().shards().div_ceil(2) {
            self.table = Some(table_of(plan, plan.geometry().shards())?);
        }
        self.come = come;
        self.waiting.push_back(blocks);
        self.place(plan);
        self.place(plan);
        Ok(())
    }

    /// Places a piece that waits, and frees it.
    fn place(&mut self, plan: &Plan) {
        if self.table.is_none() {
            return;
        }
        let Some(blocks) = self.waiting.pop_front() else { return };
        for (block, buckets) in blocks.found.iter().zip(blocks.buckets(plan)) {
            self.place_shard(buckets, block.items, block.time);
        }
    }

    /// All of it, at this time.
    pub fn finish(
        mut self,
        plan: &Plan,
        reader: &BlockReader,
        time: Option<Time>,
    ) -> Result<Loaded, Reason> {
        while !self.waiting.is_empty() && self.table.is_some() {
            self.place(plan);
        }
        // A filter has at least one shard, so a complete one has its table.
        let table = self.table.ok_or(Reason::OutOfMemory { bytes: 0 })?;
        let mut words = Vec::new();
        for (shard, then) in self.times.iter().enumerate() {
            let Some(lag) = lag(Some(*then), time) else { break };
            if words.is_empty() {
                words = zeros(plan.geometry().words())?;
            }
            read_shard(&table, shard, &mut words);
            let items = reader.make_older(&mut words, lag);
            refill(&table, shard, &words, items);
        }
        Ok(Loaded::Shards { table, blocks: Vec::new(), time })
    }
}

/// The shards of a growing filter.
#[derive(Default)]
pub struct InTables {
    tables: Option<Box<Tables>>,
    depths: Vec<u32>,
    /// Their times, if the filter forgets.
    times: Vec<Time>,
    /// The greatest of them, on which the size of the directory depends.
    deepest: u32,
}

impl InTables {
    /// With a table for so many shards.
    pub fn of(plan: &Plan, shards: usize) -> Result<Self, Reason> {
        Ok(InTables { tables: Some(tables_for(plan, shards)?), ..InTables::default() })
    }

    /// Adds the next shards, which have these buckets.
    pub fn add<'a>(
        &mut self,
        plan: &Plan,
        shards: &[Block],
        buckets: impl Iterator<Item = &'a [u64]>,
    ) -> Result<(), Reason> {
        let no_memory = |bytes| Reason::OutOfMemory { bytes };
        let count = shards.len();
        self.depths.try_reserve(count).map_err(|_| no_memory(count * size_of::<u32>()))?;
        self.times.try_reserve(count).map_err(|_| no_memory(count * size_of::<Time>()))?;
        let tables = match &mut self.tables {
            Some(tables) => tables,
            None => self.tables.insert(tables_for(plan, count)?),
        };
        let depths = || shards.iter().map(|block| block.depth);
        let deepest = depths().fold(self.deepest, u32::max);
        for taken in 0..count {
            if !take(tables, plan, deepest) {
                // They have not been written to.
                (0..taken).for_each(|_| tables.give_back());
                return Err(no_memory(8 * block_words(plan)));
            }
        }
        let sites = tables.sites_from(self.depths.len());
        for ((_, site), (block, buckets)) in sites.zip(shards.iter().zip(buckets)) {
            site.fill(buckets, block.counted);
            site.record(block.aged, &block.balance());
            self.times.extend(block.time);
        }
        self.depths.extend(depths());
        self.deepest = deepest;
        Ok(())
    }

    /// All of it, at this time.
    pub fn finish(
        self,
        plan: &Plan,
        reader: &BlockReader,
        time: Option<Time>,
    ) -> Result<Loaded, Reason> {
        let tables = match self.tables {
            Some(tables) => tables,
            None => tables_for(plan, 0)?,
        };
        let mut words = Vec::new();
        for ((_, site), then) in tables.sites_from(0).zip(&self.times) {
            let Some(lag) = lag(Some(*then), time) else { break };
            if words.is_empty() {
                words = zeros(plan.geometry().words())?;
            }
            site.read(&mut words);
            let block = reader.older_of_growing(&site.balance(), &mut words, lag);
            site.refill(&words, block.counted);
            site.record(block.aged, &block.balance());
        }
        Ok(Loaded::Gathered { tables, depths: self.depths, time })
    }
}

/// Returns tables, of which the first has so many shards. None is in use.
fn tables_for(plan: &Plan, shards: usize) -> Result<Box<Tables>, Reason> {
    let tables = Tables::for_shards(plan.geometry(), shards);
    tables.map(Box::new).map_err(|bytes| Reason::OutOfMemory { bytes })
}

/// Takes a shard into use, if there is memory. If there is a limit, a new table leaves the filter below it, as long as that is
/// possible: a limit may have been set that is less than what the filter has.
fn take(tables: &Tables, plan: &Plan, deepest: u32) -> bool {
    let left = match plan {
        Plan::Growing(plan) if plan.max_bytes < usize::MAX => {
            let entries = u128::from(plan.geometry.shards() as u64) << deepest;
            let directory = usize::try_from(8 * entries).unwrap_or(usize::MAX);
            let others = plan.own_bytes + size_of::<Grown>() + tables.heap_bytes();
            plan.max_bytes.saturating_sub(others.saturating_add(directory))
        }
        _ => usize::MAX,
    };
    tables.take_next(left).or_else(|_| tables.take_next(usize::MAX)).is_ok()
}
