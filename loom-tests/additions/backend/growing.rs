//! Access to the shards of a growing filter for models, and what mutants of saves do in more than a line.

use crate::backend::growing::Growing;
use crate::backend::growing::site::{Entry, Site};
use crate::backend::retry::Room;
use crate::shard::Copied;
use crate::error::Full;
use crate::layout::geometry::Mixed;
use std::cell::RefCell;

impl Growing {
    /// Returns the site of the shard with this number.
    pub fn site_of(&self, shard: usize) -> Option<&Site> {
        self.shared.tables.all_from(shard).next().map(|(_, site)| site)
    }

    /// Returns the entry of the shard with this number at this depth.
    pub fn entry(&self, shard: usize, depth: u32) -> Entry {
        Entry::new(self.site_of(shard).expect("a shard"), depth)
    }

    /// Splits the shard that owned the item when this entry was in the list of this level.
    pub fn split_as_seen(&self, hash: Mixed, level: u32, entry: Entry) -> Result<Room, Full> {
        let seen = self.directory.assume(hash, level, entry);
        let (shard, place) = self.located(seen, self.position(hash), self.is_wide());
        self.make_room(shard, place)
    }

    /// Says that a lane may be void.
    pub fn has_void(&self) {
        self.shared.may_have_void.set(1);
    }

    /// Joins the shard of this item with its other half.
    pub fn join_halves(&self, hash: Mixed) -> bool {
        let seen = self.directory.look_up(hash);
        let Some(other) = self.directory.sibling(seen) else { return false };
        let upper = self.directory.is_upper(seen);
        let [lower, upper] = if upper { [other, seen] } else { [seen, other] };
        self.join(lower, upper, &mut None).is_some()
    }

    /// Returns the number of shards that splits have added.
    pub fn splits(&self) -> usize {
        self.shared.tables.shards() - self.directory.roots.count
    }
}

/// The first hash of a shard, its entry, and the first hash of the next shard.
type Listed = (u64, Entry, Option<u64>);

thread_local! {
    static LISTED: RefCell<Vec<Listed>> = const { RefCell::new(Vec::new()) };
}

impl Growing {
    /// Copies the shards that existed when the first was copied.
    pub(super) fn copy_as_listed(
        &self,
        next: &mut Option<u64>,
        buckets: &mut [u64],
    ) -> Option<(u32, Copied)> {
        let hash = (*next)?;
        if hash == 0 {
            let shards = self.directory.shards();
            let end = |shard| self.directory.end(shard).map(|hash| hash.0);
            LISTED.set(shards.map(|shard| (shard.hash.0, shard.entry, end(shard))).collect());
        }
        let found = LISTED.with_borrow(|list| list.iter().find(|it| it.0 == hash).copied());
        let (_, entry, end) = found.expect("a shard");
        let shard = self.shared.tables.at(entry).shard();
        let locked = shard.lock_raw();
        shard.copy_words(&locked, buckets);
        let (items, time) = (shard.all_items(), self.ticking().map(|it| it.time().0));
        *next = end;
        Some((entry.depth(), Copied { items, time }))
    }
}
