//! Ticks in the shards of a growing filter that forgets.
//!
//! The pass goes through all shards, including those that are made meanwhile. A lane that moves from a shard to a new
//! one is met in one of the two. Either the pass went through the shard, under its locks, before the split; or it
//! reaches the shard later, so it has not ended before the split, and reaches the new shard too. There it waits for the
//! split to end, however early it arrives: a new shard is fully locked before it is counted, and until its items, its
//! figures and the directory's entries are stored. Then it finds the new shard marked: what it has was swept before the
//! split, and what came since may be older than a tick that expired everything.
//!
//! A shard may also move to a place where the pass has been: a split takes the place of a shard that has been joined
//! to another, and a join moves what the upper half has. So the pass also marks the stripes of unused shards, a thread
//! that locks all stripes of a shard sweeps those that the pass has not reached, and no tick begins during a split.

use crate::backend::growing::sharded::Sharded;
use crate::backend::growing::site::Site;
use crate::backend::growing::until_split::Shared;
use crate::layout::stamps::Moment;
use std::ops::Range;

impl Sharded {
    /// Calls `act` for each of these segments, with the site of its shard and the index of its stripe.
    fn in_each(&self, segments: Range<usize>, mut act: impl FnMut(&Site, usize)) {
        let in_a_shard = self.layout.geometry.stripes() as usize;
        let sites = self.shared.tables.all_from(segments.start / in_a_shard);
        for (number, site) in sites.take_while(|(number, _)| number * in_a_shard < segments.end) {
            let first = number * in_a_shard;
            let here = segments.start.max(first)..segments.end.min(first + in_a_shard);
            here.for_each(|segment| act(site, site.first_stripe() + segment - first));
        }
    }

    /// Counts the void lanes that stay when a tick begins, so that the number of their items does not depend on the
    /// progress of the tick. No shard is split meanwhile.
    pub(super) fn count_void(&self, now: Moment) {
        let Shared { void, tables, shrinking, .. } = &self.shared;
        let mut stay = 0;
        for (_, site) in tables.sites_from(0).filter(|(_, site)| site.may_have_void(shrinking)) {
            // A writer that holds a lock may refresh a lane by the time before.
            let _locked = site.shard().lock_all();
            stay += site.void_lanes(shrinking, Some(now)) as u64;
        }
        void.limit(stay);
    }

    pub(super) fn sweep_each(&self, segments: Range<usize>, now: Moment) {
        let shrinking = &self.shared.shrinking;
        self.in_each(segments, |site, stripe| {
            let expiring = |words: &[u64]| site.expiring(shrinking, words, now);
            // A shard that is out of use may have no memory either. A split that reuses it must observe the time.
            site.shard().sweep_if(stripe, now, || site.is_in_use(), expiring);
        });
    }
}
