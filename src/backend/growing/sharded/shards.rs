//! The interface of a growing filter's shards to operations, batches and files.

use crate::backend::growing::directory::SeenEntry;
use crate::backend::growing::sharded::{Sharded, bytes_beside};
use crate::backend::growing::until_split::{Shared, UntilSplit, WasSplit};
use crate::backend::incoming::{IncomingShard, MergeReport};
use crate::backend::shards::{Block, Located, Shards};
use crate::error::UnionError;
use crate::error::{Full, FullKind};
use crate::layout::geometry::{Mixed, Place, SHARD_BUCKETS};
use crate::layout::roots::Parts;
use crate::layout::sizing::rate_of_a_lane;
use crate::layout::stamps::{ByStamp, STAMPS};

/// The number of shards from which the rate is estimated, if there are more: a power of two.
const SAMPLE: u64 = 128;

impl<const WIDE: bool> Sharded<WIDE> {
    /// Returns the match weight of a shard, on average over all hashes.
    pub fn match_weight_of_all(&self) -> f64 {
        let part = |seen| self.directory.share(seen) * self.site(seen).match_weight();
        self.directory.shards().map(part).sum()
    }

    /// Returns the same average over a sample: the hashes in the middle of equal parts of all hashes.
    pub fn match_weight_of_some(&self) -> f64 {
        let middle = |part| Mixed((2 * part + 1) << (u64::BITS - SAMPLE.ilog2() - 1));
        let of_part = |part| self.site(self.directory.look_up(middle(part))).match_weight();
        (0..SAMPLE).map(of_part).sum::<f64>() / SAMPLE as f64
    }

    pub fn items(&self) -> usize {
        let counted = self.shared.tables.items().max(0) as u64;
        (counted + self.shared.void.number()).try_into().unwrap_or(usize::MAX)
    }

    /// Returns the number of items that void lanes stand for.
    pub fn void_items(&self) -> u64 {
        self.shared.void.number()
    }

    pub fn clear(&self) {
        let void = &self.shared.void;
        let _no_split = void.splits.write();
        let mut next = Some(Mixed(0));
        while let Some(hash) = next {
            let seen = self.directory.look_up(hash);
            let nothing = || self.site(seen).surplus_gauge().set(0);
            // If the shard has been joined meanwhile, the whole is cleared.
            if self.shard(seen).clear(nothing).is_ok() {
                next = self.directory.end(seen);
            }
        }
        void.limit(0);
    }

    pub fn heap_bytes(&self) -> usize {
        let shards = self.directory.heap_bytes() + self.shared.tables.heap_bytes();
        bytes_beside(&self.plan) + shards
    }

    /// Returns the number of lanes with each stamp.
    pub fn items_by_stamp(&self) -> ByStamp {
        let Shared { tables, shrinking, .. } = &self.shared;
        let (mut items, lanes) = ([0; STAMPS], shrinking.lanes());
        let shards = tables.sites_from(0).map(|(_, site)| site.shard::<WIDE>());
        for words in shards.flat_map(|shard| shard.all_words()) {
            lanes.taken(words.heads).for_each(|lane| items[lanes.stamp(words, lane)] += 1);
        }
        items
    }

    /// Returns the depth of the deepest shard.
    pub fn level(&self) -> u32 {
        self.directory.level()
    }

    /// Returns the false-positive rate: the expected number of lanes in the two buckets of an absent item
    /// that match it.
    pub fn rate(&self) -> f64 {
        let match_weight = match self.shared.tables.shards() as u64 <= SAMPLE {
            true => self.match_weight_of_all(),
            false => self.match_weight_of_some(),
        };
        match_weight * rate_of_a_lane(self.plan.geometry.lanes())
            / f64::from(self.plan.geometry.buckets())
    }
}

impl<const WIDE: bool> Shards for Sharded<WIDE> {
    type Lease<'a> = UntilSplit<'a, WIDE>;

    type Spot<'a> = Self::Ahead<'a>;

