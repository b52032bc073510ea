//! Access to the shards of a growing filter for loom models. Under loom only.

use crate::backend::growing::sharded::Sharded;
use crate::backend::growing::site::{Entry, Site};
use crate::error::Full;
use crate::layout::geometry::Mixed;
use crate::layout::stamps::by_stamp::ByStamp;

impl<const WIDE: bool> Sharded<WIDE> {
    /// Returns the site of the shard with this number.
    #[doc(hidden)]
    pub fn site_of(&self, shard: usize) -> Option<&Site> {
        self.shared.tables.all_from(shard).next().map(|(_, site)| site)
    }

    /// Calls `act` while no leftover lanes are erased.
    #[doc(hidden)]
    pub fn as_in_a_split(&self, act: impl FnOnce()) {
        let _a_split = self.shared.ledger.splits.read();
        act();
    }

    /// Deposits items whose exhausted lanes are in the shard with this number in the ledger.
    #[doc(hidden)]
    pub fn put_on_the_ledger(&self, shard: usize, stamp: usize, items: i64) {
        let site = self.site_of(shard).expect("a shard");
        self.shared.ledger.deposit(site, &ByStamp::only(stamp, items));
    }

    /// Returns the entry of the shard with this number at this depth.
    #[doc(hidden)]
    pub fn entry(&self, shard: usize, depth: u32) -> Entry {
        Entry::new(self.site_of(shard).expect("a shard"), depth)
    }

    /// Splits the shard that owned the item when this entry was in the list of this level.
    #[doc(hidden)]
    pub fn split_as_seen(&self, hash: Mixed, level: u32, entry: Entry) -> Result<(), Full> {
        let seen = self.directory.assume(hash, level, entry);
        let (shard, place) = self.located(seen, self.position(hash));
        self.split(shard, place)
    }

    /// Joins the shard of this item with its other half.
    #[doc(hidden)]
    pub fn join_halves(&self, hash: Mixed) -> bool {
        let seen = self.directory.look_up(hash);
        let Some(other) = self.directory.sibling(seen) else { return false };
        let upper = self.directory.is_upper(seen);
        let [lower, upper] = if upper { [other, seen] } else { [seen, other] };
        self.join(lower, upper, &mut None)
    }

    /// Brings a shorter list of the directory into use.
    #[doc(hidden)]
    pub fn become_shallower(&self) {
        self.directory.become_shallower();
    }

    /// Returns the number of shards that splits have added.
    pub fn splits(&self) -> usize {
        self.shared.tables.shards() - self.directory.roots().count
    }
}
