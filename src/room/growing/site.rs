//! The site of a shard: where it is, and what is known of it beside its words.
//!
//! An entry of the [directory](crate::room::growing::directory) is a [`Link`] to a shard's site: its
//! address, with the shard's depth in the bits that are zero in every address of a site. So a lookup
//! gets from the entry to the shard with one load, and entry and depth change together.

use crate::layout::aging::{Aging, GROWING_BUCKETS, Lost};
use crate::layout::either;
use crate::layout::geometry::Geometry;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::rule::rule;
use crate::shard::Shard;
use crate::shard::lease::Always;
use crate::shard::whole::{fill, read_shard, refill};
use crate::sync::Gauge;
use crate::table::Table;
use crate::table::memory::Kept;
use crate::table::span::{Span, Versions, Words};
use std::ptr::null_mut;
use std::sync::Arc;

/// A shard of a table. Lookups read this, so it is never written.
#[repr(align(32))] // A link needs five bits for a depth.
pub struct Site {
    /// The words and versions of the shard in its table, and its number there.
    of: Kept<Recorded, Words, Versions>,
}

// Half of a cache line.
const _: () = assert!(size_of::<Site>() == 32);

/// A table, and what is recorded of its shards.
pub struct Recorded {
    table: Table,
    /// How many more absent items the lanes of each shard match than its counted lanes would if they were new:
    /// the [vagueness](crate::layout::aging::Aging::vagueness) of all lanes, less the number of those that are
    /// not used up. It is set under all locks of the shard. A removal, which holds one of them, takes its lane off,
    /// and so does a tick.
    aged: Box<[Gauge]>,
    /// The balance of each shard in the [ledger](crate::room::growing::ledger), by the stamps that there are.
    balances: Box<[Gauge]>,
}

impl Recorded {
    /// Records nothing of a table's shards yet. The error is the number of bytes that could not be
    /// allocated.
    pub fn new(table: Table) -> Result<Self, usize> {
        let gauges = |count: usize| {
            let mut gauges = Vec::<Gauge>::new();
            gauges.try_reserve_exact(count).map_err(|_| Self::bytes(table.geometry()))?;
            gauges.resize_with(count, Gauge::default);
            Ok::<Box<[_]>, usize>(gauges.into())
        };
        let shards = table.geometry().shards();
        let (aged, balances) = (gauges(shards)?, gauges(shards * stamps(table.geometry()))?);
        Ok(Recorded { table, aged, balances })
    }

    pub fn geometry(&self) -> &Geometry {
        self.table.geometry()
    }

    pub fn items(&self) -> i64 {
        self.table.stripes().all_items()
    }

    /// The memory that a table of this geometry and its records take, beside `self`.
    pub fn bytes(geometry: &Geometry) -> usize {
        let of_one = (1 + stamps(geometry)) * size_of::<Gauge>();
        Table::bytes(geometry) + geometry.shards() * of_one
    }
}

/// The number of stamps of a filter.
fn stamps(geometry: &Geometry) -> usize {
    geometry.lanes().most_stamps() as usize + 1
}

impl Site {
    /// The site of a shard of this table, if it has that shard.
    pub fn new(of: &Arc<Recorded>, shard: usize) -> Option<Self> {
        let base = shard * GROWING_BUCKETS as usize;
        let number = shard.try_into().ok()?;
        Some(Site { of: Kept::new(of, number, |of| Span::find(&of.table, base))? })
    }

    #[inline]
    fn of(&self) -> &Recorded {
        self.of.owner()
    }

    /// The shard's number in the table.
    #[inline]
    fn number(&self) -> usize {
        self.of.note() as usize
    }

