//! A filter that grows: first a list of its items, then shards.
//!
//! * [`list`] holds few items in little memory, and [`list_growth`] makes it longer and ends it; each thread
//!   keeps the slots that it has looked into in a [`slots_cache`];
//! * [`sharded`] has the shards, each of which is [split](mod@split) when it is full, if [a split
//!   helps](sharded::split_policy), and [joined](mod@join) with its other half when both are nearly empty;
//! * [`void`] counts the items of lanes that have no bits left;
//! * [`expiry`] passes ticks through the list or the shards.
//!
//! # The path to a shard
//!
//! 1. The hash has a [position](crate::layout::roots::Position) among the hashes of the shards that the
//!    filter began with.
//! 2. The [`directory`] has an entry there, which is valid until the shard is [split](until_split).
//! 3. The entry is the address of the shard's [`site`]: its memory in one of the [`tables`], and its figures.
//!
//! # The list
//!
//! One shard takes 64 KiB, or 128 KiB with wide buckets. A filter that needs no more than one shard begins
//! with a [list] instead, which takes 9 bytes an item and tells items apart by all bits of their hashes. When
//! the list is as large as a shard would be, its items are inserted into a shard in the order of their
//! hashes. So filters with the same items get the same table. A filter never returns to its list.
//!
//! Writers of the list hold its lock. Lookups do not: a thread [caches](slots_cache) the slots of the list
//! that it has read last. Only if these have been replaced since, or if writers keep moving their hashes,
//! does a lookup acquire the lock.
//!
//! The change to shards happens under the lock. A thread that has waited for the lock finds no list, and then
//! the shards, which were set before. Lookups that are still in the list read its last contents.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | the shards, set | `Release` (in [`OnceLock`]) | a thread that sees the shards without the lock sees their words. Twin `the_shards_are_set_relaxed` |
//! | the shards, read | `Acquire` (in [`OnceLock`]) | the same. Twin `the_shards_are_read_relaxed` |
//! | the address of the slots | `Relaxed` | a thread that has a share in the slots acquired it under the lock. With an old address, a lookup reads former contents of the list |
//! | the limit | `Relaxed` | changed under the lock; no answer of a lookup depends on it |

pub mod directory;
mod expiry;
pub mod join;
pub mod list;
pub mod list_growth;
pub mod sharded;
pub mod site;
mod slots_cache;
pub mod split;
pub mod tables;
pub mod until_split;
pub mod void;

use crate::backend::exchange::Loaded;
use crate::backend::growing::list::List;
use crate::backend::growing::list::slots::Slots;
use crate::backend::growing::sharded::AnySharded;
use crate::error::{Full, Reason};
use crate::layout::SMALL;
use crate::layout::bucket::Lanes;
use crate::layout::geometry::Mixed;
use crate::layout::sizing::GrowthPlan;
use crate::layout::stamps::Moment;
use crate::layout::stamps::{ByStamp, STAMPS};
use crate::sync::{AtomicPtr, Gauge, Mutex, OnceLock, Ordering};
use crate::table::ticking::Ticking;
use std::sync::Arc;

/// The number of times that a lookup retries, because hashes were moving, before it acquires the lock of the
/// list.
const TRIES: usize = if SMALL { 0 } else { 16 };

/// The hashes of a list, and their stamps if the filter forgets.
type Stamped = (Vec<u64>, Vec<u8>);

pub struct Growing {
    shards: OnceLock<Box<AnySharded>>,
    /// `Some` if the filter forgets. The shards share it.
    ticking: Option<Arc<Ticking>>,
    listed: Mutex<Listed>,
    /// The slots of the list, or of the last list if it has ended.
    slots: AtomicPtr<Slots>,
    max_bytes: Gauge,
    /// The plan of the new filter; its limit may have changed since. (In a box, since a fixed filter takes as
    /// much room as this.)
    plan: Box<GrowthPlan>,
}

struct Listed {
    /// `None` if the items are in shards.
    list: Option<List>,
    /// The number of items from which on a change to shards is due. `usize::MAX` after a change that failed
    /// because the items did not fit.
    due: usize,
}

