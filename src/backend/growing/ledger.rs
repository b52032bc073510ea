//! The ledger: how many items the exhausted lanes of a growing filter stand for.
//!
//! A lane that has bits left in its suffix is in one shard, and stands for one item. Stripes count these
//! lanes, as those of a fixed filter do. An [exhausted](crate::layout::shrinking) lane goes to both halves of
//! a split. So there may be more exhausted lanes than their items, and there is no way to tell which lane is
//! an item's own. If each lane could be removed, items that were removed before, or never inserted, could be
//! removed as well, and removals could exceed insertions.
//!
//! So the filter has one ledger for its exhausted lanes: the number of their items with each
//! [stamp](crate::layout::stamps).
//!
//! * A split that takes a lane's last bit takes the lane off the count of its stripe, and deposits an item in
//!   the ledger. When the lane goes to both halves of a later split, the ledger does not change.
//! * Removing an exhausted lane withdraws an item. If the ledger is empty, every item of an exhausted lane
//!   has been removed: the lane is left over from one of them, and the item that is to be removed is not in
//!   the filter.
//! * A refresh that gives an exhausted lane a younger stamp moves an item to that stamp. If it was not
//!   the item's own lane, which keeps the old stamp, the item is counted until the new stamp is dead. So
//!   the ledger has every item with the stamp of its lane, or with a younger one. If it has no item with the
//!   lane's stamp, the refresh moves an item with the oldest of the younger stamps. A removal that finds no
//!   item with the lane's stamp withdraws the oldest item.
//! * A tick that has erased all lanes with a stamp removes the items with that stamp.
//!
//! The number of items with a stamp is never below zero.
//!
//! # What does a file record?
//!
//! A file has copies of shards, each made at a different moment. So each shard has a part of the ledger, its
//! *balance*: the items that splits of this shard deposited, less those that removals in it withdrew. The
//! balance changes under a lock of the shard, together with the lanes, and a split leaves it with the lower
//! half. A single balance has no meaning, and may be below zero. The sum of all balances is the ledger. The
//! sum of the balances in a file is right for its lanes, because the copy of a shard contains either both
//! effects of a split or removal, or neither.
//!
//! # When are leftover lanes erased?
//!
//! When the filter is empty, and before it shrinks, if none of them stands for an item. While lanes may be left over, each removal checks whether the ledger is empty,
//! and then searches for a shard that counts any lanes, starting with the one that the last search found, so
//! that one look is usually enough. If there is no such shard, all exhausted lanes are erased. An exhausted
//! lane stands for no item then: while [`splits`](Ledger::splits) is held for writing, no lane becomes
//! exhausted, neither in a split nor in a union. A lane with bits left is an item that was inserted
//! meanwhile, and stays.
//!
//! Two concurrent removals may both be the last. Each has a fence between its withdrawal and its check of
//! what is left, so at least one of them sees that no item is left.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | fence, after a removal and before the total and others' counts are read | `SeqCst` | the same fence of another removal: at least one of the two sees that both are done. Twin `a_last_removal_does_not_see_the_other` |
//! | the total and the flag, read without the lock | those of every `Gauge` | only for early exits; a decision that depends on them is made again under `splits`. Twins `used_up_lanes_are_erased_without_a_look_at_the_ledger`, `an_entry_comes_while_a_filter_is_cleared`. The flag is set before the lanes that it warns of are published. Twin `nobody_knows_that_an_entry_is_in_several_shards` |

use crate::backend::growing::site::Site;
use crate::backend::growing::tables::Tables;
use crate::layout::bucket::Lanes;
use crate::layout::shrinking::Shrinking;
use crate::layout::stamps::Moment;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::rule::rule;
use crate::sync::{Gauge, Mutex, Ordering, RwLock, fence};
use std::iter::repeat;

/// More items than any shard has on its balance. The sum of the balances of all shards does not overflow.
pub const MAX_ON_A_BALANCE: u64 = 1 << 40;

