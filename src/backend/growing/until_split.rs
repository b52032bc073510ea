//! The lease of a growing filter's shard, which ends when the shard is split, or joined with its other half.

use crate::backend::growing::directory::SeenEntry;
use crate::backend::growing::ledger::Ledger;
use crate::backend::growing::site::Site;
use crate::backend::growing::tables::Tables;
use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes, Words};
use crate::layout::geometry::{Bucket, Geometry};
use crate::layout::shrinking::Shrinking;
use crate::layout::shrinking::merge::MergeMatches;
use crate::layout::stamps::Moment;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::rule::rule;
use crate::shard::lease::Lease;
use crate::shard::lease::accounts::Accounts;
use crate::shard::lease::encoding::Encoding;
use crate::table::Table;
use crate::table::clock::Clock;
use crate::table::lookup_view::LookupView;
use crate::table::ticking::Ticking;
use std::sync::Arc;

/// The lease of a shard that may be split. It is valid for as long as the directory's entry of the shard is
/// unchanged.
#[derive(Clone, Copy)]
pub struct UntilSplit<'a, const WIDE: bool = false> {
    pub(super) seen: SeenEntry<'a>,
    pub(super) shared: &'a Shared<WIDE>,
    pub(super) view: LookupView<'a>,
}

/// The state that the leases of all shards share.
pub struct Shared<const WIDE: bool> {
    pub shrinking: Shrinking<WIDE>,
    pub tables: Tables,
    pub ledger: Ledger,
    /// `Some` if the filter forgets.
    pub ticking: Option<Arc<Ticking>>,
}

impl<const WIDE: bool> Shared<WIDE> {
    /// Returns the time. Only a caller that holds a lock of a shard may depend on it.
    #[inline]
    pub fn now(&self) -> Moment {
        self.ticking.as_deref().map_or(Moment::FIRST, |ticking| ticking.clock().now())
    }

    /// Returns the balance of a shard in the ledger, without the expired items that stay there until the tick
    /// ends. The caller holds a lock of the shard.
    pub fn balance(&self, site: &Site) -> ByStamp {
        let mut balance = site.balance();
        for stamp in self.shrinking.lanes().dead_stamps(self.now()) {
            balance.add(stamp, -balance.figures()[stamp]);
        }
        balance
    }
}

#[cfg(loom)]
impl<const WIDE: bool> UntilSplit<'_, WIDE> {
    pub fn depth(self) -> u32 {
        self.seen.depth()
    }
}

/// The error that the shard has been split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WasSplit;

impl<const WIDE: bool> Lease for UntilSplit<'_, WIDE> {
    type Lapsed = WasSplit;

    const IS_PERMANENT: bool = false;

    /// Searches with this limit begin to fail at about 94 % load (16-bit fingerprints). Filling the last few
    /// percent at each doubling would cost more than it is worth.
    const MAX_NODES: usize = 32;

    #[inline]
    fn view(&self) -> Option<LookupView<'_>> {
        Some(self.view)
    }

    #[inline]
    fn check(self) -> Result<(), WasSplit> {
        if self.seen.holds() { Ok(()) } else { Err(WasSplit) }
    }

    #[inline]
    fn check_alone(self) -> Result<(), WasSplit> {
        if self.seen.holds_alone() { Ok(()) } else { Err(WasSplit) }
    }

    #[inline]
    fn clock<'t>(&'t self, _: &'t Table) -> Option<&'t Clock> {
        self.shared.ticking.as_deref().map(Ticking::clock)
    }
}

/// The ledger counts the items that stripes do not count.
impl<const WIDE: bool> Accounts for UntilSplit<'_, WIDE> {
    #[inline]
    fn removing(self, words: Words, lane: Lane, lost: u32, now: Moment) -> Option<i32> {
        if lost == 0 {
            return Some(1);
        }
        let Shared { shrinking, ledger, .. } = self.shared;
        let (site, lanes) = (self.site(), shrinking.lanes());
        let is_exhausted = shrinking.is_exhausted(lost);
        if is_exhausted && !ledger.withdraw(site, lanes, lanes.stamp(words, lane), now) {
            return None;
        }
        let counted = i32::from(!is_exhausted);
        site.surplus_gauge().take((1 << lost) - counted as u64);
        Some(counted)
    }

    fn expiring(self, words: &[u64], now: Moment) -> i32 {
        self.site().expiring(&self.shared.shrinking, words, now)
    }

    #[inline]
    fn restamping(self, words: Words, lane: Lane, to: usize) {
        let Shared { shrinking, ledger, .. } = self.shared;
        let from = shrinking.lanes().stamp(words, lane);
        if from != to && !shrinking.exhausted(words).only(lane).is_empty() {
            rule!(
                "a_refresh_leaves_an_item_to_its_old_stamp",
                ledger.restamp(self.site(), shrinking.lanes(), [from, to], self.shared.now()),
                ()
            );
        }
    }

    #[inline]
    fn may_be_last(self) -> bool {
        self.shared.ledger.may_be_empty()
    }
}

/// Fingerprints lose a bit in each split.
impl<const WIDE: bool> Encoding for UntilSplit<'_, WIDE> {
    const WIDE: bool = WIDE;

    #[inline]
    fn matching(self, _: Lanes, word: u64, fp: Fingerprint) -> LaneSet {
        self.shared.shrinking.matching(word, fp)
    }

    #[inline]
    fn matching_tail(self, _: Lanes, word: u64, fp: Fingerprint) -> LaneSet {
        self.shared.shrinking.matching_tail(word, fp)
    }

    #[inline]
    fn merge_matches(self, _: Lanes, words: Words, fp: Fingerprint) -> MergeMatches {
        self.shared.shrinking.merge_matches(words, fp)
    }

    #[inline]
    fn alternate(self, _: &Geometry, bucket: Bucket, fp: Fingerprint) -> Bucket {
        self.shared.shrinking.alternate(bucket, fp)
    }

    #[inline]
    fn most_precise(self, words: Words, among: LaneSet) -> Option<(u32, Lane)> {
        self.shared.shrinking.most_precise(words, among)
    }
}

impl<'a, const WIDE: bool> UntilSplit<'a, WIDE> {
    fn site(self) -> &'a Site {
        self.shared.tables.at(self.seen.entry())
    }
}
