//! Backends: where a filter keeps its items.
//!
//! A filter has one [`Backend`]: of fixed size or [growing], each with narrow or wide
//! buckets. The kind is chosen when the filter is made, and each operation branches on it once.
//!
//! * [`shards`] has the operations on items in shards, for all backends, and what they exchange with snapshots;
//! * [`fixed`] has one table of shards that are never split;
//! * [`growing`] has a directory of shards, which are split when they are full;
//! * [`union`] merges another filter into this one; a copied shard of the other is [`incoming`];
//!
//! # The path of an operation
//!
//! 1. `filter/operations.rs` hashes the item, and [`Backend::insert`], for example, branches on the filter's
//!    backend.
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

use crate::backend::fixed::Fixed;
use crate::backend::growing::sharded::Sharded;
use crate::backend::shards::{Loaded, Shards};
use crate::error::{BuildError, Full};
use crate::layout::bucket::Lanes;
use crate::layout::geometry::Mixed;
use crate::layout::sizing::Layout;
use crate::layout::stamps::Moment;
use crate::stats::Stats;
use crate::sync::RwLockReadGuard;
use crate::table::ticking::{SweepTarget, Ticking};
use std::ops::Range;

/// Where a filter keeps its items. (The variant is in a word of its own, which takes fewer instructions to
/// test than the unused bits of a field. Two tests find one of four; a jump by a table would cost a lookup more.)
#[repr(u32)]
#[allow(clippy::large_enum_variant, reason = "a filter is made once and stays where it is")]
pub enum Backend {
    Narrow(Form<false>),
    Wide(Form<true>),
}

/// The two forms of a filter with narrow or wide buckets.
#[repr(u32)]
#[allow(clippy::large_enum_variant, reason = "a filter is made once and stays where it is")]
pub enum Form<const WIDE: bool> {
    Fixed(Fixed<WIDE>),
    Growing(Sharded<WIDE>),
}

/// Evaluates an expression for the shards of a backend of any kind.
macro_rules! on_shards {
    ($kind:expr, $shards:ident => $value:expr) => {
        match $kind {
            $crate::backend::Backend::Narrow($crate::backend::Form::Fixed($shards)) => $value,
            $crate::backend::Backend::Narrow($crate::backend::Form::Growing($shards)) => $value,
            $crate::backend::Backend::Wide($crate::backend::Form::Fixed($shards)) => $value,
            $crate::backend::Backend::Wide($crate::backend::Form::Growing($shards)) => $value,
        }
    };
}
pub(crate) use on_shards;

/// Performs an operation on the item with this hash, whose place `$locate` finds. (Operations are passed by name,
/// since a function that is passed as a value may not be inlined.)
macro_rules! perform {
    ($kind:expr, $operation:ident -> $answer:ty, $locate:ident, $hash:expr) => {{
        // Apart, because the code for wide buckets would take registers from the rest.
        #[inline(never)]
        fn in_wide<S: Shards>(shards: &S, hash: Mixed) -> $answer {
            shards.$operation(shards.$locate(hash))
        }
        match $kind {
            Backend::Narrow(Form::Fixed(shards)) => shards.$operation(shards.$locate($hash)),
            Backend::Narrow(Form::Growing(shards)) => shards.$operation(shards.$locate($hash)),
            Backend::Wide(Form::Fixed(shards)) => in_wide(shards, $hash),
            Backend::Wide(Form::Growing(shards)) => in_wide(shards, $hash),
        }
    }};
}

/// The operations on the item with this hash.
impl Backend {
    /// Looks once for the item. Returns `None` if it may have been moving.
    #[inline(always)] // a call takes a fifth of the time
    pub fn look(&self, hash: Mixed) -> Option<bool> {
        // Apart, because a loop over lookups would run out of registers for all four.
        #[inline(never)]
        fn in_wide(shards: &Sharded<true>, hash: Mixed) -> Option<bool> {
            shards.look(hash)
        }
        match self {
            Backend::Narrow(Form::Fixed(shards)) => shards.look(hash),
            Backend::Narrow(Form::Growing(shards)) => shards.look(hash),
            Backend::Wide(Form::Fixed(shards)) => shards.look(hash),
            Backend::Wide(Form::Growing(shards)) => in_wide(shards, hash),
        }
    }

    #[inline(always)]
    pub fn contains(&self, hash: Mixed) -> bool {
        perform!(self, contains -> bool, locate, hash)
    }

    /// Prefetches the memory that a lookup of the item reads.
    #[inline]
    pub fn prefetch(&self, hash: Mixed) {
        on_shards!(self, shards => _ = shards.fetch(hash));
    }

    #[inline]
    pub fn count(&self, hash: Mixed) -> usize {
        perform!(self, count -> usize, locate_in_time, hash)
    }

    #[inline]
    pub fn insert(&self, hash: Mixed) -> Result<(), Full> {
        perform!(self, insert -> Result<(), Full>, locate_in_time, hash)
    }

    #[inline]
    pub fn insert_if_absent(&self, hash: Mixed) -> Result<bool, Full> {
        perform!(self, insert_if_absent -> Result<bool, Full>, locate_in_time, hash)
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
        perform!(self, insert_if_still_absent -> Result<bool, Full>, locate_in_time, hash)
    }

    #[inline]
    pub fn remove(&self, hash: Mixed) -> bool {
        perform!(self, remove -> bool, locate_in_time, hash)
    }

    #[inline]
    pub fn refresh(&self, hash: Mixed) -> bool {
        perform!(self, refresh -> bool, locate_in_time, hash)
    }

