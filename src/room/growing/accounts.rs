//! Accounts: why no more items can be removed than were inserted.
//!
//! A used-up lane goes to both halves of a split, so a growing filter may have more lanes than
//! items, and nobody can tell which of them stand for an item. If each lane could be removed,
//! removals of items that were removed before, or never inserted, could exceed the insertions.
//!
//! So every removal is paid for. The count of a stripe is its *account*: an insert adds one to the
//! account of the stripe that it writes to, and a removal takes one off the account of one of the
//! item's two stripes. **No account goes below zero.** If both are empty, the shard shares what its
//! accounts have out to all its stripes, since a shard may have inserted and removed its items in
//! different stripes; and if the whole shard has nothing, it *receives* half of what another shard
//! has. If none has anything, everything that was inserted has been removed, and so is this item.
//!
//! # How does an item find out that it may be removed?
//!
//! Let `d` be what a shard's accounts have, less the items that were inserted into the shard and not
//! removed. In all shards together, `d` is zero: an insert and a removal change both figures by
//! one, a split shares both out, a clear makes both zero, and what one shard receives another gives.
//! Within a shard, only the last three change `d`. They exclude each other: transfers hold
//! [`transfers`](Accounts::transfers) for writing, splits and clears for reading.
//!
//! Suppose a removal holds it for writing, and has found each shard's accounts empty, one after the
//! other, each under all locks of the shard. No `d` changed meanwhile. A shard with empty accounts
//! has `d ≤ 0`, since it does not have less than no items; so every `d` is zero. Then the item's own
//! shard had no items when its accounts were empty, and the answer "it was not here" was right at
//! that moment.
//!
//! (An entry of another filter may be counted in one shard while its item is one of another, which changes
//! two `d` at once, by one and by minus one. The lanes in other shards come later, while `transfers`
//! is held for reading. So during the search, at most such entries come that are in no shard but the one that
//! counts them; and there the search finds them, or they came after it.)
//!
//! # When are lanes erased that stand for no item?
//!
//! When the filter is empty. (A shard cannot know that *it* is empty: how many of its used-up lanes
//! are items of its own is an estimate, which is right only for both halves together.) In the state
//! above, every shard whose accounts are empty has no items, for as long as `transfers` is held. So
//! all its lanes are left over, and the removal clears it under its locks. Since every `d` is zero,
//! no account has anything from another shard any more, whatever the estimates said: a shard that
//! has got items again meanwhile has received nothing, and all its other lanes are its excess.
//!
//! A removal that leaves the accounts of its two stripes empty may have been the last. It then looks
//! for a shard that still has something, and if there is none, checks and clears as above. It looks
//! first at the [shard](Accounts::has_some) that had something last time, so that the search goes
//! through the filter once while it is emptied, and not once for each removal.
//!
//! Two removals may be the last at the same time, in different shards. Each has a fence between its
//! own account and its look at the other's, so at least one of them sees both empty.
//!
//! # What does a tick take off?
//!
//! In a filter that forgets, a lane that expires may stand for an item, or be the copy of one in the other
//! half of a split. So while a tick erases lanes, the items are still counted: a lane less is an item that
//! has no lane, and is taken off the shard's *excess* of the dead stamp. When nothing dead is left in
//! the whole filter, each shard *settles*: what its excess of this stamp is below zero is
//! taken off its accounts. As for every stamp the excesses of all shards together are right, so is
//! what they take off together. A single shard may have to take off more than it has; that is *owed*, and
//! collected from others when all have settled. It may also get something back.
//!
//! (As long as no shard has [excess](Accounts::may_have_excess), each has as many items as lanes. Then it can settle
//! as soon as nothing dead is left in it, and does so if somebody takes the tick
//! [ahead](crate::table::ticking::Ticking::ahead) through it: what a split makes of a shard depends on its accounts.)
//!
//! Until then, no account's being empty proves anything: settling changes `d`. So as long as a tick is not
//! settled, nothing is cleared, and a removal that finds all accounts empty first helps the tick to
//! its end. Its end checks whether the filter is empty, like a last removal.
//!
//! A refresh moves lanes to the present stamp, and leaves the excess where it is. If a lane and its copy
//! in another shard are both refreshed, each by an item that it matches, the excess of the old stamp has
//! no lane any more: when that stamp is dead, one item too many is counted, until the new stamp is dead,
//! too.
//!
//! What is owed and cannot be collected stays owed, until a clear: more was removed than had been inserted,
//! from lanes of other items, one of which has now expired.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | fence, after an account was emptied and before others are read | `SeqCst` | the same fence of another removal: one of the two sees both accounts empty. Twin `a_last_removal_does_not_see_the_other` |
//! | accounts, read without a lock | `Relaxed` | only to pass by; what depends on them is decided again under the locks. Twin `a_shard_is_cleared_without_a_look_at_its_items` |
//! | censuses; the hint and the flag below | those of every `Gauge`: `Release` to set, `Acquire` to get, `Relaxed` to take from | nothing depends on them here. Censuses are set under all locks of the shard, and put on or taken from under one; a hint that is wrong costs a search. The flag is set by a split before the lanes that it warns of are published, and the fence orders it like an account. For an entry of another filter it is set while `transfers` is held for reading, and reset while it is held for writing. Twin `nobody_knows_that_an_entry_is_in_several_shards` |
//!
//! All this costs an insert or a removal nothing but a look at the counts that it changes anyway.

