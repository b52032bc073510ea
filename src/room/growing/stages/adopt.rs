//! Items of another filter, while this one has a list.

use crate::error::Full;
use crate::layout::geometry::Mixed;
use crate::room::growing::stages::Stages;

impl Stages {
    /// Adds an item of another filter, so many ticks old, unless it is in the list. If the one in the
    /// list is older, it becomes as young. Returns whether the item was added, or `None` if the list has
    /// ended.
    pub fn adopt(&self, hash: Mixed, age: u64) -> Option<Result<bool, Full>> {
        let mut listed = self.listed.write();
        let now = self.now();
        let stamp = self.lanes().stamp_of_age(age, now) as u8;
        if !listed.has_ended && listed.list.contains(hash) {
            listed.list.keep(hash, stamp, |stamp| self.lanes().age_of(stamp, now));
            return Some(Ok(false));
        }
        self.add(&mut listed, hash, stamp).map(|result| result.map(|()| true))
    }

    /// Puts what is in the list into shards, if it has not ended yet.
    pub fn leave(&self) -> Result<(), Full> {
        let mut listed = self.listed.write();
        if listed.has_ended { Ok(()) } else { self.change(&mut listed) }
    }
}