    #[inline]
    pub fn insert_or_refresh(&self, hash: Mixed) -> Result<bool, Full> {
        perform!(self, insert_or_refresh -> Result<bool, Full>, locate_in_time, hash)
    }

    pub fn age(&self, hash: Mixed) -> Option<u64> {
        perform!(self, age -> Option<u64>, locate_in_time, hash)
    }
}

impl Backend {
    pub(crate) fn new(layout: Layout) -> Result<Self, BuildError> {
        Ok(match layout.lanes().is_wide() {
            false => Backend::Narrow(Form::new(layout)?),
            true => Backend::Wide(Form::new(layout)?),
        })
    }

    /// Makes the backend of a filter from a file or pieces. The error is the number of bytes that could not
    /// be allocated.
    pub fn restore(layout: Layout, loaded: Loaded) -> Result<Self, usize> {
        Ok(match layout.lanes().is_wide() {
            false => Backend::Narrow(Form::restore(layout, loaded)?),
            true => Backend::Wide(Form::restore(layout, loaded)?),
        })
    }

    /// Returns the filter's clock and ticks, if it forgets.
    pub fn ticking(&self) -> Option<&Ticking> {
        on_shards!(self, shards => shards.ticking())
    }

    pub fn capacity(&self) -> usize {
        on_shards!(self, shards => shards.capacity())
    }

    /// Returns the layout, with the present limit of the memory.
    pub fn layout(&self) -> Layout {
        on_shards!(self, shards => shards.layout())
    }

    pub fn grows(&self) -> bool {
        matches!(self, Backend::Narrow(Form::Growing(_)) | Backend::Wide(Form::Growing(_)))
    }

    /// Returns the number of buckets.
    pub fn buckets(&self) -> usize {
        on_shards!(self, shards => shards.bucket_count())
    }

    pub fn slots(&self) -> usize {
        self.buckets() * self.lanes().slots()
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.buckets() / self.layout().geometry.buckets() as usize
    }

    pub fn items(&self) -> usize {
        on_shards!(self, shards => shards.items())
    }

    pub fn clear(&self) {
        on_shards!(self, shards => shards.clear());
    }

    /// Keeps shards from being joined until the result is dropped, for a copy of one shard after the other.
    pub fn keep_shards(&self) -> Option<RwLockReadGuard<'_>> {
        on_shards!(self, shards => shards.keep_shards())
    }

    /// Visits some shards, and joins what leaves enough room. Returns where the next part begins.
    pub fn join_from(&self, cursor: u64, most: usize) -> Option<u64> {
        on_shards!(self, shards => shards.join_from(cursor, most))
    }

    /// Joins all shards that leave enough room, unless another thread joins shards.
    pub fn join_all_if_alone(&self) {
        on_shards!(self, shards => shards.join_all_if_alone());
    }

    /// Returns the number of items that void lanes stand for.
    pub fn void_items(&self) -> u64 {
        on_shards!(self, shards => shards.void_items())
    }

    /// Returns the limit of the memory, or `usize::MAX` if there is none.
    pub fn max_bytes(&self) -> usize {
        on_shards!(self, shards => shards.max_bytes())
    }

    pub fn set_max_bytes(&self, bytes: usize) {
        on_shards!(self, shards => shards.set_max_bytes(bytes));
    }

    /// Returns the memory held beside `self`, in bytes.
    pub fn heap_bytes(&self) -> usize {
        on_shards!(self, shards => shards.heap_bytes())
    }

    /// Returns the present false-positive rate. The time that this takes does not depend on the number of
    /// shards.
    pub fn rate(&self) -> f64 {
        on_shards!(self, shards => shards.rate())
    }

    /// Returns the number of items that expire with each of the next ticks, if the filter forgets.
    pub fn expiring(&self) -> Vec<usize> {
        let Some(ticking) = self.ticking() else { return Vec::new() };
        let (lanes, now) = (self.lanes(), ticking.clock().now());
        let by_stamp = on_shards!(self, shards => shards.items_by_stamp());
        let of_age = |age| by_stamp[lanes.stamp_of_age(age, now)];
        let ages = (0..=u64::from(lanes.remembers())).rev();
        ages.map(of_age).collect()
    }

    /// Returns all figures. The size excludes that of the filter itself.
    pub fn stats(&self) -> Stats {
        Stats {
            size_in_bytes: self.heap_bytes(),
            false_positive_rate: self.rate(),
            directory_depth: on_shards!(self, shards => shards.level()),
            ..self.layout().stats(self.shards(), self.items())
        }
    }
}

impl<const WIDE: bool> Form<WIDE> {
    fn new(layout: Layout) -> Result<Self, BuildError> {
        Ok(match layout.grows {
            false => Form::Fixed(Fixed::new(layout)?),
            true => Form::Growing(Sharded::new(layout)?),
        })
    }

    fn restore(layout: Layout, loaded: Loaded) -> Result<Self, usize> {
        Ok(match layout.grows {
            false => Form::Fixed(Fixed::restore(layout.capacity, loaded)?),
            true => Form::Growing(Sharded::restore(layout, loaded)?),
        })
    }
}

impl SweepTarget for Backend {
    fn lanes(&self) -> Lanes {
        on_shards!(self, shards => shards.lanes())
    }

    fn begin(&self, set: impl FnOnce() -> Option<Moment>) {
        on_shards!(self, shards => shards.begin(set));
    }

    fn segments(&self) -> usize {
        on_shards!(self, shards => shards.segments())
    }

    fn sweep(&self, segments: Range<usize>, now: Moment) {
        on_shards!(self, shards => shards.sweep(segments, now));
    }

    fn finish_tick(&self, now: Moment) {
        on_shards!(self, shards => shards.finish_tick(now));
    }
}
