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
use crate::shard::whole::fill;
use crate::snapshot::allocate::table_of;
use crate::snapshot::error::Reason;
use crate::snapshot::format::{BLOCK_HEAD, block_words};
use crate::table::Table;
use std::collections::VecDeque;

pub enum Gathered {
    Fixed(InOneTable),
    Growing(InTables),
    List(Vec<u64>),
}

/// The blocks of a piece, in the words that they were validated in.
pub struct Blocks {
    pub words: Vec<u64>,
    pub found: Vec<Block>,
}

impl Blocks {
    fn each(&self, in_a_block: usize) -> impl Iterator<Item = (&Block, &[u64])> {
        let blocks = self.words.chunks_exact(in_a_block);
        let buckets = blocks.map(move |words| &words[BLOCK_HEAD..in_a_block - 1]);
        self.found.iter().zip(buckets)
    }
}

impl Gathered {
    pub fn nothing(plan: &Plan, is_list: bool) -> Self {
        match plan {
            _ if is_list => Gathered::List(Vec::new()),
            Plan::Fixed(_) => Gathered::Fixed(InOneTable::default()),
            Plan::Growing(_) => Gathered::Growing(InTables::default()),
        }
    }

    /// Adds the blocks of the next piece. If there is no memory for them, nothing has changed.
    pub fn add(&mut self, plan: &Plan, blocks: Blocks) -> Result<(), Reason> {
        match self {
            Gathered::Fixed(shards) => shards.add(plan, blocks),
            Gathered::Growing(shards) => shards.add(plan, &blocks),
            Gathered::List(hashes) => {
                *hashes = blocks.words;
                Ok(())
            }
        }
    }

    pub fn finish(self, plan: &Plan) -> Result<Loaded, Reason> {
        match self {
            Gathered::Fixed(shards) => shards.finish(plan),
            Gathered::Growing(shards) => shards.finish(plan),
            Gathered::List(hashes) => Ok(Loaded::Items(hashes)),
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
}

impl InOneTable {
    fn add(&mut self, plan: &Plan, blocks: Blocks) -> Result<(), Reason> {
        let come = self.come + blocks.found.len();
        self.waiting
            .try_reserve(1)
            .map_err(|_| Reason::OutOfMemory { bytes: size_of::<Blocks>() })?;
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
        let Some(table) = &self.table else { return };
        let Some(blocks) = self.waiting.pop_front() else { return };
        for (block, buckets) in blocks.each(block_words(plan)) {
            fill(table, self.placed, buckets, block.items);
            self.placed += 1;
        }
    }

    fn finish(mut self, plan: &Plan) -> Result<Loaded, Reason> {
        while !self.waiting.is_empty() && self.table.is_some() {
            self.place(plan);
        }
        // A filter has at least one shard, so a complete one has its table.
        let table = self.table.ok_or(Reason::OutOfMemory { bytes: 0 })?;
        Ok(Loaded::Shards { table, blocks: Vec::new() })
    }
}

/// The shards of a growing filter.
#[derive(Default)]
pub struct InTables {
    tables: Option<Box<Tables>>,
    depths: Vec<u32>,
    /// The greatest of them, on which the size of the directory depends.
    deepest: u32,
}

impl InTables {
    fn add(&mut self, plan: &Plan, blocks: &Blocks) -> Result<(), Reason> {
        let no_memory = |bytes| Reason::OutOfMemory { bytes };
        let in_a_block = block_words(plan);
        let count = blocks.found.len();
        self.depths.try_reserve(count).map_err(|_| no_memory(count * size_of::<u32>()))?;
        let tables = match &mut self.tables {
            Some(tables) => tables,
            None => self.tables.insert(tables_for(plan, count)?),
        };
        let depths = || blocks.found.iter().map(|block| block.depth);
        let deepest = depths().fold(self.deepest, u32::max);
        for taken in 0..count {
            if !take(tables, plan, deepest) {
                // They have not been written to.
                (0..taken).for_each(|_| tables.give_back());
                return Err(no_memory(8 * in_a_block));
            }
        }
        let sites = tables.sites_from(self.depths.len());
        for ((_, site), (block, buckets)) in sites.zip(blocks.each(in_a_block)) {
            site.fill(buckets, block.items);
            site.record(&block.census);
        }
        self.depths.extend(depths());
        self.deepest = deepest;
        Ok(())
    }

    fn finish(self, plan: &Plan) -> Result<Loaded, Reason> {
        let tables = match self.tables {
            Some(tables) => tables,
            None => tables_for(plan, 0)?,
        };
        Ok(Loaded::Gathered { tables, depths: self.depths })
    }
}

/// Returns tables, of which the first has so many shards.
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
