//! The shards of a filter that grows.
//!
//! When an item finds no room in its shard, the shard is [split](mod@crate::room::growing::split): half of
//! its items go to a new shard of the same size, and the [directory](crate::room::growing::directory) learns
//! where they are. Both buckets of an item are determined by the part of its fingerprint that never
//! changes, so each item keeps the number of its bucket, in the old shard or in the new one.
//! Nothing is hashed again, and a split cannot fail for lack of room. What the fingerprints lose is
//! described in [`aging`](crate::layout::aging), and when a split is refused in
//! [`worth`](crate::room::growing::worth).

use crate::error::{Full, FullKind, Reason};
use crate::layout::aging::Aging;
use crate::layout::either;
use crate::layout::geometry::{Geometry, Mixed, Place, SHARD_BUCKETS};
use crate::layout::roots::{Parts, Position};
use crate::layout::sizing::{GrowthPlan, rate_of_a_lane};
use crate::room::growing::accounts::Accounts;
use crate::room::growing::directory::{Directory, MOST_ENTRIES, NoMemory, Tenure};
use crate::room::growing::site::{Link, Site};
use crate::room::growing::split::{Census, split};
use crate::room::growing::tables::Tables;
use crate::room::growing::until_split::{Ground, Split, UntilSplit};
use crate::room::growing::worth::split_helps;
use crate::room::parts::{Block, CannotRestore, Copied, Plan};
use crate::room::shards::{Located, Shards};
use crate::shard::Shard;
use crate::shard::path;
use crate::stats::{Growth, Stats};
use crate::sync::{Gauge, Mutex};
use crate::table::Table;

pub struct Grown {
    /// The geometry of each shard.
    geometry: Geometry,
    directory: Directory,
    ground: Ground,
    accounts: Accounts,
    /// Held while the tables or the directory grow.
    purchases: Mutex<()>,
    max_bytes: Gauge,
    /// As the filter was made: its limit may have changed since.
    plan: GrowthPlan,
}

type Leased<'a, const WIDE: bool> = Shard<'a, UntilSplit<'a, WIDE>>;

impl Grown {
    pub(crate) fn new(plan: GrowthPlan) -> Result<Self, Reason> {
        let geometry = plan.geometry.clone();
        let no_memory = |bytes| Reason::OutOfMemory { bytes };
        let least = plan.own_bytes + Self::bytes_of(&plan);
        if least > plan.max_bytes {
            return Err(Reason::LimitTooSmall { least, most: plan.max_bytes });
        }
        // The tables first: the directory is written when it is made.
        let tables = Tables::new(geometry.clone()).map_err(|_| no_memory(least))?;
        let directory = Directory::new(plan.roots(), &tables).ok_or(no_memory(least))?;
        Ok(Grown::with(geometry, directory, tables, plan))
    }

    /// The memory of the shards that a filter begins with, and of all that leads to them.
    pub fn bytes_of(plan: &GrowthPlan) -> usize {
        Self::bytes_when_restored(plan, plan.geometry.shards(), 0)
    }

    /// The memory of so many shards, the deepest of which was split so often, after a restart.
    pub fn bytes_when_restored(plan: &GrowthPlan, shards: usize, deepest: u32) -> usize {
        let tables = Tables::bytes(&plan.geometry.with_shards(shards));
        size_of::<Self>() + tables + Directory::bytes(plan.geometry.shards(), deepest)
    }

    fn with(geometry: Geometry, directory: Directory, tables: Tables, plan: GrowthPlan) -> Self {
        let ground = Ground { aging: Aging::new(geometry.lanes()), tables };
        let (accounts, purchases, max_bytes) = (Accounts::new(), Mutex::new(()), Gauge::new());
        max_bytes.set(plan.max_bytes as u64);
        Grown { geometry, directory, ground, accounts, purchases, max_bytes, plan }
    }

    /// The shards of a file, which are in one table in the order of these blocks.
    pub fn restore(
        plan: GrowthPlan,
        table: Table,
        blocks: &[Block],
    ) -> Result<Self, CannotRestore> {
        let tables = Tables::restore(plan.geometry.shards(), table, blocks.len());
        let tables = tables.map_err(|bytes| CannotRestore::OutOfMemory { bytes })?;
        for ((_, site), block) in tables.sites_from(0).zip(blocks) {
            site.record(&block.census);
        }
        Self::gathered(plan, tables, blocks.iter().map(|block| block.depth))
    }

