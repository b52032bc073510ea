//! The ledger: how many items the exhausted lanes of a growing filter stand for.
//!
//! A lane that has bits left in its suffix is in one shard, and stands for one item. Stripes count these
//! lanes, as those of a fixed filter do. A lane that is [exhausted](crate::layout::shrinking) goes to both halves of
//! a split. So there may be more of these than items, and there is no way to tell which of them is an item's
//! own. If each could be removed, removals of items that were removed before, or never inserted, could exceed
//! the insertions.
//!
//! So the filter has one ledger for its exhausted lanes: the number of their items, for each
//! [stamp](crate::layout::stamps).
//!
//! * A split that takes a lane's last bit takes the lane off the count of its stripe and puts an item on
//!   the ledger. When the lane goes to both halves later, nothing changes.
//! * Removing a exhausted lane takes one off. If the ledger is empty, every item of a exhausted lane has been
//!   removed: the lane is left over from one of them, and the item that is being removed is not here.
//! * A refresh that gives a exhausted lane a younger stamp moves an item to that stamp. If the lane was a twin, and the
//!   item's own lane keeps the old stamp, the item is counted until the new one is dead. So the ledger has every item
//!   with the stamp of its lane, or with a younger one: if there is none with the lane's stamp, the refresh moves the
//!   oldest of the younger ones. A removal that finds no item of the lane's stamp takes the oldest that there is.
//! * A tick that has erased all lanes of a stamp takes the stamp's items off.
//!
//! The number of a stamp never goes below zero.
//!
//! # What does a file say?
//!
//! A file has copies of shards, each of another moment. So each shard has a part of the ledger, its *balance*:
//! the items that splits of this shard put on, less those that removals here took off. It changes under a
//! lock of the shard, with the lanes, and a split leaves it with the lower half. One balance means nothing,
//! and may be below zero. The sum of all is the ledger; and the sum of the balances in a file is right for its
//! lanes, because each split and each removal is either in the copy of its shard with both its effects, or
//! with neither.
//!
//! # When are lanes erased that are left over?
//!
//! When the filter is empty. While lanes may be left over, each removal looks whether nothing is on the ledger, and
//! then for a shard that counts any lanes: first for the one that was found last, so that one look is mostly enough. If there is none, all exhausted lanes are erased. What is used
//! up then stands for no item: with [`splits`](Ledger::splits) held for writing, no lane becomes so, neither in a split nor
//! in a union. What has bits left is an item that came meanwhile, and stays.
//!
//! Two removals may be the last at the same time. Each has a fence between what it takes off and its look at
//! what is left, so at least one of them sees that nothing is.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | fence, after a removal and before the total and others' counts are read | `SeqCst` | the same fence of another removal: one of the two sees that both are done. Twin `a_last_removal_does_not_see_the_other` |
//! | the total and the flag, read without the lock | those of every `Gauge` | to pass by; what depends on them is decided again under `splits`. Twins `used_up_lanes_are_erased_without_a_look_at_the_ledger`, `an_entry_comes_while_a_filter_is_cleared`. The flag is set before the lanes that it warns of are published. Twin `nobody_knows_that_an_entry_is_in_several_shards` |

use crate::backend::growing::site::Site;
use crate::backend::growing::tables::Tables;
use crate::layout::bucket::Lanes;
use crate::layout::shrinking::Shrinking;
use crate::layout::stamps::Moment;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::rule::rule;
use crate::sync::{Gauge, Mutex, Ordering, RwLock, fence};
use std::iter::repeat;

/// More items than any shard has on its balance. Sums of as many balances as there are shards do not overflow.
pub const MAX_ON_A_BALANCE: u64 = 1 << 40;

pub struct Ledger {
    /// Of a filter that does not forget, all items have the stamp 0. MergeReport after the locks of shards.
    items: Mutex<ByStamp>,
    total: Gauge,
    /// TickPause for reading while lanes may become exhausted, and for writing while none must. MergeReport before any lock of
    /// a shard.
    pub splits: RwLock<()>,
    /// Not zero if any exhausted lane may stand for no item.
    has_leftovers: Gauge,
    /// The number of a shard that counted some lanes a while ago.
    has_some: Gauge,
}

