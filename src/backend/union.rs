//! A filter takes over what another one knows.
//!
//! The other filter's shards are copied one after the other, and each copy is merged bucket by bucket into the
//! shards here that have its hashes: what is not here already is added. No lock of either filter is held while one
//! of the other is asked for, so filters may take over from each other at the same time. In a fixed filter, a
//! copy belongs to one shard. In one that grows, copies and shards are split until they are alike (see
//! `backend/growing/sharded/merge.rs`). Both divide the hashes at the same places, or they are refused.
//!
//! Neither filter begins a tick meanwhile, so each entry keeps its age. Where both filters have numbers for
//! their ticks, the numbers tell how much older it is here.

use crate::backend::incoming::{AgeMap, IncomingShard, MergeReport, zeros};
use crate::backend::parts::Plan;
use crate::backend::shards::Shards;
use crate::backend::{Backend, on_shards};
use crate::error::Full;
use crate::error::union::{Different, Reason};
use crate::layout::geometry::Mixed;
use crate::table::ticking::TickPause;

/// Takes over what another filter knows. Returns how many entries were added. The hashers are the same, and the filters
/// [alike](check).
pub fn union_with(backend: &Backend, other: &Backend) -> Result<usize, Reason> {
    let plan = other.plan();
    let lanes = plan.geometry().lanes();
    let held = backend
        .ticking()
        .zip(other.ticking())
        .map(|(here, there)| here.pause_both(backend, (there, other)));
    let times = AgeMap::of(held.as_ref().map(|held| held.each_ref().map(TickPause::time)), lanes);
    let mut report = MergeReport::default();
    loop {
        on_shards!(
            other,
            shards => merge_shards(backend, (other, shards), &plan, &times, &mut report)?,
            growing => {
                // The list may have ended by now. Then there are shards.
                let Some(items) = growing.items_of_list() else { continue };
                let (hashes, stamps) = items.map_err(|bytes| Reason::OutOfMemory { bytes })?;
                for (index, hash) in hashes.iter().enumerate() {
                    let stamp = stamps.get(index).copied().unwrap_or(0);
                    if let Some(age) = times.age(lanes.age_of(stamp, times.there)) {
                        report.note(merge_item(backend, Mixed(*hash), age))?;
                    }
                }
            }
        );
        return report.result().map(|()| report.added);
    }
}

/// Checks that the filters were made alike.
pub fn check(backend: &Backend, other: &Backend) -> Result<(), Reason> {
    let plans = [backend.plan(), other.plan()];
    let [one, other] = plans.each_ref().map(|plan| plan.geometry().numbers());
    let is_one_size = match &plans {
        // Other roots divide the hashes at other places, so an entry of the one fits no shard of the other. What
        // counts is the plan: a list has none yet, but will have them.
        [Plan::Growing(one), Plan::Growing(other)] => one.roots() == other.roots(),
        _ => one == other,
    };
    let different = if plans[0].grows() != plans[1].grows() {
        Different::Kind
    } else if one.lanes.remembers() != other.lanes.remembers() {
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
fn merge_item(backend: &Backend, hash: Mixed, age: u64) -> Result<bool, Full> {
    loop {
        on_shards!(
            backend,
            shards => return shards.merge_item(hash, age),
            growing => if let Some(result) = growing.merge_item(hash, age) {
                return result;
            }
        );
    }
}

/// Takes over all shards of another filter.
fn merge_shards(
    backend: &Backend,
    (other, from): (&Backend, &impl Shards),
    plan: &Plan,
    times: &AgeMap,
    report: &mut MergeReport,
) -> Result<(), Reason> {
    if let Backend::Growing(growing) = backend
        && growing.shards().is_none()
    {
        // A list has no room for what is not a hash.
        growing.leave().map_err(|full| {
            let refused = other.items();
            Reason::Full { full, added: 0, refused, is_all: true }
        })?;
    }
    let lanes = plan.geometry().lanes();
    let mut words = zeros(plan.geometry().words())?;
    let mut next = Some(0);
    while let Some(start) = next {
        let Some(copied) = from.copy_shard(&mut next, &mut words) else { break };
        times.bring(&mut words, lanes);
        let start = from.item_in(start);
        let incoming = IncomingShard { start, depth: copied.depth, words: &words, lanes };
        on_shards!(backend, shards => shards.merge_shard(&incoming, report)?, _growing => {});
    }
    Ok(())
}
