//! Backends: where a filter keeps its items.
//!
//! A filter has one [`Backend`]: of fixed size or [growing], each with narrow or wide buckets. The kind is chosen when
//! the filter is made. Each operation on items branches on kind and width once, so that there is code for each of the
//! four. All others ask the backend's [`Storage`] and the lanes.
//!
//! * [`shards`] has the operations on items in shards, for all backends, and what they exchange with snapshots;
//! * [`fixed`] has one table of shards that are never split;
//! * [`growing`] has a directory of shards, which are split when they are full;
//! * [`union`] merges another filter into this one; a copied shard of the other is [`incoming`];
//!
//! # The path of an operation
//!
//! 1. `filter/operations.rs` hashes the item, and [`Backend::perform`] branches on the filter's backend.
//! 2. [`locate_in_time`](Shards::locate_in_time) sweeps the item's stripes if a tick is passing, and finds
//!    the shard and the two buckets: by arithmetic, or [through the directory](growing).
//! 3. [`Shards::insert`] calls the shard, which looks for room, locks and fills a lane (`shard/write.rs`).
//! 4. If both buckets are full, items are [kicked](mod@crate::shard::kick) along a path. If there is no path,
//!    the shard is split, or the item is refused. If the shard has been split meanwhile, the operation is
//!    retried in the shard that owns the item now.

pub mod fixed;
pub mod growing;
pub mod incoming;
pub mod shards;
pub mod union;

use crate::backend::fixed::{Fixed, FixedShards};
use crate::backend::growing::sharded::{GrowingShards, Sharded};
use crate::backend::incoming::{IncomingShard, MergeReport};
use crate::backend::shards::{
    Age, Block, Count, Insert, InsertIfAbsent, InsertOrRefresh, Loaded, Operation, Refresh, Remove,
    Shards,
};
use crate::error::{BuildError, Full, UnionError};
use crate::layout::bucket::Lanes;
use crate::layout::geometry::{Geometry, Mixed};
use crate::layout::sizing::Layout;
use crate::layout::stamps::{ByStamp, Moment};
use crate::stats::Stats;
use crate::sync::{RwLockReadGuard, RwLockWriteGuard};
use crate::table::ticking::{Goal, Ticking};
use std::ops::{Deref, Range};

/// Where a filter keeps its items. (The variant is in a word of its own, which takes fewer instructions to test than
/// the unused bits of a field.)
#[repr(u32)]
#[allow(clippy::large_enum_variant, reason = "a filter is made once and stays where it is")]
pub enum Backend {
    Fixed(Fixed),
    Growing(Sharded),
}

/// What concerns a filter as a whole. A fixed filter is not split or joined, and has no void lanes.
pub trait Storage: Send + Sync {
    /// Returns the geometry of the shards that the filter began with.
    fn geometry(&self) -> &Geometry;

    fn lanes(&self) -> Lanes {
        self.geometry().lanes()
    }

    fn capacity(&self) -> usize;

    /// Returns the layout, with the present limit of the memory.
    fn layout(&self) -> Layout;

    /// Returns the filter's clock and ticks, if it forgets.
    fn ticking(&self) -> Option<&Ticking>;

    /// Returns the present number of buckets.
    fn buckets(&self) -> usize;

    fn items(&self) -> usize;

    /// Returns the number of lanes with each stamp.
    fn items_by_stamp(&self) -> ByStamp;

    /// Returns the memory held beside `self`, in bytes.
    fn heap_bytes(&self) -> usize;

    /// Returns the present false-positive rate. The time that this takes does not depend on the number of
    /// shards.
    fn rate(&self) -> f64;

    fn clear(&self);

    // Shard by shard.

    /// Copies the buckets of shard `next`, which is 0 at first, and sets `next` to the shard that follows. Other
    /// threads may change the filter between two calls, but for joins of its shards; an item that stays in the filter
    /// is in exactly one of the copies. (This holds for items. A void lane, which goes to both halves of a split, may
    /// be in two.)
    fn copy_shard(&self, next: &mut Option<u64>, buckets: &mut [u64]) -> Option<Block>;

    /// Returns the number of the shard after this one, which is `next` of [`copy_shard`](Self::copy_shard): the shard
    /// that begins there now may be split later, but never begins elsewhere or ends later while no shards are joined.
    fn after(&self, next: u64) -> Option<u64>;

    /// Returns a hash that shard `next` owns.
    fn item_in(&self, next: u64) -> Mixed;

    /// Merges the entries in a copied shard of another filter that is [alike](crate::backend::union::check).
    fn merge_shard(
        &self,
        incoming: &IncomingShard<'_>,
        report: &mut MergeReport,
    ) -> Result<(), UnionError>;

    // Ticks.

    /// Returns the number of segments now. It may grow later, but never shrinks.
    fn segments(&self) -> usize;

    /// Erases the expired lanes of these segments, except where a writer has done so.
    fn sweep(&self, segments: Range<usize>, now: Moment);

