//! The site of a shard: where it is, and what is known of it beside its words.
//!
//! An entry of the [directory](crate::room::growing::directory) is a [`Link`] to a shard's site: its
//! address, with the shard's depth in the bits that are zero in every address of a site. So a lookup
//! gets from the entry to the shard with one load, and entry and depth change together.

use crate::layout::aging::GROWING_BUCKETS;
use crate::layout::either;
use crate::layout::geometry::Geometry;
use crate::room::growing::split::Census;
use crate::shard::Shard;
use crate::shard::lease::Always;
use crate::shard::whole::fill;
use crate::sync::Gauge;
use crate::table::Table;
use std::ptr::null_mut;
use std::sync::Arc;

/// A shard of a table. Lookups read this, so it is never written.
#[repr(align(32))] // A link needs five bits for a depth.
pub struct Site {
    of: Arc<Recorded>,
    /// The shard's number in the table.
    shard: usize,
}

/// A table, and what is recorded of its shards.
pub struct Recorded {
    table: Table,
    records: Box<[Record]>,
}

/// The [`Census`] of a shard, as it is kept. It is set under all locks of the shard. A removal, which
/// holds one of them, takes its lane off.
#[derive(Default)]
struct Record {
    excess: Gauge,
    received: Gauge,
    used_up: Gauge,
    aged: Gauge,
}

impl Recorded {
    /// Records nothing of a table's shards yet. The error is the number of bytes that could not be
    /// allocated.
    pub fn new(table: Table) -> Result<Self, usize> {
        let shards = table.geometry().shards();
        let mut records = Vec::new();
        records.try_reserve_exact(shards).map_err(|_| Self::bytes(table.geometry()))?;
        records.resize_with(shards, Record::default);
        Ok(Recorded { table, records: records.into() })
    }

    pub fn geometry(&self) -> &Geometry {
        self.table.geometry()
    }

    pub fn items(&self) -> i64 {
        self.table.stripes().all_items()
    }

    /// The memory that a table of this geometry and its records take, beside `self`.
    pub fn bytes(geometry: &Geometry) -> usize {
        Table::bytes(geometry) + geometry.shards() * size_of::<Record>()
    }
}

impl Site {
    pub fn new(of: &Arc<Recorded>, shard: usize) -> Self {
        Site { of: Arc::clone(of), shard }
    }

    #[inline]
    pub fn table(&self) -> &Table {
        &self.of.table
    }

    /// The table's index of the shard's first bucket.
    #[inline]
    pub fn base(&self) -> usize {
        self.shard * GROWING_BUCKETS as usize
    }

    /// The shard itself. It is the caller's concern which items it owns.
    pub fn shard<const WIDE: bool>(&self) -> Shard<'_, Always<WIDE>> {
        Shard::leased(self.table(), self.base(), Always)
    }

    /// Fills the shard, which is empty, with a copy that holds `items` items.
    pub fn fill(&self, from: &[u64], items: i64) {
        fill(self.table(), self.shard, from, items);
    }

    fn kept(&self) -> &Record {
        &self.of.records[self.shard]
    }

    /// Records what the shard holds. The caller holds all locks of the shard, or the shard is unknown
    /// to other threads.
    pub fn record(&self, census: &Census) {
        let Record { excess, received, used_up, aged } = self.kept();
        excess.set(census.excess.cast_unsigned());
        received.set(census.received.cast_unsigned());
        used_up.set(census.used_up);
        aged.set(census.aged);
    }

    pub fn census(&self) -> Census {
        let Record { excess, received, used_up, aged } = self.kept();
        Census {
            excess: excess.get().cast_signed(),
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
