//! The memory of a growing filter: a list of tables of equal shards.
//!
//! A table is freed only with the filter, so a shard that was found needs no check that it is still
//! there. Shards split one after another, so the filter needs a few new ones at a time: a new table
//! adds a 32nd of the shards that there are. More would lie idle. From 16 MiB on, a table fills whole
//! huge pages, at least one: small pages would make lookups of a batch take twice as long.
//!
//! Where a limit leaves less than that, a table may be smaller, but never less than a 64th of what
//! is there. So tables are never used up: 4,096 of them are more than `(65/64)^4032`, or 2^90, times
//! the memory of the first ones, whatever the limit was at each moment.

use crate::error::FullKind;
use crate::layout::geometry::Geometry;
use crate::room::growing::site::{Link, Recorded, Site};
use crate::sync::Gauge;
use crate::table::Table;
use crate::table::memory::huge_pages::HUGE;
use std::sync::{Arc, OnceLock};

/// The lists of tables, and the tables in each: 4,096 in all.
const LISTS: usize = 64;
const LISTED: usize = 64;

/// A new table has this part of the shards that there are, or at least one.
const PART: usize = 32;

/// From so many huge pages on, a table fills huge pages.
const FEW_HUGE_PAGES: usize = 8;

/// A table that is filled slowly is written at once up to this size.
const AT_ONCE: usize = 5 * HUGE;

/// Under a limit, it has at least this part.
const LEAST_PART: usize = 64;

type Slot = OnceLock<Box<Held>>;

type List = Box<[Slot; LISTED]>;

const LIST_BYTES: usize = LISTED * size_of::<Slot>();

pub struct Tables {
    /// The geometry of the shards that the filter began with.
    geometry: Geometry,
    lists: [OnceLock<List>; LISTS],
    /// The number of shards in use.
    shards: Gauge,
    /// The size of all tables, with their lists.
    bytes: Gauge,
}

/// A table, and the sites of its shards.
pub struct Held {
    table: Arc<Recorded>,
    sites: Box<[Site]>,
}

/// The size of what holds a table: itself, the table, and the two counts of an [`Arc`].
const HELD_BYTES: usize = size_of::<Held>() + size_of::<Recorded>() + 2 * size_of::<usize>();

impl Tables {
    /// The first table, with all shards in use, or the number of bytes that could not be allocated.
    pub fn new(geometry: Geometry) -> Result<Self, usize> {
        let table = Table::new(geometry.clone())?;
        Self::restore(geometry.shards(), table, geometry.shards())
    }

    /// A first table, with its first `shards` shards in use, of a filter that began with `roots`.
    pub fn restore(roots: usize, table: Table, shards: usize) -> Result<Self, usize> {
        let geometry = table.geometry().with_shards(roots);
        let first = Held::of(table)?;
        let lists = std::array::from_fn(|_| OnceLock::new());
        let (none, bytes) = (Gauge::default(), Gauge::default());
        let tables = Tables { geometry, lists, shards: none, bytes };
        tables.put(first, tables.slot(0).ok_or(LIST_BYTES)?);
        tables.shards.set(shards as u64);
        Ok(tables)
    }

    /// Tables for a filter that began with this geometry. The first has so many shards, none of which
    /// is in use.
    pub fn for_shards(geometry: &Geometry, shards: usize) -> Result<Self, usize> {
        let first = Table::new(geometry.with_shards(shards))?;
        Self::restore(geometry.shards(), first, 0)
    }

    /// The size of the first table, with its list.
    pub fn bytes(geometry: &Geometry) -> usize {
        LIST_BYTES + HELD_BYTES + Held::bytes(geometry)
    }

    /// Returns the site of a link that was made of one of these sites.
    #[inline]
    pub fn at(&self, link: Link) -> &Site {
        // SAFETY: a filter has one directory and these tables. Their sites are all that the directory
        // has links to, and it never hands out `NONE`. Sites stay where they are until the tables are
        // dropped, which are borrowed here. A site is complete before a link to it is stored, with
        // `Release`, and links are read with `Acquire`.
        #[allow(unsafe_code)]
        unsafe {
            &*link.address()
        }
    }

    /// The slot for a table after `tables` tables, in a list that may be new.
    fn slot(&self, tables: usize) -> Option<&Slot> {
        let list = self.lists.get(tables / LISTED)?;
        if list.get().is_none() {
            let mut slots = Vec::new();
            slots.try_reserve_exact(LISTED).ok()?;
            slots.resize_with(LISTED, OnceLock::new);
            let _ = list.set(List::try_from(slots).ok()?);
            self.bytes.add(LIST_BYTES as i64);
        }
        list.get()?.get(tables % LISTED)
    }

    fn put(&self, held: Held, slot: &Slot) {
        self.bytes.add((HELD_BYTES + held.heap_bytes()) as i64);
        let _ = slot.set(Box::new(held));
    }

    fn all(&self) -> impl Iterator<Item = &Held> {
        let lists = self.lists.iter().map_while(OnceLock::get);
        lists.flat_map(|list| list.iter()).map_while(|held| held.get().map(|held| &**held))
    }

    /// The number of shards in use.
    #[inline]
    pub fn shards(&self) -> usize {
        self.shards.get() as usize
    }

