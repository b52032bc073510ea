//! What mutants of a batch do in more than a line.

use crate::backend::retry::{Located, Shards};
use crate::filter::batch::Operation;

/// Looks for an item, and inserts it as if it were still absent.
pub(super) fn look_then_insert<'a, S: Shards<'a>, O: Operation>(
    (shard, place): Located<'a, S>,
    operation: O,
) -> O::Answer {
    let is_there = shard.contains(place).expect("no split");
    let _ = !is_there && shard.remove(place).expect("no split");
    operation.at_once(shard, place).expect("there is room")
}
