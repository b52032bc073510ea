//! A filter that grows: shards of equal size, which are split when they are full.
//!
//! * [`sharded`] has the shards, each of which is [split](mod@split) when it is full, if [a split
//!   helps](sharded::split_policy), and [joined](mod@join) with its other half when both are nearly empty;
//! * [`void`] counts the items of lanes that have no bits left.
//!
//! # The path to a shard
//!
//! 1. The hash has a [position](crate::layout::roots::Position) among the hashes of the shards that the
//!    filter began with.
//! 2. The [`directory`] has an entry there, which is valid until the shard is [split](until_split).
//! 3. The entry is the address of the shard's [`site`]: its memory in one of the [`tables`], and its figures.
//!
//! A shard takes 64 KiB, or 128 KiB with wide buckets, and a filter begins with at least one.

pub mod directory;
pub mod join;
pub mod sharded;
pub mod site;
pub mod split;
pub mod tables;
pub mod until_split;
pub mod void;

use crate::backend::exchange::Loaded;
use crate::backend::growing::directory::Directory;
use crate::backend::growing::sharded::Sharded;
use crate::backend::growing::tables::Tables;
use crate::error::BuildError;
use crate::layout::sizing::GrowthPlan;
use crate::sync::RwLockReadGuard;

/// The shards of a filter that grows, with narrow or wide buckets.
pub enum Growing {
    Narrow(Sharded<false>),
    Wide(Sharded<true>),
}

/// Evaluates an expression for the shards of a growing filter.
macro_rules! on_width {
    ($growing:expr, $shards:ident => $value:expr) => {
        match $growing {
            Growing::Narrow($shards) => $value,
            Growing::Wide($shards) => $value,
        }
    };
}

impl Growing {
    pub(crate) fn new(plan: GrowthPlan) -> Result<Self, BuildError> {
        Ok(match plan.geometry.lanes().is_wide() {
            false => Growing::Narrow(Sharded::new(plan)?),
            true => Growing::Wide(Sharded::new(plan)?),
        })
    }

    /// Makes the shards of a file or of pieces. The error is the number of bytes that could not be allocated.
    pub fn restore(plan: GrowthPlan, loaded: Loaded) -> Result<Self, usize> {
        let (tables, depths, void, time) = match loaded {
            Loaded::Shards { table, blocks, void, time } => {
                let tables = Tables::restore(plan.geometry.shards(), table, blocks.len())?;
                for ((_, site), block) in tables.sites_from(0).zip(&blocks) {
                    site.surplus_gauge().set(block.surplus);
                }
                let depths = blocks.iter().map(|block| block.depth).collect();
                (Box::new(tables), depths, void, time)
            }
            Loaded::Gathered { tables, depths, void, time } => (tables, depths, void, time),
        };
        let directory = Directory::restore(plan.roots(), &tables, depths.iter().copied());
        let directory = directory.ok_or(tables.heap_bytes())?;
        let growing = match plan.geometry.lanes().is_wide() {
            false => Growing::Narrow(Sharded::with(plan, directory, tables, void)),
            true => Growing::Wide(Sharded::with(plan, directory, tables, void)),
        };
        let ticking = on_width!(&growing, shards => shards.ticking());
        if let Some((ticking, time)) = ticking.zip(time) {
            ticking.continue_from(time);
        }
        Ok(growing)
    }

    /// Returns the plan of the filter, with its present limit of bytes.
    pub fn plan(&self) -> GrowthPlan {
        on_width!(self, shards => shards.plan())
    }

    pub fn max_bytes(&self) -> usize {
        on_width!(self, shards => shards.max_bytes())
    }

    pub fn set_max_bytes(&self, bytes: usize) {
        on_width!(self, shards => shards.set_max_bytes(bytes));
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

    /// Returns the depth of the deepest shard.
    pub fn level(&self) -> u32 {
        on_width!(self, shards => shards.level())
    }
}
