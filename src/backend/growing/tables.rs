//! The memory of a growing filter: a list of tables of equal shards, each of which has a [`Site`].
//!
//! A table is freed only with the filter, so a shard, once found, is always still there. Shards split one
//! after another, so the filter needs a few new ones at a time: a new table adds a 32nd of the present
//! shards. More would lie idle. From 16 MiB on, a table fills whole huge pages, at least one: with small
//! pages, lookups in a batch would take twice as long.
//!
//! Where a limit leaves room for fewer shards, a table may be smaller, but never less than a 64th of the
//! present shards.
//!
//! A shard that a join leaves without items gives its memory back to the system, where it stands: its words read as
//! zero from then on. What is left of it is a two-hundredth, its site and its stripes. The next split takes the first
//! shard that has no items, so the last tables are the first that become empty.
//!
//! An [`Entry`] of the [directory](crate::backend::growing::directory) is the address of a shard's site, with
//! the shard's depth in the bits that are zero in every such address. So a lookup gets from the entry to the
//! shard with one load, and address and depth change together.

use crate::error::FullKind;
use crate::layout::geometry::Geometry;
use crate::layout::shrinking::{GROWING_BUCKETS, Share, Shrinking};
use crate::layout::stamps::Moment;
use crate::shard::raw::RawShard;
use crate::sync::{AppendList, Gauge};
use crate::table::memory::HUGE;
use crate::table::{ShardVersions, ShardWords, Table};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// A new table has one shard per this many present shards, and at least one.
const PART: usize = 32;

/// The size of the filter, in huge pages, from which on new tables fill huge pages.
const FEW_HUGE_PAGES: usize = 8;

/// The largest table, in bytes, that is written at once where a filter is filled shard by shard.
const AT_ONCE: usize = 5 * HUGE;

/// Under a limit, a new table has at least one shard per this many present shards.
const MIN_PART: usize = 64;

/// The sites of a table's shards, each of which shares the table.
type Sites = Box<[Site]>;

/// The overhead of a table in bytes: the [`Table`] itself, the two counts of its [`Arc`], and the place of
/// its sites.
const OVERHEAD: usize =
    AppendList::<Sites>::BYTES_OF_EACH + size_of::<Table>() + 2 * size_of::<usize>();

pub(crate) struct Tables {
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

impl Tables {
    /// Makes the first table, with all shards in use. The error is the number of bytes that could not be
    /// allocated.
    pub(crate) fn new(geometry: Geometry) -> Result<Self, usize> {
        let table = Table::new(geometry.clone())?;
        Self::restore(geometry.shards(), table, geometry.shards())
    }

    /// Uses this table as the first, with its first `shards` shards in use, in a filter that began with
    /// `roots` shards.
    pub(crate) fn restore(roots: usize, table: Table, shards: usize) -> Result<Self, usize> {
        let geometry = table.geometry.with_shards(roots);
        let bytes = Gauge::new();
        bytes.set(Self::bytes(&table.geometry) as u64);
        let sites = AppendList::new(sites_of(table)?);
        let [in_use, ever_used, first_spare, given_back] = [const { Gauge::new() }; 4];
        let tables =
            Tables { geometry, sites, shards: in_use, ever_used, first_spare, given_back, bytes };
        tables.use_first(shards);
        Ok(tables)
    }

    /// Makes the first `shards` shards those in use.
    fn use_first(&self, shards: usize) {
        for (number, site) in self.numbered(0) {
            let spare = Use::Spare { given_back: 0 };
            site.set_used_for(if number < shards { Use::Items } else { spare });
        }
        for gauge in [&self.shards, &self.ever_used, &self.first_spare] {
            gauge.set(shards as u64);
        }
    }

    /// Makes tables for a filter that began with this geometry. The first table has `shards` shards, none of
    /// which is in use.
    pub(crate) fn for_shards(geometry: &Geometry, shards: usize) -> Result<Self, usize> {
        let first = Table::new(geometry.with_shards(shards))?;
        Self::restore(geometry.shards(), first, 0)
    }

    /// Returns the size in bytes of a table, including its sites and overhead.
    pub(crate) fn bytes(geometry: &Geometry) -> usize {
        OVERHEAD + Table::bytes(geometry) + Site::bytes(geometry)
    }

    /// Returns the site of an entry that was made from one of these sites.
    #[inline]
    pub(crate) fn at(&self, pointer: Entry) -> &Site {
        // SAFETY: a filter has one directory and these tables. The directory has pointers only to their
        // sites, and never hands out `NONE`. Sites stay where they are until the tables are dropped, which
        // are borrowed here. A site is complete before a pointer to it is stored with `Release`, and pointers
        // are read with `Acquire`.
        #[allow(unsafe_code)]
        unsafe {
            &*pointer.address()
        }
    }

    /// The number of shards in use.
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

