//! What mutants of a batch do in more than a line.

use crate::backend::shards::{Operation, Shards};

/// Looks for an item, and then inserts it.
pub(super) fn look_then_insert<'a, S: Shards<'a>, O: Operation>(
    shards: S,
    ahead: S::Ahead,
    operation: O,
) -> O::Answer {
    let (shard, place) = shards.fetched(ahead);
    let is_there = shard.contains(place).expect("no split");
    shards.insert(shards.fetched(ahead)).expect("there is room");
    let answer = operation.perform(shards, shards.fetched(ahead));
    let _ = is_there && !shards.remove(shards.fetched(ahead));
    answer
}
