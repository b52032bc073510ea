//! The two stages of a filter that grows: a list of its first items, then shards.
//!
//! One shard takes 64 KiB, or 128 of wide buckets. A filter that needs no more than one begins with a
//! [list] instead, which takes 9 bytes an item and tells items apart by
//! all bits of their hashes. When the list is as large as a shard would be, its items are inserted into
//! one in the order of their hashes. So filters with the same items become the same table. A filter
//! never returns to its list.
//!
//! The list has one lock, which lookups share. The change to shards happens under it: whoever waits
//! for it meanwhile finds the list ended, and the shards, which were set before.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | the shards, set | `Release` (in [`Once`]) | whoever sees the shards without the lock sees their words. Twin `the_shards_are_set_relaxed` |
//! | the shards, read | `Acquire` (in [`Once`]) | the same. Twin `the_shards_are_read_relaxed` |
//! | the limit | `Relaxed` | changed under the lock; no answer of a lookup depends on it |

mod adopt;
mod forget;
pub mod list;

use crate::error::{Full, FullKind, Reason};
use crate::layout::SMALL;
use crate::layout::aging::{Aging, GROWING_BUCKETS, Matching};
use crate::layout::bucket::Lanes;
use crate::layout::geometry::Mixed;
use crate::layout::sizing::GrowthPlan;
use crate::layout::stamps::Moment;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::room::growing::grown::Grown;
use crate::room::growing::stages::list::{List, NoGap};
use crate::room::parts::{CannotRestore, Loaded};
use crate::room::shards::Shards;
use crate::rule::rule;
use crate::stats::{Growth, Stats};
use crate::sync::{Gauge, Once, RwLock};
use crate::table::ticking::{Ticking, Time};
use std::sync::Arc;

/// A list may become so many times as long as one whose items are enough for a shard: for as long as the
/// system refuses the memory for one, or if its items fit in no shards of the greatest [`DEPTH`]. That
/// happens only if someone who knows the hasher's keys chose them.
const LONGER: usize = 4;

/// The first shards of a list's items may be as if they had been split so many times. Items that the list told
/// apart may have one fingerprint in a shard, and more copies together than two buckets have lanes. (At 8
/// bits, a list of items with all the copies that they may have needs a first split once in a thousand lists.)
const DEPTH: u32 = 4;

/// No list has more items.
pub const MOST_LISTED: usize = LONGER * 2 * GROWING_BUCKETS as usize;

/// The hashes of a list, and the stamps of one that forgets.
type Stamped = (Vec<u64>, Vec<u8>);

pub struct Stages {
    shards: Once<Box<Grown>>,
    /// If the filter forgets. The shards have it too.
    ticking: Option<Arc<Ticking>>,
    listed: RwLock<Listed>,
    max_bytes: Gauge,
    /// As the filter was made: its limit may have changed since.
    plan: GrowthPlan,
}

struct Listed {
    list: List,
    /// How many items make a change to shards due. After a change for which the items were to blame, no
    /// number does.
    due: usize,
    /// Whether the items are in shards.
    has_ended: bool,
}

impl Stages {
    pub(crate) fn new(plan: GrowthPlan) -> Result<Self, Reason> {
        if plan.begins_small() && plan.own_bytes <= plan.max_bytes {
            let list = List::new(plan.forgets());
            return Ok(Self::of_list(plan, list));
        }
        Ok(Self::of_shards(plan.clone(), Grown::new(plan)?))
    }

    pub fn restore(plan: GrowthPlan, loaded: Loaded) -> Result<Self, CannotRestore> {
        match loaded {
            Loaded::Items { hashes, stamps, time } => {
                let list = List::of(&hashes, plan.forgets().then_some(&stamps[..]))
                    .map_err(|bytes| CannotRestore::OutOfMemory { bytes })?;
                Ok(Self::of_list(plan, list).at(time))
            }
            Loaded::Shards { table, blocks, time } => {
                Ok(Self::of_shards(plan.clone(), Grown::restore(plan, table, &blocks)?).at(time))
            }
            Loaded::Gathered { tables, depths, time } => {
                let grown = Grown::gathered(plan.clone(), *tables, depths.iter().copied())?;
                Ok(Self::of_shards(plan, grown).at(time))
            }
        }
    }

    /// The same at this time.
    fn at(self, time: Option<Time>) -> Self {
        if let Some((ticking, time)) = self.ticking().zip(time) {
            ticking.continue_from(time);
        }
        self
    }

