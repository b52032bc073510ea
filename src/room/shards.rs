//! The shard that an item belongs to, and what is done to the item there.
//!
//! An operation asks the item's shard first. The shard may answer that
//!
//! * it no longer owns the item, because it was split ([`Refusal::Lapsed`]): then
//!   [`relocate`](Shards::relocate) finds the shard that owns it now, and that one is asked;
//! * it has no room for the item ([`Refusal::Full`]): then [`make_room`](Shards::make_room) splits
//!   the shard, or refuses the item for good.
//!
//! Neither happens twice in a row without a split by this thread or a change by another one, so the
//! loops below end. In a fixed filter no shard is ever split and no room can be made, so there an
//! operation is that of the shard and nothing else.

use crate::error::union::Reason;
use crate::error::{Full, FullKind};
use crate::layout::either;
use crate::layout::geometry::{Mixed, Place};
use crate::layout::roots::Parts;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::room::guest::{Guest, Taken};
use crate::room::parts::{Copied, Plan};
use crate::rule::rule;
use crate::shard::Shard;
use crate::shard::kick::{Copies, kick};
use crate::shard::lease::{Answer, Lease, Refusal, Removal};

/// The shard that an item belongs to, and where in it.
pub type Located<'a, S, const WIDE: bool> = (Shard<'a, <S as Shards>::Lease<'a, WIDE>>, Place);

/// What a shard returns once its lease has ended.
pub type Lapsed<'a, S, const WIDE: bool> = <<S as Shards>::Lease<'a, WIDE> as Lease>::Lapsed;

/// All shards of a filter, which are one table ([`Fixed`](crate::Fixed)), or are split when they are
/// full ([`Grown`](crate::room::growing::grown::Grown)).
pub trait Shards: Send + Sync {
    type Lease<'a, const WIDE: bool>: Lease
    where
        Self: 'a;

    /// Whether the buckets are wide. All that follows is for wide buckets, or for narrow ones: an
    /// operation finds out once which.
    fn is_wide(&self) -> bool;

    /// Whether a tick is passing, so that what has expired may be left.
    fn is_ticking(&self) -> bool;

    /// Erases what has expired in the stripes of an item.
    fn sweep_for(&self, hash: Mixed);

    /// Finds where an item belongs now.
    fn locate<const WIDE: bool>(&self, hash: Mixed) -> Located<'_, Self, WIDE>;

    /// Finds where an item belongs now, after a shard answered that its lease had lapsed.
    fn relocate<'a, const WIDE: bool>(
        &'a self,
        lease: Self::Lease<'a, WIDE>,
        lapsed: Lapsed<'a, Self, WIDE>,
    ) -> Located<'a, Self, WIDE>;

    /// Does what was not done [at once](Operation::at). What this does not need is not kept in registers, or
    /// on the stack, by the attempt that comes before.
    #[inline]
    fn again<'a, const WIDE: bool, O: Operation>(
        &'a self,
        located: Located<'a, Self, WIDE>,
    ) -> O::Answer
    where
        Self: Sized,
    {
        O::again(self, located)
    }

    /// Finds where another copy of an item may be inserted.
    ///
    /// # Errors
    ///
    /// [`Full`] if there are as many as the filter takes.
    #[inline]
    fn admit<'a, const WIDE: bool>(
        &'a self,
        located: Located<'a, Self, WIDE>,
    ) -> Result<Located<'a, Self, WIDE>, Full> {
        Ok(located)
    }

    /// Makes room for an item whose shard was full in this way, and finds where the item belongs after
    /// that.
    ///
    /// # Errors
    ///
    /// [`Full`] if the filter cannot grow, or if growing would not help this item.
    fn make_room<'a, const WIDE: bool>(
        &'a self,
        lease: Self::Lease<'a, WIDE>,
        kind: FullKind,
    ) -> Result<Located<'a, Self, WIDE>, Full>;

    /// To be called after a removal that may have been the last.
    fn perhaps_empty(&self) {}

    /// An item of a batch whose memory was requested. A batch keeps some thirty of these between
    /// [`fetch`](Self::fetch) and [`fetched`](Self::fetched), so each should be small.
    type Ahead<'a, const WIDE: bool>: Copy
    where
        Self: 'a;

    /// Finds where an item belongs, and prefetches the memory that a lookup of it reads.
    fn fetch<const WIDE: bool>(&self, hash: Mixed) -> Self::Ahead<'_, WIDE>;

    /// Where the item belongs, as [`fetch`](Self::fetch) found it.
    fn fetched<'a, const WIDE: bool>(
        &'a self,
        ahead: Self::Ahead<'a, WIDE>,
    ) -> Located<'a, Self, WIDE>;

    /// Parts into which a batch of writes may be sorted so that no shard's items are in two parts.
    fn parts(&self) -> Parts;

    fn buckets(&self) -> usize;

    fn items(&self) -> usize;

    fn clear(&self);

    /// The memory held beside `self`.
    fn heap_bytes(&self) -> usize;

    /// The number of items with each stamp.
    fn items_by_stamp(&self) -> ByStamp;

    /// The false-positive rate at present. How long this takes does not depend on the number of shards.
    fn rate(&self) -> f64;

    /// How often the deepest shard was split.
    fn level(&self) -> u32 {
        0
    }

    /// The layout, as it is written to a file.
    fn plan(&self) -> Plan;

    /// Copies the buckets of shard `next`, which is 0 at first, and sets `next` to the shard that
    /// follows. Other threads may change the filter between two calls: an item that stays in is in
    /// exactly one of the copies. (This holds for items. A lane that is used up, and so belongs to
    /// both halves of a split, may be in two.)
    fn copy_shard(&self, next: &mut Option<u64>, buckets: &mut [u64]) -> Option<Copied>;

    /// Returns an item of shard `next`.
    fn item_in(&self, next: u64) -> Mixed;

    /// Takes over the entries in a copy of a shard of another filter that was made like this one.
    fn take_over(&self, guest: &Guest<'_>, taken: &mut Taken) -> Result<(), Reason>;
}

