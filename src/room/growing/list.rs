//! The items of a small filter: a list of their mixed hashes, in order, with gaps.
//!
//! A hash has a *home*: the slot whose place in the list is the hash's place among all hashes. It is
//! in its home or soon after it, and the hashes are in ascending order, so a lookup begins at home
//! and ends at the first gap or larger hash. Mixed hashes are spread evenly, so nine slots of ten can
//! be taken and a lookup still reads only a few.
//!
//! Items are told apart by all 64 bits. Copies of an item are side by side. Zero stands for a gap, so
//! copies of the item whose hash is zero are counted beside the list.

use crate::layout::geometry::{Mixed, scale};

/// Of so many slots, at most all but one may be taken.
const OF_SLOTS: usize = 20;

/// A new list is larger by this part, and by some slots.
const GROWTH: usize = 20;
const AT_ONCE: usize = 8;

/// The least number of slots after the last home, for hashes that are not in their homes.
const BEHIND: usize = 8;

/// The list has no room, and has to be replaced by a longer one.
#[derive(Debug, PartialEq, Eq)]
pub struct NoGap;

#[derive(Default)]
pub struct List {
    slots: Box<[u64]>,
    items: usize,
    /// The copies of the item whose hash is zero, which are not in `items`.
    zeros: usize,
    /// The slots after the last home.
    behind: usize,
}

impl List {
    /// The list of these hashes, which are in ascending order, with room for more. `Err` with the number
    /// of bytes that could not be allocated.
    pub fn of(hashes: &[u64]) -> Result<Self, usize> {
        let zeros = hashes.partition_point(|hash| *hash == 0);
        Self::placed(&hashes[zeros..], hashes.len() - zeros, zeros)
    }

    /// The same list with room for more.
    pub fn longer(&self) -> Result<Self, usize> {
        Self::placed(&self.slots, self.items, self.zeros)
    }

    /// The list of the hashes in these slots.
    fn placed(from: &[u64], items: usize, zeros: usize) -> Result<Self, usize> {
        let homes = homes_for(items);
        let mut behind = BEHIND;
        loop {
            let mut list = List { slots: gaps(homes + behind)?, items, zeros, behind };
            if list.place(from) {
                return Ok(list);
            }
            behind *= 2;
        }
    }

    /// The memory of a list of these hashes, which are in ascending order.
    pub fn bytes_of(hashes: &[u64]) -> usize {
        Self::of(hashes).map_or(usize::MAX, |list| list.heap_bytes())
    }

    /// The least memory of the [longer](Self::longer) list.
    pub fn bytes_of_longer(&self) -> usize {
        (homes_for(self.items) + BEHIND) * size_of::<u64>()
    }

    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    pub fn len(&self) -> usize {
        self.items + self.zeros
    }

    /// The hashes in ascending order.
    pub fn hashes(&self) -> impl Iterator<Item = u64> {
        let others = self.slots.iter().copied().filter(|slot| *slot != 0);
        std::iter::repeat_n(0, self.zeros).chain(others)
    }

    /// Places the hashes in these slots in order. Returns `false` if there would be no gap after the last
    /// one.
    fn place(&mut self, from: &[u64]) -> bool {
        let mut next = 0;
        for &hash in from.iter().filter(|slot| **slot != 0) {
            let at = self.home(hash).max(next);
            let Some(slot) = self.slots.get_mut(at) else { return false };
            *slot = hash;
            next = at + 1;
        }
        next < self.slots.len()
    }

    fn homes(&self) -> usize {
        self.slots.len() - self.behind
    }

    fn home(&self, hash: u64) -> usize {
        scale(hash, self.homes() as u64).0 as usize
    }

    /// Whether an item may be added before the list becomes too full.
    fn has_room(&self) -> bool {
        self.items < self.homes() - self.homes() / OF_SLOTS
    }

    /// The first slot from the item's home on that has a gap or a hash of at least this one.
    fn find(&self, hash: u64) -> usize {
        let home = self.home(hash);
        let rest = self.slots.get(home..).unwrap_or(&[]);
        let before = rest.iter().position(|slot| *slot == 0 || *slot >= hash);
        before.map_or(self.slots.len(), |before| home + before)
    }

    /// Counts the copies of an item.
    pub fn count(&self, Mixed(hash): Mixed) -> usize {
        if hash == 0 {
            return self.zeros;
        }
        let slots = self.slots[self.find(hash)..].iter();
        slots.take_while(|slot| **slot == hash).count()
    }

