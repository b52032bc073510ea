//! What a room and its file tell each other.

use crate::layout::geometry::Geometry;
use crate::layout::sizing::GrowthPlan;
use crate::room::split::Census;
use crate::snapshot::error::Reason;
use crate::table::Table;

/// How a filter is laid out.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum Plan {
    Fixed(Geometry),
    Growing(GrowthPlan),
}

impl Plan {
    /// That of the shards that the filter began with.
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

/// What was found with the buckets of a shard.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    pub depth: u32,
    pub items: i64,
}

/// What a block says of its shard, and its checksum.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Block {
    pub depth: u32,
    pub census: Census,
    pub sum: u64,
}

/// What was in a file: all shards in one table, in the order of their blocks.
#[doc(hidden)]
pub struct Loaded {
    pub table: Table,
    pub blocks: Vec<Block>,
}

/// Whether a machine of this kind could have so many shards like this one.
pub fn can_be_had(one: &Geometry, shards: usize) -> Result<(), Reason> {
    let bytes = Table::bytes(one).saturating_mul(shards);
    if bytes > isize::MAX as usize / 2 { Err(Reason::OutOfMemory { bytes }) } else { Ok(()) }
}

/// So many words of zeros.
pub fn zeros(words: usize) -> Result<Vec<u64>, Reason> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(words).map_err(|_| Reason::OutOfMemory { bytes: 8 * words })?;
    zeros.resize(words, 0);
    Ok(zeros)
}
