//! What follows when an operation on one item is not settled at once, in a filter of either kind.
//!
//! Most operations are settled by a look, or by one attempt under the locks of the item's own buckets. These are
//! inlined where they are called. What may have to follow is here, and is compiled once, in the library:
//!
//! * [`ask`] repeats an operation that adds nothing, until a shard answers that still owns the item.
//! * [`settle`] adds the item. If its shard has no room, the filter [makes room](Shards::make_room), or refuses the
//!   item.
//!
//! Both loops find the shard anew each time. They go on only if this thread has split a shard, or another thread has
//! split or joined one meanwhile, so some thread always makes progress.

use crate::error::{Full, FullKind};
use crate::layout::geometry::{Mixed, Place};
use crate::layout::roots::Parts;
use crate::shard::kick::{Copies, kick};
use crate::shard::{Lease, Refusal, Shard};

/// The shard that owns an item, and the item's place in it.
pub(crate) type Located<'a, S> = (Shard<<S as Shards<'a>>::Lease>, Place);

/// The error of a shard whose lease has ended.
pub(crate) type Lapsed<'a, S> = <<S as Shards<'a>>::Lease as Lease<'a>>::Lapsed;

/// How an item may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adding {
    /// Another copy, within the limit of copies.
    Copy,
    /// Another copy of an item that was in the filter before, without the limit.
    #[cfg(all(unix, feature = "durable"))]
    FormerCopy,
    /// Unless it is there.
    IfAbsent,
    /// Unless it is there; then it is refreshed.
    OrRefresh,
}

/// Why an item that found no room is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// This thread has split the shard.
    Made,
    /// Another thread has split or joined the shard, or there is room in it now.
    Found,
}

/// Adds an item that an attempt has not added. Returns whether it was added. A [`kick`] moves no item if one of the two
/// buckets has room by now, as after a split.
#[inline(never)]
pub(crate) fn settle<'a, S: Shards<'a>>(
    shards: S,
    hash: Mixed,
    adding: Adding,
) -> Result<bool, Full> {
    loop {
        let (shard, place) = shards.locate(hash);
        let answer = match adding {
            Adding::Copy => match shards.takes_another(shard, place) {
                Ok(true) => kick(shard, place, Copies::Add),
                Ok(false) => return Err(Full::new(FullKind::TooManyCopies)),
                Err(lapsed) => Err(Refusal::Lapsed(lapsed)),
            },
            #[cfg(all(unix, feature = "durable"))]
            Adding::FormerCopy => kick(shard, place, Copies::Add),
            Adding::IfAbsent => kick(shard, place, Copies::UnlessPresent),
            Adding::OrRefresh => shard.insert_or_refresh(place),
        };
        match answer {
            Ok(added) => return Ok(added),
            Err(Refusal::Full) => _ = shards.make_room(shard, place)?,
            Err(Refusal::Lapsed(_)) => {}
        }
    }
}

/// Asks the shard that owns the item, after a shard that did not own it any more.
#[cold]
#[inline(never)]
pub(crate) fn ask<'a, S: Shards<'a>, A>(
    shards: S,
    hash: Mixed,
    ask: impl Fn(Shard<S::Lease>, Place) -> Result<A, Lapsed<'a, S>>,
) -> A {
    loop {
        let (shard, place) = shards.locate(hash);
        if let Ok(answer) = ask(shard, place) {
            return answer;
        }
    }
}

/// The shards of a filter, for operations on items: [those of a fixed size](crate::backend::fixed::FixedShards), or
/// those that are [split](crate::backend::growing::GrowingShards) when they are full. Whether buckets are wide is a
/// part of the type.
pub(crate) trait Shards<'a>: Copy + Send + Sync {
    type Lease: Lease<'a>;

    /// Whether a tick is passing, so that expired lanes may be left.
    fn is_ticking(self) -> bool;

    /// Erases the expired lanes in the stripes of an item, for a caller that has found that a tick is passing.
    #[cold]
    #[inline(never)]
    fn sweep_for(self, hash: Mixed) {
        let (shard, place) = self.locate(hash);
        // If the shard has been split or joined since, that has swept it.
        _ = shard.sweep_both(place);
    }

    /// Finds the present place of an item.
    fn locate(self, hash: Mixed) -> Located<'a, Self>;

    /// The same for an operation whose result has to be as if a passing tick had already passed.
    #[inline(always)]
    fn locate_in_time(self, hash: Mixed) -> Located<'a, Self> {
        if self.is_ticking() {
            self.sweep_for(hash);
        }
        self.locate(hash)
    }

    /// Whether the filter takes another copy of an item, under the item's locks if it does not.
    fn takes_another(
        self,
        shard: Shard<Self::Lease>,
        place: Place,
    ) -> Result<bool, Lapsed<'a, Self>>;

    /// Makes room for an item that found none in its shard.
    ///
    /// # Errors
    ///
    /// [`Full`] if the filter cannot grow, or if growing would not help this item.
    fn make_room(self, shard: Shard<Self::Lease>, place: Place) -> Result<Room, Full>;

    /// Where an item is, for a lookup.
    type Spot: Copy;

    fn spot(self, hash: Mixed) -> Self::Spot;

    /// Prefetches the two buckets of a spot.
    fn request(self, spot: Self::Spot);

    /// Looks once for the item of this spot. Returns `None` if it may have been moving.
    fn look_at(self, spot: Self::Spot) -> Option<bool>;

    #[inline(always)]
    fn look(self, hash: Mixed) -> Option<bool> {
        self.look_at(self.spot(hash))
    }

    /// An item of a batch whose memory was requested. A batch keeps some thirty of these, so each should be small.
    type Ahead: Copy;

    /// Finds the place of an item, and prefetches the memory that a lookup of it reads.
    fn fetch(self, hash: Mixed) -> Self::Ahead;

    /// Returns the item's place, as [`fetch`](Self::fetch) found it.
    fn fetched(self, ahead: Self::Ahead) -> Located<'a, Self>;

    /// Returns parts into which a batch of writes may be sorted so that no shard's items are in two parts.
    fn parts(self) -> Parts;

    fn bucket_count(self) -> usize;
}
