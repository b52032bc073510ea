//! Where the items of a filter are, and how each operation reaches them.
//!
//! A room knows which [shard](Shard) an item belongs to. [`Fixed`](crate::Fixed) has one table of
//! shards that never change. [`Growing`](crate::Growing) has a [directory] of shards, and splits
//! the ones that are full.
//!
//! A filter's operation asks the item's shard first. The shard may answer that
//!
//! * it no longer owns the item, because it was split ([`Refusal::Lapsed`]): then
//!   [`relocate`](Room::relocate) finds the shard that owns it now, and that one is asked;
//! * it has no room for the item ([`Refusal::Full`]): then [`make_room`](Room::make_room) splits
//!   the shard, or refuses the item for good;
//! * it has no items to take off for a removal ([`Removal::Unpaid`]): then
//!   [`pay_for`](Room::pay_for) finds some elsewhere, or there are none in the filter.
//!
//! Neither happens twice in a row without a split by this thread or a change by another one, so the
//! loops below end. In a fixed room no shard is ever split and no room can be made, so there an
//! operation is that of the shard and nothing else.

pub mod accounts;
pub mod directory;
pub mod fixed;
pub mod growing;
pub mod parts;
pub mod split;
pub mod tables;
pub mod until_split;
pub mod worth;

use crate::error::{Full, FullKind};
use crate::layout::geometry::{Mixed, Place};
use crate::layout::roots::Parts;
use crate::room::parts::{CannotRestore, Copied, Loaded, Plan};
use crate::shard::Shard;
use crate::shard::lease::{Answer, Lease, Refusal, Removal};
use crate::stats::Stats;

/// The shard that an item belongs to, and where in it.
pub type Located<'a, R, const WIDE: bool> = (Shard<'a, <R as Room>::Lease<'a, WIDE>>, Place);

/// What a shard returns once its lease has ended.
pub type Lapsed<'a, R, const WIDE: bool> = <<R as Room>::Lease<'a, WIDE> as Lease>::Lapsed;

/// The kinds of filters: [`Fixed`](crate::Fixed) and [`Growing`](crate::Growing). It cannot be
/// implemented for other types.
///
/// Code that works with either kind is generic over it:
///
/// ```
/// use koel::{ConcurrentCuckooFilter, Room};
///
/// fn seen_both<R: Room>(filter: &ConcurrentCuckooFilter<koel::RandomState, R>) -> bool {
///     filter.contains("a") && filter.contains("b")
/// }
///
/// assert!(!seen_both(&ConcurrentCuckooFilter::with_capacity(10)));
/// let growing = ConcurrentCuckooFilter::builder().capacity(10).growing().build()?;
/// assert!(!seen_both(&growing));
/// # Ok::<(), koel::BuildError>(())
/// ```
pub trait Room: sealed::Sealed + Send + Sync {
    #[doc(hidden)]
    type Lease<'a, const WIDE: bool>: Lease
    where
        Self: 'a;

    /// Whether the buckets are wide. All that follows is for wide buckets, or for narrow ones: an
    /// operation finds out once which.
    #[doc(hidden)]
    fn is_wide(&self) -> bool;

    /// Finds where an item belongs now.
    #[doc(hidden)]
    fn locate<const WIDE: bool>(&self, hash: Mixed) -> Located<'_, Self, WIDE>;

