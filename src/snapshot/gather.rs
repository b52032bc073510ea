//! Gathers the shards of a filter while its blocks are read.
//!
//! Memory is allocated only for shards that have been read, whatever a header claims:
//!
//! * The shards of a growing filter go into the [tables](Tables) where they stay. Tables are allocated one after
//!   another, as in a filter that grows. Only the directory is made at the end.
//! * A fixed filter has one table. Shards wait until half of them have been read. Then the table is allocated; the
//!   system provides its pages as they are written. Each further shard moves two waiting shards into the table, so none
//!   are left at the end.

use crate::backend::exchange::{Block, Loaded, Plan};
use crate::backend::growing::sharded::bytes_beside;
use crate::backend::growing::site::Site;
use crate::backend::growing::tables::Tables;
use crate::error::{NoMemory, reserve, zeros};
use crate::shard::whole::{clear, fill, read_shard};
use crate::snapshot::block::{BlockReader, age_shift};
use crate::snapshot::header::check_fits;
use crate::table::Table;
use crate::table::ticking::Time;
use std::collections::VecDeque;

pub enum Gathered {
    Fixed(InOneTable),
    Growing(InTables),
}

impl Gathered {
    pub fn nothing(plan: &Plan) -> Self {
        match plan {
            Plan::Fixed(_) => Gathered::Fixed(InOneTable::default()),
            Plan::Growing(_) => Gathered::Growing(InTables::default()),
        }
    }

    /// Begins with memory for `shards` shards.
    pub fn with_memory(plan: &Plan, shards: usize) -> Result<Self, NoMemory> {
        Ok(match plan {
            Plan::Fixed(_) => {
                let table = Some(table_of(plan, shards)?);
                Gathered::Fixed(InOneTable { table, ..InOneTable::default() })
            }
            Plan::Growing(_) => {
                let tables = Some(tables_for(plan, shards)?);
                Gathered::Growing(InTables { tables, ..InTables::default() })
            }
        })
    }

    /// Adds the next shard, which has these buckets.
    pub fn add(&mut self, plan: &Plan, block: Block, buckets: &[u64]) -> Result<(), NoMemory> {
        match self {
            Gathered::Fixed(shards) => shards.add(plan, block, buckets),
            Gathered::Growing(shards) => shards.add(plan, &block, buckets),
        }
    }

    /// Returns all shards, as of the time at which the last one was copied. Their void lanes stand for `void` items.
    pub fn finish(
        self,
        plan: &Plan,
        reader: &BlockReader,
        (void, time): (u64, Option<Time>),
    ) -> Result<Loaded, NoMemory> {
        match self {
            Gathered::Fixed(shards) => shards.finish(plan, reader, time),
            Gathered::Growing(shards) => shards.finish(plan, reader, (void, time)),
        }
    }
}

/// The shards of a fixed filter.
#[derive(Default)]
pub struct InOneTable {
    /// Allocated when half of the shards have been read.
    table: Option<Table>,
    /// The blocks of all shards that have been read.
    blocks: Vec<Block>,
    /// The number of these shards that are in the table, and the buckets of the others.
    placed: usize,
    waiting: VecDeque<Vec<u64>>,
}

impl InOneTable {
    fn add(&mut self, plan: &Plan, block: Block, buckets: &[u64]) -> Result<(), NoMemory> {
        let (shards, come) = (plan.geometry().shards(), self.blocks.len() + 1);
        reserve(&mut self.blocks, 1)?;
        if self.table.is_none() && come >= shards.div_ceil(2) {
            self.table = Some(table_of(plan, shards)?);
        }
        if self.waiting.is_empty() && self.table.is_some() {
            self.blocks.push(block);
            self.place(buckets);
            return Ok(());
        }
        let mut own = Vec::new();
        reserve(&mut own, buckets.len())?;
        own.extend_from_slice(buckets);
        self.waiting.try_reserve(1).map_err(|_| NoMemory::for_values::<Vec<u64>>(1))?;
        self.waiting.push_back(own);
        self.blocks.push(block);
        for _ in 0..2 {
            if self.table.is_some()
                && let Some(buckets) = self.waiting.pop_front()
            {
                self.place(&buckets);
            }
        }
        Ok(())
    }

    /// Places the next shard in the table.
    fn place(&mut self, buckets: &[u64]) {
        if let Some(table) = &self.table {
            fill(table, self.placed, buckets, self.blocks[self.placed].items);
            self.placed += 1;
        }
    }

