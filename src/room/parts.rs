//! The types that rooms and snapshots exchange.

use crate::layout::geometry::Geometry;
use crate::layout::sizing::GrowthPlan;
use crate::room::growing::split::Census;
use crate::room::growing::tables::Tables;
use crate::table::Table;

/// The layout of a filter, as a file records it.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum Plan {
    Fixed(Geometry),
    Growing(GrowthPlan),
}

impl Plan {
    /// Returns the geometry of the shards that the filter began with.
    pub fn geometry(&self) -> &Geometry {
        match self {
            Plan::Fixed(geometry) => geometry,
            Plan::Growing(plan) => &plan.geometry,
        }
    }

    pub fn grows(&self) -> bool {
        matches!(self, Plan::Growing(_))
    }
}

/// What a room reports about a shard that it has copied.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    pub depth: u32,
    pub items: i64,
}

/// What a block of a file records about its shard, and the block's checksum.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Block {
    pub depth: u32,
    /// The lanes of the shard less its excess.
    pub items: i64,
    pub census: Census,
    pub sum: u64,
}

/// The contents of a file, or of pieces.
#[doc(hidden)]
pub enum Loaded {
    /// All shards in one table, in the order of their blocks.
    Shards { table: Table, blocks: Vec<Block> },
    /// The shards of a growing filter, which are in use in these tables in the order of their hashes.
    Gathered { tables: Box<Tables>, depths: Vec<u32> },
    /// The mixed hashes of a growing filter's list, in ascending order.
    Items(Vec<u64>),
}

/// Why a room could not be restored from the contents of a file.
#[doc(hidden)]
#[derive(Debug)]
pub enum CannotRestore {
    /// The plan is for the other kind of room.
    WrongKind {
        /// Whether the plan is for a growing filter.
        grows: bool,
    },
    OutOfMemory {
        bytes: usize,
    },
}
