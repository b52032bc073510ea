//! What models do with an item.

use crate::backend::shards::{Located, Shards};
use crate::layout::geometry::Mixed;

/// Locates the item and performs the operation on it.
pub fn act<'a, S: Shards<'a>, A>(
    shards: S,
    hash: Mixed,
    operation: impl FnOnce(S, Located<'a, S>) -> A,
) -> A {
    operation(shards, shards.locate_in_time(hash))
}