    fn of_list(plan: GrowthPlan, list: List) -> Self {
        let due = enough_for_a_shard(&plan);
        let listed = RwLock::new(Listed { list, due, has_ended: false });
        let ticking = ticking_of(&plan);
        Self::with(plan, Once::new(), ticking, listed)
    }

    fn of_shards(plan: GrowthPlan, mut grown: Grown) -> Self {
        let ticking = ticking_of(&plan);
        grown.keep_time(ticking.clone());
        let listed = Listed { list: List::default(), due: 0, has_ended: true };
        let shards = Once::new();
        shards.set(Box::new(grown));
        Self::with(plan, shards, ticking, RwLock::new(listed))
    }

    fn with(
        plan: GrowthPlan,
        shards: Once<Box<Grown>>,
        ticking: Option<Arc<Ticking>>,
        listed: RwLock<Listed>,
    ) -> Self {
        let max_bytes = Gauge::new();
        max_bytes.set(plan.max_bytes as u64);
        Stages { shards, ticking, listed, max_bytes, plan }
    }

    pub fn ticking(&self) -> Option<&Ticking> {
        self.ticking.as_deref()
    }

    /// What time it is, for a caller that holds the lock of the list.
    fn now(&self) -> Moment {
        self.ticking().map_or(Moment::FIRST, |ticking| ticking.clock().now())
    }

    fn lanes(&self) -> Lanes {
        self.plan.geometry.lanes()
    }

    fn stamp(&self) -> u8 {
        self.lanes().stamp_of_age(0, self.now()) as u8
    }

    /// The shards, if the filter has them.
    #[inline]
    pub fn shards(&self) -> Option<&Grown> {
        self.shards.get().map(|shards| &**shards)
    }

    pub fn max_bytes(&self) -> usize {
        self.max_bytes.get() as usize
    }

    pub fn set_max_bytes(&self, bytes: usize) {
        // Under the lock: shards that are made meanwhile learn of it.
        let mut listed = self.listed.write();
        self.max_bytes.set(bytes as u64);
        listed.due = enough_for_a_shard(&self.plan);
        if let Some(shards) = self.shards() {
            shards.set_max_bytes(bytes);
        }
    }

    pub fn plan(&self) -> GrowthPlan {
        GrowthPlan { max_bytes: self.max_bytes(), ..self.plan.clone() }
    }

    /// Asks the list, or returns `None` if it has ended.
    fn ask<A>(&self, question: impl FnOnce(&List) -> A) -> Option<A> {
        let listed = self.listed.read();
        let has_ended = rule!("a_list_answers_after_its_end", listed.has_ended, false);
        (!has_ended).then(|| question(&listed.list))
    }

    pub fn contains(&self, hash: Mixed) -> Option<bool> {
        self.ask(|list| list.contains(hash))
    }

    pub fn count(&self, hash: Mixed) -> Option<usize> {
        self.ask(|list| list.count(hash))
    }

    pub fn remove(&self, hash: Mixed) -> Option<bool> {
        let mut listed = self.listed.write();
        let has_ended = listed.has_ended;
        if rule!("an_item_is_removed_from_a_list_that_has_ended", has_ended, false) {
            return None;
        }
        let now = self.now();
        let age_of = |stamp| self.lanes().age_of(stamp, now);
        let removed = listed.list.remove(hash, age_of);
        let enough = enough_for_a_shard(&self.plan);
        if listed.list.len() < enough {
            listed.due = enough;
        } else if removed {
            // It may have been one of those that were to blame.
            listed.due = listed.due.min(self.most());
        }
        Some(removed)
    }

    pub fn insert(&self, hash: Mixed) -> Option<Result<(), Full>> {
        let mut listed = self.listed.write();
        self.add(&mut listed, hash, self.stamp())
    }

    pub fn insert_if_absent(&self, hash: Mixed) -> Option<Result<bool, Full>> {
        let mut listed = self.listed.write();
        if !listed.has_ended && listed.list.contains(hash) {
            return Some(Ok(false));
        }
        self.add(&mut listed, hash, self.stamp()).map(|result| result.map(|()| true))
    }