pub struct Ledger {
    /// The number of items with each stamp. In a filter that does not forget, all items have the stamp 0.
    /// Locked after the locks of shards.
    items: Mutex<ByStamp>,
    total: Gauge,
    /// Held for reading while lanes may become exhausted or a shard is split, and for writing while none may. Locked
    /// before any lock of a shard.
    pub splits: RwLock<()>,
    /// Nonzero if any exhausted lane may stand for no item.
    has_leftovers: Gauge,
    /// The number of a shard that counted some lanes recently.
    has_some: Gauge,
}

impl Ledger {
    /// Makes the ledger of shards with their balances. No other thread has access to them.
    pub fn of<const WIDE: bool>(tables: &Tables, shrinking: &Shrinking<WIDE>) -> Self {
        let none = ByStamp::default();
        let mut balances = none.clone();
        tables.sites_from(0).for_each(|(_, site)| balances.add_all(&site.balance()));
        let exhausted: i64 =
            tables.sites_from(0).map(|(_, site)| site.exhausted(shrinking) as i64).sum();
        let has_leftovers = Gauge::new();
        has_leftovers.set((exhausted > 0).into());
        // A file that was saved during a clear may have shards from before it and shards from after it.
        let mut left = exhausted.min(balances.total()).max(0);
        let fair = balances.figures().iter().map(|items| {
            let fair = (*items).clamp(0, left);
            left -= fair;
            fair
        });
        let items = ByStamp::of(fair);
        let may_grow = |balance: &ByStamp| {
            balance.figures().iter().all(|items| items.unsigned_abs() < MAX_ON_A_BALANCE / 2)
        };
        if items != balances || !tables.sites_from(0).all(|(_, site)| may_grow(&site.balance())) {
            let all = tables.sites_from(0).zip([&items].into_iter().chain(repeat(&none)));
            all.for_each(|((_, site), balance)| site.record(site.surplus(), balance));
        }
        let total = Gauge::new();
        total.set(items.total().cast_unsigned());
        Ledger {
            items: Mutex::new(items),
            total,
            splits: RwLock::new(()),
            has_leftovers,
            has_some: Gauge::new(),
        }
    }

    /// Returns the number of items that exhausted lanes stand for.
    pub fn total(&self) -> i64 {
        self.total.get().cast_signed()
    }

    /// Returns the number of these items with each stamp.
    pub fn items(&self) -> ByStamp {
        self.items.lock().clone()
    }

    /// Deposits items with their stamps. The caller holds `splits` for reading, and the locks under which
    /// their lanes in this shard were exhausted.
    pub fn deposit(&self, site: &Site, items: &ByStamp) {
        if *items != ByStamp::default() {
            let mut own = self.items.lock();
            items.each().for_each(|(stamp, items)| self.add(&mut own, site, stamp, items));
        }
    }

    fn add(&self, own: &mut ByStamp, site: &Site, stamp: usize, items: i64) {
        own.add(stamp, items);
        site.balance_of(stamp).add(items);
        self.total.add(items);
    }

    /// Withdraws an item whose exhausted lane in this shard has this stamp. Returns whether there was one.
    /// The caller holds the lane's lock.
    pub fn withdraw(&self, site: &Site, lanes: Lanes, stamp: usize, now: Moment) -> bool {
        let mut items = self.items.lock();
        let is_there = |stamp: &usize| items.figures()[*stamp] > 0;
        let is_alive = |stamp: &usize| !lanes.has_stamp_expired(*stamp as u8, now);
        let all = (0..=u64::from(lanes.remembers())).rev().map(|age| lanes.stamp_of_age(age, now));
        let mut others = all.filter(is_alive);
        let Some(from) = Some(stamp).filter(is_there).or_else(|| others.find(is_there)) else {
            return rule!("a_lane_that_is_left_over_is_removed", false, true);
        };
        self.add(&mut items, site, from, -1);
        true
    }

