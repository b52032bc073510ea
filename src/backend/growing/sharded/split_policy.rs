//! When a split is refused: whether splitting a full shard helps the item that found no room.
//!
//! A split doubles the memory of a shard. It sends each lane to one of the two halves, by the next bit of the
//! lane's hash; a [void](crate::layout::shrinking) lane, which has no bit left, goes to both. So a
//! split makes room if the shard is full of lanes that it can tell apart. In three cases it does not, and the
//! item is refused:
//!
//! 1. **Copies.** Every lane of the item's two buckets matches the item. Such a lane either has the item's
//!    own next bit or is void, so all of them follow the item into its half, and both buckets are full
//!    again, however often the shard is split. (An item is
//!    [refused](crate::layout::shrinking::Shrinking::takes_another) when it has half as many copies, so these
//!    lanes belong to several items.)
//!
//! 2. **A crowd.** A shard of random items is at least 73 % full before it refuses an item (`unsplit` in
//!    [`sizing`](crate::layout::sizing), which was measured). Where many items have all the copies that they
//!    may have, it is about half full. A shard that refuses an item below that has met a crowd: a few hot
//!    items whose buckets meet by chance, or items chosen by someone who knows the hasher's keys. A split or
//!    two tells hot items apart, and such items must not be refused. But splitting for chosen items would let
//!    a few of them double the filter again and again. So a shard that is less than half full is split only
//!    while the filter has few shards, or has an eighth of all its slots taken.
//!
//! 3. **Too few lanes can be told apart.** Each half keeps all void lanes and half of the others. If
//!    lanes with bits left take a quarter of the slots, each half has an eighth of its slots free afterwards,
//!    on average. With fewer such lanes, a split gains less than that, and the next one still less, while
//!    each doubles the memory. In a crowd, half of the lanes must have bits left.
//!
//! With these rules the memory stays within a factor of eight of what the lanes need, beyond a megabyte or
//! two. (In a union, a shard is also split if the other filter has more entries for it than it has room for,
//! but no further than the other filter was; see `union/mod.rs`.)
//!
//! # Cost
//!
//! One counter per stripe is read. If their sum is less than half of the slots, and the shard may have void lanes, all
//! of its words are read, too. Meanwhile, and while it searches for room once more, a refusal
//! holds the locks of the item's two stripes and no other lock of the shard, for some microseconds. In a
//! crowd, all counters of the filter are summed, which takes a millisecond at a billion items.

use crate::error::FullKind;
use crate::layout::geometry::Place;
use crate::shard::{Lease, Shard};
use crate::table::stripe::Locks;

/// Checks whether the item would probably find room if the shard were split. The error is the reason why not.
/// `void` returns the number of void lanes of the shard, and `is_dense` whether the filter may be
/// split further for a crowd.
pub(crate) fn split_helps<'a, L: Lease<'a>>(
    shard: Shard<L>,
    locked: &impl Locks,
    place: Place,
    void: impl FnOnce() -> usize,
    is_dense: impl FnOnce() -> bool,
) -> Result<(), FullKind> {
    let in_a_bucket = shard.lanes().slots();
    let only_copies = shard.count_locked(locked, place) == 2 * in_a_bucket;
    if only_copies {
        return Err(FullKind::TooManyCopies);
    }
    let slots = (shard.buckets().count() * in_a_bucket) as i64;
    let told_apart = shard.all_items();
    if 2 * told_apart >= slots {
        return Ok(());
    }
    let taken = told_apart + void() as i64;
    let helps = if 2 * taken >= slots {
        4 * told_apart >= slots
    } else {
        2 * told_apart >= taken && is_dense()
    };
    if helps { Ok(()) } else { Err(FullKind::NoRoomNearby) }
}
