//! The lease of a growing filter's shard: it ends when the shard is split.

use crate::layout::aging::Aging;
use crate::layout::aging::meeting::Alike;
use crate::layout::bucket::{Fingerprint, Lane, LaneSet, Lanes, Words};
use crate::layout::geometry::{Bucket, Geometry};
use crate::layout::stamps::Moment;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::room::growing::directory::SeenEntry;
use crate::room::growing::ledger::Ledger;
use crate::room::growing::site::Site;
use crate::room::growing::tables::Tables;
use crate::rule::rule;
use crate::shard::lease::Lease;
use crate::table::Table;
use crate::table::clock::Clock;
use crate::table::span::Span;
use crate::table::ticking::Ticking;
use std::sync::Arc;

/// The lease of a shard that may be split. It holds for as long as the directory's entry that led
/// to the shard is unchanged.
#[derive(Clone, Copy)]
pub struct UntilSplit<'a, const WIDE: bool = false> {
    pub(super) seen: SeenEntry<'a>,
    pub(super) shared: &'a Shared,
    pub(super) span: Span<'a>,
}

/// What the leases of all shards share.
pub struct Shared {
    pub aging: Aging,
    pub tables: Tables,
    pub ledger: Ledger,
    /// If the filter forgets.
    pub ticking: Option<Arc<Ticking>>,
}

impl Shared {
    /// What time it is. Only a caller that holds a lock of a shard may depend on it.
    #[inline]
    pub fn now(&self) -> Moment {
        self.ticking.as_deref().map_or(Moment::FIRST, |ticking| ticking.clock().now())
    }

    /// The balance of a shard in the ledger, without the items that have expired and stay there until the tick ends.
    /// The caller holds a lock of the shard.
    pub fn balance(&self, site: &Site) -> ByStamp {
        let mut balance = site.balance();
        for stamp in self.aging.lanes().dead_stamps(self.now()) {
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

/// The shard has been split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split;

impl<const WIDE: bool> Lease for UntilSplit<'_, WIDE> {
    type Lapsed = Split;

    const WIDE: bool = WIDE;

    const LASTING: bool = false;

    /// Such a search ends empty at about 94 % load (16-bit fingerprints). Filling the last percents
    /// costs more than they are worth if it is paid for at each doubling.
    const MOST_NODES: usize = 32;

    #[inline]
    fn span(&self) -> Option<Span<'_>> {
        Some(self.span)
    }

    #[inline]
    fn check(self) -> Result<(), Split> {
        if self.seen.holds() { Ok(()) } else { Err(Split) }
    }

    #[inline]
    fn check_alone(self) -> Result<(), Split> {
        if self.seen.holds_alone() { Ok(()) } else { Err(Split) }
    }

    #[inline]
    fn holding(self, _: Lanes, word: u64, fp: Fingerprint) -> LaneSet {
        self.shared.aging.holding::<WIDE>(word, fp)
    }

    #[inline]
    fn holding_tail(self, _: Lanes, word: u64, fp: Fingerprint) -> LaneSet {
        self.shared.aging.holding_tail(word, fp)
    }

    #[inline]
    fn alike(self, _: Lanes, words: Words, fp: Fingerprint) -> Alike {
        self.shared.aging.alike::<WIDE>(words, fp)
    }

    #[inline]
    fn alternate(self, _: &Geometry, bucket: Bucket, fp: Fingerprint) -> Bucket {
        self.shared.aging.alternate(bucket, fp)
    }

    #[inline]
    fn closest(self, words: Words, among: LaneSet) -> Option<(u32, Lane)> {
        self.shared.aging.closest::<WIDE>(words, among)
    }

    #[inline]
    fn clock<'t>(&'t self, _: &'t Table) -> Option<&'t Clock> {
        self.shared.ticking.as_deref().map(Ticking::clock)
    }

    #[inline]
    fn removing(self, words: Words, lane: Lane, lost: u32, now: Moment) -> Option<i32> {
        if lost == 0 {
            return Some(1);
        }
        let Shared { aging, ledger, .. } = self.shared;
        let (site, lanes) = (self.site(), aging.lanes());
        let is_used_up = aging.is_used_up(lost);
        if is_used_up && !ledger.take(site, lanes, lanes.stamp(words, lane), now) {
            return None;
        }
        let counted = i32::from(!is_used_up);
        site.aged_gauge().take((1 << lost) - counted as u64);
        Some(counted)
    }

    fn expiring(self, words: &[u64], now: Moment) -> i32 {
        self.site().expiring::<WIDE>(&self.shared.aging, words, now)
    }

    #[inline]
    fn restamping(self, words: Words, lane: Lane, to: usize) {
        let Shared { aging, ledger, .. } = self.shared;
        let from = aging.lanes().stamp(words, lane);
        if from != to && !aging.used_up::<WIDE>(words).only(lane).is_empty() {
            rule!(
                "a_refresh_leaves_an_item_to_its_old_stamp",
                ledger.restamp(self.site(), aging.lanes(), [from, to], self.shared.now()),
                ()
            );
        }
    }

    #[inline]
    fn may_be_last(self) -> bool {
        self.shared.ledger.may_be_empty()
    }
}

impl<'a, const WIDE: bool> UntilSplit<'a, WIDE> {
    fn site(self) -> &'a Site {
        self.shared.tables.at(self.seen.entry())
    }
}
