//! What models need of the shards of a growing filter. Under loom only.

use crate::error::Full;
use crate::layout::geometry::Mixed;
use crate::layout::sizing::GrowthPlan;
use crate::layout::stamps::by_stamp::ByStamp;
use crate::room::growing::grown::Grown;
use crate::room::growing::site::{Link, Site};

impl Grown {
    #[doc(hidden)]
    pub fn of(plan: GrowthPlan) -> Self {
        Grown::new(plan).expect("memory for a small table")
    }

    /// The site of the shard with this number.
    #[doc(hidden)]
    pub fn site_of(&self, shard: usize) -> Option<&Site> {
        self.ground.tables.sites_from(shard).next().map(|(_, site)| site)
    }

    /// Does this while no lanes are erased because they are left over.
    #[doc(hidden)]
    pub fn as_in_a_split(&self, act: impl FnOnce()) {
        let _a_split = self.ground.ledger.splits.read();
        act();
    }

    /// Puts items on the ledger whose used-up lanes are in the shard with this number.
    #[doc(hidden)]
    pub fn put_on_the_ledger(&self, shard: usize, stamp: usize, items: i64) {
        let site = self.site_of(shard).expect("a shard");
        self.ground.ledger.put(site, &ByStamp::only(stamp, items));
    }

    /// The link to the shard with this number, if it has this depth.
    #[doc(hidden)]
    pub fn link(&self, shard: usize, depth: u32) -> Link {
        Link::new(self.site_of(shard).expect("a shard"), depth)
    }

    /// Splits the shard that owned the item when this link was in the list of this level.
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
}
