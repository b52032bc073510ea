//! Backends: where a filter keeps its items.
//!
//! A filter has one [`Backend`]: of fixed size or [growing], each with narrow or wide buckets. The kind is chosen when
//! the filter is made. Each operation on items branches on kind and width once, so that there is code for each of the
//! four. All others ask the backend's [`Storage`] and the lanes.
//!
//! * [`shards`] has the operations on items in shards, for all backends, and what they exchange with snapshots;
//! * [`storage`] says what concerns a filter as a whole;
//! * [`fixed`] has one table of shards that are never split;
//! * [`growing`] has a directory of shards, which are split when they are full;
//! * [`union`] merges another filter into this one; a copied shard of the other is [`incoming`].
//!
//! # The path of an operation
//!
//! (A lookup takes a shorter one: [`Backend::look`] finds the two buckets and reads them, without a lock.)
//!
//! 1. `filter/operations.rs` hashes the item, and [`Backend::perform`] branches on the filter's backend.
//! 2. [`locate_in_time`](Shards::locate_in_time) sweeps the item's stripes if a tick is passing, and finds
//!    the shard and the two buckets: by arithmetic, or [through the directory](growing).
//! 3. [`Shards::insert`] calls the shard, which looks for room, locks and fills a lane (`shard/write.rs`).
//! 4. If both buckets are full, items are [kicked](mod@crate::shard::kick) along a path. If there is no path,
//!    the shard is split, or the item is refused. If the shard has been split or joined meanwhile, the operation is
//!    retried in the shard that owns the item now.

pub mod fixed;
pub mod growing;
pub mod incoming;
pub mod shards;
pub mod storage;
pub mod union;

use crate::backend::fixed::{Fixed, FixedShards};
use crate::backend::growing::sharded::Sharded;
use crate::backend::growing::sharded::shards::GrowingShards;
use crate::backend::shards::{Loaded, Operation, Shards};
use crate::backend::storage::Storage;
use crate::error::BuildError;
use crate::layout::geometry::Mixed;
use crate::layout::sizing::Layout;
use crate::stats::Stats;
use std::ops::Deref;

/// Where a filter keeps its items. (The variant is in a word of its own, which takes fewer instructions to test than
/// the unused bits of a field.)
#[repr(u32)]
#[allow(clippy::large_enum_variant, reason = "a filter is made once and stays where it is")]
pub enum Backend {
    Fixed(Fixed),
    Growing(Sharded),
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
                let $shards =
                    $crate::backend::growing::sharded::shards::GrowingShards::<false>(growing);
                $value
            }
            $crate::backend::Backend::Growing(growing) => {
                let $shards =
                    $crate::backend::growing::sharded::shards::GrowingShards::<true>(growing);
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

    #[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
    #[inline(always)]
    pub fn contains(&self, hash: Mixed) -> bool {
        self.look(hash).unwrap_or_else(|| self.contains_slow(hash))
    }

    /// Looks up an item after a [look](Self::look) that gave no answer.
    #[cold]
    pub fn contains_slow(&self, hash: Mixed) -> bool {
        on_shards!(self, shards => shards.contains(hash))
    }

    /// Returns the age in ticks of the copy that a removal takes, if the filter forgets and has the item.
    pub fn age(&self, hash: Mixed) -> Option<u64> {
        self.ticking()?;
        self.perform(hash, shards::Age)
    }

    /// Prefetches the memory that a lookup of the item reads.
    #[inline]
    pub fn prefetch(&self, hash: Mixed) {
        on_shards!(self, shards => _ = shards.fetch(hash));
    }

    /// Adds a copy of an item that was in the filter before: by however many moves, and however many copies there are.
    /// No other thread has the filter.
    #[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
    pub fn insert_exhaustively(&self, hash: Mixed) -> bool {
        self.perform(hash, shards::Insert).is_ok()
            || on_shards!(self, shards => shards.insert_exhaustively(hash))
    }
}

impl Backend {
    pub(crate) fn new(layout: Layout) -> Result<Self, BuildError> {
        match layout.grows {
            false => Fixed::new(layout).map(Backend::Fixed),
            true => Sharded::new(layout).map(Backend::Growing),
        }
    }

    /// Returns the number of bytes that a filter of this layout begins with.
    pub fn initial_bytes(layout: &Layout) -> usize {
        match layout.grows {
            false => layout.own_bytes + Fixed::heap_bytes_of(layout),
            true => Sharded::initial_bytes(layout),
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
