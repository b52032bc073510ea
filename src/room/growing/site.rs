//! The site of a shard: where it is, and what is known of it beside its words.
//!
//! An entry of the [directory](crate::room::growing::directory) is a [`Link`] to a shard's site: its
//! address, with the shard's depth in the bits that are zero in every address of a site. So a lookup
//! gets from the entry to the shard with one load, and entry and depth change together.

pub mod census;

use crate::layout::aging::{GROWING_BUCKETS, Lost};
use crate::layout::either;
use crate::layout::geometry::Geometry;
use crate::layout::stamps::Moment;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::room::growing::site::census::Census;
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
    records: Box<[Record]>,
    /// The [`ByStamp`] of each shard, by the stamps that there are.
    excess: Box<[Gauge]>,
}

/// The [`Census`] of a shard, as it is kept. It is set under all locks of the shard. A removal, which
/// holds one of them, takes its lane off, and so does a tick.
#[derive(Default)]
struct Record {
    received: Gauge,
    used_up: Gauge,
    aged: Gauge,
}

impl Recorded {
    /// Records nothing of a table's shards yet. The error is the number of bytes that could not be
    /// allocated.
    pub fn new(table: Table) -> Result<Self, usize> {
        let shards = table.geometry().shards();
        let no_memory = |_| Self::bytes(table.geometry());
        let mut records = Vec::new();
        records.try_reserve_exact(shards).map_err(no_memory)?;
        records.resize_with(shards, Record::default);
        let figures = shards * stamps(table.geometry());
        let mut excess = Vec::new();
        excess.try_reserve_exact(figures).map_err(no_memory)?;
        excess.resize_with(figures, Gauge::default);
        Ok(Recorded { table, records: records.into(), excess: excess.into() })
    }

    pub fn geometry(&self) -> &Geometry {
        self.table.geometry()
    }

    pub fn items(&self) -> i64 {
        self.table.stripes().all_items()
    }

    /// The memory that a table of this geometry and its records take, beside `self`.
    pub fn bytes(geometry: &Geometry) -> usize {
        let of_one = size_of::<Record>() + stamps(geometry) * size_of::<Gauge>();
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

    fn kept(&self) -> &Record {
        &self.of().records[self.number()]
    }

    fn excess(&self) -> &[Gauge] {
        let stamps = stamps(self.of().geometry());
        &self.of().excess[self.number() * stamps..][..stamps]
    }

    /// Records what the shard holds. The caller holds all locks of the shard, or the shard is unknown
    /// to other threads.
    pub fn record(&self, census: &Census) {
        let Record { received, used_up, aged } = self.kept();
        for (excess, lanes) in self.excess().iter().zip(census.excess.figures()) {
            excess.set(lanes.cast_unsigned());
        }
        received.set(census.received.cast_unsigned());
        used_up.set(census.used_up);
        aged.set(census.aged);
    }

    pub fn census(&self) -> Census {
        let Record { received, used_up, aged } = self.kept();
        Census {
            excess: ByStamp::of(self.excess().iter().map(|lanes| lanes.get().cast_signed())),
            received: received.get().cast_signed(),
            used_up: used_up.get(),
            aged: aged.get(),
        }
    }

    /// Takes a lane of this [vagueness](crate::layout::aging::Aging::vagueness) off the record. The
    /// caller holds the lock of the lane's stripe.
    pub fn take_off(&self, vagueness: u64, is_used_up: bool) {
        let Record { used_up, aged, .. } = self.kept();
        aged.take(vagueness - 1);
        if is_used_up {
            used_up.take(1);
        }
    }

    /// Puts a lane of this vagueness on the record. If it stands for no item of its own, with its stamp. The
    /// caller holds the lock of the lane's stripe.
    pub fn put_on(&self, vagueness: u64, is_used_up: bool, excess: Option<usize>) {
        let Record { used_up, aged, .. } = self.kept();
        aged.put(vagueness - 1);
        used_up.put(is_used_up.into());
        if let Some(excess) = excess.and_then(|stamp| self.excess().get(stamp)) {
            excess.put(1);
        }
    }

    /// How many more absent items the lanes of the shard match than as many new lanes would.
    pub fn aged(&self) -> u64 {
        self.kept().aged.get()
    }

    /// Takes lanes off the record that expire now. The caller holds the lock of their stripe. The items
    /// that they stood for are still counted.
    pub fn erased(&self, lost: &Lost, now: Moment) {
        // If several stamps die, it is all the same from which of them the lanes are taken.
        let dead = self.of().geometry().lanes().dead_stamps(now).next();
        if let Some(excess) = dead.and_then(|stamp| self.excess().get(stamp)) {
            excess.take(lost.lanes);
        }
        let Record { used_up, aged, .. } = self.kept();
        used_up.take(lost.used_up);
        aged.take(lost.aged);
    }

    /// How many absent items the lanes of the shard match, in units of a new lane.
    pub fn vagueness(&self) -> f64 {
        let census = self.census();
        let items = either!(self.table().is_wide(), WIDE => self.shard::<WIDE>().all_items());
        census.lanes(items).max(0) as f64 + census.aged as f64
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
