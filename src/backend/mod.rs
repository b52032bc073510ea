//! Backends: where a filter keeps its items.
//!
//! A filter has one [`Backend`]: [`fixed`], with one table, or [`growing`], with a directory of shards, each with
//! narrow or wide buckets. Each operation on items branches on kind and width once, so that there is code for each of
//! the four. What concerns the filter as a whole branches on its kind alone.
//!
//! # The path of an operation
//!
//! A lookup takes a shorter one: [`Backend::look`] finds the two buckets and reads them, without a lock.
//!
//! 1. `filter/operations.rs` hashes the item, and [`Backend::insert`] branches on the filter's backend.
//! 2. [`locate_in_time`](Shards::locate_in_time) sweeps the item's stripes if a tick is passing, and finds
//!    the shard and the two buckets: by arithmetic, or [through the directory](growing).
//! 3. The shard looks for room, locks, and fills a lane (`shard/write.rs`). All of this is inlined where it is called.
//! 4. If both buckets are full, or the shard has been split or joined meanwhile, [`settle`] goes on: it finds the shard
//!    again, and [kicks](mod@crate::guide::kick) other items out of the way. If there is no path for them, the shard is
//!    split, and the item is tried again, or refused.

pub(crate) mod fixed;
pub(crate) mod growing;
pub(crate) mod retry;
pub(crate) mod ticks;

use crate::backend::fixed::{Fixed, FixedShards};
use crate::backend::growing::arena::Arena;
use crate::backend::growing::{Growing, GrowingShards};
use crate::backend::retry::{Adding, Shards, ask, settle};
use crate::error::{BuildError, Full};
use crate::layout::bucket::Lanes;
use crate::layout::geometry::{Geometry, Mixed};
use crate::layout::sizing::Layout;
use crate::shard::{Copied, Shard};
use crate::stats::Stats;
use crate::sync::RwLockReadGuard;
use crate::table::ticking::Ticking;

/// Where a filter keeps its items. The variant is in a word of its own, which takes fewer instructions to test than
/// the unused bits of a field.
#[repr(u32)]
#[allow(clippy::large_enum_variant, reason = "a filter is made once and stays where it is")]
pub(crate) enum Backend {
    Fixed(Fixed),
    Growing(Growing),
}

/// Evaluates an expression for a backend of either kind.
macro_rules! on_either {
    ($backend:expr, $kind:ident => $value:expr) => {
        match $backend {
            $crate::backend::Backend::Fixed($kind) => $value,
            $crate::backend::Backend::Growing($kind) => $value,
        }
    };
}
pub(crate) use on_either;

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
                let $shards = $crate::backend::growing::GrowingShards::<false>(growing);
                $value
            }
            $crate::backend::Backend::Growing(growing) => {
                let $shards = $crate::backend::growing::GrowingShards::<true>(growing);
                $value
            }
        }
    };
}
pub(crate) use on_shards;

/// The same for an attempt in the item's shard, which it finds [in time](Shards::locate_in_time), at the item's place.
/// It is inlined where it is called, if buckets are narrow. The code for wide ones would take registers from the rest.
macro_rules! at_once {
    ($backend:expr, $hash:ident, $shard:ident, $place:ident => $attempt:expr; $answer:ty) => {{
        #[inline(never)]
        fn in_wide<'a, S: Shards<'a>>(shards: S, hash: Mixed) -> $answer {
            let ($shard, $place) = shards.locate_in_time(hash);
            $attempt
        }
        match $backend {
            Backend::Fixed(fixed) if fixed.is_wide() => in_wide(FixedShards::<true>(fixed), $hash),
            Backend::Fixed(fixed) => {
                let ($shard, $place) = FixedShards::<false>(fixed).locate_in_time($hash);
                $attempt
            }
            Backend::Growing(growing) if growing.is_wide() => {
                in_wide(GrowingShards::<true>(growing), $hash)
            }
            Backend::Growing(growing) => {
                let ($shard, $place) = GrowingShards::<false>(growing).locate_in_time($hash);
                $attempt
            }
        }
    }};
}