/// What can be done to one item: a type for each, so that batches inline it.
///
/// Always inlined, so that the item's place stays in registers: passing it through memory takes
/// 10 ns.
pub trait Operation {
    type Answer;

    /// Whether it does the same however far a tick has come.
    const IN_TIME: bool = true;

    fn at<'a, const WIDE: bool, S: Shards>(
        shards: &'a S,
        located: Located<'a, S, WIDE>,
    ) -> Self::Answer;

    /// The same if the item was not found, or not placed, at once.
    fn again<'a, const WIDE: bool, S: Shards>(
        shards: &'a S,
        located: Located<'a, S, WIDE>,
    ) -> Self::Answer {
        Self::at(shards, located)
    }
}

/// Finds where the item is, and does this to it.
#[inline(always)]
pub fn act<O: Operation, S: Shards>(shards: &S, hash: Mixed) -> O::Answer {
    if O::IN_TIME && rule!("a_stripe_is_written_and_not_swept", shards.is_ticking(), false) {
        shards.sweep_for(hash);
    }
    either!(shards.is_wide(), WIDE => O::at(shards, shards.locate::<WIDE>(hash)))
}

pub struct Contains;
pub struct Count;
pub struct Remove;
pub struct Insert;
pub struct InsertIfAbsent;
pub struct Refresh;
pub struct InsertOrRefresh;
pub struct Age;

impl Operation for Contains {
    type Answer = bool;

    /// It would cost each lookup of any filter.
    const IN_TIME: bool = false;

    #[inline(always)]
    fn at<'a, const WIDE: bool, S: Shards>(shards: &'a S, at: Located<'a, S, WIDE>) -> bool {
        let (shard, place) = at;
        shard.look(place).unwrap_or_else(|| shards.again::<WIDE, Self>(at))
    }

    #[inline]
    fn again<'a, const WIDE: bool, S: Shards>(shards: &'a S, at: Located<'a, S, WIDE>) -> bool {
        let (shard, place) = at;
        let again = |lapsed| ask_again(shards, shard.lease(), lapsed, Shard::contains_again);
        shard.contains_again(place).unwrap_or_else(again)
    }
}

impl Operation for Count {
    type Answer = usize;

    #[inline(always)]
    fn at<'a, const WIDE: bool, S: Shards>(shards: &'a S, at: Located<'a, S, WIDE>) -> usize {
        let (shard, place) = at;
        let again = |lapsed| ask_again(shards, shard.lease(), lapsed, Shard::count);
        shard.count(place).unwrap_or_else(again)
    }
}

impl Operation for Remove {
    type Answer = bool;

    #[inline(always)]
    fn at<'a, const WIDE: bool, S: Shards>(shards: &'a S, at: Located<'a, S, WIDE>) -> bool {
        let (shard, place) = at;
        let again = |lapsed| ask_again(shards, shard.lease(), lapsed, Shard::remove);
        let removal = shard.remove(place).unwrap_or_else(again);
        if removal == Removal::PerhapsLast {
            shards.perhaps_empty();
        }
        removal != Removal::Absent
    }
}

impl Operation for Insert {
    type Answer = Result<(), Full>;

    #[inline(always)]
    fn at<'a, const WIDE: bool, S: Shards>(
        shards: &'a S,
        (shard, place): Located<'a, S, WIDE>,
    ) -> Result<(), Full> {
        match shard.insert_at_once(place) {
            Ok(Some(())) => Ok(()),
            _ => shards.again::<WIDE, Self>((shard, place)),
        }
    }

    #[inline]
    fn again<'a, const WIDE: bool, S: Shards>(
        shards: &'a S,
        located: Located<'a, S, WIDE>,
    ) -> Result<(), Full> {
        insert_in(shards, shards.admit(located)?)
    }
}