    pub fn refresh(&self, hash: Mixed) -> Option<bool> {
        // What a filter that does not forget has, need not be refreshed.
        if !self.plan.forgets() {
            return self.contains(hash);
        }
        let mut listed = self.listed.write();
        (!listed.has_ended).then(|| listed.list.refresh(hash, self.stamp()))
    }

    pub fn insert_or_refresh(&self, hash: Mixed) -> Option<Result<bool, Full>> {
        let mut listed = self.listed.write();
        if !listed.has_ended && listed.list.refresh(hash, self.stamp()) {
            return Some(Ok(false));
        }
        self.add(&mut listed, hash, self.stamp()).map(|result| result.map(|()| true))
    }

    /// The most items that the list may have.
    fn most(&self) -> usize {
        LONGER * enough_for_a_shard(&self.plan)
    }

    /// Adds an item with this stamp to the list, unless that has ended or ends now.
    fn add(&self, listed: &mut Listed, hash: Mixed, stamp: u8) -> Option<Result<(), Full>> {
        let has_ended = listed.has_ended;
        if rule!("an_item_is_added_to_a_list_that_has_ended", has_ended, false) {
            return None;
        }
        // As many copies as in shards.
        let copies = listed.list.count(hash);
        let copies = Matching { lanes: copies, whole: copies, lost: 0 };
        if !Aging::new(self.lanes()).takes_another(copies) {
            return Some(Err(Full::new(FullKind::TooManyCopies)));
        }
        let is_longest = listed.list.len() >= self.most();
        if listed.list.len() >= listed.due {
            match self.change(listed) {
                Ok(()) => return None,
                Err(full) if full.kind() == FullKind::NoRoomNearby => listed.due = usize::MAX,
                Err(full) if is_longest => return Some(Err(full)),
                Err(_) => listed.due = (listed.due + listed.due.div_ceil(4)).min(self.most()),
            }
        }
        if is_longest {
            return Some(Err(Full::new(FullKind::NoRoomNearby)));
        }
        let Err(NoGap) = listed.list.insert(hash, stamp) else { return Some(Ok(())) };
        match self.lengthen(listed) {
            Ok(()) if listed.has_ended => None,
            Ok(()) => {
                Some(listed.list.insert(hash, stamp).map_err(|NoGap| Full::new(FullKind::NoMemory)))
            }
            Err(full) => Some(Err(full)),
        }
    }

    /// Makes the list longer, or changes to shards if the limit leaves room for these but not for both.
    fn lengthen(&self, listed: &mut Listed) -> Result<(), Full> {
        // Known before anything is copied, so that a refusal is quick.
        let least = self.plan.own_bytes.saturating_add(listed.list.bytes_of_longer());
        let most = self.max_bytes();
        let changes = least.saturating_add(Grown::bytes_of(&self.plan)) > most;
        if changes && self.change(listed).is_ok() {
            return Ok(());
        }
        let limit = Full::new(FullKind::LimitReached);
        if least > most {
            return Err(limit);
        }
        let longer = listed.list.longer().map_err(|_| Full::new(FullKind::NoMemory))?;
        // It may need more slots at its end.
        if self.plan.own_bytes.saturating_add(longer.heap_bytes()) > most {
            return Err(limit);
        }
        listed.list = longer;
        Ok(())
    }

    /// Puts all items into shards, and ends the list.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no memory for the shards, or if the limit leaves no room for them; or, as
    /// [`NoRoomNearby`](FullKind::NoRoomNearby), if the items do not fit in any.
    fn change(&self, listed: &mut Listed) -> Result<(), Full> {
        for depth in 0..=DEPTH {
            let mut grown = match Grown::new_at_depth(self.plan(), depth) {
                Ok(grown) => grown,
                Err(reason) if depth == 0 => return Err(of_reason(reason)),
                Err(_) => break,
            };
            let inserted = match listed.list.stamps() {
                None => listed.list.hashes().try_for_each(|hash| grown.insert_listed(Mixed(hash))),
                Some(stamps) => self.insert_in_time(&mut grown, listed.list.hashes().zip(stamps)),
            };
            match inserted {
                Ok(()) => {
                    rule!("a_list_ends_before_its_shards_are_known", (), {
                        listed.list = List::default();
                        return Ok(());
                    });
                    self.shards.set(Box::new(grown));
                    listed.list = List::default();
                    listed.has_ended = true;
                    return Ok(());
                }
                Err(full) if is_for_memory(full) => return Err(full),
                Err(_) => {}
            }
        }
        Err(Full::new(FullKind::NoRoomNearby))
    }