/// The operations on the item with this hash. Those that change something, or count, are as if a passing tick had
/// passed.
impl Backend {
    /// Looks once for the item. Returns `None` if it may have been moving.
    #[inline(always)] // a call is a large part of a lookup in the cache
    pub(crate) fn look(&self, hash: Mixed) -> Option<bool> {
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

    #[cfg(all(unix, feature = "durable"))]
    #[inline(always)]
    pub(crate) fn contains(&self, hash: Mixed) -> bool {
        self.look(hash).unwrap_or_else(|| self.contains_slow(hash))
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn contains_slow(&self, hash: Mixed) -> bool {
        on_shards!(self, shards => ask(shards, hash, Shard::contains))
    }

    #[inline(always)]
    pub(crate) fn insert(&self, hash: Mixed) -> Result<(), Full> {
        match at_once!(self, hash, shard, place => shard.insert_at_once(place); Option<()>) {
            Some(()) => Ok(()),
            None => self.settle(hash, Adding::Copy).map(|_| ()),
        }
    }

    #[inline(always)]
    pub(crate) fn insert_if_absent(&self, hash: Mixed) -> Result<bool, Full> {
        match at_once!(self, hash, shard, place => shard.insert_if_absent_at_once(place); Option<bool>)
        {
            Some(added) => Ok(added),
            None => self.settle(hash, Adding::IfAbsent),
        }
    }

    #[inline(always)]
    pub(crate) fn remove(&self, hash: Mixed) -> bool {
        let removed = at_once!(self, hash, shard, place => shard.remove(place).ok(); Option<bool>);
        removed.unwrap_or_else(|| self.remove_again(hash))
    }

    #[inline(never)]
    pub(crate) fn insert_or_refresh(&self, hash: Mixed) -> Result<bool, Full> {
        match at_once!(self, hash, shard, place => shard.insert_or_refresh_at_once(place); Option<bool>)
        {
            Some(added) => Ok(added),
            None => self.settle(hash, Adding::OrRefresh),
        }
    }

    /// [`insert_if_absent`](Self::insert_if_absent) for a caller that has just looked for the item in vain.
    #[cfg(all(unix, feature = "durable"))]
    #[inline(never)]
    pub(crate) fn insert_if_still_absent(&self, hash: Mixed) -> Result<bool, Full> {
        match at_once!(self, hash, shard, place => shard.insert_if_absent_locked(place, [0; 2]); Option<bool>)
        {
            Some(added) => Ok(added),
            None => self.settle(hash, Adding::IfAbsent),
        }
    }

    #[cold]
    #[inline(never)]
    fn remove_again(&self, hash: Mixed) -> bool {
        on_shards!(self, shards => ask(shards, hash, Shard::remove))
    }

    #[cold]
    #[inline(never)]
    fn settle(&self, hash: Mixed, adding: Adding) -> Result<bool, Full> {
        on_shards!(self, shards => settle(shards, hash, adding))
    }

    #[inline(never)]
    pub(crate) fn count(&self, hash: Mixed) -> usize {
        let found = at_once!(self, hash, shard, place => shard.count(place).ok(); Option<usize>);
        found.unwrap_or_else(|| on_shards!(self, shards => ask(shards, hash, Shard::count)))
    }

    #[inline(never)]
    pub(crate) fn refresh(&self, hash: Mixed) -> bool {
        let found = at_once!(self, hash, shard, place => shard.refresh(place).ok(); Option<bool>);
        found.unwrap_or_else(|| on_shards!(self, shards => ask(shards, hash, Shard::refresh)))
    }

    /// Returns the age in ticks of the copy that a removal takes, if the filter forgets and has the item.
    pub(crate) fn age(&self, hash: Mixed) -> Option<u64> {
        self.ticking()?;
        on_shards!(self, shards => {
            let (shard, place) = shards.locate_in_time(hash);
            shard.age(place).unwrap_or_else(|_| ask(shards, hash, Shard::age))
        })
    }

    #[inline]
    pub(crate) fn prefetch(&self, hash: Mixed) {
        on_shards!(self, shards => _ = shards.fetch(hash));
    }

    /// Adds a copy of an item that was in the filter before: by however many moves, and however many copies there are.
    /// No other thread has the filter.
    #[cfg(all(unix, feature = "durable"))]
    pub(crate) fn insert_exhaustively(&self, hash: Mixed) -> bool {
        // The item may have had its copies only since its shard was split for another reason.
        let split = || match self {
            Backend::Fixed(_) => false,
            Backend::Growing(growing) => growing.split_shard_of(hash),
        };
        let insert = || {
            on_shards!(self, shards => {
                let (shard, place) = shards.locate(hash);
                shard.insert_exhaustively(place).is_ok_and(|inserted| inserted)
                    || settle(shards, hash, Adding::FormerCopy).is_ok()
            })
        };
        self.insert(hash).is_ok() || insert() || (0..3).any(|_| split() && insert())
    }
}

impl Backend {
    pub(crate) fn new(layout: Layout) -> Result<Self, BuildError> {
        if layout.grows {
            Growing::new(layout).map(Backend::Growing)
        } else {
            Fixed::new(layout).map(Backend::Fixed)
        }
    }

    /// Returns the number of bytes that a filter of this layout begins with.
    pub(crate) fn initial_bytes(layout: &Layout) -> usize {
        if layout.grows {
            Growing::initial_bytes(layout)
        } else {
            layout.own_bytes + Fixed::heap_bytes_of(layout)
        }
    }

    /// Estimates the number of bytes that a filter of this layout takes when it has grown to this number of shards.
    pub(crate) fn bytes_with(layout: &Layout, shards: usize) -> usize {
        let all = if layout.grows { Arena::all_with(&layout.geometry, shards) } else { shards };
        let geometry = layout.geometry.with_shards(all);
        Self::initial_bytes(&Layout { geometry, ..layout.clone() })
    }

    fn growing(&self) -> Option<&Growing> {
        match self {
            Backend::Fixed(_) => None,
            Backend::Growing(growing) => Some(growing),
        }
    }

    pub(crate) fn grows(&self) -> bool {
        self.growing().is_some()
    }

    /// Returns the geometry of the shards that the filter began with.
    pub(crate) fn geometry(&self) -> &Geometry {
        on_either!(self, backend => backend.geometry())
    }

    pub(crate) fn lanes(&self) -> Lanes {
        self.geometry().lanes()
    }

    pub(crate) fn capacity(&self) -> usize {
        on_either!(self, backend => backend.capacity())
    }

    /// Returns the layout, with the present limit of the memory.
    pub(crate) fn layout(&self) -> Layout {
        on_either!(self, backend => backend.layout())
    }

    pub(crate) fn ticking(&self) -> Option<&Ticking> {
        on_either!(self, backend => backend.ticking())
    }

    pub(crate) fn buckets(&self) -> usize {
        on_either!(self, backend => backend.buckets())
    }

    pub(crate) fn items(&self) -> usize {
        on_either!(self, backend => backend.items())
    }

    /// Returns the memory held beside `self`, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        on_either!(self, backend => backend.heap_bytes())
    }

    /// Returns the present false-positive rate. The time that this takes does not depend on the number of shards.
    pub(crate) fn rate(&self) -> f64 {
        on_either!(self, backend => backend.rate())
    }

    pub(crate) fn clear(&self) {
        on_either!(self, backend => backend.clear());
    }

    pub(crate) fn slots(&self) -> usize {
        self.buckets() * self.lanes().slots()
    }

    pub(crate) fn shards(&self) -> usize {
        self.buckets() / self.geometry().buckets() as usize
    }

    /// Returns all figures. The size excludes that of the filter itself.
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            size_in_bytes: self.heap_bytes(),
            false_positive_rate: self.rate(),
            directory_depth: self.growing().map_or(0, Growing::level),
            ..self.layout().stats(self.shards(), self.items())
        }
    }
}

