//! The operations on one item in shards, for fixed and growing filters.
//!
//! An operation calls the item's shard first. The shard may answer that
//!
//! * it no longer owns the item, because it was split or joined to another ([`Refusal::Lapsed`]): then
//!   [`relocate`](Shards::relocate) finds the shard that owns the item now, and the operation is retried
//!   there;
//! * it has no room for the item ([`Refusal::Full`]): then [`make_room`](Shards::make_room) splits
//!   the shard, or refuses the item for good.
//!
//! Neither happens again unless this thread splits a shard or another thread changes one, so the loops below go on only
//! for as long as others make progress. In a fixed filter no shard is ever split and no room can be made, so an
//! operation is just that of the shard.

use crate::backend::growing::tables::Tables;
use crate::error::{Full, FullKind};
use crate::layout::geometry::{Mixed, Place};
use crate::layout::roots::Parts;
use crate::shard::kick::{Copies, kick};
use crate::shard::{Answer, Lease, Refusal, Shard};
use crate::table::Table;
use crate::table::ticking::Time;

/// Retries in the item's present shard, after the shard with this lease was split or joined.
#[cold]
#[inline(never)]
fn ask_again<'a, S: Shards<'a>, A>(
    shards: S,
    mut lease: S::Lease,
    mut lapsed: Lapsed<'a, S>,
    ask: impl Fn(Shard<S::Lease>, Place) -> Result<A, Lapsed<'a, S>>,
) -> A {
    loop {
        let (shard, place) = shards.relocate(lease, lapsed);
        match ask(shard, place) {
            Ok(answer) => return answer,
            Err(again) => (lease, lapsed) = (shard.0, again),
        }
    }
}

/// Retries placing the item, after its shard was split or joined, or had no room.
#[cold]
#[inline(never)]
fn place_again<'a, S: Shards<'a>, A>(
    shards: S,
    mut lease: S::Lease,
    mut refusal: Refusal<Lapsed<'a, S>>,
    ask: impl Fn(Shard<S::Lease>, Place) -> Answer<A, Lapsed<'a, S>>,
) -> Result<A, Full> {
    loop {
        let (shard, place) = match refusal {
            Refusal::Full(kind) => shards.make_room(lease, kind)?,
            Refusal::Lapsed(lapsed) => shards.relocate(lease, lapsed),
        };
        match ask(shard, place) {
            Ok(answer) => return Ok(answer),
            Err(again) => (lease, refusal) = (shard.0, again),
        }
    }
}

/// The shard that owns an item, and the item's place in it.
pub type Located<'a, S> = (Shard<<S as Shards<'a>>::Lease>, Place);

/// The error of a shard whose lease has ended.
pub type Lapsed<'a, S> = <<S as Shards<'a>>::Lease as Lease<'a>>::Lapsed;

