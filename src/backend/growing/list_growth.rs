//! How a list gets more items, becomes longer, and is replaced by shards.

use crate::backend::growing::list::List;
use crate::backend::growing::list::slots::GAP;
use crate::backend::growing::sharded::AnySharded;
use crate::backend::growing::{Growing, Listed, address, enough_for_a_shard, slots_cache};
use crate::error::{Full, FullKind, Reason};
use crate::layout::either;
use crate::layout::geometry::Mixed;
use crate::layout::shrinking::{GROWING_BUCKETS, Matches};
use crate::rule::rule;
use crate::sync::Ordering;

/// A list may become this many times as long as a list whose items are enough for a shard: while the system
/// refuses the memory for a shard, or if its items do not fit in shards of the greatest [`DEPTH`]. The latter
/// happens only if someone who knows the hasher's keys chose the items.
const LONGER: usize = 4;

/// The greatest depth of the first shards that replace a list. Items that the list told apart may have the
/// same fingerprint in a shard, and more copies together than two buckets have lanes. (At 8 bits, one list in
/// a thousand needs a first split, if all its items have as many copies as they may.)
const DEPTH: u32 = 4;

/// The most items of any list.
pub const MAX_LISTED: usize = LONGER * 2 * GROWING_BUCKETS as usize;

impl Growing {
    /// Returns the most items that the list may have.
    pub(super) fn most(&self) -> usize {
        LONGER * enough_for_a_shard(&self.plan)
    }

    /// Adds an item with this stamp to the list. Returns `None` if the list has ended, or ends now.
    pub(super) fn add(
        &self,
        listed: &mut Listed,
        hash: Mixed,
        stamp: u8,
    ) -> Option<Result<(), Full>> {
        let list = listed.list.as_ref()?;
        // The limit of copies is the same as in shards.
        let (copies, items) = (list.count(hash), list.len());
        let copies = Matches { lanes: copies, whole: copies, lost: 0 };
        let takes_another = either!(self.lanes().is_wide(), WIDE => {
            self.plan.shrinking::<WIDE>().takes_another(copies)
        });
        if !takes_another {
            return Some(Err(Full::new(FullKind::TooManyCopies)));
        }
        if hash.0 == GAP {
            return self.change(listed).err().map(Err);
        }
        let is_longest = items >= self.most();
        if items >= listed.due {
            match self.change(listed) {
                Ok(()) => return None,
                Err(full) if full.kind() == FullKind::NoRoomNearby => listed.due = usize::MAX,
                Err(full) if is_longest => return Some(Err(full)),
                Err(_) => listed.due = (listed.due + listed.due.div_ceil(4)).min(self.most()),
            }
        }
        if is_longest {
            return Some(Err(Full::new(FullKind::NoRoomNearby)));
        }
        while !listed.list.as_mut()?.insert(hash, stamp) {
            if let Err(full) = self.lengthen(listed) {
                return Some(Err(full));
            }
        }
        Some(Ok(()))
    }

    /// Makes the list longer. Changes to shards instead if the limit of bytes leaves no room for both.
    fn lengthen(&self, listed: &mut Listed) -> Result<(), Full> {
        let Some(list) = &listed.list else { return Ok(()) };
        // This is known before anything is copied, so a refusal is quick.
        let least = self.plan.own_bytes.saturating_add(list.bytes_of_longer());
        let most = self.max_bytes();
        let changes = least.saturating_add(AnySharded::bytes_of(&self.plan)) > most;
        if changes && self.change(listed).is_ok() {
            return Ok(());
        }
        let limit = Full::new(FullKind::LimitReached);
        let list = listed.list.as_ref().filter(|_| least <= most).ok_or(limit)?;
        let longer = list.longer().map_err(|_| Full::new(FullKind::NoMemory))?;
        // The new list may need more slots at its end.
        if self.plan.own_bytes.saturating_add(longer.heap_bytes()) > most {
            return Err(limit);
        }
        self.replace(listed, longer);
        Ok(())
    }

    /// Replaces the list by another one, and caches its slots for lookups by this thread.
    pub(super) fn replace(&self, listed: &mut Listed, list: List) {
        rule!(
            "lookups_do_not_learn_of_a_longer_list",
            self.slots.store(address(&list), Ordering::Relaxed),
            ()
        );
        slots_cache::keep(self, Some(list.slots()));
        listed.list = Some(list);
    }

    /// Moves all items into shards, and ends the list, unless it has ended.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no memory for the shards, if the limit leaves no room for them, or if the items
    /// fit in no shards: as [`NoRoomNearby`](FullKind::NoRoomNearby).
    pub(super) fn change(&self, listed: &mut Listed) -> Result<(), Full> {
        let Some(list) = &listed.list else { return Ok(()) };
        for depth in 0..=DEPTH {
            let mut sharded = match AnySharded::new_at_depth(self.plan(), depth) {
                Ok(sharded) => sharded,
                Err(reason) if depth == 0 => return Err(of_reason(reason)),
                Err(_) => break,
            };
            let inserted = if self.plan.forgets() {
                self.insert_in_time(&mut sharded, list.items())
            } else {
                list.items().try_for_each(|(hash, _)| sharded.insert_listed(Mixed(hash)))
            };
            match inserted {
                Ok(()) => {
                    rule!("a_list_ends_before_its_shards_are_known", (), {
                        self.replace(listed, List::new(self.plan.forgets()));
                        return Ok(());
                    });
                    let _ = self.shards.set(Box::new(sharded));
                    slots_cache::keep(self, None);
                    listed.list = None;
                    return Ok(());
                }
                Err(full) if is_for_memory(full) => return Err(full),
                Err(_) => {}
            }
        }
        Err(Full::new(FullKind::NoRoomNearby))
    }
}

fn of_reason(reason: Reason) -> Full {
    match reason {
        Reason::LimitTooSmall { .. } => Full::new(FullKind::LimitReached),
        _ => Full::new(FullKind::NoMemory),
    }
}

fn is_for_memory(full: Full) -> bool {
    matches!(full.kind(), FullKind::LimitReached | FullKind::NoMemory)
}