    /// Keeps shards from being split until the result is dropped.
    fn keep_from_splitting(&self) -> Option<RwLockWriteGuard<'_>> {
        None
    }

    /// Does what is to be done as a tick begins, while no shard is split.
    fn tick_begins(&self, _now: Moment) {}

    // Growth.

    /// Returns the greatest depth that a shard has had.
    fn level(&self) -> u32 {
        0
    }

    /// Returns the limit of the memory, or `usize::MAX` if there is none.
    fn max_bytes(&self) -> usize {
        usize::MAX
    }

    fn set_max_bytes(&self, _bytes: usize) {}

    /// Returns the number of items that void lanes stand for.
    fn void_items(&self) -> u64 {
        0
    }

    /// Keeps shards from being joined until the result is dropped, for a copy of one shard after the other.
    fn keep_shards(&self) -> Option<RwLockReadGuard<'_>> {
        None
    }

    /// Visits up to `most` shards from this cursor on, 0 at first, and joins those that leave enough room. Returns the
    /// cursor of the next part, if there is one. If the filter is being copied, no shard is joined.
    fn join_from(&self, _cursor: u64, _most: usize) -> Option<u64> {
        None
    }

    /// Joins all shards that leave enough room, unless another thread joins shards.
    fn join_all_if_alone(&self) {}
}

/// Ticks of a filter that forgets. [`ticking`](crate::table::ticking) has the order in which a tick passes through the
/// segments.
impl dyn Storage + '_ {
    /// Passes one more tick through the filter, after the one that is passing.
    pub fn tick(&self) {
        if self.ticking().is_some() {
            while !self.begin_tick() {
                self.finish_tick();
            }
            self.finish_tick();
        }
    }

    /// Passes ticks through the filter until the present one has this number. Returns how many have passed in this
    /// call.
    ///
    /// If ticks have had no numbers until now, the present tick gets this one.
    pub fn tick_to(&self, number: u64) -> u64 {
        let mut passed = 0;
        while let Some(some) = self.begin_tick_toward(number) {
            passed += some;
            self.finish_tick();
        }
        passed
    }

    /// Begins a tick, unless one is passing.
    pub fn begin_tick(&self) -> bool {
        self.begin(Goal::Next).is_some()
    }

    /// Begins a tick toward the one with this number, unless one is passing. Returns how many ticks it makes
    /// up for: 0 if a tick is passing that has to end first, and `None` if this number has been reached.
    pub fn begin_tick_toward(&self, number: u64) -> Option<u64> {
        let ticking = self.ticking()?;
        // Usually the number has been reached.
        if ticking.has_reached(number) {
            return None;
        }
        let begun = self.begin(Goal::Number(number));
        begun.or_else(|| (!ticking.has_reached(number)).then_some(0))
    }

    fn begin(&self, goal: Goal) -> Option<u64> {
        let ticking = self.ticking()?;
        if !ticking.is_due(goal) {
            return None;
        }
        let _no_splits = self.keep_from_splitting();
        let (passes, now) = ticking.begin(goal)?;
        self.tick_begins(now);
        Some(passes)
    }

    /// Works until no tick is passing.
    pub fn finish_tick(&self) {
        self.work_on_tick(usize::MAX);
    }

    /// Works on at most `most` segments. Returns whether no tick is passing any more.
    pub fn work_on_tick(&self, most: usize) -> bool {
        self.ticking().is_none_or(|ticking| {
            ticking.work(most, || self.segments(), |portion, now| self.sweep(portion, now))
        })
    }
}

impl Deref for Backend {
    type Target = dyn Storage;

    fn deref(&self) -> &Self::Target {
        match self {
            Backend::Fixed(fixed) => fixed,
            Backend::Growing(growing) => growing,
        }
    }
}

/// Evaluates an expression for the [`Shards`] of a backend of either kind and width.
macro_rules! on_shards {
    ($backend:expr, $shards:ident => $value:expr) => {
        match $backend {
            $crate::backend::Backend::Fixed(fixed) if !fixed.is_wide() => {
                let $shards = $crate::backend::fixed::FixedShards::<false>(fixed);
                $value
            }
            $crate::backend::Backend::Fixed(fixed) => {
                let $shards = $crate::backend::fixed::FixedShards::<true>(fixed);
                $value
            }
            $crate::backend::Backend::Growing(growing) if !growing.is_wide() => {
                let $shards = $crate::backend::growing::sharded::GrowingShards::<false>(growing);
                $value
            }
            $crate::backend::Backend::Growing(growing) => {
                let $shards = $crate::backend::growing::sharded::GrowingShards::<true>(growing);
                $value
            }
        }
    };
}
pub(crate) use on_shards;

/// The operations on the item with this hash.
impl Backend {
    /// Performs an operation that has to be as if a passing tick had already passed.
    #[inline(always)]
    pub fn perform<O: Operation>(&self, hash: Mixed, operation: O) -> O::Answer {
        // Apart, because the code for wide buckets would take registers from the rest.
        #[inline(never)]
        fn in_wide<'a, S: Shards<'a>, O: Operation>(
            shards: S,
            hash: Mixed,
            operation: O,
        ) -> O::Answer {
            operation.perform(shards, shards.locate_in_time(hash))
        }
        match self {
            Backend::Fixed(fixed) if fixed.is_wide() => {
                in_wide(FixedShards::<true>(fixed), hash, operation)
            }
            Backend::Fixed(fixed) => {
                let shards = FixedShards::<false>(fixed);
                operation.perform(shards, shards.locate_in_time(hash))
            }
            Backend::Growing(growing) if growing.is_wide() => {
                in_wide(GrowingShards::<true>(growing), hash, operation)
            }
            Backend::Growing(growing) => {
                let shards = GrowingShards::<false>(growing);
                operation.perform(shards, shards.locate_in_time(hash))
            }
        }
    }