    #[inline(always)]
    fn spot(&self, hash: Mixed) -> Self::Spot<'_> {
        let (shard, place) = self.locate(hash);
        (shard.lease().seen, place)
    }

    #[inline(always)]
    fn request<'a>(&'a self, spot: Self::Spot<'a>) {
        let (shard, place) = self.fetched(spot);
        shard.prefetch(place);
    }

    #[inline(always)]
    fn look_at<'a>(&'a self, spot: Self::Spot<'a>) -> Option<bool> {
        let (shard, place) = self.fetched(spot);
        shard.look(place)
    }

    #[inline(always)]
    fn look(&self, hash: Mixed) -> Option<bool> {
        let position = self.position(hash);
        let seen = self.directory.look_up_once(hash, position)?;
        let (shard, place) = self.located(seen, position);
        shard.look(place)
    }

    /// Finding the table again is cheaper than keeping its address.
    type Ahead<'a> = (SeenEntry<'a>, Place);

    #[inline]
    fn is_ticking(&self) -> bool {
        self.ticking().is_some_and(|ticking| ticking.clock().is_passing())
    }

    #[cold]
    fn sweep_for(&self, hash: Mixed) {
        let swept = || {
            let (shard, place) = self.locate(hash);
            shard.sweep_both(place)
        };
        // If the shard has been split meanwhile, its halves are swept.
        while swept().is_err() {}
    }

    #[inline(always)]
    fn locate(&self, hash: Mixed) -> Located<'_, Self> {
        let position = self.position(hash);
        self.located(self.directory.look_up_at(hash, position), position)
    }

    fn relocate<'a>(&'a self, lease: UntilSplit<'a, WIDE>, _: WasSplit) -> Located<'a, Self> {
        self.locate(lease.seen.hash())
    }

    #[inline(always)]
    fn again<'a, A>(
        &'a self,
        (shard, _): Located<'a, Self>,
        act: impl FnOnce(&'a Self, Located<'a, Self>) -> A,
    ) -> A {
        self.act_again(shard.lease().seen.hash(), act)
    }

    fn admit<'a>(
        &'a self,
        (mut shard, mut place): Located<'a, Self>,
    ) -> Result<Located<'a, Self>, Full> {
        let shrinking = &self.shared.shrinking;
        // By recent words. Of threads that race, each may add one copy too many.
        while !shrinking.takes_another(shard.matches_of(place)) {
            // Words that a split is changing may be compared with one bit too few, so a refusal is decided
            // under the locks.
            let is_refused = shard
                .lock(place)
                .is_ok_and(|_own| !shrinking.takes_another(shard.matches_of(place)));
            if is_refused {
                return Err(Full::new(FullKind::TooManyCopies));
            }
            (shard, place) = self.locate(shard.lease().seen.hash());
        }
        Ok((shard, place))
    }

    fn make_room<'a>(
        &'a self,
        lease: UntilSplit<'a, WIDE>,
        _: FullKind,
    ) -> Result<Located<'a, Self>, Full> {
        let position = self.position(lease.seen.hash());
        let (shard, place) = self.located(lease.seen, position);
        self.split(shard, place)?;
        Ok(self.locate(lease.seen.hash()))
    }

    #[inline(always)]
    fn fetch(&self, hash: Mixed) -> (SeenEntry<'_>, Place) {
        let (shard, place) = self.locate(hash);
        shard.prefetch(place);
        (shard.lease().seen, place)
    }

    #[inline(always)]
    fn fetched<'a>(&'a self, (seen, place): (SeenEntry<'a>, Place)) -> Located<'a, Self> {
        (self.shard(seen), place)
    }

    fn parts(&self) -> Parts {
        // The parts are ranges of the least depth, so no deeper shard is in two parts. Parts as large as the
        // largest shard are small enough.
        let most = self.bucket_count() / SHARD_BUCKETS as usize;
        Parts::at_most(most, self.directory.roots(), self.directory.shallowest())
    }

    #[inline]
    fn bucket_count(&self) -> usize {
        self.shared.tables.shards() * self.plan.geometry.buckets() as usize
    }

    fn copy_shard(&self, next: &mut Option<u64>, buckets: &mut [u64]) -> Option<Block> {
        loop {
            let seen = self.directory.look_up(Mixed((*next)?));
            // If the shard has been split meanwhile, its halves are copied one after the other.
            let copied = self.shard(seen).copy(self.ticking(), buckets);
            if let Ok((items, time)) = copied {
                *next = self.directory.end(seen).map(|hash| hash.0);
                return Some(Block { depth: seen.depth(), items, time, ..Block::EMPTY });
            }
        }
    }

    fn after(&self, next: u64) -> Option<u64> {
        self.directory.end(self.directory.look_up(Mixed(next))).map(|hash| hash.0)
    }

    #[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
    fn insert_exhaustively(&self, hash: Mixed) -> bool {
        // Any number of copies: it had them. It may have had them only since its shard was split for another reason.
        (0..4).any(|splits| {
            if splits > 0 && self.split_for_all(self.locate(hash).0).is_err() {
                return false;
            }
            let (shard, place) = self.locate(hash);
            shard.insert_exhaustively(place).is_ok_and(|inserted| inserted)
                || self.insert_any(self.locate(hash)).is_ok()
        })
    }

    fn item_in(&self, next: u64) -> Mixed {
        Mixed(next)
    }

    fn merge_shard(
        &self,
        incoming: &IncomingShard<'_>,
        report: &mut MergeReport,
    ) -> Result<(), UnionError> {
        self.merge_copy(incoming, report)
    }
}
