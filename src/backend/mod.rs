//! Where the items of a filter are.
//!
//! A filter is of one [`Backend`]: of a fixed size or [growing](growing::Growing), each with narrow
//! or wide buckets. This is decided when it is made, and an operation finds out once.
//!
//! * [`shards`] has the operations on items in shards, for all kinds;
//! * [`fixed`] has one table of shards that never change;
//! * [`growing`] has a list of items while there are few of them, then a directory of shards, and
//!   splits the ones that are full;
//! * [`union`] takes over into one filter what another one knows, a [`incoming`];
//! * [`parts`] are the types that these and snapshots exchange.
//!
//! # The way of an operation
//!
//! 1. `filter/operations.rs` hashes the item, and [`Backend::insert`], say, finds the form that the filter has.
//! 2. [`locate_in_time`](Shards::locate_in_time) sees to a tick that is passing, and finds the shard and the two
//!    buckets: by arithmetic, or [through the directory](growing).
//! 3. [`Shards::insert`] asks the shard, which looks, locks and fills a lane (`shard/write.rs`).
//! 4. If both buckets are full, items are [kicked](mod@crate::shard::kick) along a path. If there is none, the shard is
//!    split, or the item refused. If the shard has been split meanwhile, the one that owns the item now is asked.
//!
//! While a growing filter has a list, [`Growing::in_list`] does the operation there instead.

pub mod fixed;
pub mod growing;
pub mod incoming;
pub mod parts;
pub mod shards;
pub mod union;

use crate::backend::fixed::Fixed;
use crate::backend::growing::Growing;
use crate::backend::growing::sharded::on_width;
use crate::backend::parts::{Loaded, Plan};
use crate::backend::shards::Shards;
use crate::error::{Full, Reason};
use crate::layout::bucket::Lanes;
use crate::layout::geometry::{Geometry, Mixed};
use crate::layout::sizing::GrowthPlan;
use crate::layout::stamps::Moment;
use crate::stats::Stats;
use crate::table::ticking::{SweepTarget, Ticking};
use std::ops::Range;

/// The items of a filter, in the form that it has. (It is told by a word of its own, which takes fewer instructions
/// than the unused bits of a field. A growing filter, whose way is the longest, comes first.)
#[repr(u32)]
#[allow(clippy::large_enum_variant, reason = "a filter is made once and stays where it is")]
pub enum Backend {
    Growing(Growing),
    Fixed(Fixed<false>),
    FixedWide(Fixed<true>),
}

/// Evaluates an expression for the room of whichever kind this is.
macro_rules! on_backend {
    ($kind:expr, $backend:ident => $value:expr) => {
        match $kind {
            Backend::Fixed($backend) => $value,
            Backend::Growing($backend) => $value,
            Backend::FixedWide($backend) => $value,
        }
    };
}

/// Evaluates an expression for the shards of whichever kind this is, or another one for a growing room that
/// has a list.
macro_rules! on_shards {
    ($kind:expr, $shards:ident => $in_shards:expr, $growing:ident => $in_list:expr) => {
        match $kind {
            $crate::backend::Backend::Fixed($shards) => $in_shards,
            $crate::backend::Backend::Growing($growing) => match $growing.shards() {
                Some($crate::backend::growing::sharded::AnySharded::Narrow($shards)) => $in_shards,
                Some($crate::backend::growing::sharded::AnySharded::Wide($shards)) => $in_shards,
                None => $in_list,
            },
            $crate::backend::Backend::FixedWide($shards) => $in_shards,
        }
    };
}
pub(crate) use on_shards;

/// Does an operation to the item with this hash, which has the same name for shards and for a list, and finds its place
/// in shards in this way. (Operations are called by their names: a function that is passed may not be inlined.)
macro_rules! perform {
    ($kind:expr, $operation:ident, $locate:ident, $hash:expr) => {
        on_shards!(
            $kind,
            shards => shards.$operation(shards.$locate($hash)),
            growing => growing.in_list($hash, Growing::$operation, move |sharded| {
                on_width!(sharded, shards => shards.$operation(shards.$locate($hash)))
            })
        )
    };
}

/// The operations on the item with this hash.
impl Backend {
    #[inline(always)] // a call takes a fifth of the time
    pub fn contains(&self, hash: Mixed) -> bool {
        perform!(self, contains, locate, hash)
    }

    #[inline]
    pub fn count(&self, hash: Mixed) -> usize {
        perform!(self, count, locate_in_time, hash)
    }

    #[inline]
    pub fn insert(&self, hash: Mixed) -> Result<(), Full> {
        perform!(self, insert, locate_in_time, hash)
    }

    #[inline]
    pub fn insert_if_absent(&self, hash: Mixed) -> Result<bool, Full> {
        perform!(self, insert_if_absent, locate_in_time, hash)
    }