    /// What lookups read of the shard, whose buckets are wide or are not.
    #[inline(always)]
    pub fn span<const WIDE: bool>(&self) -> Span<'_> {
        let (words, all) = (self.of.first(), self.of.all());
        // With this, the compiler knows that all that follows is within.
        assert!(!WIDE || all.len() == 2, "a shard of wide buckets");
        Span::new(words, all, self.of.other())
    }

    #[inline]
    pub fn table(&self) -> &Table {
        &self.of().table
    }

    /// The table's index of the shard's first bucket.
    #[inline]
    pub fn base(&self) -> usize {
        self.number() * GROWING_BUCKETS as usize
    }

    /// The table's index of the shard's first stripe.
    pub fn first_stripe(&self) -> usize {
        Table::stripe_of(self.base())
    }

    /// The shard itself. It is the caller's concern which items it owns.
    pub fn shard<const WIDE: bool>(&self) -> Shard<'_, Always<WIDE>> {
        Shard::leased(self.table(), self.base(), Always)
    }

    /// Fills the shard, which is empty, with a copy that holds `items` items.
    pub fn fill(&self, from: &[u64], items: i64) {
        fill(self.table(), self.number(), from, items);
    }

    /// Reads the words of the shard, which no other thread knows.
    pub fn read(&self, to: &mut [u64]) {
        read_shard(self.table(), self.number(), to);
    }

    /// Replaces what is in the shard, which no other thread knows.
    pub fn refill(&self, from: &[u64], items: i64) {
        refill(self.table(), self.number(), from, items);
    }

    fn balances(&self) -> &[Gauge] {
        let stamps = stamps(self.of().geometry());
        &self.of().balances[self.number() * stamps..][..stamps]
    }

    /// The balance of the shard in the [ledger](crate::room::growing::ledger).
    pub fn balance(&self) -> ByStamp {
        ByStamp::of(self.balances().iter().map(|items| items.get().cast_signed()))
    }

    /// Records the figures of a shard that was loaded, which no other thread knows.
    pub fn record(&self, aged: u64, balance: &ByStamp) {
        self.aged_gauge().set(aged);
        let figures = self.balances().iter().zip(balance.figures());
        figures.for_each(|(own, items)| own.set(items.cast_unsigned()));
    }

    /// The part of it that has this stamp. It changes under the ledger's lock.
    pub fn balance_of(&self, stamp: usize) -> &Gauge {
        &self.balances()[stamp]
    }

    /// The gauge of how many more absent items the lanes match than the counted lanes would if they were new.
    pub fn aged_gauge(&self) -> &Gauge {
        &self.of().aged[self.number()]
    }

    pub fn aged(&self) -> u64 {
        self.aged_gauge().get()
    }

    /// How many absent items the lanes of the shard match, in units of a new lane.
    pub fn vagueness(&self) -> f64 {
        let items = either!(self.table().is_wide(), WIDE => self.shard::<WIDE>().all_items());
        items.max(0) as f64 + self.aged() as f64
    }

    /// The number of lanes that are used up, by the words of a moment ago.
    pub fn used_up(&self, aging: &Aging) -> usize {
        // Mostly there is none, since each adds so much to this.
        if self.aged() >> aging.window_bits() == 0 {
            return 0;
        }
        either!(self.table().is_wide(), WIDE => {
            let of_bucket = |words| aging.used_up::<WIDE>(words).len();
            self.shard::<WIDE>().all_words().map(of_bucket).sum()
        })
    }

    /// Erases all lanes that are used up.
    pub fn erase_used_up<const WIDE: bool>(&self, aging: &Aging) {
        let shard = self.shard::<WIDE>();
        let Ok(locked) = shard.lock_all();
        let mut lost = Lost::default();
        shard.rewrite(&locked, |words| {
            let gone = rule!(
                "what_has_come_is_erased_with_what_is_left_over",
                aging.used_up::<WIDE>(words),
                aging.lanes().taken(words.heads)
            );
            lost = lost + aging.lost::<WIDE>(aging.lanes().only(words, gone));
            gone.fold(words, |words, lane| aging.lanes().without_whole(words, lane))
        });
        self.aged_gauge().take(lost.aged);
    }
}

/// The lowest bits of a link are the depth.
const DEPTH: usize = 31;

/// The site of a shard and the shard's depth, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link(*mut Site);

impl Link {
    /// In place of a link.
    pub const NONE: Link = Link(null_mut());

    /// A link to a site that stays where it is for as long as any of its links is used.
    pub fn new(site: &Site, depth: u32) -> Self {
        let site = std::ptr::from_ref(site).cast_mut();
        Link(site.map_addr(|address| address | depth as usize & DEPTH))
    }

    #[inline]
    pub fn of_word(word: *mut Site) -> Self {
        Link(word)
    }

    #[inline]
    pub fn word(self) -> *mut Site {
        self.0
    }

    #[inline]
    pub fn depth(self) -> u32 {
        (self.0.addr() & DEPTH) as u32
    }

    /// Returns the address of the site.
    #[inline]
    pub fn address(self) -> *const Site {
        self.0.map_addr(|address| address & !DEPTH)
    }
}
