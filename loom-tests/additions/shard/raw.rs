//! What mutants of a raw shard do in more than a line.

use crate::layout::bucket::Words;
use crate::layout::geometry::SHARD_STRIPES;
use crate::shard::raw::RawShard;
use crate::table::stripe::Many;

impl<'a, W: Into<bool> + Copy> RawShard<'a, W> {
    /// Clears the shard with one lock at a time.
    pub(super) fn clear_one_by_one(self) -> Many<'a, SHARD_STRIPES> {
        for bucket in self.buckets() {
            let locked = self.table.stripes.lock(self.stripe(bucket));
            let taken = self.lanes().taken(self.read_locked(&locked, bucket).heads).len();
            if taken > 0 {
                self.write(&locked, bucket, Words::default());
                self.add_items(&locked, bucket, -(taken as i32));
            }
        }
        self.table.stripes.lock_many(&[].into_iter().collect())
    }
}
