//! A copy of a room in memory, while other threads change the room.
//!
//! The shards are copied in the order of a file, and so with the same promise: an item that stays in
//! is in the copy once.

use crate::room::parts::{CannotRestore, Loaded, Plan};
use crate::room::shards::Shards;
use crate::room::{Room, Stage};
use crate::shard::whole::fill;
use crate::snapshot::allocate::{table_of, zeros};
use crate::snapshot::blocks::BlockReader;
use crate::snapshot::error::Reason;
use crate::table::ticking::{Held, Time};

/// Copies a room. The error is the number of bytes that could not be allocated.
pub fn copy<R: Room>(room: &R) -> Result<R, usize> {
    let held = room.time().map(|(ticking, through)| ticking.hold(through));
    let time = held.as_ref().map(Held::time);
    let (plan, loaded) = match room.stage() {
        Stage::Shards(shards) => copied(shards, time)?,
        Stage::List(stages) => match (stages.items_of_list(), stages.shards()) {
            (None, Some(shards)) => copied(shards, time)?,
            (items, _) => {
                let (hashes, stamps) = items.unwrap_or(Ok(Default::default()))?;
                (Plan::Growing(stages.plan()), Loaded::Items { hashes, stamps, time })
            }
        },
    };
    R::restore(plan, loaded).map_err(|error| match error {
        CannotRestore::OutOfMemory { bytes } => bytes,
        CannotRestore::WrongKind { .. } => usize::MAX,
    })
}

fn copied(room: &impl Shards, time: Option<Time>) -> Result<(Plan, Loaded), usize> {
    let plan = room.plan();
    let of_reason = |reason| match reason {
        Reason::OutOfMemory { bytes } => bytes,
        _ => usize::MAX,
    };
    let buckets = plan.geometry().buckets() as usize;
    let reader = BlockReader::new(&plan);
    let mut words = zeros(plan.geometry().words()).map_err(of_reason)?;
    let mut shards = room.buckets() / buckets;
    // A room that grows may have more shards before all are copied. Then a larger table is needed.
    'larger: loop {
        let table = table_of(&plan, shards).map_err(of_reason)?;
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(shards).map_err(|_| table.heap_bytes())?;
        let mut next = Some(0);
        while let Some(copied) = room.copy_shard(&mut next, &mut words) {
            if blocks.len() == shards {
                shards = (room.buckets() / buckets).max(shards + 1).div_ceil(8) * 9;
                continue 'larger;
            }
            fill(&table, blocks.len(), &words, copied.items);
            blocks.push(reader.block(&copied, &words));
        }
        return Ok((plan, Loaded::Shards { table, blocks, time }));
    }
}
