//! Broken variants for [rules](crate::rule) of saves where a variant takes more than one line. Under loom
//! only.

use crate::backend::exchange::Copied;
use crate::backend::growing::sharded::Sharded;
use crate::backend::growing::site::Entry;
use std::cell::RefCell;

/// The first hash of a shard, its entry, and the first hash of the next shard.
type Listed = (u64, Entry, Option<u64>);

thread_local! {
    static LISTED: RefCell<Vec<Listed>> = const { RefCell::new(Vec::new()) };
}

impl<const WIDE: bool> Sharded<WIDE> {
    /// Copies the shards that existed when the first was copied.
    pub(super) fn copy_as_listed(
        &self,
        next: &mut Option<u64>,
        buckets: &mut [u64],
    ) -> Option<Copied> {
        let hash = (*next)?;
        if hash == 0 {
            let shards = self.directory.shards();
            let end = |shard| self.directory.end(shard).map(|hash| hash.0);
            LISTED.set(shards.map(|shard| (shard.hash().0, shard.entry(), end(shard))).collect());
        }
        let found = LISTED.with_borrow(|list| list.iter().find(|it| it.0 == hash).copied());
        let (_, entry, end) = found.expect("a shard");
        let Ok(items) = self.shared.tables.at(entry).shard::<false>().copy(buckets);
        *next = end;
        Some(Copied { depth: entry.depth(), items })
    }

    /// Copies only the first shard.
    pub(super) fn copy_first(&self, next: &mut Option<u64>, buckets: &mut [u64]) -> Option<Copied> {
        let first = self.directory.shards().next().expect("a shard");
        let Ok(items) = self.shared.tables.at(first.entry()).shard::<false>().copy(buckets);
        *next = None;
        Some(Copied { depth: 0, items })
    }
}
