//! Where the items of a filter are.
//!
//! A room knows which [shard](crate::shard::Shard) an item belongs to. [`Fixed`](crate::Fixed) has
//! one table of shards that never change. [`Growing`](crate::Growing) has a list of items while there
//! are few of them. Then it has a directory of shards, and splits the ones that are full.
//!
//! * [`shards`] has the operations on items in shards, for either kind of room;
//! * [`fixed`] and [`growing`] are the rooms;
//! * [`union`] takes over into one room what another one knows, a [`guest`];
//! * [`parts`] are the types that rooms and snapshots exchange.

pub mod fixed;
pub mod growing;
pub mod guest;
pub mod parts;
pub mod shards;
pub mod union;

use crate::error::Full;
use crate::layout::geometry::Mixed;
use crate::room::growing::stages::Stages;
use crate::room::parts::{CannotRestore, Loaded, Plan};
use crate::room::shards::{
    Age, Contains, Count, Insert, InsertIfAbsent, InsertOrRefresh, Operation, Refresh, Remove,
    Shards, act,
};
use crate::stats::Stats;
use crate::table::ticking::{Passage, Ticking};

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
    type Shards: Shards;

    /// Where the items are at present.
    #[doc(hidden)]
    fn stage(&self) -> Stage<'_, Self::Shards>;

    #[doc(hidden)]
    type Passage: Passage;

    /// What ticks pass through, if the filter forgets.
    #[doc(hidden)]
    fn time(&self) -> Option<(&Ticking, &Self::Passage)>;

    /// Whether the room's plan is [`Plan::Growing`].
    #[doc(hidden)]
    const GROWS: bool;

    /// Makes a room from the contents of a file.
    #[doc(hidden)]
    fn restore(plan: Plan, loaded: Loaded) -> Result<Self, CannotRestore>
    where
        Self: Sized;

    #[doc(hidden)]
    fn items(&self) -> usize {
        match self.stage() {
            Stage::Shards(shards) => shards.items(),
            Stage::List(stages) => stages.items(),
        }
    }

    #[doc(hidden)]
    fn clear(&self) {
        match self.stage() {
            Stage::Shards(shards) => shards.clear(),
            Stage::List(stages) => stages.clear(),
        }
    }

    /// The memory held beside `self`.
    #[doc(hidden)]
    fn heap_bytes(&self) -> usize {
        match self.stage() {
            Stage::Shards(shards) => shards.heap_bytes(),
            Stage::List(stages) => stages.heap_bytes(),
        }
    }

    /// How many items expire with each of the next ticks, if the filter forgets.
    #[doc(hidden)]
    fn expiring(&self) -> Vec<usize> {
        let Some((ticking, through)) = self.time() else { return Vec::new() };
        let (lanes, now) = (through.lanes(), ticking.clock().now());
        let by_stamp = match self.stage() {
            Stage::Shards(shards) => shards.items_by_stamp(),
            Stage::List(stages) => stages.items_by_stamp(),
        };
        let of_age = |age| by_stamp.figures()[lanes.stamp_of_age(age, now)];
        let ages = (0..=u64::from(lanes.remembers())).rev();
        ages.map(|age| of_age(age).max(0) as usize).collect()
    }

    /// The layout, as it is written to a file.
    #[doc(hidden)]
    fn plan(&self) -> Plan {
        match self.stage() {
            Stage::Shards(shards) => shards.plan(),
            Stage::List(stages) => Plan::Growing(stages.plan()),
        }
    }

    /// The number of buckets. Those of a list are the ones that it would take to begin with.
    #[doc(hidden)]
    fn buckets(&self) -> usize {
        match self.stage() {
            Stage::Shards(shards) => shards.buckets(),
            Stage::List(stages) => stages.plan().geometry.buckets() as usize,
        }
    }

    /// The false-positive rate at present.
    #[doc(hidden)]
    fn rate(&self) -> f64 {
        match self.stage() {
            Stage::Shards(shards) => shards.rate(),
            Stage::List(stages) => stages.rate(),
        }
    }

    /// All figures, except for the size of the filter itself.
    #[doc(hidden)]
    fn stats(&self, capacity: usize) -> Stats {
        let (plan, buckets) = (self.plan(), self.buckets());
        let (geometry, lanes) = (plan.geometry(), plan.geometry().lanes());
        let shards = buckets / geometry.buckets() as usize;
        let directory_depth = match self.stage() {
            Stage::Shards(shards) => shards.level(),
            Stage::List(_) => 0,
        };
        Stats {
            grows: plan.grows(),
            items: self.items(),
            capacity,
            slots: buckets * lanes.slots(),
            fingerprint_bits: lanes.fingerprint_bits(),
            slots_per_bucket: lanes.slots(),
            shards,
            segments: shards * geometry.stripes() as usize,
            size_in_bytes: self.heap_bytes(),
            false_positive_rate: self.rate(),
            false_positive_rate_at_capacity: plan.rate_at_capacity(capacity),
            max_bytes: plan.max_bytes(),
            splits: shards - geometry.shards(),
            directory_depth,
            growth: shards as f64 / geometry.shards() as f64,
            expected_growth: plan.expected_growth(),
        }
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Where the items of a filter are: in shards, or in the list that a growing filter may begin with.
/// A filter that was seen in its shards stays there.
#[doc(hidden)]
pub enum Stage<'a, S> {
    Shards(&'a S),
    List(&'a Stages),
}

/// Does something to an item of a list. `None` if the filter has left its list.
type Listed<A> = fn(&Stages, Mixed) -> Option<A>;

/// An operation that can be done in shards and in a list.
#[doc(hidden)]
pub trait Act: Operation {
    /// Does this in a list.
    const LISTED: Listed<Self::Answer>;
}

/// Does this to an item, wherever it is.
#[inline(always)]
pub fn perform<A: Act, R: Room>(room: &R, hash: Mixed) -> A::Answer {
    match room.stage() {
        Stage::Shards(shards) => act::<A, _>(shards, hash),
        Stage::List(stages) => perform_in_list::<A>(stages, hash),
    }
}

/// Does this in the list, or in the shards, which are set before the list ends.
#[inline(never)]
fn perform_in_list<A: Act>(stages: &Stages, hash: Mixed) -> A::Answer {
    loop {
        if let Some(answer) = (A::LISTED)(stages, hash) {
            return answer;
        }
        if let Some(shards) = stages.shards() {
            return act::<A, _>(shards, hash);
        }
    }
}

impl Act for Contains {
    const LISTED: Listed<bool> = Stages::contains;
}

impl Act for Count {
    const LISTED: Listed<usize> = Stages::count;
}

impl Act for Remove {
    const LISTED: Listed<bool> = Stages::remove;
}

impl Act for Insert {
    const LISTED: Listed<Result<(), Full>> = Stages::insert;
}

impl Act for Refresh {
    const LISTED: Listed<bool> = Stages::refresh;
}

impl Act for InsertOrRefresh {
    const LISTED: Listed<Result<bool, Full>> = Stages::insert_or_refresh;
}

impl Act for Age {
    const LISTED: Listed<Option<u64>> = Stages::age;
}

impl Act for InsertIfAbsent {
    const LISTED: Listed<Result<bool, Full>> = Stages::insert_if_absent;
}