impl Growing {
    pub(crate) fn new(plan: GrowthPlan) -> Result<Self, Reason> {
        if plan.begins_small() && plan.own_bytes <= plan.max_bytes {
            let list = List::new(plan.forgets());
            return Ok(Self::with(plan, Some(list), None));
        }
        let sharded = AnySharded::new(plan.clone())?;
        Ok(Self::with(plan, None, Some(sharded)))
    }

    pub fn restore(plan: GrowthPlan, loaded: Loaded) -> Result<Self, usize> {
        let (list, sharded, time) = match loaded {
            Loaded::Items { hashes, stamps, time } => {
                let list = List::of(&hashes, plan.forgets().then_some(&stamps[..]))?;
                (Some(list), None, time)
            }
            Loaded::Shards { table, blocks, void, time } => {
                (None, Some(AnySharded::restore(plan.clone(), table, &blocks, void)?), time)
            }
            Loaded::Gathered { tables, depths, void, time } => {
                let depths = depths.iter().copied();
                (None, Some(AnySharded::gathered(plan.clone(), *tables, depths, void)?), time)
            }
        };
        let growing = Self::with(plan, list, sharded);
        if let Some((ticking, time)) = growing.ticking().zip(time) {
            ticking.continue_from(time);
        }
        Ok(growing)
    }

    /// Makes the backend with a list or with shards.
    fn with(plan: GrowthPlan, list: Option<List>, sharded: Option<AnySharded>) -> Self {
        let ticking = plan.forgets().then(|| Arc::new(Ticking::new()));
        let (shards, max_bytes) = (OnceLock::new(), Gauge::new());
        if let Some(mut sharded) = sharded {
            sharded.keep_time(ticking.clone());
            let _ = shards.set(Box::new(sharded));
        }
        max_bytes.set(plan.max_bytes as u64);
        let slots = AtomicPtr::new(list.as_ref().map_or(std::ptr::null_mut(), address));
        let listed = Mutex::new(Listed { list, due: enough_for_a_shard(&plan) });
        Growing { shards, ticking, listed, slots, max_bytes, plan: Box::new(plan) }
    }

    /// Returns the heap memory of a filter beside its list or shards.
    pub fn bytes_beside(forgets: bool) -> usize {
        size_of::<GrowthPlan>() + if forgets { Ticking::SHARED_BYTES } else { 0 }
    }

    pub fn ticking(&self) -> Option<&Ticking> {
        self.ticking.as_deref()
    }

    /// Returns the time, for a caller that holds the lock of the list.
    fn now(&self) -> Moment {
        self.ticking().map_or(Moment::FIRST, |ticking| ticking.clock().now())
    }

    fn lanes(&self) -> Lanes {
        self.plan.geometry.lanes()
    }

    /// Returns the stamp of an item that is `age` ticks old, for a caller that holds the lock of the list.
    fn stamp(&self, age: u64) -> u8 {
        let at = |ticking: &Ticking| self.lanes().stamp_of_age(age, ticking.clock().now()) as u8;
        self.ticking().map_or(0, at)
    }

    /// Returns the shards, if the filter has them.
    #[inline]
    pub fn shards(&self) -> Option<&AnySharded> {
        self.shards.get().map(|shards| &**shards)
    }

    pub fn max_bytes(&self) -> usize {
        self.max_bytes.get() as usize
    }

    pub fn set_max_bytes(&self, bytes: usize) {
        // Under the lock, so that shards that are made meanwhile get the new limit.
        let mut listed = self.listed.lock();
        self.max_bytes.set(bytes as u64);
        listed.due = enough_for_a_shard(&self.plan);
        if let Some(shards) = self.shards() {
            shards.set_max_bytes(bytes);
        }
    }

    pub fn plan(&self) -> GrowthPlan {
        GrowthPlan { max_bytes: self.max_bytes(), ..(*self.plan).clone() }
    }

    /// Queries the list under its lock. Returns `None` if it has ended.
    fn ask<A>(&self, question: impl FnOnce(&List) -> A) -> Option<A> {
        self.listed.lock().list.as_ref().map(question)
    }

