//! A list gets more items, becomes longer, and ends.

use crate::backend::growing::list::List;
use crate::backend::growing::list::slots::GAP;
use crate::backend::growing::sharded::AnySharded;
use crate::backend::growing::{Growing, Listed, address, enough_for_a_shard, slots_cache};
use crate::error::{Full, FullKind, Reason};
use crate::layout::either;
use crate::layout::geometry::Mixed;
use crate::layout::shrinking::{GROWING_BUCKETS, Matches, Shrinking};
use crate::rule::rule;
use crate::sync::Ordering;

/// A list may become so many times as long as one whose items are enough for a shard: for as long as the
/// system refuses the memory for one, or if its items fit in no shards of the greatest [`DEPTH`]. That
/// happens only if someone who knows the hasher's keys chose them.
const LONGER: usize = 4;

/// The first shards of a list's items may be as if they had been split so many times. Items that the list told
/// apart may have one fingerprint in a shard, and more copies together than two buckets have lanes. (At 8
/// bits, a list of items with all the copies that they may have needs a first split once in a thousand lists.)
const DEPTH: u32 = 4;

/// No list has more items.
pub const MAX_LISTED: usize = LONGER * 2 * GROWING_BUCKETS as usize;

impl Growing {
    /// The most items that the list may have.
    pub(super) fn most(&self) -> usize {
        LONGER * enough_for_a_shard(&self.plan)
    }

    /// Adds an item with this stamp to the list, unless that has ended or ends now.
    pub(super) fn add(
        &self,
        listed: &mut Listed,
        hash: Mixed,
        stamp: u8,
    ) -> Option<Result<(), Full>> {
        let list = listed.list.as_ref()?;
        // As many copies as in shards.
        let (copies, items) = (list.count(hash), list.len());
        let copies = Matches { lanes: copies, whole: copies, lost: 0 };
        let lanes = self.lanes();
        if !either!(lanes.is_wide(), WIDE => Shrinking::<WIDE>::new(lanes).takes_another(copies)) {
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

    /// Makes the list longer, or changes to shards if the limit leaves room for these but not for both.
    fn lengthen(&self, listed: &mut Listed) -> Result<(), Full> {
        let Some(list) = &listed.list else { return Ok(()) };
        // Known before anything is copied, so that a refusal is quick.
        let least = self.plan.own_bytes.saturating_add(list.bytes_of_longer());
        let most = self.max_bytes();
        let changes = least.saturating_add(AnySharded::bytes_of(&self.plan)) > most;
        if changes && self.change(listed).is_ok() {
            return Ok(());
        }
        let limit = Full::new(FullKind::LimitReached);
        let list = listed.list.as_ref().filter(|_| least <= most).ok_or(limit)?;
        let longer = list.longer().map_err(|_| Full::new(FullKind::NoMemory))?;
        // It may need more slots at its end.
        if self.plan.own_bytes.saturating_add(longer.heap_bytes()) > most {
            return Err(limit);
        }
        self.replace(listed, longer);
        Ok(())
    }

    /// Replaces the list by another one. Lookups of this thread know it already.
    pub(super) fn replace(&self, listed: &mut Listed, list: List) {
        rule!(
            "lookups_do_not_learn_of_a_longer_list",
            self.slots.store(address(&list), Ordering::Relaxed),
            ()
        );
        slots_cache::keep(self, Some(list.slots()));
        listed.list = Some(list);
    }

    /// Puts all items into shards, and ends the list, unless it has ended.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no memory for the shards, or if the limit leaves no room for them; or, as
    /// [`NoRoomNearby`](FullKind::NoRoomNearby), if the items do not fit in any.
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