use crate::layout::geometry::Bucket;
use crate::layout::stamps::Moment;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::room::growing::site::Site;
use crate::room::growing::site::census::Census;
use crate::room::growing::tables::Tables;
use crate::rule::rule;
use crate::shard::Shard;
use crate::shard::lease::Always;
use crate::sync::{Gauge, Ordering, RwLock, fence};
use crate::table::stripe::Locks;

pub struct Accounts {
    /// Held for writing while items pass from one shard's accounts to another's, and for
    /// reading while a shard is split, cleared or settled. Taken before any lock of a shard.
    pub transfers: RwLock<()>,
    /// The number of a shard that had something in its accounts a while ago.
    has_some: Gauge,
    /// Not zero if any shard may have lanes that stand for no item.
    has_excess: Gauge,
    /// What shards had to take off for a tick, and did not have. Others got so much back if it is below
    /// zero, which it never is when all have settled.
    owed: Gauge,
    /// Not zero while some shards have settled and others have not. It changes while `transfers` is held.
    is_settling: Gauge,
}

impl Accounts {
    pub fn new() -> Self {
        Accounts {
            transfers: RwLock::new(()),
            has_some: Gauge::new(),
            has_excess: Gauge::new(),
            owed: Gauge::new(),
            is_settling: Gauge::new(),
        }
    }

    /// Begins with shards that were loaded from a file. It gives an estimate of each shard's items,
    /// and where that is below zero, other shards pay.
    pub fn begin<const WIDE: bool>(&self, tables: &Tables) {
        for (_, site) in tables.sites_from(0) {
            let shard = site.shard::<WIDE>();
            let Ok(locked) = shard.lock_all();
            let items = shard.all_items();
            self.note_excess(&[site.census()]);
            if items < 0 {
                shard.share_out(&locked, 0, Bucket(0));
                site.record(&Census { received: -items, ..site.census() });
            }
        }
        let missing = tables.sites_from(0).map(|(_, site)| site.census().received);
        self.owed.set(Self::collect::<WIDE>(tables, missing.sum()).cast_unsigned());
    }