/// The shards of a filter, for operations on items: [those of a fixed size](crate::backend::fixed::FixedShards), or
/// those that are [split](crate::backend::growing::sharded::shards::GrowingShards) when they are full.
///
/// Whether buckets are wide is a part of the type. So there is code for each width, without a test in it. The
/// operations are always inlined, so that the item's place stays in registers: passing it through memory takes 10 ns.
pub trait Shards<'a>: Copy + Send + Sync {
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

    /// Finds the present place of an item, after a shard answered that its lease had lapsed.
    fn relocate(self, lease: Self::Lease, lapsed: Lapsed<'a, Self>) -> Located<'a, Self>;

    /// Retries an operation that did not succeed at once. The first attempt has to keep in registers, or on
    /// the stack, only what this needs.
    fn again<A>(self, at: Located<'a, Self>, act: impl FnOnce(Self, Located<'a, Self>) -> A) -> A;

    /// Finds the place for another copy of an item.
    ///
    /// # Errors
    ///
    /// [`Full`] if the filter takes no more copies of the item.
    #[inline]
    fn admit(self, at: Located<'a, Self>) -> Result<Located<'a, Self>, Full> {
        Ok(at)
    }

    /// Makes room for an item whose shard was full in this way, and finds the item's place after that.
    ///
    /// # Errors
    ///
    /// [`Full`] if the filter cannot grow, or if growing would not help this item.
    fn make_room(self, lease: Self::Lease, kind: FullKind) -> Result<Located<'a, Self>, Full>;

    /// Where an item is, for a lookup.
    type Spot: Copy;

    fn spot(self, hash: Mixed) -> Self::Spot;

    /// Prefetches the two buckets of a spot.
    fn request(self, spot: Self::Spot);

    /// Looks once for the item of this spot. Returns `None` if it may have been moving.
    fn look_at(self, spot: Self::Spot) -> Option<bool>;

    /// Looks once for an item.
    #[inline(always)]
    fn look(self, hash: Mixed) -> Option<bool> {
        self.look_at(self.spot(hash))
    }

    /// Returns whether the item is there, after a look without an answer.
    #[cold]
    #[inline(never)]
    fn contains(self, hash: Mixed) -> bool {
        loop {
            let (shard, place) = self.locate(hash);
            if let Ok(found) = shard.contains(place) {
                return found;
            }
        }
    }

    /// An item of a batch whose memory was requested. A batch keeps some thirty of these between
    /// [`fetch`](Self::fetch) and [`fetched`](Self::fetched), so each should be small.
    type Ahead: Copy;

    /// Finds the place of an item, and prefetches the memory that a lookup of it reads.
    fn fetch(self, hash: Mixed) -> Self::Ahead;

    /// Returns the item's place, as [`fetch`](Self::fetch) found it.
    fn fetched(self, ahead: Self::Ahead) -> Located<'a, Self>;

    /// Returns parts into which a batch of writes may be sorted so that no shard's items are in two parts.
    fn parts(self) -> Parts;

    /// Returns the present number of buckets.
    fn bucket_count(self) -> usize;

    // The operations on a located item.

    #[inline(always)]
    fn count(self, (shard, place): Located<'a, Self>) -> usize {
        let again = |lapsed| ask_again(self, shard.0, lapsed, Shard::count);
        shard.count(place).unwrap_or_else(again)
    }

    #[inline(always)]
    fn remove(self, (shard, place): Located<'a, Self>) -> bool {
        let again = |lapsed| ask_again(self, shard.0, lapsed, Shard::remove);
        shard.remove(place).unwrap_or_else(again)
    }

    #[inline(always)]
    fn insert(self, at: Located<'a, Self>) -> Result<(), Full> {
        let (shard, place) = at;
        match shard.insert_at_once(place) {
            Ok(Some(())) => Ok(()),
            _ => self.again(at, Self::insert_again),
        }
    }

    #[inline]
    fn insert_again(self, at: Located<'a, Self>) -> Result<(), Full> {
        self.insert_any(self.admit(at)?)
    }

    /// Inserts an item, without a limit of copies.
    #[inline]
    fn insert_any(self, at: Located<'a, Self>) -> Result<(), Full> {
        let (shard, place) = at;
        let add = |shard, place| kick(shard, place, Copies::Add).map(|_| ());
        add(shard, place).or_else(|refusal| place_again(self, shard.0, refusal, add))
    }

    #[inline(always)]
    fn insert_if_absent(self, at: Located<'a, Self>) -> Result<bool, Full> {
        let (shard, place) = at;
        match shard.insert_if_absent_at_once(place) {
            Ok(Some(added)) => Ok(added),
            _ => self.again(at, Self::insert_if_absent_again),
        }
    }

    /// Adds a copy of an item that was in the filter before, if that is possible. No other thread has the filter.
    #[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
    fn insert_exhaustively(self, hash: Mixed) -> bool {
        let (shard, place) = self.locate(hash);
        shard.insert_exhaustively(place).is_ok_and(|inserted| inserted)
    }

    /// [`insert_if_absent`](Self::insert_if_absent) for a caller that has just looked for the item in vain.
    #[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
    #[inline]
    fn insert_if_still_absent(self, at: Located<'a, Self>) -> Result<bool, Full> {
        let (shard, place) = at;
        match shard.insert_if_absent_locked(place) {
            Ok(Some(added)) => Ok(added),
            _ => self.again(at, Self::insert_if_absent_again),
        }
    }

    #[inline]
    fn insert_if_absent_again(self, at: Located<'a, Self>) -> Result<bool, Full> {
        let (shard, place) = at;
        let add = |shard, place| kick(shard, place, Copies::UnlessPresent);
        add(shard, place).or_else(|refusal| place_again(self, shard.0, refusal, add))
    }

    #[inline(always)]
    fn refresh(self, (shard, place): Located<'a, Self>) -> bool {
        let again = |lapsed| ask_again(self, shard.0, lapsed, Shard::refresh);
        shard.refresh(place).unwrap_or_else(again)
    }

    #[inline(always)]
    fn insert_or_refresh(self, (shard, place): Located<'a, Self>) -> Result<bool, Full> {
        let again = |refusal| place_again(self, shard.0, refusal, Shard::insert_or_refresh);
        shard.insert_or_refresh(place).or_else(again)
    }

    /// Returns the age in ticks of the copy of the item that a removal takes.
    #[inline]
    fn age(self, (shard, place): Located<'a, Self>) -> Option<u64> {
        let again = |lapsed| ask_again(self, shard.0, lapsed, Shard::age);
        shard.age(place).unwrap_or_else(again)
    }
}

