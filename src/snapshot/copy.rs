//! A copy of a filter in memory, while other threads change the filter.
//!
//! The copy is made like a file that is saved and loaded, and so with the same promises: an item that stays in the
//! filter is in the copy once, and ticks do not wait for more than one shard. Each shard is copied once: if a filter
//! grows meanwhile, the copy grows as well.

use crate::backend::Backend;
use crate::backend::exchange::{Block, Copied, Loaded, Plan};
use crate::error::{NoMemory, zeros};
use crate::snapshot::gather::Gathered;
use crate::snapshot::part::blocks::BlockReader;
use crate::snapshot::write::copy_next;
use crate::table::ticking::Time;

/// Copies a filter.
pub fn copy(backend: &Backend) -> Result<Backend, NoMemory> {
    let _no_joins = backend.keep_shards();
    let plan = backend.plan();
    let mut loaded =
        copied(&plan, backend.shards(), |next, buckets| copy_next(backend, next, buckets))?;
    if let Loaded::Gathered { void, .. } = &mut loaded {
        *void = backend.void_items();
    }
    Backend::restore(plan, loaded).map_err(NoMemory)
}

/// Builds a backend's contents from the shards that `copy_next` copies. The filter has `shards` shards at the
/// beginning.
fn copied(
    plan: &Plan,
    shards: usize,
    mut copy_next: impl FnMut(&mut Option<u64>, &mut [u64]) -> Option<(Copied, Option<Time>)>,
) -> Result<Loaded, NoMemory> {
    let (reader, mut copy) = (BlockReader::new(plan), Gathered::with_memory(plan, shards)?);
    let mut buckets = zeros(plan.geometry().words())?;
    let (mut next, mut now) = (Some(0), None);
    while let Some((copied, time)) = copy_next(&mut next, &mut buckets) {
        let block = match plan {
            // The items of a shard are its taken lanes, which need not be counted again.
            Plan::Fixed(_) => Block { items: copied.items, ..Block::EMPTY },
            Plan::Growing(_) => reader.block(&buckets),
        };
        let block = Block { depth: copied.depth, time, ..block };
        copy.add(plan, block, &buckets)?;
        now = time;
    }
    copy.finish(plan, &reader, (0, now))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::backend::growing::Growing;
    use crate::backend::shards::Shards;
    use crate::layout::geometry::Mixed;
    use crate::layout::sizing::growth_plan;

    /// The filter grows after each copied shard. Unless the copy grew as well, there would be no end.
    #[test]
    fn each_shard_is_copied_once_while_the_filter_grows() {
        let plan = growth_plan(100_000, 0.001, 0, 64.0, [0, usize::MAX]).expect("a layout");
        let Ok(Growing::Narrow(shards)) = Growing::new(plan.clone()) else { panic!("memory") };
        let plan = Plan::Growing(plan);
        let before = shards.bucket_count() / plan.geometry().buckets() as usize;
        let (mut items, mut count) = (0u64.., 0);
        let mut fill_up_to = |most: usize| {
            while count < most {
                let item = items.next().expect("an item");
                shards.insert(shards.locate(Mixed::of(item))).expect("memory");
                count += 1;
            }
        };
        fill_up_to(50_000);
        let mut copies = 0;
        let loaded = copied(&plan, before, |next, buckets| {
            let copied = shards.copy_shard(next, buckets)?;
            copies += 1;
            assert!(copies < 1_000, "it begins again and again");
            fill_up_to(50_000 << copies.min(4));
            Some((copied, None))
        });
        let Ok(Loaded::Gathered { tables, depths, void, time }) = loaded else {
            panic!("no memory")
        };
        assert!(copies > 2 * before, "{before} shards did not become more than {copies}");
        assert_eq!((tables.shards(), depths.len()), (copies, copies));
        let Plan::Growing(plan) = plan else { panic!("it grows") };
        let copy = Growing::restore(plan, Loaded::Gathered { tables, depths, void, time });
        let Ok(Growing::Narrow(copy)) = copy else { panic!("memory") };
        let missing = (0..50_000).filter(|item| !copy.contains(copy.locate(Mixed::of(*item))));
        assert_eq!(missing.count(), 0);
    }
}
