//! The memory of a growing filter: a list of tables of equal shards, each of which has a [`Site`].
//!
//! A table is freed only with the filter, so a shard, once found, is always still there. Shards split one after another,
//! so the filter needs a few new ones at a time: a new table adds a 32nd of the present shards, or a 64th at least where a
//! limit leaves room for fewer. More would lie idle. From 16 MiB on, a table fills whole huge pages, at least one.
//!
//! A shard that a join leaves without items gives its memory back to the system, where it stands: its words read as
//! zero from then on. A two-hundredth is left of it, its site and its stripes. The next split takes the first shard
//! that has no items, so the last tables are the first that become empty.

use crate::backend::growing::site::{Entry, Site, Use};
use crate::error::FullKind;
use crate::layout::geometry::Geometry;
use crate::sync::{AppendList, Gauge};
use crate::table::Table;
use crate::table::memory::HUGE;
use std::sync::Arc;

/// A new table has one shard per this many present shards, and at least one.
const GROWTH_DIVISOR: usize = 32;

/// The size of the filter, in huge pages, from which on new tables fill huge pages.
const FEW_HUGE_PAGES: usize = 8;

/// The largest table, in bytes, that is written at once where a filter is filled shard by shard.
const AT_ONCE: usize = 5 * HUGE;

/// Under a limit, a new table has at least one shard per this many present shards.
const MAX_GROWTH_DIVISOR: usize = 64;

/// The sites of a table's shards, each of which shares the table.
type Sites = Box<[Site]>;

/// The overhead of a table in bytes: the [`Table`] itself, the two counts of its [`Arc`], and the place of its sites.
const OVERHEAD: usize =
    AppendList::<Sites>::BYTES_OF_EACH + size_of::<Table>() + 2 * size_of::<usize>();

pub(crate) struct Arena {
    /// The geometry of the shards that the filter began with.
    geometry: Geometry,
    sites: AppendList<Sites>,
    /// The number of shards in use.
    shards: Gauge,
    /// The number of shards that are or were in use: all those before this number.
    ever_used: Gauge,
    /// All shards below this number are in use.
    first_spare: Gauge,
    /// The number of bytes of spare shards that were given back to the system.
    given_back: Gauge,
    /// The size of all tables, in bytes.
    bytes: Gauge,
}

/// The shard that comes into use next.
#[derive(Clone, Copy)]
pub(crate) struct Spare<'a> {
    pub site: &'a Site,
    number: usize,
}

impl Arena {
    /// Makes the first table, with all shards in use. The error is the number of bytes that could not be allocated.
    pub(crate) fn new(geometry: Geometry) -> Result<Self, usize> {
        let table = Table::new(geometry.clone())?;
        Self::restore(geometry.shards(), table, geometry.shards())
    }

    /// Uses this table as the first, with its first `shards` shards in use, in a filter that began with `roots` shards.
    pub(crate) fn restore(roots: usize, table: Table, shards: usize) -> Result<Self, usize> {
        let geometry = table.geometry.with_shards(roots);
        let bytes = Gauge::new();
        bytes.set(Self::bytes(&table.geometry) as u64);
        let sites = AppendList::new(sites_of(table)?);
        let [in_use, ever_used, first_spare, given_back] = [const { Gauge::new() }; 4];
        let tables =
            Arena { geometry, sites, shards: in_use, ever_used, first_spare, given_back, bytes };
        tables.use_first(shards);
        Ok(tables)
    }

    fn use_first(&self, shards: usize) {
        for (number, site) in self.numbered(0) {
            let spare = Use::Spare { given_back: 0 };
            site.set_used_for(if number < shards { Use::Items } else { spare });
        }
        for gauge in [&self.shards, &self.ever_used, &self.first_spare] {
            gauge.set(shards as u64);
        }
    }

    /// Returns the size in bytes of a table, including its sites and overhead.
    pub(crate) fn bytes(geometry: &Geometry) -> usize {
        OVERHEAD + Table::bytes(geometry) + Site::bytes(geometry)
    }