    fn finish(
        mut self,
        plan: &Plan,
        reader: &BlockReader,
        time: Option<Time>,
    ) -> Result<Loaded, NoMemory> {
        while let Some(buckets) = self.waiting.pop_front() {
            self.place(&buckets);
        }
        // A filter has at least one shard, so a complete one has its table.
        let (table, mut blocks) = (self.table.ok_or(NoMemory(0))?, self.blocks);
        make_older(&table, plan, reader, &mut blocks, time)?;
        Ok(Loaded::Shards { table, blocks, void: 0, time })
    }
}

/// Allocates an empty table with this number of shards.
pub fn table_of(plan: &Plan, shards: usize) -> Result<Table, NoMemory> {
    check_fits(&plan.geometry().with_shards(1), shards)?;
    Table::new(plan.geometry().with_shards(shards)).map_err(NoMemory)
}

/// Brings the shards of a table, which were copied at different times, to this time.
pub fn make_older(
    table: &Table,
    plan: &Plan,
    reader: &BlockReader,
    blocks: &mut [Block],
    time: Option<Time>,
) -> Result<(), NoMemory> {
    let mut words = Vec::new();
    for (shard, block) in blocks.iter_mut().enumerate() {
        // The shards that follow were copied at this time.
        let Some(shift) = age_shift(block.time, time) else { break };
        if words.is_empty() {
            words = zeros(plan.geometry().words())?;
        }
        read_shard(table, shard, &mut words);
        let older = reader.older(&mut words, shift);
        *block = Block { depth: block.depth, ..older };
        clear(table, shard);
        fill(table, shard, &words, block.items);
    }
    Ok(())
}

/// The shards of a growing filter.
#[derive(Default)]
pub struct InTables {
    tables: Option<Box<Tables>>,
    depths: Vec<u32>,
    /// The greatest of these depths, which determines the size of the directory.
    deepest: u32,
    /// The times of the shards, if the filter forgets.
    times: Vec<Time>,
}

impl InTables {
    fn add(&mut self, plan: &Plan, block: &Block, buckets: &[u64]) -> Result<(), NoMemory> {
        reserve(&mut self.depths, 1)?;
        reserve(&mut self.times, 1)?;
        let tables = match &mut self.tables {
            Some(tables) => tables,
            None => self.tables.insert(tables_for(plan, 0)?),
        };
        let deepest = self.deepest.max(block.depth);
        let Some(site) = take(tables, plan, deepest) else {
            return Err(NoMemory::for_values::<u64>(plan.geometry().words()));
        };
        site.fill(buckets, block.items);
        site.surplus_gauge().set(block.surplus);
        self.times.extend(block.time);
        self.depths.push(block.depth);
        self.deepest = deepest;
        Ok(())
    }

    fn finish(
        self,
        plan: &Plan,
        reader: &BlockReader,
        (void, time): (u64, Option<Time>),
    ) -> Result<Loaded, NoMemory> {
        let tables = match self.tables {
            Some(tables) => tables,
            None => tables_for(plan, 0)?,
        };
        let mut words = Vec::new();
        for ((_, site), then) in tables.sites_from(0).zip(&self.times) {
            let Some(shift) = age_shift(Some(*then), time) else { break };
            if words.is_empty() {
                words = zeros(plan.geometry().words())?;
            }
            site.read(&mut words);
            let block = reader.older(&mut words, shift);
            site.clear();
            site.fill(&words, block.items);
            site.surplus_gauge().set(block.surplus);
        }
        Ok(Loaded::Gathered { tables, depths: self.depths, void, time })
    }
}

/// Returns tables whose first one has `shards` shards. None of the shards is in use.
fn tables_for(plan: &Plan, shards: usize) -> Result<Box<Tables>, NoMemory> {
    let tables = Tables::for_shards(plan.geometry(), shards);
    tables.map(Box::new).map_err(NoMemory)
}

/// Takes a shard into use, if there is memory. If the filter has a limit, a new table keeps it below the limit as long
/// as that is possible: the limit may have been lowered below the size of the filter. Above the limit, a new table at
/// most doubles the excess, so that there are not too many tables.
fn take<'a>(tables: &'a Tables, plan: &Plan, deepest: u32) -> Option<&'a Site> {
    let (taken, most) = match plan {
        Plan::Growing(plan) => {
            let entries = u128::from(plan.geometry.shards() as u64) << deepest;
            let directory = usize::try_from(8 * entries).unwrap_or(usize::MAX);
            let others = plan.own_bytes + bytes_beside(plan) + tables.heap_bytes();
            (others.saturating_add(directory), plan.max_bytes)
        }
        Plan::Fixed(_) => (0, usize::MAX),
    };
    let of_one = Tables::bytes(&plan.geometry().with_shards(1));
    let above = taken.saturating_sub(most).max(of_one);
    let below = tables.take_next(most.saturating_sub(taken));
    below.or_else(|_| tables.take_next(above)).ok()
}