    /// Moves an item whose exhausted lane in this shard gets a younger stamp to that stamp. The caller holds
    /// the lane's lock.
    pub fn restamp(&self, site: &Site, lanes: Lanes, [from, to]: [usize; 2], now: Moment) {
        let mut items = self.items.lock();
        let [oldest, youngest] = [from, to].map(|stamp| lanes.age_of(stamp as u8, now));
        let ages = (youngest + 1..=oldest).rev();
        let mut stamps = ages.map(|age| lanes.stamp_of_age(age, now));
        if let Some(from) = stamps.find(|stamp| items.figures()[*stamp] > 0) {
            // In this order, so that the total is never less than the number of items.
            self.add(&mut items, site, to, 1);
            self.add(&mut items, site, from, -1);
        }
    }

    /// Resets the figures of a shard that is being cleared. Returns its balance, which has to be [taken
    /// off](Self::take_off) once all shards have been cleared. Until then the ledger has too many items,
    /// never too few: a single balance has no meaning. The caller holds the shard's locks.
    pub fn set_aside(&self, site: &Site) -> ByStamp {
        let _items = self.items.lock();
        let balance = site.balance();
        site.record(0, &ByStamp::default());
        balance
    }

    /// Gives the balance of the second shard to the first, which gets this surplus. The caller holds all locks of both.
    pub fn unite(&self, [first, second]: [&Site; 2], surplus: u64) {
        let _items = self.items.lock();
        let mut balance = first.balance();
        balance.add_all(&second.balance());
        first.record(surplus, &balance);
        second.record(0, &ByStamp::default());
    }

    /// Takes the balances of all cleared shards off the ledger.
    pub fn take_off(&self, balances: &ByStamp) {
        let mut items = self.items.lock();
        for (stamp, gone) in balances.each() {
            items.add(stamp, -gone);
            self.total.add(-gone);
        }
    }

    /// Removes the items with dead stamps. No lane in any shard has these stamps any more.
    pub fn remove_expired(&self, tables: &Tables, lanes: Lanes, now: Moment) {
        let mut items = self.items.lock();
        for (_, site) in tables.sites_from(0) {
            for stamp in lanes.dead_stamps(now) {
                let gone = site.balance_of(stamp).get().cast_signed();
                if gone != 0 {
                    self.add(&mut items, site, stamp, -gone);
                }
            }
        }
    }

    /// Records that exhausted lanes are about to appear that stand for no item. The caller holds `splits` for
    /// reading.
    pub fn expect_leftovers(&self) {
        self.has_leftovers.set(1);
    }

    /// Whether lanes may be left over while no exhausted lane stands for an item. Called after a removal.
    #[inline]
    pub fn may_be_empty(&self) -> bool {
        self.has_leftovers.get() != 0 && {
            rule!("a_last_removal_does_not_see_the_other", fence(Ordering::SeqCst), ());
            self.total() == 0
        }
    }

    /// Erases all exhausted lanes if no item is left. The caller holds no locks.
    pub fn clear_if_empty<const WIDE: bool>(&self, tables: &Tables, shrinking: &Shrinking<WIDE>) {
        if self.may_be_empty() && !self.anything::<WIDE>(tables) {
            self.erase_leftovers(tables, shrinking);
        }
    }

    /// Erases all exhausted lanes if none stands for an item. The caller holds no locks.
    pub fn erase_leftovers<const WIDE: bool>(&self, tables: &Tables, shrinking: &Shrinking<WIDE>) {
        let _no_split = self.splits.write();
        // Under the lock: an expiry of many items changes the total step by step.
        let is_empty = self.items.lock().total() == 0;
        if !rule!("used_up_lanes_are_erased_without_a_look_at_the_ledger", is_empty, true) {
            return;
        }
        self.has_leftovers.set(0);
        for (_, site) in tables.sites_from(0).filter(|(_, site)| site.surplus() > 0) {
            site.erase_exhausted(shrinking);
        }
    }

    /// Whether any shard counts any lanes, by recent counts.
    fn anything<const WIDE: bool>(&self, tables: &Tables) -> bool {
        let start = self.has_some.get() as usize;
        let before = tables.sites_from(0).take_while(|(number, _)| *number < start);
        let mut shards = tables.sites_from(start).chain(before);
        let some = shards.find(|(_, site)| site.shard::<WIDE>().all_items() > 0);
        some.inspect(|(number, _)| self.has_some.set(*number as u64)).is_some()
    }
}