/// The shards one by one.
impl Backend {
    /// Copies the buckets of the shard at the cursor `next`, which is 0 at first, and moves it to the shard that
    /// follows. Returns the shard's depth and figures. Unless shards are joined between two calls, an item that stays
    /// in the filter is in exactly one of the copies, and a void lane in one or two.
    pub(crate) fn copy_shard(
        &self,
        next: &mut Option<u64>,
        buckets: &mut [u64],
    ) -> Option<(u32, Copied)> {
        on_either!(self, backend => backend.copy_shard(next, buckets))
    }

    /// Returns the cursor after `next` of [`copy_shard`](Self::copy_shard). While no shards are joined, the border of
    /// two shards stays where it is; splits only add borders.
    pub(crate) fn after(&self, next: u64) -> Option<u64> {
        on_either!(self, backend => backend.after(next))
    }

    /// Returns a hash that the shard at this cursor owns.
    pub(crate) fn hash_in(&self, next: u64) -> Mixed {
        on_either!(self, backend => backend.hash_in(next))
    }
}

/// Growth. A fixed filter is not split or joined, and has no void lanes.
impl Backend {
    /// Returns the limit of the memory, or `usize::MAX` if there is none.
    pub(crate) fn max_bytes(&self) -> usize {
        self.growing().map_or(usize::MAX, Growing::max_bytes)
    }

    pub(crate) fn set_max_bytes(&self, bytes: usize) {
        self.growing().into_iter().for_each(|growing| growing.set_max_bytes(bytes));
    }

    /// Keeps shards from being joined until the result is dropped, while one after the other is copied.
    pub(crate) fn keep_shards(&self) -> Option<RwLockReadGuard<'_>> {
        self.growing().map(Growing::keep_shards)
    }

    /// Visits up to `most` shards from this cursor on, 0 at first, and joins those that leave enough room. Returns the
    /// cursor of the next part, if there is one. If shards are [kept](Self::keep_shards), none is joined.
    pub(crate) fn join_from(&self, cursor: u64, most: usize) -> Option<u64> {
        self.growing()?.join_from(cursor, most)
    }

    /// Joins all shards that leave enough room, unless another thread joins shards.
    pub(crate) fn join_all_if_alone(&self) {
        self.growing().into_iter().for_each(Growing::join_all_if_alone);
    }
}
