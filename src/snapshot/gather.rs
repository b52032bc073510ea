//! Gathers the shards of a filter while its blocks are read.
//!
//! Memory is allocated only for shards that have been read, whatever a header claims:
//!
//! * The shards of a growing filter go into the [tables](Tables) where they stay. Tables are allocated one after
//!   another, as in a filter that grows. Only the directory is made at the end.
//! * A filter of fixed size has one table. Shards wait until half of them have been read. Then the table is allocated,
//!   and they all move there.

use crate::backend::exchange::{Block, Loaded, Memory};
use crate::backend::growing::sharded::bytes_beside;
use crate::backend::growing::site::Site;
use crate::backend::growing::tables::Tables;
use crate::error::{NoMemory, reserve, zeros};
use crate::layout::sizing::Layout;
use crate::shard::whole::{clear, fill, read_shard};
use crate::snapshot::block::{BlockReader, age_shift};
use crate::snapshot::header::check_fits;
use crate::table::Table;
use crate::table::ticking::Time;

/// The shards of a filter that have been read so far.
pub struct Gathered {
    /// Where they are, unless they wait.
    memory: Option<Memory>,
    waiting: Vec<Vec<u64>>,
    blocks: Vec<Block>,
    /// The greatest depth of all shards, which determines the size of the directory.
    deepest: u32,
}

impl Gathered {
    fn new(memory: Option<Memory>) -> Self {
        Gathered { memory, waiting: Vec::new(), blocks: Vec::new(), deepest: 0 }
    }

    /// Begins with nothing.
    pub fn nothing(layout: &Layout) -> Result<Self, NoMemory> {
        if layout.grows { Self::with_memory(layout, 0) } else { Ok(Self::new(None)) }
    }

    /// Begins with memory for `shards` shards.
    pub fn with_memory(layout: &Layout, shards: usize) -> Result<Self, NoMemory> {
        let memory = match layout.grows {
            false => Memory::Table(table_of(layout, shards)?),
            true => {
                let tables = Tables::for_shards(&layout.geometry, shards).map_err(NoMemory)?;
                Memory::Tables(Box::new(tables))
            }
        };
        Ok(Self::new(Some(memory)))
    }

    /// Takes over a table in which all shards are.
    pub fn in_table(layout: &Layout, table: Table, blocks: Vec<Block>) -> Result<Self, NoMemory> {
        let memory = match layout.grows {
            false => Memory::Table(table),
            true => {
                let tables = Tables::restore(layout.geometry.shards(), table, blocks.len());
                Memory::Tables(Box::new(tables.map_err(NoMemory)?))
            }
        };
        Ok(Gathered { blocks, ..Self::new(Some(memory)) })
    }

    /// Adds the next shard, which has these buckets.
    pub fn add(&mut self, layout: &Layout, block: Block, buckets: &[u64]) -> Result<(), NoMemory> {
        reserve(&mut self.blocks, 1)?;
        self.deepest = self.deepest.max(block.depth);
        match &self.memory {
            Some(Memory::Table(table)) => fill(table, self.blocks.len(), buckets, block.items),
            Some(Memory::Tables(tables)) => {
                let site = take(tables, layout, self.deepest);
                let site = site.ok_or_else(|| NoMemory::for_values::<u64>(buckets.len()))?;
                site.fill(buckets, block.items);
            }
            None => {
                let mut own = Vec::new();
                reserve(&mut own, buckets.len())?;
                own.extend_from_slice(buckets);
                reserve(&mut self.waiting, 1)?;
                self.waiting.push(own);
            }
        }
        self.blocks.push(block);
        let shards = layout.geometry.shards();
        if self.memory.is_none() && self.blocks.len() >= shards.div_ceil(2) {
            let table = table_of(layout, shards)?;
            for (shard, buckets) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
                fill(&table, shard, &buckets, self.blocks[shard].items);
            }
            self.memory = Some(Memory::Table(table));
        }
        Ok(())
    }

    /// Returns all shards, as of the time at which the last one was copied. Their void lanes stand for `void` items.
    pub fn finish(
        mut self,
        reader: &BlockReader,
        (void, time): (u64, Option<Time>),
    ) -> Result<Loaded, NoMemory> {
        // A filter has at least one shard, so a complete one has its memory.
        let memory = self.memory.ok_or(NoMemory(0))?;
        let mut words = Vec::new();
        // Returns whether the shard was older. The shards after the first that was not were all copied at this time.
        let mut bring = |table: &Table, shard: usize, block: &mut Block| {
            let Some(shift) = age_shift(block.time, time) else { return Ok(false) };
            if words.is_empty() {
                words = zeros(table.geometry().words())?;
            }
            read_shard(table, shard, &mut words);
            *block = Block { depth: block.depth, ..reader.older(&mut words, shift) };
            clear(table, shard);
            fill(table, shard, &words, block.items);
            Ok(true)
        };
        match &memory {
            Memory::Table(table) => {
                for (shard, block) in self.blocks.iter_mut().enumerate() {
                    if !bring(table, shard, block)? {
                        break;
                    }
                }
            }
            Memory::Tables(tables) => {
                for ((_, site), block) in tables.sites_from(0).zip(&mut self.blocks) {
                    bring(site.table(), site.number(), block)?;
                    site.surplus_gauge().set(block.surplus);
                }
            }
        }
        Ok(Loaded { memory, blocks: self.blocks, void, time })
    }
}

/// Allocates an empty table with this number of shards.
pub fn table_of(layout: &Layout, shards: usize) -> Result<Table, NoMemory> {
    check_fits(&layout.geometry.with_shards(1), shards)?;
    Table::new(layout.geometry.with_shards(shards)).map_err(NoMemory)
}

/// Takes a shard into use, if there is memory. If the filter has a limit, a new table keeps it below the limit as long
/// as that is possible: the limit may have been lowered below the size of the filter. Above the limit, a new table at
/// most doubles the excess, so that there are not too many tables.
fn take<'a>(tables: &'a Tables, layout: &Layout, deepest: u32) -> Option<&'a Site> {
    let entries = u128::from(layout.geometry.shards() as u64) << deepest;
    let directory = usize::try_from(8 * entries).unwrap_or(usize::MAX);
    let others = layout.own_bytes + bytes_beside(layout) + tables.heap_bytes();
    let (taken, most) = (others.saturating_add(directory), layout.max_bytes);
    let of_one = Tables::bytes(&layout.geometry.with_shards(1));
    let above = taken.saturating_sub(most).max(of_one);
    let below = tables.take_next(most.saturating_sub(taken));
    below.or_else(|_| tables.take_next(above)).ok()
}
