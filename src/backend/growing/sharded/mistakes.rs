//! What a [rule](crate::rule) of saves is broken with where that takes more than a line. Under loom only.

use crate::backend::growing::sharded::Sharded;
use crate::backend::growing::site::Entry;
use crate::backend::parts::Copied;
use crate::layout::stamps::by_stamp::ByStamp;
use std::cell::RefCell;

/// The beginning of a shard's hashes, the shard, and their end.
type Listed = (u64, Entry, Option<u64>);

thread_local! {
    static LISTED: RefCell<Vec<Listed>> = const { RefCell::new(Vec::new()) };
}

impl<const WIDE: bool> Sharded<WIDE> {
    /// Copies the shards that there were when the first was copied.
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
        let Ok(items) = self.shared.tables.at(entry).shard::<false>().copy(buckets, || 0);
        *next = end;
        Some(Copied { depth: entry.depth(), items, exhausted: ByStamp::default() })
    }

    /// Copies the first shard, and nothing else.
    pub(super) fn copy_first(&self, next: &mut Option<u64>, buckets: &mut [u64]) -> Option<Copied> {
        let first = self.directory.shards().next().expect("a shard");
        let Ok(items) = self.shared.tables.at(first.entry()).shard::<false>().copy(buckets, || 0);
        *next = None;
        Some(Copied { depth: 0, items, exhausted: ByStamp::default() })
    }
}
