//! A filter takes over what another one knows.
//!
//! The other filter's shards are copied one after the other, and each copy is merged bucket by bucket into the
//! shards here that have its hashes: what is not here already is added. No lock of either filter is held while one
//! of the other is asked for, so filters may take over from each other at the same time. In a fixed filter, a
//! copy belongs to one shard. In one that grows, copies and shards are split until they are alike (see
//! `room/growing/grown/adopt.rs`). Both divide the hashes at the same places, or they are refused.
//!
//! Neither filter begins a tick meanwhile, so each entry keeps its age. Where both filters have numbers for
//! their ticks, the numbers tell how much older it is here.

use crate::error::Full;
use crate::error::union::{Different, Reason};
use crate::layout::geometry::Mixed;
use crate::room::guest::{Guest, Taken, Times, zeros};
use crate::room::parts::Plan;
use crate::room::shards::{self, Shards};
use crate::room::{Room, Stage};
use crate::table::ticking::Held;

/// Takes over what another room knows. Returns how many entries were added. The hashers are the same, and the rooms
/// [alike](check).
pub fn unite<R: Room>(room: &R, other: &R) -> Result<usize, Reason> {
    let plan = other.plan();
    let lanes = plan.geometry().lanes();
    let held = room
        .time()
        .zip(other.time())
        .map(|((here, through), there)| here.hold_both(through, there));
    let times = Times::of(held.as_ref().map(|held| held.each_ref().map(Held::time)), lanes);
    let mut taken = Taken::default();
    loop {
        match other.stage() {
            Stage::Shards(shards) => take_shards(room, shards, &plan, &times, &mut taken)?,
            Stage::List(list) => {
                // The list may have ended by now. Then there are shards.
                let Some(items) = list.items_of_list() else { continue };
                let (hashes, stamps) = items.map_err(|bytes| Reason::OutOfMemory { bytes })?;
                for (index, hash) in hashes.iter().enumerate() {
                    let stamp = stamps.get(index).copied().unwrap_or(0);
                    if let Some(age) = times.age(lanes.age_of(stamp, times.there)) {
                        taken.note(adopt_item(room, Mixed(*hash), age))?;
                    }
                }
            }
        }
        return taken.result().map(|()| taken.added);
    }
}

/// Checks that the rooms were made alike.
pub fn check<R: Room>(room: &R, other: &R) -> Result<(), Reason> {
    let plans = [room.plan(), other.plan()];
    let [one, other] = plans.each_ref().map(|plan| plan.geometry().numbers());
    let is_one_size = match &plans {
        // Other roots divide the hashes at other places, so an entry of the one fits no shard of the other. What
        // counts is the plan: a list has none yet, but will have them.
        [Plan::Growing(one), Plan::Growing(other)] => one.roots() == other.roots(),
        _ => one == other,
    };
    let different = if one.lanes.remembers() != other.lanes.remembers() {
        Different::Window
    } else if one.lanes != other.lanes {
        Different::Layout
    } else if !is_one_size {
        Different::Size
    } else {
        return Ok(());
    };
    Err(Reason::Different(different))
}

/// Adds an item of another filter's list, so many ticks old.
fn adopt_item<R: Room>(room: &R, hash: Mixed, age: u64) -> Result<bool, Full> {
    loop {
        match room.stage() {
            Stage::Shards(shards) => return shards::adopt_item(shards, hash, age),
            Stage::List(list) => {
                if let Some(result) = list.adopt(hash, age) {
                    return result;
                }
            }
        }
    }
}

/// Takes over all shards of another filter.
fn take_shards<R: Room>(
    room: &R,
    from: &R::Shards,
    plan: &Plan,
    times: &Times,
    taken: &mut Taken,
) -> Result<(), Reason> {
    let lanes = plan.geometry().lanes();
    let mut words = zeros(plan.geometry().words())?;
    let shards = loop {
        match room.stage() {
            Stage::Shards(shards) => break shards,
            // A list has no room for what is not a hash.
            Stage::List(list) => list.leave().map_err(|full| {
                let refused = from.items();
                Reason::Full { full, added: 0, refused, is_all: true }
            })?,
        }
    };
    let mut next = Some(0);
    while let Some(start) = next {
        let Some(copied) = from.copy_shard(&mut next, &mut words) else { break };
        times.bring(&mut words, lanes);
        let start = from.item_in(start);
        let guest = Guest { start, depth: copied.depth, words: &words, lanes };
        shards.take_over(&guest, taken)?;
    }
    Ok(())
}
