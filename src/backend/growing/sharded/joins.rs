//! When shards are joined: which halves leave enough room, and how a filter gets smaller part by part.
//!
//! Shards are [joined](mod@crate::backend::growing::join) in the order of their hashes, bottom up: a shard that is an
//! upper half is joined with the lower half before it, which has been joined as far as possible by then; and so is what
//! becomes of both.
//!
//! # How full may the whole be?
//!
//! A shard of random items is not split below a certain load, the `unsplit` of [`sizing`](crate::layout::sizing). The
//! whole may have 85 % of that: 15 % of the items of a full shard have to come before it may be split again, and as
//! many have to go before the halves of a split shard may be joined. (A shard that is split because it met a
//! [crowd](super::split_policy) may be joined again; but only when somebody asks for that, or once in a tick.) Then a
//! filter that was larger takes a quarter more memory than one that never was, on average.
//!
//! The shards that a filter began with are all alike: they have about as many items when its capacity is reached, which
//! is a little less than what lets them split. So that a filter returns to them, they may have 98 %.
//!
//! # When?
//!
//! When somebody asks, and as a whole tick begins, by what the shards have then: what has expired after the tick will
//! have given way to about as many others by the next one.
//!
//! # How often may it err?
//!
//! No more often than the filter was built for after its expected growth, or than its halves did. A lane that gets a
//! bit back matches as many of all items as before. One that has lost none matches twice as many, as any new lane does
//! in half of the memory. Shards with [void](crate::backend::growing::void) lanes are not joined.
//!
//! # What stays?
//!
//! The directory keeps its size, some 0.05 % of the largest that the filter had. No join leaves so few shards that a
//! directory of this depth would be refused in a file.

use crate::backend::growing::directory::SeenEntry;
use crate::backend::growing::join::{Joined, Whole};
use crate::backend::growing::sharded::Sharded;
use crate::backend::growing::tables::Entry;
use crate::layout::geometry::Mixed;
use crate::layout::sizing::{rate_of_a_lane, unsplit_load};

/// The part of the load up to which shards are not split that a joined shard may have: one that the filter began with,
/// or any other.
const ROOMY: [f64; 2] = [0.98, 0.85];

impl Sharded {
    /// Visits up to `most` shards from this cursor on, and joins those that leave enough room. Returns the cursor of
    /// the next part, if there is one. If the filter is being copied, no shard is joined. The caller holds `joins`.
    pub(super) fn join_alone(&self, cursor: u64, most: usize) -> Option<u64> {
        let mut whole = None;
        let mut next = Some(Mixed(cursor));
        for _ in 0..most.max(1) {
            let Some(hash) = next else { break };
            let mut seen = self.directory.look_up(hash);
            while self.directory.is_upper(seen)
                && let Some(lower) = self.directory.sibling(seen)
                && self.join(lower, seen, &mut whole).is_some()
            {
                seen = self.directory.look_up(hash);
            }
            next = self.directory.end(seen);
        }
        if next.is_none() {
            let _alone = self.growth.lock();
            self.shared.tables.give_back_unused();
        }
        next.map(|hash| hash.0)
    }

    /// The number of lanes that a joined shard of this depth may have.
    fn most_lanes(&self, depth: u32) -> i64 {
        let lanes = self.layout.geometry.lanes();
        let slots = f64::from(self.layout.geometry.buckets()) * lanes.slots() as f64;
        (slots * unsplit_load(lanes) * ROOMY[usize::from(depth > 0)]) as i64
    }

    /// The match weight that a joined shard may have, if both halves did not have more: that of the rate which the
    /// filter was built for.
    fn most_weight(&self) -> f64 {
        let rate_of_one = rate_of_a_lane(self.layout.geometry.lanes())
            / f64::from(self.layout.geometry.buckets());
        self.layout.rate / rate_of_one
    }

    /// Joins two halves. Returns `None`, and changes nothing, if they do not leave enough room, or if a half is split or
    /// the filter is copied meanwhile.
    pub(super) fn join(
        &self,
        lower: SeenEntry<'_>,
        upper: SeenEntry<'_>,
        whole: &mut Option<Whole>,
    ) -> Option<()> {
        let shrinking = &self.shared.shrinking;
        let shards = [lower, upper].map(|seen| self.shard(seen));
        let sites = [lower, upper].map(|seen| self.site(seen));
        let [in_lower, in_upper] = shards;
        let depth = lower.depth() - 1;
        let most = self.most_lanes(depth);
        let are_few = || shards.iter().map(|shard| shard.all_items()).sum::<i64>() <= most;
        // The decision must not depend on the progress of a tick.
        shards.iter().try_for_each(|shard| shard.sweep_all()).ok()?;
        if !are_few() {
            return None;
        }
        // Most filters have nothing to join.
        if whole.is_none() {
            *whole = Whole::new(self.layout.geometry.buckets() as usize);
        }
        let whole = whole.as_mut()?;
        // No clear and no tick begins between the locks of the halves, which would have passed only one of them.
        let _like_a_split = self.shared.void.splits.read();
        // Second, so that no copy waits while this waits for the end of a clear.
        let _no_copy = self.copying.try_write()?;
        let lower_locked = in_lower.lock_all().ok()?;
        let upper_locked = in_upper.lock_all().ok()?;
        let (lower_half, upper_half) = ((in_lower, &lower_locked), (in_upper, &upper_locked));
        let fit = are_few()
            && sites.iter().all(|site| site.void_lanes(shrinking, None) == 0)
            && self.directory.allows_join()
            && whole.find_places(lower_half, upper_half, shrinking);
        let before = sites.iter().map(|site| site.match_weight()).sum::<f64>() / 2.0;
        let rarely_errs = |joined: &Joined| joined.match_weight() <= self.most_weight().max(before);
        let figures = fit.then(|| whole.figures(shrinking)).filter(rarely_errs)?;
        whole.store(lower_half, upper_half, figures.counted, || {
            sites[0].surplus_gauge().set(figures.surplus);
            sites[1].surplus_gauge().set(0);
            self.directory.unite(lower, Entry::new(sites[0], depth));
        });
        drop(lower_locked);
        let _alone = self.growth.lock();
        self.shared.tables.take_out_of_use(sites[1]);
        Some(())
    }
}