    pub fn segments(&self) -> usize {
        self.shards() * self.geometry.stripes() as usize
    }

    pub fn items(&self) -> i64 {
        self.all().map(|held| held.table.items()).sum()
    }

    pub fn heap_bytes(&self) -> usize {
        self.bytes.get() as usize
    }

    /// The sites of all shards in use, with their numbers, from this number on.
    pub fn sites_from(&self, start: usize) -> impl Iterator<Item = (usize, &Site)> {
        let tables = self.all().scan(0, |before, held| {
            let first = *before;
            *before += held.sites.len();
            Some((first, held))
        });
        tables
            .flat_map(move |(first, held)| {
                let skipped = start.saturating_sub(first).min(held.sites.len());
                (first + skipped..).zip(&held.sites[skipped..])
            })
            .take_while(|(number, _)| *number < self.shards())
    }

    /// Returns the shard that comes into use next. If all shards are in use, buys a table of at most
    /// `bytes` bytes. One caller at a time.
    pub fn next_unused(&self, bytes: usize) -> Result<&Site, FullKind> {
        self.next_with(bytes, |shards| shards.div_ceil(LEAST_PART), Table::soon_full)
    }

    /// Takes that shard into use: those who go through all shards meet it from now on.
    pub fn use_next(&self) {
        self.shards.set(self.shards.get() + 1);
    }

    /// Takes a shard into use, of shards that are filled one after another. A large table is not written at once, but
    /// provided page by page. It may be as small as one shard: then it has all that `bytes` leave room
    /// for, so only a caller who has more bytes each time would use up the tables.
    pub fn take_next(&self, bytes: usize) -> Result<&Site, FullKind> {
        let table = |geometry| match Table::bytes(&geometry) > AT_ONCE {
            true => Table::new(geometry),
            false => Table::soon_full(geometry),
        };
        let site = self.next_with(bytes, |_| 1, table)?;
        self.use_next();
        Ok(site)
    }

    /// The next unused shard: they come into use in order, table after table. A new table has at least
    /// as many shards as `least` returns for their present number.
    fn next_with(
        &self,
        bytes: usize,
        least: impl Fn(usize) -> usize,
        make: impl Fn(Geometry) -> Result<Table, usize>,
    ) -> Result<&Site, FullKind> {
        let in_use = self.shards();
        let bought: usize = self.all().map(|held| held.sites.len()).sum();
        if in_use == bought {
            self.buy(self.all().count(), bought, least(bought), bytes, make)?;
        }
        let mut before = 0;
        let site = self.all().find_map(|held| {
            let number = in_use - before;
            before += held.sites.len();
            held.sites.get(number)
        });
        site.ok_or(FullKind::NoMemory)
    }

    /// Adds a table of at least `least` shards and at most `bytes` bytes after `tables` tables with
    /// `shards` shards.
    fn buy(
        &self,
        tables: usize,
        shards: usize,
        least: usize,
        bytes: usize,
        make: impl Fn(Geometry) -> Result<Table, usize>,
    ) -> Result<(), FullKind> {
        let is_listed = self.lists.get(tables / LISTED).is_some_and(|list| list.get().is_some());
        let list = if is_listed { 0 } else { LIST_BYTES };
        let bytes_of_one = Held::bytes(&self.geometry.with_shards(1));
        let affordable = bytes.saturating_sub(HELD_BYTES + list) / bytes_of_one;
        let wanted = self.wanted(shards).min(affordable);
        if wanted < least {
            return Err(FullKind::LimitReached);
        }
        let slot = self.slot(tables).ok_or(FullKind::NoMemory)?;
        let held_of = |shards| make(self.geometry.with_shards(shards)).and_then(Held::of);
        // Perhaps the system has memory for a smaller one.
        let held = held_of(wanted).or_else(|_| held_of(least));
        self.put(held.map_err(|_| FullKind::NoMemory)?, slot);
        Ok(())
    }

    /// The number of shards of a new table, when there are so many. If they take a few huge pages, or
    /// more, a new table fills huge pages.
    fn wanted(&self, shards: usize) -> usize {
        let wanted = (shards / PART).max(1);
        let in_a_huge_page = HUGE / (8 * self.geometry.words());
        match shards >= FEW_HUGE_PAGES * in_a_huge_page && in_a_huge_page > 0 {
            true => wanted.next_multiple_of(in_a_huge_page),
            false => wanted,
        }
    }

    /// Undoes the last [`take_next`](Self::take_next).
    pub fn give_back(&self) {
        self.shards.set(self.shards.get() - 1);
    }
}

impl Held {
    fn of(table: Table) -> Result<Self, usize> {
        let table = Arc::new(Recorded::new(table)?);
        let shards = table.geometry().shards();
        let mut sites = Vec::new();
        sites.try_reserve_exact(shards).map_err(|_| Held::bytes(table.geometry()))?;
        sites.extend((0..shards).map_while(|shard| Site::new(&table, shard)));
        Ok(Held { table, sites: sites.into() })
    }

    /// The size of a table of this geometry, without what holds it.
    fn bytes(geometry: &Geometry) -> usize {
        Recorded::bytes(geometry) + geometry.shards() * size_of::<Site>()
    }

    fn heap_bytes(&self) -> usize {
        Self::bytes(self.table.geometry())
    }
}
