//! The slots of a list, and how lookups read them without a lock.
//!
//! A slot has the hash of an item, or a gap. The hashes are in ascending order. Slots are in [groups](GROUP)
//! of 128 bytes. A hash has a *home*: the group whose place in the list corresponds to the hash's place among
//! all hashes. It is in its home or soon after it, and all slots in between are taken. Mixed hashes are
//! spread evenly, so nineteen slots of twenty can be taken, and a lookup still mostly reads only one or two groups.
//!
//! A writer holds the lock of the list. It moves hashes forward to make room for another one, or backward
//! after a removal, and the version is odd meanwhile, as that of a [stripe](crate::table::stripe) is during a
//! kick. Slots that are too full are not changed any more: the list gets a longer array of slots.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | the version | as in [`stripe`](crate::table::stripe) | the same |
//! | writer: slots | `Release` | the reader's loads: a reader that saw a slot from which a hash had moved also sees the odd version. Twin `hashes_are_stored_relaxed` |
//! | reader: slots | `Acquire` | the same. Twin `hashes_are_loaded_relaxed` |

use crate::layout::SMALL;
use crate::layout::geometry::{Mixed, scale};
use crate::rule::rule;
use crate::sync::{AtomicU64, Ordering, read_owned};
use crate::table::stripe::{SeenVersion, make_even, make_odd};

/// A slot without a hash. It compares greater than all other hashes. It is also a valid hash, but an item
/// with that hash is in no list.
pub const GAP: u64 = u64::MAX;

pub const GROUP: usize = if SMALL { 2 } else { 16 };

#[derive(Default)]
pub struct Slots {
    /// Odd while hashes are being moved.
    version: AtomicU64,
    /// The number of groups that are homes. More groups follow them.
    homes: usize,
    /// Whole groups.
    slots: Box<[AtomicU64]>,
}

impl Slots {
    /// Makes the slots of these hashes, which are in ascending order: at least `groups` groups, and with a
    /// gap at the end. The first `homes` groups are homes. The error is the number of bytes that could not be
    /// allocated.
    pub fn of(
        hashes: impl Iterator<Item = u64>,
        homes: usize,
        groups: usize,
    ) -> Result<Self, usize> {
        let no_memory = |_| size_of::<u64>() * groups * GROUP;
        let gap = || AtomicU64::new(GAP);
        let mut slots = Vec::new();
        slots.try_reserve_exact(groups * GROUP).map_err(no_memory)?;
        for hash in hashes {
            let home = home(hash, homes) * GROUP;
            slots.resize_with(home.max(slots.len()), gap);
            slots.try_reserve(1).map_err(no_memory)?;
            slots.push(AtomicU64::new(hash));
        }
        let all = (slots.len() + 1).next_multiple_of(GROUP).max(groups * GROUP);
        slots.try_reserve_exact(all - slots.len()).map_err(no_memory)?;
        slots.resize_with(all, gap);
        Ok(Slots { version: AtomicU64::new(0), homes, slots: slots.into() })
    }

    /// Answers a question without a lock. Returns `None` if hashes may have been moving.
    #[inline]
    pub fn ask<A>(&self, question: impl FnOnce(&Self) -> A) -> Option<A> {
        let seen = SeenVersion::of(&self.version);
        let answer = question(self);
        rule!("a_lookup_in_a_list_is_not_validated", seen.still_holds(), true).then_some(answer)
    }

    #[inline]
    pub fn contains(&self, hash: Mixed) -> bool {
        self.search(hash).is_some_and(|(found, _)| found == hash.0)
    }

    pub fn count(&self, hash: Mixed) -> usize {
        let Some((_, slot)) = self.search(hash) else { return 0 };
        self.slots[slot..].iter().take_while(|slot| load(slot) == hash.0).count()
    }

    /// Returns the first hash that is at least this one, and its slot, as a reader sees them.
    #[inline]
    fn search(&self, Mixed(hash): Mixed) -> Option<(u64, usize)> {
        let (groups, _) = self.slots.as_chunks::<GROUP>();
        let mut at = home(hash, self.homes);
        let group = loop {
            let group = groups.get(at).filter(|_| hash != GAP)?;
            if load(&group[GROUP - 1]) >= hash {
                break group;
            }
            at += 1;
        };
        // A binary search in this group, without branches, which would be unpredictable.
        let (mut less, mut half) = (0, GROUP / 2);
        while half > 0 {
            less += half * usize::from(load(&group[less + half - 1]) < hash);
            half /= 2;
        }
        Some((load(&group[less]), at * GROUP + less))
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the contents of a slot. The caller holds the lock.
    pub fn at(&self, slot: usize) -> u64 {
        read_owned(&self.slots[slot])
    }

    /// Returns the slots with hashes, in order. The caller holds the lock.
    pub fn hashes(&self) -> impl Iterator<Item = (usize, u64)> + Clone {
        self.slots.iter().map(read_owned).enumerate().filter(|(_, hash)| *hash != GAP)
    }

    /// Returns the first slot from the item's home on that has a gap, or a hash that is at least this one.
    pub fn find(&self, hash: u64) -> usize {
        let home = home(hash, self.homes) * GROUP;
        let from_home = self.slots.get(home..).unwrap_or(&[]);
        home + from_home.iter().take_while(|slot| read_owned(slot) < hash).count()
    }

    /// Puts a hash into a slot. The hashes from there to the next gap move forward by one; there has to be a
    /// gap. Returns the slot of the gap.
    pub fn put(&self, slot: usize, mut hash: u64) -> usize {
        let mut gap = slot;
        self.write_section(|| {
            for slot in &self.slots[slot..] {
                let next = read_owned(slot);
                store(slot, hash);
                if next == GAP {
                    break;
                }
                (gap, hash) = (gap + 1, next);
            }
        });
        gap
    }

    /// Takes the hash out of a slot. The hashes after it that are not at home move back by one. Returns the
    /// slot of the last of them.
    pub fn take(&self, slot: usize) -> usize {
        let mut last = slot;
        self.write_section(|| {
            for next in slot + 1..self.slots.len() {
                let hash = self.at(next);
                if hash == GAP || home(hash, self.homes) * GROUP == next {
                    break;
                }
                store(&self.slots[last], hash);
                last = next;
            }
            store(&self.slots[last], GAP);
        });
        last
    }

    fn write_section(&self, moves: impl FnOnce()) {
        rule!("a_list_changes_without_its_version", (), return moves());
        make_odd(&self.version);
        moves();
        make_even(&self.version);
    }
}

/// Returns the contents of a slot to a reader.
#[inline]
fn load(slot: &AtomicU64) -> u64 {
    slot.load(rule!("hashes_are_loaded_relaxed", Ordering::Acquire, Ordering::Relaxed))
}

fn store(slot: &AtomicU64, hash: u64) {
    let order = rule!("hashes_are_stored_relaxed", Ordering::Release, Ordering::Relaxed);
    slot.store(hash, order);
}

/// Returns the group that is the home of a hash, out of `homes` groups.
#[inline]
fn home(hash: u64, homes: usize) -> usize {
    scale(hash, homes as u64).0 as usize
}