    /// The shards that are in use in these tables, with their censuses. They are in the order of their
    /// hashes and have these depths.
    pub fn gathered(
        plan: GrowthPlan,
        tables: Tables,
        depths: impl Iterator<Item = u32> + Clone,
    ) -> Result<Self, CannotRestore> {
        let geometry = plan.geometry.clone();
        let directory = Directory::restore(plan.roots(), &tables, depths)
            .ok_or(CannotRestore::OutOfMemory { bytes: tables.heap_bytes() })?;
        let grown = Grown::with(geometry, directory, tables, plan);
        let Grown { accounts, ground, .. } = &grown;
        either!(grown.is_wide(), WIDE => accounts.begin::<WIDE>(&ground.tables));
        Ok(grown)
    }

    #[cfg(loom)]
    #[doc(hidden)]
    pub fn of(plan: GrowthPlan) -> Self {
        Grown::new(plan).expect("memory for a small table")
    }

    /// The link to the shard with this number, if it has this depth.
    #[cfg(loom)]
    #[doc(hidden)]
    pub fn link(&self, shard: usize, depth: u32) -> Link {
        let (_, site) = self.ground.tables.sites_from(shard).next().expect("a shard");
        Link::new(site, depth)
    }

    /// Splits the shard that owned the item when this link was in the list of this level.
    #[cfg(loom)]
    #[doc(hidden)]
    pub fn split_as_seen<const WIDE: bool>(
        &self,
        hash: Mixed,
        level: u32,
        link: Link,
    ) -> Result<(), Full> {
        let tenure = self.directory.assume(hash, level, link);
        let (shard, place) = self.located::<WIDE>(tenure, self.position(hash));
        self.split(shard, place)
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.max_bytes.get() as usize
    }

    pub(crate) fn set_max_bytes(&self, bytes: usize) {
        self.max_bytes.set(bytes as u64);
    }

    /// All memory that the filter holds, including itself.
    fn bytes(&self) -> usize {
        self.plan.own_bytes + self.heap_bytes()
    }

    #[inline]
    fn site<'a>(&'a self, tenure: Tenure<'a>) -> &'a Site {
        self.ground.tables.at(tenure.link())
    }

    #[inline]
    fn shard<'a, const WIDE: bool>(&'a self, tenure: Tenure<'a>) -> Leased<'a, WIDE> {
        let site = self.site(tenure);
        Shard::leased(site.table(), site.base(), UntilSplit { tenure, ground: &self.ground })
    }

