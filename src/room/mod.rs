//! Where the items of a filter are: what a filter asks of a [`Fixed`](crate::Fixed) table or of a
//! [`Growing`](crate::Growing) one, and the operations on an item of either.
//!
//! A shard may answer that it is full, or that it has been split and no longer has the item. The
//! operations here ask the room for help with the first, and look the item up again after the second.
//! A fixed room cannot help, and its shards are never split, so there all of this is the shard's
//! operation and nothing else.

pub mod directory;
pub mod fixed;
pub mod growing;
pub mod parts;
pub mod split;
pub mod tables;

use crate::error::Full;
use crate::layout::geometry::{Mixed, Place};
use crate::room::parts::{Copied, Loaded, Plan};
use crate::shard::Shard;
use crate::shard::lease::Answer;
use crate::shard::lease::{Lease, Refusal};
use crate::snapshot::error::Reason as Unreadable;
use crate::stats::Stats;

/// The shard that an item belongs to, and where in it.
pub type Located<'a, R> = (Shard<'a, <R as Room>::Lease<'a>>, Place);

/// What a shard says whose lease has ended.
pub type Lapsed<'a, R> = <<R as Room>::Lease<'a> as Lease>::Lapsed;

/// The kinds of filters: [`Fixed`](crate::Fixed) and [`Growing`](crate::Growing). It cannot be
/// implemented for others.
///
/// Code for either kind says so:
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
    type Lease<'a>: Lease
    where
        Self: 'a;

    /// Where an item belongs now.
    #[doc(hidden)]
    fn locate(&self, hash: Mixed) -> Located<'_, Self>;

    /// What a batch keeps of an item whose memory it has asked for.
    #[doc(hidden)]
    type Ahead<'a>: Copy
    where
        Self: 'a;

    /// Asks for the memory of an item.
    #[doc(hidden)]
    fn fetch(&self, hash: Mixed) -> Self::Ahead<'_>;

    /// Where the item is whose memory was asked for.
    #[doc(hidden)]
    fn fetched<'a>(&'a self, ahead: Self::Ahead<'a>) -> Located<'a, Self>;

    /// Asks the shard that has the item by now, after one said that its lease had ended.
    #[doc(hidden)]
    fn find_elsewhere<'a, A>(
        &'a self,
        lease: Self::Lease<'a>,
        lapsed: Lapsed<'a, Self>,
        ask: impl Fn(Shard<'a, Self::Lease<'a>>, Place) -> Result<A, Lapsed<'a, Self>>,
    ) -> A;

    /// Makes room in the shard that has the item, if that helps it, or asks the one that has it by
    /// now.
    #[doc(hidden)]
    fn place_elsewhere<'a, A>(
        &'a self,
        lease: Self::Lease<'a>,
        refusal: Refusal<Lapsed<'a, Self>>,
        ask: impl Fn(Shard<'a, Self::Lease<'a>>, Place) -> Answer<A, Self::Lease<'a>>,
    ) -> Result<A, Full>;

    /// Into how many parts of the hashes a batch of writes may be sorted, so that all items of one
    /// shard are in one part.
    #[doc(hidden)]
    fn parts(&self) -> usize;

    #[doc(hidden)]
    fn buckets(&self) -> usize;

    #[doc(hidden)]
    fn items(&self) -> usize;

    #[doc(hidden)]
    fn clear(&self);

    /// What is kept beside `self`.
    #[doc(hidden)]
    fn heap_bytes(&self) -> usize;

    /// All figures, but for what the filter is itself.
    #[doc(hidden)]
    fn stats(&self, capacity: usize) -> Stats;

    /// How it is laid out, for its file.
    #[doc(hidden)]
    fn plan(&self) -> Plan;

    /// Copies the buckets of the shard that is next, 0 at first, and says which comes then. Between
    /// two calls others may change the filter: what stays in is in one of the copies, and only there.
    /// (That is said of items, not of lanes that are used up.)
    #[doc(hidden)]
    fn copy_shard(&self, next: &mut Option<u64>, buckets: &mut [u64]) -> Option<Copied>;

    /// Whether its plan is [`Plan::Growing`].
    #[doc(hidden)]
    const GROWS: bool;

    /// A room of this plan, that has what was read from a file.
    #[doc(hidden)]
    fn restore(plan: Plan, loaded: Loaded) -> Result<Self, Unreadable>
    where
        Self: Sized;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

// Always inlined, so that where the item is stays in registers: by way of memory it takes 10 ns.

#[inline(always)]
pub fn contains<'a, R: Room>(room: &'a R, (shard, place): Located<'a, R>) -> bool {
    match shard.contains(place) {
        Ok(answer) => answer,
        Err(lapsed) => room.find_elsewhere(shard.lease(), lapsed, Shard::contains),
    }
}

#[inline(always)]
pub fn count<'a, R: Room>(room: &'a R, (shard, place): Located<'a, R>) -> usize {
    match shard.count(place) {
        Ok(answer) => answer,
        Err(lapsed) => room.find_elsewhere(shard.lease(), lapsed, Shard::count),
    }
}

#[inline(always)]
pub fn remove<'a, R: Room>(room: &'a R, (shard, place): Located<'a, R>) -> bool {
    match shard.remove(place) {
        Ok(answer) => answer,
        Err(lapsed) => room.find_elsewhere(shard.lease(), lapsed, Shard::remove),
    }
}

#[inline(always)]
pub fn insert<'a, R: Room>(room: &'a R, (shard, place): Located<'a, R>) -> Result<(), Full> {
    match shard.insert(place) {
        Ok(answer) => Ok(answer),
        Err(refusal) => room.place_elsewhere(shard.lease(), refusal, Shard::insert),
    }
}

#[inline(always)]
pub fn insert_if_absent<'a, R: Room>(
    room: &'a R,
    (shard, place): Located<'a, R>,
) -> Result<bool, Full> {
    match shard.insert_if_absent(place) {
        Ok(answer) => Ok(answer),
        Err(refusal) => room.place_elsewhere(shard.lease(), refusal, Shard::insert_if_absent),
    }
}
