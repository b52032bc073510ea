//! Whether splitting a full shard helps the item that it refused.
//!
//! A split doubles the memory of a shard. It sends each lane to one of the two halves, by the next
//! bit of the lane's hash; a lane that is [exhausted](crate::layout::shrinking), with no bit left, goes
//! to both. So a split makes room if the shard is full of lanes that it can tell apart. It does not
//! in three cases, and then the item is refused:
//!
//! 1. **Copies.** Every lane of the item's two buckets matches the item. Such a lane either has the
//!    item's own next bit or is exhausted, so all of them follow the item into its half, and both
//!    buckets are full again, however often the shard is split. (An item is [refused](crate::layout::shrinking::Shrinking::takes_another)
//!    when it has half as many, so these are the fingerprints of several items.)
//!
//! 2. **A crowd.** Chance fills a shard to 73 % at least before it refuses an item (`unsplit` in
//!    [`sizing`](crate::layout::sizing), which was measured). Where many items have all the copies that
//!    they may have, it is about a half. One that refuses an item below that has met a crowd: a few hot
//!    items whose buckets meet by chance, or items that someone who knows the hasher's keys chose. The
//!    first of these are told apart by a split or two, and every item has to fit. But splitting for the
//!    others would let a few items make the filter double again and again. So a shard that is less than
//!    half full is split only while the filter has few shards, or an eighth of all slots taken.
//!
//! 3. **Too few lanes can be told apart.** Each half keeps all exhausted lanes and
//!    half of the others. With a quarter of the slots in lanes that have bits left, each half has
//!    an eighth of its slots free afterwards, on average. With fewer, a split gains less than that,
//!    and the next one less again, while each doubles the memory. In a crowd, half of the lanes have to
//!    have bits left.
//!
//! With these rules the memory stays within a factor of eight of what the lanes need, beyond a megabyte or two.
//! (A filter that takes over another one is also split where more entries come than a shard has room for, but no
//! further than the other one was; see `backend/growing/sharded/merge.rs`.)
//!
//! # Cost
//!
//! A counter per stripe is read; and if these say less than half of the slots, all words of the shard. A refusal holds the locks of the item's two stripes
//! meanwhile, and while it searches for room once more: some microseconds, and no other lock of the
//! shard. In a crowd, all counters of the filter are added up: a millisecond at a billion items.

use crate::error::FullKind;
use crate::layout::geometry::Place;
use crate::shard::Shard;
use crate::shard::lease::Lease;
use crate::table::stripe::Locks;

/// Whether the item would probably find room if the shard were split, which has as many exhausted lanes as
/// `exhausted` returns, and if not, why. `is_dense` tells whether the filter may be split further for a crowd.
pub fn split_helps<L: Lease>(
    shard: Shard<'_, L>,
    locked: &impl Locks,
    place: Place,
    exhausted: impl FnOnce() -> usize,
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
    let taken = told_apart + exhausted() as i64;
    let helps = if 2 * taken >= slots {
        4 * told_apart >= slots
    } else {
        2 * told_apart >= taken && is_dense()
    };
    if helps { Ok(()) } else { Err(FullKind::NoRoomNearby) }
}