    #[inline(always)] // Like the operations: the place must not pass through memory.
    fn located<'a, const WIDE: bool>(
        &'a self,
        tenure: Tenure<'a>,
        position: Position,
    ) -> Located<'a, Self, WIDE> {
        let (hash, depth) = (tenure.hash(), tenure.depth());
        let place = self.ground.aging.place::<WIDE>(hash, position.in_root, depth);
        (self.shard(tenure), place)
    }

    #[inline]
    fn position(&self, hash: Mixed) -> Position {
        self.directory.roots().position(hash)
    }

    /// Looks for an item until it has been found or missed in the shard that owns it.
    #[cold]
    fn contains_somewhere<const WIDE: bool>(&self, hash: Mixed) -> bool {
        loop {
            let (shard, place) = self.locate::<WIDE>(hash);
            if let Ok(found) = shard.contains_again(place) {
                return found;
            }
        }
    }

    /// Splits a full shard, unless another thread has done so, or made room, since it was full.
    ///
    /// # Errors
    ///
    /// [`Full`] if [a split would not help](split_helps) the item, or if there is no memory for it.
    #[cold]
    fn split<const WIDE: bool>(&self, shard: Leased<'_, WIDE>, place: Place) -> Result<(), Full> {
        let tenure = shard.lease().tenure;
        let site = self.site(tenure);
        {
            // A refusal is decided under the item's own locks. A split or a clear holds all locks of
            // the shard, so neither is half done then, and what they wrote before is seen.
            let Ok(own) = shard.lock_before_split(place) else { return Ok(()) };
            if let Err(kind) = split_helps(shard, &own, place, &site.census()) {
                return path::find(shard, place).map(|_| ()).ok_or(Full::new(kind));
            }
        }
        let _no_transfer = self.accounts.transfers.read();
        let Ok(locked) = shard.lock_all() else { return Ok(()) };
        let before = site.census();
        if split_helps(shard, &locked, place, &before).is_err() {
            return Ok(());
        }
        let depth = tenure.depth() + 1;
        let new = self.buy(depth)?;
        split(shard, &locked, new.shard::<WIDE>(), &self.ground.aging, &before, |censuses| {
            let halves = [site, new];
            halves.iter().zip(censuses).for_each(|(site, census)| site.record(census));
            self.accounts.note_excess(censuses);
            let [lower, upper] = halves.map(|site| Link::new(site, depth));
            self.directory.replace(tenure, lower, upper);
        });
        Ok(())
    }

    /// Buys what a split needs: an unused shard, and entries in the directory for shards of this
    /// depth.
    ///
    /// The caller holds all locks of the shard that is to be split, and other splits wait here for
    /// their turn. Mostly an unused shard is at hand and the directory deep enough. Some
    /// dozen times per doubling, a table is allocated, and once or twice the directory copied.
    ///
    /// # Errors
    ///
    /// [`Full`] if the memory cannot be had, or
    ///
    /// * if the directory would have more than [`MOST_ENTRIES`] entries a shard. It has two or four
    ///   when hashes are random. Items that someone chose to share their first bits would otherwise
    ///   double it with each split;
    /// * if the filter would exceed its limit of bytes. A new table is only as large as leaves room
    ///   for the directory's next level too, so that its shards can be used.
    fn buy(&self, depth: u32) -> Result<&Site, Full> {
        let _alone = self.purchases.lock();
        if self.directory.roots().count << depth > MOST_ENTRIES * (self.ground.tables.shards() + 1)
        {
            return Err(Full::new(FullKind::NoRoomNearby));
        }
        let limit = Full::new(FullKind::LimitReached);
        let entries = self.directory.missing_bytes(depth);
        let left = self.max_bytes().checked_sub(self.bytes() + entries).ok_or(limit)?;
        let for_a_table = left.saturating_sub(self.directory.bytes_of(depth + 1));
        let shard = self.ground.tables.take(for_a_table).map_err(Full::new)?;
        self.directory.deepen(depth).map(|()| shard).map_err(|NoMemory| {
            self.ground.tables.give_back();
            Full::new(FullKind::NoMemory)
        })
    }

    /// The false-positive rate: how many items the lanes of two buckets match, on average over all
    /// shards.
    fn rate(&self) -> f64 {
        let of_shard = |tenure| self.directory.share(tenure) * self.site(tenure).vagueness();
        let vagueness: f64 = self.directory.shards().map(of_shard).sum();
        vagueness * rate_of_a_lane(self.geometry.lanes()) / f64::from(self.geometry.buckets())
    }
}

impl Shards for Grown {
    type Lease<'a, const WIDE: bool> = UntilSplit<'a, WIDE>;

