//! Ticks in the shards of a growing filter that forgets.
//!
//! Each pass goes through all shards, and through those that are made meanwhile. What moves from a shard to
//! a new one while the pass is there is met in the one or in the other. Either the pass has been through
//! the shard that is split, under its locks, before the split; or it comes to it later, and then it has not
//! ended before, and comes to the new shard too. There it waits for the split to end, however early it
//! comes: a new shard is locked as a whole before it is counted, until its items, its figures and the
//! directory's entries are there.
//!
//! A new shard may miss the first pass. That does no harm: a tick begins while no shard is being split, so
//! whoever makes a shard later knows the time, and tells it to those who lock one of its stripes after that;
//! and a lookup that finds the shard has begun after the tick, or begins again.

use crate::layout::aging::Lost;
use crate::layout::bucket::Lanes;
use crate::layout::either;
use crate::layout::geometry::Mixed;
use crate::layout::stamps::Moment;
use crate::room::growing::grown::Grown;
use crate::room::growing::site::Site;
use crate::room::growing::until_split::Shared;
use crate::room::shards::Shards;
use crate::rule::rule;
use crate::table::ticking::{Passage, Ticking};
use std::ops::Range;
use std::sync::Arc;

impl Grown {
    /// From now on, the time is what this says.
    pub fn keep_time(&mut self, ticking: Option<Arc<Ticking>>) {
        self.shared.ticking = ticking;
    }

    /// Does this to each of these segments, with the site of its shard and the index of its stripe.
    fn in_each(&self, segments: Range<usize>, mut act: impl FnMut(&Site, usize)) {
        let in_a_shard = self.geometry.stripes() as usize;
        let sites = self.shared.tables.sites_from(segments.start / in_a_shard);
        for (number, site) in sites.take_while(|(number, _)| number * in_a_shard < segments.end) {
            let first = number * in_a_shard;
            let here = segments.start.max(first)..segments.end.min(first + in_a_shard);
            here.for_each(|segment| act(site, site.first_stripe() + segment - first));
        }
    }

    /// Erases what has expired in a stripe of this shard. The items of used-up lanes stay on the ledger until the tick
    /// ends.
    fn expire_in<const WIDE: bool>(&self, site: &Site, stripe: usize, now: Moment) {
        let aging = &self.shared.aging;
        let lanes = aging.lanes();
        site.shard::<WIDE>().expire(stripe, now, |words| {
            let mut lost = Lost::default();
            // Mostly all lanes are as they were inserted, and there is nothing more to find out.
            if site.aged() > 0 {
                lanes.for_each(words, |bucket| {
                    let dead = lanes.only(bucket, lanes.expired(bucket, now));
                    lost = lost + aging.lost::<WIDE>(dead);
                });
                site.aged_gauge().take(lost.aged);
            }
            lost.used_up as i32
        });
    }

    /// If a tick is passing, erases what has expired in this shard before the tick gets there. Returns
    /// whether there was anything.
    pub fn sweep<const WIDE: bool>(&self, site: &Site) -> bool {
        if self.shared.ticking.is_none() {
            return false;
        }
        // No tick begins while this is held: what has expired now is not what comes next.
        let _no_tick = self.shared.ledger.splits.read();
        let (shard, now) = (site.shard::<WIDE>(), self.shared.now());
        let is_due = shard.has_any_expired(now);
        if is_due {
            shard.own_stripes().for_each(|stripe| {
                rule!("a_sweep_sends_no_lookup_away", shard.announce(stripe), ());
            });
            shard.own_stripes().for_each(|stripe| self.expire_in::<WIDE>(site, stripe, now));
        }
        is_due
    }
}

impl Passage for Grown {
    fn lanes(&self) -> Lanes {
        self.geometry.lanes()
    }

    /// While no shard is being split.
    fn begin(&self, set: impl FnOnce() -> Option<Moment>) {
        let _no_split = self.shared.ledger.splits.write();
        rule!("a_tick_begins_while_a_shard_is_swept", (), drop(_no_split));
        set();
    }

    /// Those of all shards that are in use.
    fn segments(&self) -> usize {
        rule!("a_tick_passes_by_what_is_split_off", (), {
            return self.geometry.stripes() as usize;
        });
        self.shared.tables.segments()
    }

    fn announce(&self, segments: Range<usize>) {
        rule!("items_go_off_the_ledger_before_their_lanes", (), self.close(self.shared.now()));
        either!(self.is_wide(), WIDE => {
            self.in_each(segments, |site, stripe| site.shard::<WIDE>().announce(stripe));
        });
    }

    fn expire(&self, segments: Range<usize>, now: Moment) {
        either!(self.is_wide(), WIDE => {
            self.in_each(segments, |site, stripe| self.expire_in::<WIDE>(site, stripe, now));
        });
    }

    fn close(&self, now: Moment) {
        let Shared { ledger, tables, .. } = &self.shared;
        ledger.close(tables, self.geometry.lanes(), now);
        self.perhaps_empty();
    }

    /// The address of its site.
    fn shard_of(&self, hash: Mixed) -> usize {
        std::ptr::from_ref(self.site(self.directory.look_up(hash))).addr()
    }

    fn advance(&self, hash: Mixed, _: Moment) -> usize {
        let site = self.site(self.directory.look_up(hash));
        either!(self.is_wide(), WIDE => self.sweep::<WIDE>(site));
        std::ptr::from_ref(site).addr()
    }
}