    /// Finds where an item belongs now, after a shard answered that its lease had lapsed.
    #[doc(hidden)]
    fn relocate<'a, const WIDE: bool>(
        &'a self,
        lease: Self::Lease<'a, WIDE>,
        lapsed: Lapsed<'a, Self, WIDE>,
    ) -> Located<'a, Self, WIDE>;

    /// Makes room for an item whose shard was full in this way, and finds where the item belongs after
    /// that.
    ///
    /// # Errors
    ///
    /// [`Full`] if the room cannot grow, or if growing would not help this item.
    #[doc(hidden)]
    fn make_room<'a, const WIDE: bool>(
        &'a self,
        lease: Self::Lease<'a, WIDE>,
        kind: FullKind,
    ) -> Result<Located<'a, Self, WIDE>, Full>;

    /// Brings items to take off into the [account](accounts) of a stripe that an item would be removed
    /// from, and finds where the item belongs after that. `None` if there are none: everything that
    /// was inserted has been removed.
    #[doc(hidden)]
    fn pay_for<'a, const WIDE: bool>(
        &'a self,
        lease: Self::Lease<'a, WIDE>,
    ) -> Option<Located<'a, Self, WIDE>>;

    /// To be called after a removal that may have been the last.
    #[doc(hidden)]
    fn perhaps_empty(&self);

    /// An item of a batch whose memory was requested. A batch keeps some thirty of these between
    /// [`fetch`](Self::fetch) and [`fetched`](Self::fetched), so each should be small.
    #[doc(hidden)]
    type Ahead<'a, const WIDE: bool>: Copy
    where
        Self: 'a;

    /// Finds where an item belongs, and prefetches the memory that a lookup of it reads.
    #[doc(hidden)]
    fn fetch<const WIDE: bool>(&self, hash: Mixed) -> Self::Ahead<'_, WIDE>;

    /// Where the item belongs, as [`fetch`](Self::fetch) found it.
    #[doc(hidden)]
    fn fetched<'a, const WIDE: bool>(
        &'a self,
        ahead: Self::Ahead<'a, WIDE>,
    ) -> Located<'a, Self, WIDE>;

    /// Parts into which a batch of writes may be sorted so that no shard's items are in two parts.
    #[doc(hidden)]
    fn parts(&self) -> Parts;

    #[doc(hidden)]
    fn buckets(&self) -> usize;

    #[doc(hidden)]
    fn items(&self) -> usize;

    #[doc(hidden)]
    fn clear(&self);

    /// The memory held beside `self`.
    #[doc(hidden)]
    fn heap_bytes(&self) -> usize;

    /// All figures, except for the size of the filter itself.
    #[doc(hidden)]
    fn stats(&self, capacity: usize) -> Stats;

    /// The layout, as it is written to a file.
    #[doc(hidden)]
    fn plan(&self) -> Plan;

    /// Copies the buckets of shard `next`, which is 0 at first, and sets `next` to the shard that
    /// follows. Other threads may change the filter between two calls: an item that stays in is in
    /// exactly one of the copies. (This holds for items. A lane that is used up, and so belongs to
    /// both halves of a split, may be in two.)
    #[doc(hidden)]
    fn copy_shard(&self, next: &mut Option<u64>, buckets: &mut [u64]) -> Option<Copied>;

    /// Whether the room's plan is [`Plan::Growing`].
    #[doc(hidden)]
    const GROWS: bool;

    /// Makes a room from the contents of a file.
    #[doc(hidden)]
    fn restore(plan: Plan, loaded: Loaded) -> Result<Self, CannotRestore>
    where
        Self: Sized;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// What can be done to one item: a type for each, so that batches inline it.
///
/// Always inlined, so that the item's place stays in registers: passing it through memory takes
/// 10 ns.
#[doc(hidden)]
pub trait Operation {
    type Answer;

    fn at<'a, const WIDE: bool, R: Room>(
        room: &'a R,
        located: Located<'a, R, WIDE>,
    ) -> Self::Answer;
}

/// Finds where the item is, and does this to it.
#[inline(always)]
pub fn act<O: Operation, R: Room>(room: &R, hash: Mixed) -> O::Answer {
    match room.is_wide() {
        false => O::at(room, room.locate::<false>(hash)),
        true => O::at(room, room.locate::<true>(hash)),
    }
}

pub struct Contains;
pub struct Count;
pub struct Remove;
pub struct Insert;
pub struct InsertIfAbsent;

impl Operation for Contains {
    type Answer = bool;

    #[inline(always)]
    fn at<'a, const WIDE: bool, R: Room>(
        room: &'a R,
        (shard, place): Located<'a, R, WIDE>,
    ) -> bool {
        let again = |lapsed| ask_again(room, shard.lease(), lapsed, Shard::contains);
        shard.contains(place).unwrap_or_else(again)
    }
}

impl Operation for Count {
    type Answer = usize;