    /// Takes so many items off the accounts of whichever shards have some. Returns how many are missing.
    fn collect<const WIDE: bool>(tables: &Tables, mut missing: i64) -> i64 {
        for (_, site) in tables.sites_from(0) {
            if missing == 0 {
                break;
            }
            let shard = site.shard::<WIDE>();
            let Ok(locked) = shard.lock_all();
            let items = shard.all_items();
            let given = missing.min(items);
            if given != 0 {
                shard.share_out(&locked, items - given, Bucket(0));
                let census = site.census();
                site.record(&Census { received: census.received - given, ..census });
                missing -= given;
            }
        }
        missing
    }

    /// Takes the items that have expired off the accounts of a shard. Nothing of the kind is left in it.
    pub fn settle<const WIDE: bool>(&self, site: &Site, now: Moment) {
        let _no_transfer = self.transfers.read();
        rule!("a_settlement_goes_unnoticed", self.is_settling.set(1), ());
        let shard = site.shard::<WIDE>();
        let Ok(locked) = shard.lock_all();
        let mut census = site.census();
        let gone = -census.excess.take(shard.lanes().dead_stamps(now)).total();
        let items = shard.all_items();
        let paid = gone.min(items);
        if paid != 0 {
            shard.share_out(&locked, items - paid, Bucket(0));
        }
        census.received += gone - paid;
        site.record(&census);
        self.owed.take((paid - gone).cast_unsigned());
    }

    /// Collects what is owed, now that all shards have settled.
    pub fn close<const WIDE: bool>(&self, tables: &Tables) {
        let _alone = self.transfers.write();
        let owed = self.owed.get().cast_signed();
        if owed != 0 {
            self.owed.set(Self::collect::<WIDE>(tables, owed).cast_unsigned());
        }
        self.is_settling.set(0);
    }

    /// Records that a shard is empty. The caller holds its locks, and `transfers`.
    ///
    /// What the shard has received from others, or owes to a tick, is not owed any more: while `transfers`
    /// is held for writing, what all shards have received is what is owed.
    pub fn empty(&self, site: &Site) {
        self.owed.take(site.census().received.cast_unsigned());
        site.record(&Census::default());
    }

    /// Whether any shard may have lanes that stand for no item. Beside a split, this may come too late: then a
    /// shard settles before others do, and what all shards take off together is right all the same.
    pub fn may_have_excess(&self) -> bool {
        self.has_excess.get() != 0
    }

    /// Whether an account's being empty proves nothing yet. The caller holds `transfers` for writing.
    pub fn are_settling(&self) -> bool {
        self.is_settling.get() != 0
    }