    #[inline]
    pub fn remove(&self, hash: Mixed) -> bool {
        perform!(self, remove, locate_in_time, hash)
    }

    #[inline]
    pub fn refresh(&self, hash: Mixed) -> bool {
        perform!(self, refresh, locate_in_time, hash)
    }

    #[inline]
    pub fn insert_or_refresh(&self, hash: Mixed) -> Result<bool, Full> {
        perform!(self, insert_or_refresh, locate_in_time, hash)
    }

    pub fn age(&self, hash: Mixed) -> Option<u64> {
        perform!(self, age, locate_in_time, hash)
    }
}

impl Backend {
    pub(crate) fn fixed(geometry: Geometry) -> Result<Self, Reason> {
        Ok(match geometry.lanes().is_wide() {
            false => Backend::Fixed(Fixed::new(geometry)?),
            true => Backend::FixedWide(Fixed::new(geometry)?),
        })
    }

    pub(crate) fn growing(plan: GrowthPlan) -> Result<Self, Reason> {
        Growing::new(plan).map(Backend::Growing)
    }

    /// Makes the room of a filter from what was loaded. The error is the number of bytes that could not be
    /// allocated.
    pub fn restore(plan: Plan, loaded: Loaded) -> Result<Self, usize> {
        Ok(match plan {
            Plan::Growing(plan) => Backend::Growing(Growing::restore(plan, loaded)?),
            Plan::Fixed(geometry) if geometry.lanes().is_wide() => {
                Backend::FixedWide(Fixed::restore(loaded)?)
            }
            Plan::Fixed(_) => Backend::Fixed(Fixed::restore(loaded)?),
        })
    }

    /// What keeps the time, if the filter forgets.
    pub fn ticking(&self) -> Option<&Ticking> {
        on_backend!(self, backend => backend.ticking())
    }

    /// The layout, as it is written to a file.
    pub fn plan(&self) -> Plan {
        match self {
            Backend::Fixed(fixed) => Plan::Fixed(fixed.geometry().clone()),
            Backend::FixedWide(fixed) => Plan::Fixed(fixed.geometry().clone()),
            Backend::Growing(growing) => Plan::Growing(growing.plan()),
        }
    }

    /// The number of buckets. Those of a list are the ones that it would take to begin with.
    pub fn buckets(&self) -> usize {
        on_backend!(self, backend => backend.buckets())
    }

    /// The number of shards. A list counts as those that it would take to begin with.
    pub fn shards(&self) -> usize {
        self.buckets() / self.plan().geometry().buckets() as usize
    }

    pub fn items(&self) -> usize {
        on_backend!(self, backend => backend.items())
    }

    pub fn clear(&self) {
        on_backend!(self, backend => backend.clear());
    }

    /// The memory held beside `self`.
    pub fn heap_bytes(&self) -> usize {
        on_backend!(self, backend => backend.heap_bytes())
    }

    /// The false-positive rate at present. How long this takes does not depend on the number of shards.
    pub fn rate(&self) -> f64 {
        on_backend!(self, backend => backend.rate())
    }

    /// How many items expire with each of the next ticks, if the filter forgets.
    pub fn expiring(&self) -> Vec<usize> {
        let Some(ticking) = self.ticking() else { return Vec::new() };
        let (lanes, now) = (self.lanes(), ticking.clock().now());
        let by_stamp = on_backend!(self, backend => backend.items_by_stamp());
        let of_age = |age| by_stamp.figures()[lanes.stamp_of_age(age, now)];
        let ages = (0..=u64::from(lanes.remembers())).rev();
        ages.map(|age| of_age(age).max(0) as usize).collect()
    }

    /// All figures, except for the size of the filter itself.
    pub fn stats(&self, capacity: usize) -> Stats {
        let (plan, buckets) = (self.plan(), self.buckets());
        let (geometry, lanes) = (plan.geometry(), plan.geometry().lanes());
        let shards = buckets / geometry.buckets() as usize;
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
            directory_depth: match self {
                Backend::Growing(growing) => growing.level(),
                Backend::Fixed(_) | Backend::FixedWide(_) => 0,
            },
            growth: shards as f64 / geometry.shards() as f64,
            expected_growth: plan.expected_growth(),
        }
    }
}

impl SweepTarget for Backend {
    fn lanes(&self) -> Lanes {
        on_backend!(self, backend => backend.lanes())
    }

    fn begin(&self, set: impl FnOnce() -> Option<Moment>) {
        on_backend!(self, backend => backend.begin(set));
    }

    fn segments(&self) -> usize {
        on_backend!(self, backend => backend.segments())
    }

    fn sweep(&self, segments: Range<usize>, now: Moment) {
        on_backend!(self, backend => backend.sweep(segments, now));
    }

    fn finish_tick(&self, now: Moment) {
        on_backend!(self, backend => backend.finish_tick(now));
    }
}