    /// Returns all sites from number `start` on.
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

    /// Returns the shard that comes into use next. If all shards are in use, allocates a table of at most
    /// `bytes` bytes. One caller at a time.
    pub(crate) fn next_unused(&self, bytes: usize) -> Result<Spare<'_>, FullKind> {
        self.next_with(bytes, |shards| shards.div_ceil(MIN_PART), Table::needed_soon)
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

    /// Gives the memory of a shard that is out of use back to the system.
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
    /// number of shards.
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
        let wanted = self.wanted(shards).min(affordable);
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

    /// Returns the number of shards of a new table, beside `shards` present ones. If these take a few huge
    /// pages or more, the new table fills whole huge pages.
    fn wanted(&self, shards: usize) -> usize {
        let wanted = (shards / PART).max(1);
        let in_a_huge_page = HUGE / (8 * self.geometry.words());
        match shards >= FEW_HUGE_PAGES * in_a_huge_page && in_a_huge_page > 0 {
            true => wanted.next_multiple_of(in_a_huge_page),
            false => wanted,
        }
    }
}

/// Makes the sites of a table's shards. The error is the number of bytes that could not be allocated.
fn sites_of(table: Table) -> Result<Sites, usize> {
    let bytes = Tables::bytes(&table.geometry);
    let (shards, table) = (table.geometry.shards(), Arc::new(table));
    let mut sites = Vec::new();
    sites.try_reserve_exact(shards).map_err(|_| bytes)?;
    for number in 0..shards {
        sites.push(Site::new(&table, number).ok_or(bytes)?);
    }
    Ok(sites.into())
}

/// A shard of a table. Lookups read the site, so it is never written.
///
/// It shares the table, and has the addresses of the words and versions there. So a lookup gets from here to
/// the words with one load; through the table it would take two.
#[repr(align(64))] // A line of the cache. Its address leaves six bits for a depth.
pub(crate) struct Site {
    table: Arc<Table>,
    /// The first of as many [`ShardWords`] as a bucket has words, which are adjacent.
    words: NonNull<ShardWords>,
    versions: NonNull<ShardVersions>,
    words_of_a_bucket: u32,
    /// The shard's number in the table.
    number: u32,
    /// The first figure is the surplus: how many more absent items the lanes of the shard match than its
    /// counted lanes would match if they were new. It is the [match
    /// weight](crate::layout::shrinking::Shrinking::match_weight) of all lanes, less the number of lanes that
    /// are not void. It is set under all locks of the shard. A removal, which holds only some of them,
    /// subtracts the share of its lane, and so does a tick.
    ///
    /// The second is the [`Use`] of the shard.
    figures: Box<[Gauge]>,
}

const _: () = assert!(size_of::<Site>() == 64);

/// The number of figures of each shard.
const FIGURES: usize = 2;

/// What a shard is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It waits for a split and has no items. So many bytes of its memory were given back to the system.
    Spare { given_back: u64 },
    /// The directory has its entry, or will have it before any of its locks is released.
    Items,
}

// SAFETY: a `Site` is a share of the table, and lends references to parts of the table.
#[allow(unsafe_code)]
unsafe impl Send for Site {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Site {}

impl Site {
    /// Makes the site of a shard of this table. Returns `None` if the table does not have that shard, or if
    /// there is no memory for its figures.
    pub(crate) fn new(table: &Arc<Table>, number: usize) -> Option<Self> {
        let mut figures = Vec::<Gauge>::new();
        figures.try_reserve_exact(FIGURES).ok()?;
        figures.resize_with(FIGURES, Gauge::default);
        let (words, versions) = table.parts_of_shard(number * GROWING_BUCKETS as usize)?;
        Some(Site {
            words: NonNull::from(words).cast(),
            versions: NonNull::from(versions),
            words_of_a_bucket: words.len().try_into().ok()?,
            number: number.try_into().ok()?,
            figures: figures.into(),
            table: Arc::clone(table),
        })
    }

    /// Returns the memory of the sites of a table of this geometry, in bytes.
    pub(crate) fn bytes(geometry: &Geometry) -> usize {
        geometry.shards() * (size_of::<Site>() + FIGURES * size_of::<Gauge>())
    }

    /// Returns the memory that lookups read: one array of words, or two of wide buckets, and the versions.
    #[inline(always)]
    pub(crate) fn memory(&self, is_wide: bool) -> (&[ShardWords], &ShardVersions) {
        // Tells the compiler that all later indices are in bounds.
        let count = if is_wide { 2 } else { 1 };
        assert!(!is_wide || self.words_of_a_bucket == 2, "a shard of wide buckets");
        // SAFETY: the addresses are those of parts of the table, which has `words_of_a_bucket` arrays of words there,
        // and at least one. The table stays where it is and is not dropped while this site shares it, and no code has
        // mutable access to it meanwhile, since a share is only ever lent for reading.
        #[allow(unsafe_code)]
        unsafe {
            let words = std::slice::from_raw_parts(self.words.as_ptr(), count);
            (words, self.versions.as_ref())
        }
    }