    /// Finding the table again is cheaper than keeping its address.
    type Ahead<'a, const WIDE: bool> = (Tenure<'a>, Place);

    #[inline]
    fn is_wide(&self) -> bool {
        self.geometry.lanes().is_wide()
    }

    #[inline(always)]
    fn locate<const WIDE: bool>(&self, hash: Mixed) -> Located<'_, Self, WIDE> {
        let position = self.position(hash);
        self.located(self.directory.look_up_at(hash, position), position)
    }

    fn relocate<'a, const WIDE: bool>(
        &'a self,
        lease: UntilSplit<'a, WIDE>,
        _: Split,
    ) -> Located<'a, Self, WIDE> {
        self.locate(lease.tenure.hash())
    }

    #[inline(always)]
    fn contains_again<const WIDE: bool>(&self, (shard, _): Located<'_, Self, WIDE>) -> bool {
        self.contains_somewhere::<WIDE>(shard.lease().tenure.hash())
    }

    fn make_room<'a, const WIDE: bool>(
        &'a self,
        lease: UntilSplit<'a, WIDE>,
        _: FullKind,
    ) -> Result<Located<'a, Self, WIDE>, Full> {
        let position = self.position(lease.tenure.hash());
        let (shard, place) = self.located::<WIDE>(lease.tenure, position);
        self.split(shard, place)?;
        Ok(self.locate(lease.tenure.hash()))
    }

    fn pay_for<'a, const WIDE: bool>(
        &'a self,
        lease: UntilSplit<'a, WIDE>,
    ) -> Option<Located<'a, Self, WIDE>> {
        // No shard is split while this is held.
        let _transfer = self.accounts.transfers.write();
        let located @ (shard, place) = self.locate(lease.tenure.hash());
        let site = self.site(shard.lease().tenure);
        let paid = self.accounts.fill::<WIDE>(&self.ground.tables, site, place.first);
        paid.then_some(located)
    }

    fn perhaps_empty(&self) {
        let Grown { accounts, ground, .. } = self;
        either!(self.is_wide(), WIDE => accounts.clear_if_empty::<WIDE>(&ground.tables));
    }

    #[inline(always)]
    fn fetch<const WIDE: bool>(&self, hash: Mixed) -> (Tenure<'_>, Place) {
        let (shard, place) = self.locate::<WIDE>(hash);
        shard.prefetch(place);
        (shard.lease().tenure, place)
    }

    #[inline(always)]
    fn fetched<'a, const WIDE: bool>(
        &'a self,
        (tenure, place): (Tenure<'a>, Place),
    ) -> Located<'a, Self, WIDE> {
        (self.shard(tenure), place)
    }

    fn parts(&self) -> Parts {
        // Ranges of the least depth: no deeper shard is in two parts. Parts as large as the largest
        // shard are small enough.
        let most = self.buckets() / SHARD_BUCKETS as usize;
        Parts::at_most(most, self.directory.roots(), self.directory.shallowest())
    }

    #[inline]
    fn buckets(&self) -> usize {
        self.ground.tables.shards() * self.geometry.buckets() as usize
    }

    fn items(&self) -> usize {
        self.ground.tables.items().try_into().unwrap_or(0)
    }

    fn clear(&self) {
        let _no_transfer = self.accounts.transfers.read();
        let mut next = Some(Mixed(0));
        while let Some(hash) = next {
            let tenure = self.directory.look_up(hash);
            let nothing = || self.site(tenure).record(&Census::default());
            // If it has been split meanwhile, its halves are next.
            let cleared =
                either!(self.is_wide(), WIDE => self.shard::<WIDE>(tenure).clear(nothing));
            if cleared.is_ok() {
                next = self.directory.end(tenure);
            }
        }
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.directory.heap_bytes() + self.ground.tables.heap_bytes()
    }

    fn plan(&self) -> Plan {
        Plan::Growing(GrowthPlan { max_bytes: self.max_bytes(), ..self.plan.clone() })
    }

    fn copy_shard(&self, next: &mut Option<u64>, buckets: &mut [u64]) -> Option<Copied> {
        loop {
            let tenure = self.directory.look_up(Mixed((*next)?));
            // If it has been split meanwhile, its halves come one after the other.
            let received = || self.site(tenure).census().received;
            let copied = either!(
                self.is_wide(),
                WIDE => self.shard::<WIDE>(tenure).copy(buckets, received)
            );
            if let Ok(items) = copied {
                *next = self.directory.end(tenure).map(|hash| hash.0);
                return Some(Copied { depth: tenure.depth(), items });
            }
        }
    }

    fn stats(&self, capacity: usize) -> Stats {
        let lanes = self.geometry.lanes();
        let shards = self.ground.tables.shards();
        let roots = self.directory.roots().count;
        Stats {
            items: self.items(),
            capacity,
            slots: self.buckets() * lanes.slots(),
            fingerprint_bits: lanes.fingerprint_bits(),
            slots_per_bucket: lanes.slots(),
            shards,
            segments: self.ground.tables.segments(),
            size_in_bytes: self.heap_bytes(),
            false_positive_rate: self.rate(),
            false_positive_rate_at_capacity: self.plan.rate,
            max_bytes: Some(self.max_bytes()).filter(|bytes| *bytes < usize::MAX),
            growth: Some(Growth {
                splits: shards - roots,
                directory_depth: self.directory.level(),
                factor: shards as f64 / roots as f64,
                expected: self.plan.expected_growth,
            }),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