    #[inline(always)]
    fn at<'a, const WIDE: bool, R: Room>(
        room: &'a R,
        (shard, place): Located<'a, R, WIDE>,
    ) -> usize {
        let again = |lapsed| ask_again(room, shard.lease(), lapsed, Shard::count);
        shard.count(place).unwrap_or_else(again)
    }
}

impl Operation for Remove {
    type Answer = bool;

    #[inline(always)]
    fn at<'a, const WIDE: bool, R: Room>(
        room: &'a R,
        (shard, place): Located<'a, R, WIDE>,
    ) -> bool {
        match shard.remove(place) {
            Ok(Removal::Absent) => false,
            Ok(Removal::Done) => true,
            other => remove_again(room, shard.lease(), other),
        }
    }
}

impl Operation for Insert {
    type Answer = Result<(), Full>;

    #[inline(always)]
    fn at<'a, const WIDE: bool, R: Room>(
        room: &'a R,
        (shard, place): Located<'a, R, WIDE>,
    ) -> Result<(), Full> {
        match shard.insert(place) {
            Ok(answer) => Ok(answer),
            Err(refusal) => place_again(room, shard.lease(), refusal, Shard::insert),
        }
    }
}

impl Operation for InsertIfAbsent {
    type Answer = Result<bool, Full>;

    #[inline(always)]
    fn at<'a, const WIDE: bool, R: Room>(
        room: &'a R,
        (shard, place): Located<'a, R, WIDE>,
    ) -> Result<bool, Full> {
        match shard.insert_if_absent(place) {
            Ok(answer) => Ok(answer),
            Err(refusal) => place_again(room, shard.lease(), refusal, Shard::insert_if_absent),
        }
    }
}

/// Asks the item's present shard, after the shard with this lease was split.
#[cold]
fn ask_again<'a, const WIDE: bool, R: Room, A>(
    room: &'a R,
    mut lease: R::Lease<'a, WIDE>,
    mut lapsed: Lapsed<'a, R, WIDE>,
    ask: impl Fn(Shard<'a, R::Lease<'a, WIDE>>, Place) -> Result<A, Lapsed<'a, R, WIDE>>,
) -> A {
    loop {
        let (shard, place) = room.relocate(lease, lapsed);
        match ask(shard, place) {
            Ok(answer) => return answer,
            Err(again) => (lease, lapsed) = (shard.lease(), again),
        }
    }
}

/// Sees to what a removal left to do, after its shard was split or had no items to take off.
#[cold]
fn remove_again<'a, const WIDE: bool, R: Room>(
    room: &'a R,
    mut lease: R::Lease<'a, WIDE>,
    mut answer: Result<Removal, Lapsed<'a, R, WIDE>>,
) -> bool {
    loop {
        let (shard, place) = match answer {
            Ok(Removal::Absent) => return false,
            Ok(Removal::Done) => return true,
            Ok(Removal::PerhapsLast) => {
                room.perhaps_empty();
                return true;
            }
            Ok(Removal::Unpaid) => match room.pay_for(lease) {
                Some(located) => located,
                None => return false,
            },
            Err(lapsed) => room.relocate(lease, lapsed),
        };
        (lease, answer) = (shard.lease(), shard.remove(place));
    }
}

/// Asks again to place the item, after its shard was split or made room.
#[cold]
fn place_again<'a, const WIDE: bool, R: Room, A>(
    room: &'a R,
    mut lease: R::Lease<'a, WIDE>,
    mut refusal: Refusal<Lapsed<'a, R, WIDE>>,
    ask: impl Fn(Shard<'a, R::Lease<'a, WIDE>>, Place) -> Answer<A, R::Lease<'a, WIDE>>,
) -> Result<A, Full> {
    loop {
        let (shard, place) = match refusal {
            Refusal::Full(kind) => room.make_room(lease, kind)?,
            Refusal::Lapsed(lapsed) => room.relocate(lease, lapsed),
        };
        match ask(shard, place) {
            Ok(answer) => return Ok(answer),
            Err(again) => (lease, refusal) = (shard.lease(), again),
        }
    }
}