    pub fn contains(&self, Mixed(hash): Mixed) -> bool {
        if hash == 0 {
            return self.zeros > 0;
        }
        self.slots.get(self.find(hash)) == Some(&hash)
    }

    /// Adds an item, or another copy of it.
    pub fn insert(&mut self, Mixed(hash): Mixed) -> Result<(), NoGap> {
        if hash == 0 {
            self.zeros += 1;
            return Ok(());
        }
        if !self.has_room() {
            return Err(NoGap);
        }
        let at = self.find(hash);
        let gap = self.slots[at..].iter().position(|slot| *slot == 0).ok_or(NoGap)?;
        // Those between here and the next gap move on by one.
        self.slots.copy_within(at..at + gap, at + 1);
        self.slots[at] = hash;
        self.items += 1;
        Ok(())
    }

    /// Removes one copy of an item. Returns whether there was one.
    pub fn remove(&mut self, Mixed(hash): Mixed) -> bool {
        if hash == 0 {
            let had_any = self.zeros > 0;
            self.zeros -= usize::from(had_any);
            return had_any;
        }
        let at = self.find(hash);
        if self.slots.get(at) != Some(&hash) {
            return false;
        }
        // Those that are not at home move back by one.
        let after = at + 1;
        let stays =
            |(behind, slot): (usize, &u64)| *slot == 0 || self.home(*slot) == after + behind;
        let moved = self.slots[after..].iter().enumerate().position(stays);
        let moved = moved.unwrap_or(self.slots.len() - after);
        self.slots.copy_within(after..after + moved, at);
        self.slots[at + moved] = 0;
        self.items -= 1;
        true
    }
}

/// The homes of a new list.
fn homes_for(items: usize) -> usize {
    items + items / (OF_SLOTS - 1) + items / GROWTH + AT_ONCE
}

fn gaps(count: usize) -> Result<Box<[u64]>, usize> {
    let mut slots = Vec::new();
    slots.try_reserve_exact(count).map_err(|_| 8 * count)?;
    slots.resize(count, 0);
    Ok(slots.into())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn insert(list: &mut List, hash: Mixed) {
        if list.insert(hash) == Err(NoGap) {
            let longer = list.longer().expect("memory");
            *list = longer;
            list.insert(hash).expect("room for one more");
        }
    }

    /// Hashes in the whole range, in a corner of it, and few of them again and again.
    fn streams() -> [Vec<u64>; 4] {
        let random = |n: u64| Mixed::of(n).0;
        let all = 0..3_000;
        [
            all.clone().map(random).collect(),
            all.clone().map(|n| u64::MAX - random(n) % 5_000).collect(),
            all.clone().map(|n| random(n) % 5_000).collect(),
            all.map(|n| random(n % 50)).collect(),
        ]
    }

    #[test]
    fn a_list_agrees_with_a_multiset() {
        for hashes in streams() {
            let (mut list, mut set) = (List::default(), BTreeMap::<u64, usize>::new());
            for (step, &hash) in hashes.iter().enumerate() {
                insert(&mut list, Mixed(hash));
                *set.entry(hash).or_default() += 1;
                let other = hashes[Mixed::of(step as u64 + 1).0 as usize % hashes.len()];
                if step % 3 == 0 {
                    let copies = set.entry(other).or_default();
                    assert_eq!(list.remove(Mixed(other)), *copies > 0);
                    *copies = copies.saturating_sub(1);
                }
                let copies = set.get(&other).copied().unwrap_or(0);
                assert_eq!(
                    (list.count(Mixed(other)), list.contains(Mixed(other))),
                    (copies, copies > 0)
                );
            }
            let expected =
                set.iter().flat_map(|(hash, copies)| std::iter::repeat_n(*hash, *copies));
            assert!(list.hashes().eq(expected));
            assert_eq!(list.len(), list.hashes().count());
        }
    }

    #[test]
    fn an_empty_list_takes_nothing_and_a_long_one_nine_bytes_an_item() {
        let mut list = List::default();
        assert_eq!((list.heap_bytes(), list.len(), list.contains(Mixed(7))), (0, 0, false));
        assert!(!list.remove(Mixed(7)));
        for n in 1..20_000 {
            insert(&mut list, Mixed::of(n));
            assert!(list.heap_bytes() <= 9 * n as usize + 250, "{n}: {}", list.heap_bytes());
        }
    }
}