    /// Records that a shard is about to get a lane that stands for no item. Until the result is dropped, no
    /// filter is found empty.
    pub fn expect_excess(&self) -> impl Drop + '_ {
        let no_transfer = self.transfers.read();
        rule!("nobody_knows_that_an_entry_is_in_several_shards", self.has_excess.set(1), ());
        no_transfer
    }

    /// Records that a shard has lanes that stand for no item. The caller holds its locks.
    pub fn note_excess(&self, censuses: &[Census]) {
        if censuses.iter().any(|census| census.excess.figures().iter().any(|lanes| *lanes > 0)) {
            self.has_excess.set(1);
        }
    }

    /// Fills the account of the stripe of `bucket` in the shard of this site, unless the accounts of
    /// all shards are empty. The caller holds `transfers` for writing.
    pub fn fill<const WIDE: bool>(&self, tables: &Tables, site: &Site, bucket: Bucket) -> bool {
        let received = {
            let Ok(locked) = site.shard::<WIDE>().lock_all();
            let own = site.shard::<WIDE>().all_items();
            if own > 0 {
                site.shard::<WIDE>().share_out(&locked, own, bucket);
                return true;
            }
            drop(locked);
            self.half_of_another::<WIDE>(tables)
        };
        let shard = site.shard::<WIDE>();
        let Ok(locked) = shard.lock_all();
        let census = site.census();
        site.record(&Census { received: census.received + received, ..census });
        shard.share_out(&locked, shard.all_items() + received, bucket);
        received > 0
    }

    /// Takes half of what some shard has, or zero if none has anything.
    fn half_of_another<const WIDE: bool>(&self, tables: &Tables) -> i64 {
        // Most shards without anything are passed by without a lock. Only under its locks is it
        // certain that a shard has nothing.
        for is_certain in [false, true] {
            for (number, site) in self.shards(tables) {
                let shard = site.shard::<WIDE>();
                if !is_certain && !shard.any_items() {
                    continue;
                }
                let Ok(locked) = shard.lock_all();
                let items = shard.all_items();
                if items > 0 {
                    let given = (items + 1) / 2;
                    let census = site.census();
                    site.record(&Census { received: census.received - given, ..census });
                    shard.share_out(&locked, items - given, Bucket(0));
                    self.has_some.set(number as u64);
                    return given;
                }
            }
        }
        0
    }

    /// Clears all shards if no item is left. To be called after a removal that left the accounts of
    /// its stripes empty, without locks. No tick begins after `now` is asked.
    pub fn clear_if_empty<const WIDE: bool>(&self, tables: &Tables, now: impl FnOnce() -> Moment) {
        rule!("a_last_removal_does_not_see_the_other", fence(Ordering::SeqCst), ());
        if self.has_excess.get() == 0 || self.anything::<WIDE>(tables) {
            return;
        }
        let _no_split = self.transfers.write();
        let waits = self.are_settling();
        if rule!("a_filter_is_cleared_while_its_accounts_are_being_settled", waits, false) {
            return;
        }
        let now = now();
        for (_, site) in tables.sites_from(0) {
            let Ok(_locked) = site.shard::<WIDE>().lock_all();
            if site.shard::<WIDE>().all_items() > 0 {
                return;
            }
        }
        let mut has_excess = false;
        for (_, site) in tables.sites_from(0) {
            let shard = site.shard::<WIDE>();
            let Ok(locked) = shard.lock_all();
            let census = site.census();
            let items = shard.all_items();
            let has_items = items > 0;
            if rule!("a_shard_is_cleared_without_a_look_at_its_items", has_items, false) {
                let excess = left_over(shard, &locked, items, now);
                has_excess |= excess.total() > 0;
                site.record(&Census { excess, received: 0, ..census });
                continue;
            }
            if census.lanes(0) > 0 {
                shard.clear_locked(&locked);
            }
            site.record(&Census::default());
        }
        self.has_excess.set(has_excess.into());
        // No shard has received anything any more.
        self.owed.set(0);
    }

    /// Whether any shard has something in its accounts, by the counts of a moment ago.
    fn anything<const WIDE: bool>(&self, tables: &Tables) -> bool {
        let some = self.shards(tables).find(|(_, site)| site.shard::<WIDE>().any_items());
        some.inspect(|(number, ..)| self.has_some.set(*number as u64)).is_some()
    }

    /// All shards, and first the one that had something last time.
    fn shards<'a>(&self, tables: &'a Tables) -> impl Iterator<Item = (usize, &'a Site)> {
        let start = self.has_some.get() as usize;
        let before = tables.sites_from(0).take_while(move |(number, _)| *number < start);
        tables.sites_from(start).chain(before)
    }
}

/// The lanes of a shard, less those of so many items, which are the newest.
fn left_over<const WIDE: bool>(
    shard: Shard<'_, Always<WIDE>>,
    locked: &impl Locks,
    mut items: i64,
    now: Moment,
) -> ByStamp {
    let lanes = shard.lanes();
    let mut excess = ByStamp::default();
    for bucket in shard.buckets() {
        let words = shard.read_locked(locked, bucket);
        lanes.taken(words.heads).for_each(|lane| excess.add(lanes.stamp(words, lane), 1));
    }
    for age in 0..=lanes.most_stamps() {
        let stamp = lanes.stamp_of_age(age, now);
        let newest = items.min(excess.figures()[stamp]);
        excess.add(stamp, -newest);
        items -= newest;
    }
    excess
}
