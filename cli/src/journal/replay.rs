//! From the batches of a killed run to the filter.

use crate::failure::Failure;
use crate::journal::record::Batch;
use crate::state::seen::Seen;
use koel::Prehashed;
use std::thread;

/// The number of hashes that are added at once.
const AT_ONCE: usize = 1 << 20;

const PARTS: usize = 8;

/// The hashes of one part of the filter, in the order of the batches.
#[derive(Default)]
struct Group {
    added: Vec<Prehashed>,
    refreshed: Vec<Prehashed>,
}

/// Adds what the batches have added to the filter, and lets the time pass that passed then. What is there
/// already does no harm.
pub fn replay<'a>(seen: &Seen, batches: impl Iterator<Item = &'a Batch>) -> Result<(), Failure> {
    // What there was room for then must have room now, in whatever order it comes.
    let limit = seen.max_bytes();
    seen.set_max_bytes(usize::MAX);
    let mut groups: [Group; PARTS] = Default::default();
    let (mut tick, mut count) = (0, 0);
    let mut result = Ok(());
    for batch in batches {
        if batch.tick != tick || count > AT_ONCE {
            result = result.and_then(|()| make(seen, &mut groups));
            count = 0;
        }
        if batch.tick > tick {
            tick = batch.tick;
            seen.tick_to(tick);
        }
        for hash in &batch.added {
            groups[seen.part_of(hash, PARTS)].added.push(*hash);
        }
        for hash in &batch.refreshed {
            groups[seen.part_of(hash, PARTS)].refreshed.push(*hash);
        }
        count += batch.added.len() + batch.refreshed.len();
    }
    result = result.and_then(|()| make(seen, &mut groups));
    seen.set_max_bytes(limit);
    result
}

/// Adds the hashes of all parts, on as many threads as there are parts.
fn make(seen: &Seen, groups: &mut [Group; PARTS]) -> Result<(), Failure> {
    let add = |group: &mut Group| {
        let added = seen.insert_if_absent_many(&group.added);
        // A line that was about to expire when it was refreshed may have gone with the tick that passed since.
        let refreshed = seen.insert_or_refresh_many(&group.refreshed);
        group.added.clear();
        group.refreshed.clear();
        added.into_iter().chain(refreshed).all(|added| added.is_ok())
    };
    let has_room = thread::scope(|scope| {
        let threads: Vec<_> = groups.iter_mut().map(|group| scope.spawn(|| add(group))).collect();
        threads.into_iter().all(|thread| thread.join().is_ok_and(|has_room| has_room))
    });
    if has_room {
        Ok(())
    } else {
        Err(Failure::new("out of memory for the lines of the killed run"))
    }
}
