//! The census of a shard: what is known of its lanes, beside the counts of its stripes.

use crate::layout::stamps::by_stamp::ByStamp;

/// What is known of the lanes of a shard, beside the counts of its stripes.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Census {
    /// The number of lanes with each stamp that stand for no item of their own.
    ///
    /// While a tick passes, the lanes of the stamp that dies are erased, and the items that they stood
    /// for are still counted. Then the excess of this stamp may be below zero.
    pub excess: ByStamp,
    /// The items that the counts have from other shards, less those that they gave away.
    pub received: i64,
    /// How many of the lanes have no bits left.
    pub used_up: u64,
    /// How many more absent items the lanes match than as many new lanes would, in units of a new
    /// lane: the [vagueness](crate::layout::aging::Aging::vagueness) of all lanes less their number.
    pub aged: u64,
}

impl Census {
    /// The number of taken lanes in a shard whose counts add up to `items`.
    pub fn lanes(&self, items: i64) -> i64 {
        items - self.received + self.excess.total()
    }
}