    /// The hashes of a list, in ascending order. `None` if it has ended, and `Err` with the number of
    /// bytes that could not be allocated.
    pub fn hashes(&self) -> Option<Result<Vec<u64>, usize>> {
        self.items_of_list().map(|items| items.map(|(hashes, _)| hashes))
    }

    /// The same with the stamps of a filter that forgets.
    pub fn items_of_list(&self) -> Option<Result<Stamped, usize>> {
        self.ask(|list| {
            let (mut hashes, mut stamps) = (Vec::new(), Vec::new());
            hashes.try_reserve_exact(list.len()).map_err(|_| 8 * list.len())?;
            hashes.extend(list.hashes());
            if let Some(of_items) = list.stamps() {
                stamps.try_reserve_exact(list.len()).map_err(|_| list.len())?;
                stamps.extend(of_items);
            }
            Ok((hashes, stamps))
        })
    }

    pub fn items(&self) -> usize {
        self.ask(List::len).unwrap_or_else(|| self.shards().map_or(0, Grown::items))
    }

    pub fn clear(&self) {
        let mut listed = self.listed.write();
        (listed.list, listed.due) =
            (List::new(self.plan.forgets()), enough_for_a_shard(&self.plan));
        if let Some(shards) = self.shards() {
            shards.clear();
        }
    }

    pub fn heap_bytes(&self) -> usize {
        let time = if self.ticking.is_some() { Ticking::SHARED_BYTES } else { 0 };
        let of_shards = || self.shards().map(Grown::heap_bytes);
        let of_list = || self.ask(List::heap_bytes);
        time + of_shards().or_else(of_list).or_else(of_shards).unwrap_or(0)
    }

    /// The number of items with each stamp.
    pub fn items_by_stamp(&self) -> ByStamp {
        let of_list = self.ask(|list| {
            let mut items = ByStamp::default();
            let stamps = list.stamps().into_iter().flatten();
            stamps.for_each(|stamp| items.add(stamp.into(), 1));
            items
        });
        let of_shards = || self.shards().map_or_else(ByStamp::default, Grown::items_by_stamp);
        of_list.unwrap_or_else(of_shards)
    }

    /// The figures of a filter with a list, as if its items were in the shard that it begins with:
    /// except for its size, and its rate, since it tells all items apart.
    pub fn stats(&self, capacity: usize) -> Stats {
        let (geometry, most) = (&self.plan.geometry, self.max_bytes());
        let lanes = self.lanes();
        let items = self.ask(List::len);
        if let (None, Some(shards)) = (items, self.shards()) {
            return shards.stats(capacity);
        }
        Stats {
            items: items.unwrap_or(0),
            capacity,
            slots: geometry.buckets() as usize * lanes.slots(),
            fingerprint_bits: lanes.fingerprint_bits(),
            slots_per_bucket: lanes.slots(),
            shards: 1,
            segments: geometry.stripes() as usize,
            size_in_bytes: self.heap_bytes(),
            false_positive_rate: 0.0,
            false_positive_rate_at_capacity: self.plan.rate,
            max_bytes: Some(most).filter(|bytes| *bytes < usize::MAX),
            growth: Some(Growth {
                splits: 0,
                directory_depth: 0,
                factor: 1.0,
                expected: self.plan.expected_growth,
            }),
        }
    }

    /// The false-positive rate of a list, which tells all items apart, or of shards.
    pub fn rate(&self) -> f64 {
        match self.ask(|_| ()) {
            Some(()) => 0.0,
            None => self.shards().map_or(0.0, Grown::rate),
        }
    }
}

fn of_reason(reason: Reason) -> Full {
    match reason {
        Reason::LimitTooSmall { .. } => Full::new(FullKind::LimitReached),
        _ => Full::new(FullKind::NoMemory),
    }
}

fn is_for_memory(full: Full) -> bool {
    matches!(full.kind(), FullKind::LimitReached | FullKind::NoMemory)
}

fn ticking_of(plan: &GrowthPlan) -> Option<Arc<Ticking>> {
    plan.forgets().then(|| Arc::new(Ticking::new()))
}

/// The number of items from which on they are in shards: a list of them is as large as a shard.
fn enough_for_a_shard(plan: &GrowthPlan) -> usize {
    if SMALL { 4 } else { plan.geometry.words() }
}