    /// Queries the slots of the list, without its lock if possible. Returns `None` if the list has ended.
    #[inline(always)]
    fn look<A>(&self, question: impl Fn(&Slots) -> A) -> Option<A> {
        let slots = self.slots.load(Ordering::Relaxed);
        let answer = slots_cache::ask(self, slots, |slots| slots.ask(&question));
        answer.or_else(|| self.look_again(question))
    }

    #[cold]
    fn look_again<A>(&self, question: impl Fn(&Slots) -> A) -> Option<A> {
        let slots = self.slots.load(Ordering::Relaxed);
        let tries = |slots: &Slots| (0..TRIES).find_map(|_| slots.ask(&question));
        slots_cache::ask(self, slots, tries).or_else(|| {
            self.ask(|list| {
                slots_cache::keep(self, Some(list.slots()));
                question(list.slots())
            })
        })
    }

    #[inline]
    pub fn contains(&self, hash: Mixed) -> Option<bool> {
        self.look(|slots| slots.contains(hash))
    }

    pub fn count(&self, hash: Mixed) -> Option<usize> {
        self.look(|slots| slots.count(hash))
    }

    pub fn remove(&self, hash: Mixed) -> Option<bool> {
        let mut listed = self.listed.lock();
        let Listed { list, due } = &mut *listed;
        let list = list.as_mut()?;
        let now = self.now();
        let removed = list.remove(hash, |stamp| self.lanes().age_of(stamp, now));
        let enough = enough_for_a_shard(&self.plan);
        if list.len() < enough {
            *due = enough;
        } else if removed {
            // It may have been one of the items that did not fit.
            *due = (*due).min(self.most());
        }
        Some(removed)
    }

    pub fn insert(&self, hash: Mixed) -> Option<Result<(), Full>> {
        self.add_unless(hash, 0, |_, _| false).map(|result| result.map(drop))
    }

    pub fn insert_if_absent(&self, hash: Mixed) -> Option<Result<bool, Full>> {
        self.add_unless(hash, 0, |list, _| list.contains(hash))
    }

    #[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
    pub fn insert_if_still_absent(&self, hash: Mixed) -> Option<Result<bool, Full>> {
        self.insert_if_absent(hash)
    }

    pub fn refresh(&self, hash: Mixed) -> Option<bool> {
        // A filter that does not forget has no stamps to refresh.
        if !self.plan.forgets() {
            return self.contains(hash);
        }
        self.listed.lock().list.as_mut().map(|list| list.refresh(hash, self.stamp(0)))
    }

    pub fn insert_or_refresh(&self, hash: Mixed) -> Option<Result<bool, Full>> {
        self.add_unless(hash, 0, |list, stamp| list.refresh(hash, stamp))
    }

    /// Adds an item to the list, `age` ticks old, unless `is_so` returns true. Returns `None` if the list has
    /// ended.
    fn add_unless(
        &self,
        hash: Mixed,
        age: u64,
        is_so: impl FnOnce(&mut List, u8) -> bool,
    ) -> Option<Result<bool, Full>> {
        let mut listed = self.listed.lock();
        let stamp = self.stamp(age);
        if is_so(listed.list.as_mut()?, stamp) {
            return Some(Ok(false));
        }
        self.add(&mut listed, hash, stamp).map(|result| result.map(|()| true))
    }

    pub fn age(&self, hash: Mixed) -> Option<Option<u64>> {
        self.ask(|list| {
            let now = self.now();
            list.stamps_of(hash).iter().map(|stamp| self.lanes().age_of(*stamp, now)).max()
        })
    }

    /// Performs an operation in the list, or in the shards, which are set before the list ends.
    #[inline(never)]
    pub fn in_list<A>(
        &self,
        hash: Mixed,
        in_list: impl Fn(&Self, Mixed) -> Option<A>,
        in_shards: impl FnOnce(&AnySharded, Mixed) -> A,
    ) -> A {
        loop {
            if let Some(answer) = in_list(self, hash) {
                return answer;
            }
            if let Some(shards) = self.shards() {
                return in_shards(shards, hash);
            }
        }
    }