    /// Returns the site of an entry that was made from one of these sites.
    #[inline]
    pub(crate) fn at(&self, pointer: Entry) -> &Site {
        // SAFETY: a filter has one directory and these tables. The directory has pointers only to their sites, and
        // never hands out `NONE`. Sites stay where they are until the tables are dropped, which are borrowed here. A
        // site is complete before a pointer to it is stored with `Release`, and pointers are read with `Acquire`.
        #[allow(unsafe_code)]
        unsafe {
            &*pointer.address()
        }
    }

    #[inline]
    pub(crate) fn shards(&self) -> usize {
        self.shards.get() as usize
    }

    /// Returns the number of segments of all shards that ever were in use.
    pub(crate) fn segments(&self) -> usize {
        self.ever_used.get() as usize * self.geometry.stripes() as usize
    }

    pub(crate) fn items(&self) -> i64 {
        let tables = self.sites.all().filter_map(|sites| sites.first().map(Site::table));
        tables.map(|table| table.stripes.all_items()).sum()
    }

    /// Returns the memory that the tables take. What was given back to the system is not a part of it.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.get().saturating_sub(self.given_back.get()) as usize
    }

    /// Returns the sites of all shards in use, with their numbers, from number `start` on.
    pub(crate) fn sites_from(&self, start: usize) -> impl Iterator<Item = (usize, &Site)> {
        self.all_from(start).filter(|(_, site)| site.is_in_use())
    }

    /// The same, with those that were in use before.
    pub(crate) fn all_from(&self, start: usize) -> impl Iterator<Item = (usize, &Site)> {
        self.numbered(start).take_while(|(number, _)| *number < self.ever_used.get() as usize)
    }

    fn numbered(&self, start: usize) -> impl Iterator<Item = (usize, &Site)> {
        let mut before = 0;
        let tables = self.sites.all().map(move |sites| {
            let first = before;
            before += sites.len();
            (first, sites)
        });
        tables.flat_map(move |(first, sites)| {
            let skipped = start.saturating_sub(first).min(sites.len());
            (first + skipped..).zip(&sites[skipped..])
        })
    }

    /// Returns the shard that comes into use next. If all shards are in use, allocates a table of at most `bytes`
    /// bytes. One caller at a time.
    pub(crate) fn next_unused(&self, bytes: usize) -> Result<Spare<'_>, FullKind> {
        self.next_with(bytes, |shards| shards.div_ceil(MAX_GROWTH_DIVISOR), Table::needed_soon)
    }

    /// Takes that shard into use. From now on, iterations over all shards include it.
    pub(crate) fn take_into_use(&self, Spare { site, number }: Spare<'_>) {
        self.given_back.add(-(site.given_back() as i64));
        site.set_used_for(Use::Items);
        self.shards.add(1);
        let after = number as u64 + 1;
        if self.first_spare.get() == number as u64 {
            self.first_spare.set(after);
        }
        self.ever_used.set(after.max(self.ever_used.get()));
    }

    /// Takes a shard out of use, and gives its memory back to the system. The caller holds all locks of the shard,
    /// whose items are elsewhere, and no shard comes into use meanwhile.
    pub(crate) fn take_out_of_use(&self, site: &Site) {
        site.table().erase(site.number());
        let mut first = 0;
        for sites in self.sites.all() {
            if sites.as_ptr_range().contains(&std::ptr::from_ref(site)) {
                let number = (first + site.number()) as u64;
                self.first_spare.set(number.min(self.first_spare.get()));
                break;
            }
            first += sites.len();
        }
        self.shards.add(-1);
        self.give_back(site);
    }

    /// Gives the memory of all shards back that have waited for a split in vain. No shard comes into use meanwhile.
    pub(crate) fn give_back_unused(&self) {
        let unused = self.numbered(self.ever_used.get() as usize).map(|(_, site)| site);
        let waiting = unused.filter(|site| site.used_for() == Use::Spare { given_back: 0 });
        waiting.for_each(|site| self.give_back(site));
    }

    fn give_back(&self, site: &Site) {
        let given_back = site.table().give_back(site.number()..site.number() + 1) as u64;
        site.set_used_for(Use::Spare { given_back });
        self.given_back.add(given_back as i64);
    }

    /// Takes the next shard of a filter that is filled shard by shard into use. A new table may be as small as one
    /// shard. A large one is not written at once, so that each shard takes about the same time.
    pub(crate) fn take_next(&self, bytes: usize) -> Result<&Site, FullKind> {
        let table = |geometry| match Table::bytes(&geometry) > AT_ONCE {
            true => Table::new(geometry),
            false => Table::needed_soon(geometry),
        };
        let spare = self.next_with(bytes, |_| 1, table)?;
        self.take_into_use(spare);
        Ok(spare.site)
    }

    /// Returns the first unused shard. A new table has at least as many shards as `least` returns for the present
    /// number.
    fn next_with(
        &self,
        bytes: usize,
        least: impl Fn(usize) -> usize,
        table: impl Fn(Geometry) -> Result<Table, usize>,
    ) -> Result<Spare<'_>, FullKind> {
        let bought: usize = self.sites.all().map(|sites| sites.len()).sum();
        if self.shards() == bought {
            self.allocate(bought, least(bought), bytes, table)?;
        }
        let mut spares =
            self.numbered(self.first_spare.get() as usize).filter(|(_, site)| !site.is_in_use());
        let (number, site) = spares.next().ok_or(FullKind::NoMemory)?;
        // The next search begins here, so that all searches together pass each shard once.
        self.first_spare.set(number as u64);
        // There may be no room for memory that was given back.
        if site.given_back() > bytes as u64 {
            return Err(FullKind::LimitReached);
        }
        Ok(Spare { site, number })
    }

    /// Adds a table of at least `least` shards and at most `bytes` bytes to tables that have `shards` shards.
    fn allocate(
        &self,
        shards: usize,
        least: usize,
        bytes: usize,
        table: impl Fn(Geometry) -> Result<Table, usize>,
    ) -> Result<(), FullKind> {
        let of_one = Self::bytes(&self.geometry.with_shards(1)) - OVERHEAD;
        let affordable = bytes.saturating_sub(OVERHEAD) / of_one;
        let wanted = Self::wanted(&self.geometry, shards).min(affordable);
        if wanted < least {
            return Err(FullKind::LimitReached);
        }
        let new = |shards| table(self.geometry.with_shards(shards)).and_then(sites_of);
        // The system may have memory for a smaller one.
        let sites = new(wanted).or_else(|_| new(least)).map_err(|_| FullKind::NoMemory)?;
        let geometry = self.geometry.with_shards(sites.len());
        self.bytes.add(Self::bytes(&geometry) as i64);
        self.sites.add(sites);
        Ok(())
    }

    /// Returns the number of shards of all tables together when this number is in use, if none were given back.
    pub(crate) fn all_with(geometry: &Geometry, shards: usize) -> usize {
        let mut all = geometry.shards();
        while all < shards {
            all += Self::wanted(geometry, all);
        }
        all
    }

    /// Returns the number of shards of a new table, beside `shards` present ones.
    fn wanted(geometry: &Geometry, shards: usize) -> usize {
        let wanted = (shards / GROWTH_DIVISOR).max(1);
        let in_a_huge_page = HUGE / (8 * geometry.words());
        match shards >= FEW_HUGE_PAGES * in_a_huge_page && in_a_huge_page > 0 {
            true => wanted.next_multiple_of(in_a_huge_page),
            false => wanted,
        }
    }
}

/// Makes the sites of a table's shards. The error is the number of bytes that could not be allocated.
fn sites_of(table: Table) -> Result<Sites, usize> {
    let bytes = Arena::bytes(&table.geometry);
    let (shards, table) = (table.geometry.shards(), Arc::new(table));
    let mut sites = Vec::new();
    sites.try_reserve_exact(shards).map_err(|_| bytes)?;
    for number in 0..shards {
        sites.push(Site::new(&table, number).ok_or(bytes)?);
    }
    Ok(sites.into())
}
