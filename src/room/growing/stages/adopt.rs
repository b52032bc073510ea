//! Items of another filter, while this one has a list.

use crate::error::Full;
use crate::layout::geometry::Mixed;
use crate::room::growing::stages::Stages;

impl Stages {
    /// Adds an item of another filter, so many ticks old, unless it is in the list. If the one in the
    /// list is older, it becomes as young. Returns whether the item was added, or `None` if the list has
    /// ended.
    pub fn adopt(&self, hash: Mixed, age: u64) -> Option<Result<bool, Full>> {
        self.add_unless(hash, age, |list, stamp| {
            let now = self.now();
            list.keep(hash, stamp, |stamp| self.lanes().age_of(stamp, now));
            list.contains(hash)
        })
    }

    /// Puts what is in the list into shards, if it has not ended yet.
    pub fn leave(&self) -> Result<(), Full> {
        self.change(&mut self.listed.lock())
    }
}
