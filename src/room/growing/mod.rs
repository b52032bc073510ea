//! A room that grows: the room of a [`GrowingCuckooFilter`](crate::GrowingCuckooFilter).
//!
//! * [`stages`]: first a [`list`](stages::list), which holds few items in little memory, then shards;
//! * [`grown`]: the shards, each of which is [split](mod@split) when it is full and if that [is
//!   worth](grown::worth) it;
//! * [`ledger`]: how many items its used-up lanes stand for.
//!
//! # The way to a shard
//!
//! 1. The hash has a [position](crate::layout::roots::Position) among those of the shards that the filter began with.
//! 2. The [`directory`] has an entry there, which is good for as long as nobody has [split](until_split) the shard.
//! 3. The entry leads to the [`site`] of the shard: its memory in one of the [`tables`], and its figures.

pub mod directory;
pub mod grown;
pub mod ledger;
pub mod site;
pub mod split;
pub mod stages;
pub mod tables;
pub mod until_split;

use crate::error::Reason;
use crate::layout::sizing::GrowthPlan;
use crate::room::growing::grown::Grown;
use crate::room::growing::stages::Stages;
use crate::room::parts::{CannotRestore, Loaded, Plan};
use crate::room::{Room, Stage, sealed};
use crate::table::ticking::Ticking;
use std::fmt;

/// Makes a filter one that grows: the second parameter of a
/// [`GrowingCuckooFilter`](crate::GrowingCuckooFilter).
pub struct Growing {
    stages: Stages,
}

impl Growing {
    pub(crate) fn new(plan: GrowthPlan) -> Result<Self, Reason> {
        Ok(Growing { stages: Stages::new(plan)? })
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.stages.max_bytes()
    }

    pub(crate) fn set_max_bytes(&self, bytes: usize) {
        self.stages.set_max_bytes(bytes);
    }
}

impl fmt::Debug for Growing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Growing").finish_non_exhaustive()
    }
}

impl sealed::Sealed for Growing {}

impl Room for Growing {
    type Shards = Grown;
    type Passage = Stages;
    const GROWS: bool = true;

    #[inline]
    fn stage(&self) -> Stage<'_, Grown> {
        match self.stages.shards() {
            Some(shards) => Stage::Shards(shards),
            None => Stage::List(&self.stages),
        }
    }

    fn time(&self) -> Option<(&Ticking, &Stages)> {
        self.stages.ticking().map(|ticking| (ticking, &self.stages))
    }

    /// With what keeps the time.
    fn heap_bytes(&self) -> usize {
        self.stages.heap_bytes()
    }

    fn restore(plan: Plan, loaded: Loaded) -> Result<Self, CannotRestore> {
        match plan {
            Plan::Growing(plan) => Ok(Growing { stages: Stages::restore(plan, loaded)? }),
            Plan::Fixed(_) => Err(CannotRestore::WrongKind { grows: false }),
        }
    }
}
