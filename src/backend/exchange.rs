//! The types that backends and snapshots exchange.

use crate::backend::growing::tables::Tables;
use crate::layout::geometry::Geometry;
use crate::layout::sizing::{GrowthPlan, rate_at};
use crate::table::Table;
use crate::table::ticking::Time;

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

    /// Returns the limit of the filter's memory in bytes, if it has one.
    pub fn max_bytes(&self) -> Option<usize> {
        match self {
            Plan::Fixed(_) => None,
            Plan::Growing(plan) => Some(plan.max_bytes).filter(|bytes| *bytes < usize::MAX),
        }
    }

    /// Returns the growth that the filter was built for, which is 1 for a fixed filter.
    pub fn expected_growth(&self) -> f64 {
        match self {
            Plan::Fixed(_) => 1.0,
            Plan::Growing(plan) => plan.expected_growth,
        }
    }

    /// Returns the false-positive rate of the filter at its capacity, or after its expected growth.
    pub fn rate_at_capacity(&self, capacity: usize) -> f64 {
        match self {
            Plan::Fixed(geometry) => {
                let slots =
                    geometry.shards() * geometry.buckets() as usize * geometry.lanes().slots();
                rate_at(geometry.lanes(), capacity as f64 / slots as f64)
            }
            Plan::Growing(plan) => plan.rate,
        }
    }
}

/// What a backend reports about a shard that it has copied.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copied {
    pub depth: u32,
    /// The number of lanes that are not void.
    pub items: i64,
    /// The time of the copy, in a filter that forgets.
    pub time: Option<Time>,
}

/// The figures that a block of a file records about its shard, and the block's checksum.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub depth: u32,
    /// The number of lanes that are not void, each of which is one item.
    pub items: i64,
    /// The [`surplus`](crate::backend::growing::site::Site::surplus) of the shard, in a growing filter.
    pub surplus: u64,
    /// The time of the copy, in a filter that forgets.
    pub time: Option<Time>,
    pub sum: u64,
}

impl Block {
    pub const EMPTY: Block = Block { depth: 0, items: 0, surplus: 0, time: None, sum: 0 };
}

/// The contents of a file, or of pieces. `void` is the number of items that [void](crate::backend::growing::void) lanes
/// stand for.
#[doc(hidden)]
pub enum Loaded {
    /// All shards in one table, in the order of their blocks.
    Shards { table: Table, blocks: Vec<Block>, void: u64, time: Option<Time> },
    /// The shards of a growing filter: those in use in these tables, in the order of their hashes.
    Gathered { tables: Box<Tables>, depths: Vec<u32>, void: u64, time: Option<Time> },
}
