//! Joins: the two halves of a shard become one again. [Why lookups stay right](mod@crate::guide::join) meanwhile.

use crate::backend::growing::Growing;
use crate::backend::growing::directory::SeenEntry;
use crate::backend::growing::site::Entry;
use crate::layout::bucket::{Fingerprint, Words};
use crate::layout::geometry::{Bucket, Mixed, SHARD_STRIPES};
use crate::layout::shrinking::Shrinking;
use crate::layout::sizing::{rate_of_a_lane, unsplit_load};
use crate::shard::raw::{AllLocks, RawShard};
use crate::table::stripe::StripeSet;

/// The number of items that may be moved to find a place for one.
const MOST_MOVES: usize = 500;

/// The words of a shard while the items of both halves find their places.
#[doc(hidden)]
pub(crate) struct Whole {
    words: Vec<Words>,
}

impl Whole {
    /// Returns `None` if there is no memory.
    pub(crate) fn new(buckets: usize) -> Option<Self> {
        let mut words = Vec::new();
        words.try_reserve_exact(buckets).ok()?;
        words.resize(buckets, Words::default());
        Some(Whole { words })
    }

    /// Finds places for the items of both shards. Returns `false` if some item has none, or if a lane is void.
    pub(crate) fn find_places(
        &mut self,
        (lower, lower_locked): (RawShard<'_>, &AllLocks<'_>),
        (upper, upper_locked): (RawShard<'_>, &AllLocks<'_>),
        shrinking: &Shrinking,
    ) -> bool {
        let joined = |words, is_upper| {
            let has_void = !shrinking.void_lanes(words).is_empty();
            (!has_void).then(|| shrinking.joined(words, is_upper))
        };
        for (whole, bucket) in self.words.iter_mut().zip(lower.buckets()) {
            let words = joined(lower.read_locked(lower_locked, bucket), false);
            let Some(words) = words else { return false };
            *whole = words;
        }
        upper.buckets().all(|bucket| {
            let words = joined(upper.read_locked(upper_locked, bucket), true);
            let Some(words) = words else { return false };
            let lanes = shrinking.lanes();
            let mut taken =
                lanes.taken(words.heads).filter_map(|lane| lanes.get_whole(words, lane));
            taken.all(|fp| self.place(shrinking, bucket, fp))
        })
    }

    /// Places a fingerprint in this bucket or in its other one, and moves others out of the way.
    fn place(&mut self, shrinking: &Shrinking, bucket: Bucket, fp: Fingerprint) -> bool {
        let (lanes, mut bucket, mut fp) = (shrinking.lanes(), bucket, fp);
        for moves in 0..MOST_MOVES {
            let other = shrinking.alternate(bucket, fp);
            for bucket in [bucket, other] {
                let words = &mut self.words[bucket.0 as usize];
                if let Some(lane) = lanes.empty(words.heads).first() {
                    *words = lanes.with_whole(*words, lane, fp);
                    return true;
                }
            }
            let words = &mut self.words[other.0 as usize];
            // Lanes take turns, so that no two fingerprints push each other out again and again.
            let lane = lanes.taken(words.heads).nth(moves % lanes.slots());
            let Some((lane, out)) =
                lane.and_then(|lane| Some((lane, lanes.get_whole(*words, lane)?)))
            else {
                return false;
            };
            *words = lanes.with_whole(*words, lane, fp);
            (bucket, fp) = (other, out);
        }
        false
    }

    /// Returns how many absent items the lanes match, in units of a new lane.
    fn match_weight(&self, shrinking: &Shrinking) -> f64 {
        self.words.iter().map(|words| shrinking.match_weight(*words)).sum::<u64>() as f64
    }

    /// Stores the whole, which has `items` items, in the lower shard. `publish` stores the entry. After that, the upper
    /// shard is out of use, though its words are still there.
    pub(crate) fn store(
        &self,
        (lower, lower_locked): (RawShard<'_>, &AllLocks<'_>),
        (upper, upper_locked): (RawShard<'_>, &AllLocks<'_>),
        items: i64,
        publish: impl FnOnce(),
    ) {
        let all: StripeSet<SHARD_STRIPES> = lower.own_stripes().collect();
        let _moving = lower.write_section(lower_locked, &all);
        for (words, bucket) in self.words.iter().zip(lower.buckets()) {
            if lower.read_locked(lower_locked, bucket) != *words {
                lower.write(lower_locked, bucket, *words);
            }
        }
        lower.share_out(lower_locked, items, Bucket(0));
        upper.share_out(upper_locked, 0, Bucket(0));
        publish();
    }
}

/// The part of the load up to which shards are not split that a joined shard may have: one that the filter began with,
/// or any other.
const ROOMY: [f64; 2] = [0.98, 0.85];

impl Growing {
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

    /// Joins two halves. Returns `None`, and changes nothing, if they do not leave enough room, or if a half is split
    /// or the filter is copied meanwhile.
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
        let items = || shards.iter().map(|shard| shard.all_items()).sum::<i64>();
        // The decision must not depend on the progress of a tick.
        shards.iter().try_for_each(|shard| shard.sweep_all()).ok()?;
        if items() > most {
            return None;
        }
        // Most filters have nothing to join.
        if whole.is_none() {
            *whole = Whole::new(self.layout.geometry.buckets() as usize);
        }
        let whole = whole.as_mut()?;
        // No clear and no tick begins between the locks of the halves, which would have passed only one of them.
        let _resharding = self.resharding.read();
        // Second, so that no copy waits while this waits for the end of a clear.
        let _no_copy = self.copying.try_write()?;
        let lower_locked = in_lower.lock_all().ok()?;
        let upper_locked = in_upper.lock_all().ok()?;
        let lower_half = (in_lower.raw, &lower_locked);
        let upper_half = (in_upper.raw, &upper_locked);
        let fit = items() <= most
            && self.directory.allows_join()
            && whole.find_places(lower_half, upper_half, shrinking);
        let before = || sites.map(|site| self.match_weight(site)).iter().sum::<f64>() / 2.0;
        let rarely_errs = |weight| weight <= self.most_weight() || weight <= before();
        if !fit || !rarely_errs(whole.match_weight(shrinking)) {
            return None;
        }
        whole.store(lower_half, upper_half, items(), || {
            self.directory.unite(lower, Entry::new(sites[0], depth));
        });
        drop(lower_locked);
        let _alone = self.growth.lock();
        self.shared.tables.take_out_of_use(sites[1]);
        Some(())
    }
}