impl Ledger {
    /// The ledger of shards that have these balances. No other thread knows them.
    pub fn of<const WIDE: bool>(tables: &Tables, shrinking: &Shrinking<WIDE>) -> Self {
        let none = ByStamp::default();
        let mut balances = none.clone();
        tables.sites_from(0).for_each(|(_, site)| balances.add_all(&site.balance()));
        let exhausted: i64 =
            tables.sites_from(0).map(|(_, site)| site.exhausted(shrinking) as i64).sum();
        let has_leftovers = Gauge::new();
        has_leftovers.set((exhausted > 0).into());
        // A file that was saved beside a clear may have shards of before that, and others of after it.
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

    /// The number of items that exhausted lanes stand for.
    pub fn total(&self) -> i64 {
        self.total.get().cast_signed()
    }

    /// The same for each stamp.
    pub fn items(&self) -> ByStamp {
        self.items.lock().clone()
    }

    /// Puts items on, with their stamps. The caller holds `splits` for reading, and the locks under which
    /// their lanes of this shard were exhausted.
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

    /// Takes off an item whose exhausted lane in this shard has this stamp. Returns whether there was one. The caller
    /// holds the lane's lock.
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

    /// Moves an item whose exhausted lane in this shard gets a younger stamp. The caller holds the lane's lock.
    pub fn restamp(&self, site: &Site, lanes: Lanes, [from, to]: [usize; 2], now: Moment) {
        let mut items = self.items.lock();
        let [oldest, youngest] = [from, to].map(|stamp| lanes.age_of(stamp as u8, now));
        let ages = (youngest + 1..=oldest).rev();
        let mut stamps = ages.map(|age| lanes.stamp_of_age(age, now));
        if let Some(from) = stamps.find(|stamp| items.figures()[*stamp] > 0) {
            self.add(&mut items, site, from, -1);
            self.add(&mut items, site, to, 1);
        }
    }

    /// Records that a shard is empty that is being cleared. Returns its balance, which has to be
    /// [taken off](Self::take_off) when all shards have been cleared. Until then the ledger has more than there is, and
    /// not less: alone, a balance means nothing. The caller holds the shard's locks.
    pub fn set_aside(&self, site: &Site) -> ByStamp {
        let _items = self.items.lock();
        let balance = site.balance();
        site.record(0, &ByStamp::default());
        balance
    }

    /// Takes off the balances of all shards that were cleared.
    pub fn take_off(&self, balances: &ByStamp) {
        let mut items = self.items.lock();
        for (stamp, gone) in balances.each() {
            items.add(stamp, -gone);
            self.total.add(-gone);
        }
    }

    /// Takes off the items of the stamps that are dead. No lane has them any more, in any shard.
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

    /// Records that lanes are about to be exhausted that stand for no item. The caller holds `splits` for reading.
    pub fn expect_leftovers(&self) {
        self.has_leftovers.set(1);
    }

    /// Whether lanes may be left over, and no item of a exhausted lane is there. To be called after a removal.
    #[inline]
    pub fn may_be_empty(&self) -> bool {
        self.has_leftovers.get() != 0 && {
            rule!("a_last_removal_does_not_see_the_other", fence(Ordering::SeqCst), ());
            self.total() == 0
        }
    }

    /// Erases all exhausted lanes if no item is left. To be called without locks.
    pub fn clear_if_empty<const WIDE: bool>(&self, tables: &Tables, shrinking: &Shrinking<WIDE>) {
        if !self.may_be_empty() || self.anything::<WIDE>(tables) {
            return;
        }
        let _no_split = self.splits.write();
        let is_empty = self.total() == 0;
        if !rule!("used_up_lanes_are_erased_without_a_look_at_the_ledger", is_empty, true) {
            return;
        }
        self.has_leftovers.set(0);
        for (_, site) in tables.sites_from(0).filter(|(_, site)| site.surplus() > 0) {
            site.erase_exhausted(shrinking);
        }
    }

    /// Whether any shard counts any lanes, by the counts of a moment ago.
    fn anything<const WIDE: bool>(&self, tables: &Tables) -> bool {
        let start = self.has_some.get() as usize;
        let before = tables.sites_from(0).take_while(|(number, _)| *number < start);
        let mut shards = tables.sites_from(start).chain(before);
        let some = shards.find(|(_, site)| site.shard::<WIDE>().all_items() > 0);
        some.inspect(|(number, _)| self.has_some.set(*number as u64)).is_some()
    }
}