/// An operation, as a type. A function that is passed is not always inlined, and the place of an item then
/// goes through memory.
pub trait Operation: Copy {
    type Answer;

    fn perform<'a, S: Shards<'a>>(self, shards: S, at: Located<'a, S>) -> Self::Answer;
}

macro_rules! operations {
    ($($name:ident: $operation:ident -> $answer:ty;)*) => {
        $(
            #[derive(Clone, Copy)]
            pub struct $name;

            impl Operation for $name {
                type Answer = $answer;

                #[inline(always)]
                fn perform<'a, S: Shards<'a>>(self, shards: S, at: Located<'a, S>) -> $answer {
                    shards.$operation(at)
                }
            }
        )*
    };
}

operations! {
    Count: count -> usize;
    Insert: insert -> Result<(), Full>;
    InsertIfAbsent: insert_if_absent -> Result<bool, Full>;
    Remove: remove -> bool;
    Refresh: refresh -> bool;
    InsertOrRefresh: insert_or_refresh -> Result<bool, Full>;
    Age: age -> Option<u64>;
}

#[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
operations! {
    InsertIfStillAbsent: insert_if_still_absent -> Result<bool, Full>;
}

/// The figures of a shard that was copied, or that are in its block of a file.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    pub depth: u32,
    /// The number of lanes that are not void, each of which is one item.
    pub items: i64,
    /// The [`surplus`](crate::backend::growing::tables::Site::surplus) of the shard, in a file of a growing filter.
    pub surplus: u64,
    /// The time of the copy, in a filter that forgets.
    pub time: Option<Time>,
    /// The checksum of the block, in a file.
    pub sum: u64,
}

impl Block {
    pub const EMPTY: Block = Block { depth: 0, items: 0, surplus: 0, time: None, sum: 0 };
}

/// The contents of a file, or of pieces.
#[doc(hidden)]
pub struct Loaded {
    /// The shards, in the order of their hashes.
    pub memory: Memory,
    pub blocks: Vec<Block>,
    /// The number of items that [void](crate::backend::growing::void) lanes stand for.
    pub void: u64,
    pub time: Option<Time>,
}

/// The memory of all shards.
#[doc(hidden)]
pub enum Memory {
    /// All shards of this table.
    Table(Table),
    /// All shards of these tables that are in use.
    Tables(Box<Tables>),
}