    /// Returns the number of buckets: for a list, the number in the shard that would replace it.
    pub fn buckets(&self) -> usize {
        self.shards().map_or(self.plan.geometry.buckets() as usize, AnySharded::buckets)
    }

    pub fn items(&self) -> usize {
        let of_shards = || self.shards().map(AnySharded::items);
        // If the list has ended meanwhile, there are shards.
        of_shards().or_else(|| self.ask(List::len)).or_else(of_shards).unwrap_or(0)
    }

    pub fn clear(&self) {
        if let Some(shards) = self.shards() {
            return shards.clear();
        }
        let mut listed = self.listed.lock();
        match self.shards() {
            Some(shards) => shards.clear(),
            None => self.replace(&mut listed, List::new(self.plan.forgets())),
        }
        listed.due = enough_for_a_shard(&self.plan);
    }

    /// Returns the memory held beside `self`, in bytes, including the clock.
    pub fn heap_bytes(&self) -> usize {
        let of_shards = || self.shards().map(AnySharded::heap_bytes);
        let of_list = || self.ask(List::heap_bytes);
        Self::bytes_beside(self.plan.forgets())
            + of_shards().or_else(of_list).or_else(of_shards).unwrap_or(0)
    }

    /// Returns the number of items with each stamp. A [void] lane counts once in each shard.
    pub fn items_by_stamp(&self) -> ByStamp {
        let of_list = |list: &List| {
            let mut items = [0; STAMPS];
            list.items().for_each(|(_, stamp)| items[usize::from(stamp)] += 1);
            items
        };
        let of_shards = || self.shards().map(AnySharded::items_by_stamp);
        of_shards().or_else(|| self.ask(of_list)).or_else(of_shards).unwrap_or([0; STAMPS])
    }

    /// Returns the false-positive rate. That of a list is 0, since it tells all items apart.
    pub fn rate(&self) -> f64 {
        self.shards().map_or(0.0, AnySharded::rate)
    }

    pub fn level(&self) -> u32 {
        self.shards().map_or(0, AnySharded::level)
    }

    /// Returns the hashes of the list, in ascending order, and their stamps if the filter forgets. Returns
    /// `None` if the list has ended, and `Err` with the number of bytes that could not be allocated.
    pub fn items_of_list(&self) -> Option<Result<Stamped, usize>> {
        self.ask(|list| {
            let (mut hashes, mut stamps) = (Vec::new(), Vec::new());
            hashes.try_reserve_exact(list.len()).map_err(|_| 8 * list.len())?;
            hashes.extend(list.items().map(|(hash, _)| hash));
            if self.plan.forgets() {
                stamps.try_reserve_exact(list.len()).map_err(|_| list.len())?;
                stamps.extend(list.items().map(|(_, stamp)| stamp));
            }
            Ok((hashes, stamps))
        })
    }

    /// Adds an item of another filter, `age` ticks old, unless it is in the list. If the item in the list is
    /// older, it becomes as young. Returns whether the item was added, or `None` if the list has ended.
    pub fn merge_item(&self, hash: Mixed, age: u64) -> Option<Result<bool, Full>> {
        self.add_unless(hash, age, |list, stamp| {
            let now = self.now();
            list.keep(hash, stamp, |stamp| self.lanes().age_of(stamp, now));
            list.contains(hash)
        })
    }

    /// Moves the items of the list into shards, if the list has not ended yet.
    pub fn leave(&self) -> Result<(), Full> {
        self.change(&mut self.listed.lock())
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        slots_cache::keep(self, None);
    }
}

/// Returns the address of the list's slots.
fn address(list: &List) -> *mut Slots {
    Arc::as_ptr(list.slots()).cast_mut()
}

/// Returns the number of items from which on they are in shards, because a list of them is as large as a
/// shard.
fn enough_for_a_shard(plan: &GrowthPlan) -> usize {
    if SMALL { 4 } else { plan.geometry.words() }
}
