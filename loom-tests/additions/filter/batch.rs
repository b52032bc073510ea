//! What mutants of a batch do in more than a line.

use crate::backend::shards::Shards;
use crate::filter::batch::Operation;

/// Looks for an item, and then inserts it.
pub(super) fn look_then_insert<'a, S: Shards, O: Operation>(
    shards: &'a S,
    ahead: S::Ahead<'a>,
    operation: O,
) -> O::Answer {
    let is_there = shards.contains(shards.fetched(ahead));
    shards.insert(shards.fetched(ahead)).expect("there is room");
    let answer = operation.at(shards, shards.fetched(ahead));
    let _ = is_there && !shards.remove(shards.fetched(ahead));
    answer
}