    /// Looks once for the item. Returns `None` if it may have been moving.
    #[inline(always)] // a call takes a fifth of the time
    pub fn look(&self, hash: Mixed) -> Option<bool> {
        // Apart, because a loop over lookups would run out of registers for all four.
        #[inline(never)]
        fn in_wide(shards: GrowingShards<'_, true>, hash: Mixed) -> Option<bool> {
            shards.look(hash)
        }
        match self {
            Backend::Fixed(fixed) if !fixed.is_wide() => FixedShards::<false>(fixed).look(hash),
            Backend::Fixed(fixed) => FixedShards::<true>(fixed).look(hash),
            Backend::Growing(growing) if !growing.is_wide() => {
                GrowingShards::<false>(growing).look(hash)
            }
            Backend::Growing(growing) => in_wide(GrowingShards::<true>(growing), hash),
        }
    }

    #[inline(always)]
    pub fn contains(&self, hash: Mixed) -> bool {
        self.look(hash).unwrap_or_else(|| on_shards!(self, shards => shards.contains(hash)))
    }

    /// Prefetches the memory that a lookup of the item reads.
    #[inline]
    pub fn prefetch(&self, hash: Mixed) {
        on_shards!(self, shards => _ = shards.fetch(hash));
    }

    #[inline]
    pub fn count(&self, hash: Mixed) -> usize {
        self.perform(hash, Count)
    }

    #[inline]
    pub fn insert(&self, hash: Mixed) -> Result<(), Full> {
        self.perform(hash, Insert)
    }

    #[inline]
    pub fn insert_if_absent(&self, hash: Mixed) -> Result<bool, Full> {
        self.perform(hash, InsertIfAbsent)
    }

    /// Adds a copy of an item that was in the filter before: by however many moves, and however many copies there are.
    /// No other thread has the filter.
    #[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
    pub fn insert_exhaustively(&self, hash: Mixed) -> Result<(), Full> {
        let refused = match self.insert(hash) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        let inserted = on_shards!(self, shards => shards.insert_exhaustively(hash));
        if inserted { Ok(()) } else { Err(refused) }
    }

    #[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
    #[inline]
    pub fn insert_if_still_absent(&self, hash: Mixed) -> Result<bool, Full> {
        self.perform(hash, crate::backend::shards::InsertIfStillAbsent)
    }

    #[inline]
    pub fn remove(&self, hash: Mixed) -> bool {
        self.perform(hash, Remove)
    }

    #[inline]
    pub fn refresh(&self, hash: Mixed) -> bool {
        self.perform(hash, Refresh)
    }

    #[inline]
    pub fn insert_or_refresh(&self, hash: Mixed) -> Result<bool, Full> {
        self.perform(hash, InsertOrRefresh)
    }

    pub fn age(&self, hash: Mixed) -> Option<u64> {
        self.perform(hash, Age)
    }
}

impl Backend {
    pub(crate) fn new(layout: Layout) -> Result<Self, BuildError> {
        match layout.grows {
            false => Fixed::new(layout).map(Backend::Fixed),
            true => Sharded::new(layout).map(Backend::Growing),
        }
    }

    /// Makes the backend of a filter from a file or pieces. The error is the number of bytes that could not
    /// be allocated.
    pub fn restore(layout: Layout, loaded: Loaded) -> Result<Self, usize> {
        match layout.grows {
            false => Fixed::restore(layout.capacity, loaded).map(Backend::Fixed),
            true => Sharded::restore(layout, loaded).map(Backend::Growing),
        }
    }

    pub fn grows(&self) -> bool {
        matches!(self, Backend::Growing(_))
    }

    pub fn slots(&self) -> usize {
        self.buckets() * self.lanes().slots()
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.buckets() / self.geometry().buckets() as usize
    }

    /// Returns the number of items that expire with each of the next ticks, if the filter forgets.
    pub fn expiring(&self) -> Vec<usize> {
        let Some(ticking) = self.ticking() else { return Vec::new() };
        let (lanes, now) = (self.lanes(), ticking.clock().now());
        let by_stamp = self.items_by_stamp();
        let of_age = |age| by_stamp[lanes.stamp_of_age(age, now)];
        let ages = (0..=u64::from(lanes.remembers())).rev();
        ages.map(of_age).collect()
    }

    /// Returns all figures. The size excludes that of the filter itself.
    pub fn stats(&self) -> Stats {
        Stats {
            size_in_bytes: self.heap_bytes(),
            false_positive_rate: self.rate(),
            directory_depth: self.level(),
            ..self.layout().stats(self.shards(), self.items())
        }
    }
}