impl Operation for InsertIfAbsent {
    type Answer = Result<bool, Full>;

    #[inline(always)]
    fn at<'a, const WIDE: bool, S: Shards>(
        shards: &'a S,
        (shard, place): Located<'a, S, WIDE>,
    ) -> Result<bool, Full> {
        match shard.insert_if_absent_at_once(place) {
            Ok(Some(added)) => Ok(added),
            _ => shards.again::<WIDE, Self>((shard, place)),
        }
    }

    #[inline]
    fn again<'a, const WIDE: bool, S: Shards>(
        shards: &'a S,
        located: Located<'a, S, WIDE>,
    ) -> Result<bool, Full> {
        place(shards, located, |shard, place| kick(shard, place, Copies::UnlessPresent))
    }
}

impl Operation for Refresh {
    type Answer = bool;

    #[inline(always)]
    fn at<'a, const WIDE: bool, S: Shards>(shards: &'a S, at: Located<'a, S, WIDE>) -> bool {
        let (shard, place) = at;
        let again = |lapsed| ask_again(shards, shard.lease(), lapsed, Shard::refresh);
        shard.refresh(place).unwrap_or_else(again)
    }
}

impl Operation for InsertOrRefresh {
    type Answer = Result<bool, Full>;

    #[inline(always)]
    fn at<'a, const WIDE: bool, S: Shards>(
        shards: &'a S,
        (shard, place): Located<'a, S, WIDE>,
    ) -> Result<bool, Full> {
        let again = |refusal| place_again(shards, shard.lease(), refusal, Shard::insert_or_refresh);
        shard.insert_or_refresh(place).or_else(again)
    }
}

impl Operation for Age {
    type Answer = Option<u64>;

    fn at<'a, const WIDE: bool, S: Shards>(
        shards: &'a S,
        (shard, place): Located<'a, S, WIDE>,
    ) -> Option<u64> {
        let again = |lapsed| ask_again(shards, shard.lease(), lapsed, Shard::age);
        shard.age(place).unwrap_or_else(again)
    }
}

/// Inserts an item, however many copies there are.
#[inline]
pub fn insert_in<'a, const WIDE: bool, S: Shards>(
    shards: &'a S,
    located: Located<'a, S, WIDE>,
) -> Result<(), Full> {
    place(shards, located, |shard, place| kick(shard, place, Copies::Add).map(|_| ()))
}

/// Adds an item of another filter's list, so many ticks old, unless it is here. Returns whether it was added.
pub fn adopt_item<S: Shards>(shards: &S, hash: Mixed, age: u64) -> Result<bool, Full> {
    either!(shards.is_wide(), WIDE => {
        let adopt = |shard: Shard<'_, _>, place| shard.adopt_item(place, age);
        place(shards, shards.locate::<WIDE>(hash), adopt)
    })
}

/// Asks the item's present shard, after the shard with this lease was split.
#[cold]
fn ask_again<'a, const WIDE: bool, S: Shards, A>(
    shards: &'a S,
    mut lease: S::Lease<'a, WIDE>,
    mut lapsed: Lapsed<'a, S, WIDE>,
    ask: impl Fn(Shard<'a, S::Lease<'a, WIDE>>, Place) -> Result<A, Lapsed<'a, S, WIDE>>,
) -> A {
    loop {
        let (shard, place) = shards.relocate(lease, lapsed);
        match ask(shard, place) {
            Ok(answer) => return answer,
            Err(again) => (lease, lapsed) = (shard.lease(), again),
        }
    }
}

/// Places the item in its shard, or in the present one if that was split or made room.
#[inline]
fn place<'a, const WIDE: bool, S: Shards, A>(
    shards: &'a S,
    (shard, place): Located<'a, S, WIDE>,
    ask: impl Fn(Shard<'a, S::Lease<'a, WIDE>>, Place) -> Answer<A, S::Lease<'a, WIDE>>,
) -> Result<A, Full> {
    ask(shard, place).or_else(|refusal| place_again(shards, shard.lease(), refusal, ask))
}

/// Asks again to place the item, after its shard was split or made room.
#[cold]
fn place_again<'a, const WIDE: bool, S: Shards, A>(
    shards: &'a S,
    mut lease: S::Lease<'a, WIDE>,
    mut refusal: Refusal<Lapsed<'a, S, WIDE>>,
    ask: impl Fn(Shard<'a, S::Lease<'a, WIDE>>, Place) -> Answer<A, S::Lease<'a, WIDE>>,
) -> Result<A, Full> {
    loop {
        let (shard, place) = match refusal {
            Refusal::Full(kind) => shards.make_room(lease, kind)?,
            Refusal::Lapsed(lapsed) => shards.relocate(lease, lapsed),
        };
        match ask(shard, place) {
            Ok(answer) => return Ok(answer),
            Err(again) => (lease, refusal) = (shard.lease(), again),
        }
    }
}