    #[inline]
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The shard's number in its table.
    #[inline]
    pub(crate) fn number(&self) -> usize {
        self.number as usize
    }

    /// Returns the shard itself, whichever items it owns.
    #[inline(always)]
    pub(crate) fn raw<W: Into<bool> + Copy>(&self, is_wide: W) -> RawShard<'_, W> {
        RawShard::from_base(self.table(), self.number() * GROWING_BUCKETS as usize, is_wide)
    }

    /// The same where the width of buckets is not known.
    pub(crate) fn shard(&self) -> RawShard<'_> {
        self.raw(self.words_of_a_bucket == 2)
    }

    /// Returns the number of lanes that are not void.
    pub(crate) fn counted(&self) -> i64 {
        self.shard().all_items()
    }

    /// Returns the gauge of the [surplus](Self::surplus).
    pub(crate) fn surplus_gauge(&self) -> &Gauge {
        &self.figures[0]
    }

    pub(crate) fn surplus(&self) -> u64 {
        self.surplus_gauge().get()
    }

    pub(crate) fn used_for(&self) -> Use {
        match self.figures[1].get() {
            u64::MAX => Use::Items,
            given_back => Use::Spare { given_back },
        }
    }

    pub(crate) fn is_in_use(&self) -> bool {
        self.used_for() == Use::Items
    }

    /// The number of bytes of the shard that were given back to the system.
    pub(crate) fn given_back(&self) -> u64 {
        match self.used_for() {
            Use::Spare { given_back } => given_back,
            Use::Items => 0,
        }
    }

    /// Either no other thread has access to the shard, or the caller takes shards into use or out of it, one thread at
    /// a time. That it has items changes under all its locks.
    pub(crate) fn set_used_for(&self, purpose: Use) {
        self.figures[1].set(match purpose {
            Use::Items => u64::MAX,
            Use::Spare { given_back } => given_back,
        });
    }

    /// Returns how many absent items the lanes of the shard match, in units of a new lane.
    pub(crate) fn match_weight(&self) -> f64 {
        self.counted().max(0) as f64 + self.surplus() as f64
    }

    /// Subtracts the expired lanes in these words, which are those of whole buckets, from the surplus.
    /// Returns how many of these lanes are void.
    pub(crate) fn expiring(&self, shrinking: &Shrinking, words: &[u64], now: Moment) -> i32 {
        // Usually all lanes are as they were inserted, so none is void.
        if self.surplus() == 0 {
            return 0;
        }
        let (lanes, mut gone) = (shrinking.lanes(), Share::default());
        let expiry = lanes.expiry(now);
        lanes.for_each(words, |bucket| {
            gone = gone + shrinking.share(lanes.only(bucket, expiry.expired(bucket)));
        });
        self.surplus_gauge().take(gone.surplus);
        gone.void as i32
    }

    /// Whether the shard may have void lanes: each adds `1 << suffix_bits` to the surplus.
    pub(crate) fn may_have_void(&self, shrinking: &Shrinking) -> bool {
        self.surplus() >> shrinking.suffix_bits() > 0
    }

    /// Returns the number of void lanes, by recent words: of all, or of those that have not expired at this time.
    pub(crate) fn void_lanes(&self, shrinking: &Shrinking, now: Option<Moment>) -> usize {
        if !self.may_have_void(shrinking) {
            return 0;
        }
        let expiry = now.map(|now| shrinking.lanes().expiry(now));
        let of_bucket = |words| {
            let void = shrinking.void_lanes(words);
            let expired = expiry.as_ref().map_or(0, |expiry| expiry.expired(words).and(void).len());
            void.len() - expired
        };
        self.shard().all_words().map(of_bucket).sum()
    }
}

/// The mask of the depth, the lowest bits of an entry.
const DEPTH: usize = 63;

/// The site of a shard and the shard's depth, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(pub *mut Site);

impl Entry {
    /// Stands in place of an entry.
    pub(crate) const NONE: Entry = Entry(null_mut());

    /// Makes the entry of a site, which has to stay where it is for as long as any of its entries is used.
    pub(crate) fn new(site: &Site, depth: u32) -> Self {
        let site = std::ptr::from_ref(site).cast_mut();
        Entry(site.map_addr(|address| address | depth as usize & DEPTH))
    }

    #[inline]
    pub(crate) fn depth(self) -> u32 {
        (self.0.addr() & DEPTH) as u32
    }

    /// Returns the address of the site.
    #[inline]
    pub(crate) fn address(self) -> *const Site {
        self.0.map_addr(|address| address & !DEPTH)
    }
}
