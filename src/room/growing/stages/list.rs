//! The items of a small filter: a list of their mixed hashes, in order, with gaps.
//!
//! A hash has a *home*: the slot whose place in the list is the hash's place among all hashes. It is
//! in its home or soon after it, and the hashes are in ascending order, so a lookup begins at home
//! and ends at the first gap or larger hash. Mixed hashes are spread evenly, so nine slots of ten can
//! be taken and a lookup still reads only a few.
//!
//! Items are told apart by all 64 bits. Copies of an item are side by side. Zero stands for a gap, so
//! copies of the item whose hash is zero are counted beside the list.
//!
//! In a filter that forgets, each slot has a [stamp](crate::layout::stamps) beside it, in a row of its own.

use crate::layout::geometry::{Mixed, scale};
use std::ops::Range;

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
    /// If the filter forgets.
    stamps: Option<Box<Stamps>>,
}

/// The stamps of the items in a list.
#[derive(Default)]
struct Stamps {
    /// Of the item in each slot.
    of_slots: Box<[u8]>,
    /// Of the copies of the item whose hash is zero.
    of_zeros: Vec<u8>,
}

impl List {
    /// An empty list, of a filter that forgets or not.
    pub fn new(forgets: bool) -> Self {
        List { stamps: forgets.then(Box::default), ..List::default() }
    }

    /// The list of these hashes, which are in ascending order, with room for more. If the filter forgets,
    /// each has a stamp. `Err` with the number of bytes that could not be allocated.
    pub fn of(hashes: &[u64], stamps: Option<&[u8]>) -> Result<Self, usize> {
        let zeros = hashes.partition_point(|hash| *hash == 0);
        let of_zeros = stamps.map(|stamps| stamps[..zeros].to_vec());
        let of_others = stamps.map(|stamps| &stamps[zeros..]);
        let from = (&hashes[zeros..], of_others.unwrap_or(&[]));
        Self::placed(from, hashes.len() - zeros, zeros, of_zeros)
    }

    /// The same list with room for more.
    pub fn longer(&self) -> Result<Self, usize> {
        let stamps = self.stamps.as_deref();
        let of_slots = stamps.map_or(&[][..], |stamps| &stamps.of_slots);
        let of_zeros = stamps.map(|stamps| stamps.of_zeros.clone());
        Self::placed((&self.slots, of_slots), self.items, self.zeros, of_zeros)
    }

    /// The list of the hashes in these slots, with these stamps.
    fn placed(
        from: (&[u64], &[u8]),
        items: usize,
        zeros: usize,
        mut of_zeros: Option<Vec<u8>>,
    ) -> Result<Self, usize> {
        let homes = homes_for(items);
        let mut behind = BEHIND;
        loop {
            let slots = gaps(homes + behind)?;
            let stamps = match of_zeros.take() {
                None => None,
                Some(of_zeros) => {
                    Some(Box::new(Stamps { of_slots: gaps(homes + behind)?, of_zeros }))
                }
            };
            let mut list = List { slots, items, zeros, behind, stamps };
            if list.place(from) {
                return Ok(list);
            }
            of_zeros = list.stamps.map(|stamps| stamps.of_zeros);
            behind *= 2;
        }
    }

    /// The memory of a list of these hashes, which are in ascending order.
    pub fn bytes_of(hashes: &[u64], stamps: Option<&[u8]>) -> usize {
        Self::of(hashes, stamps).map_or(usize::MAX, |list| list.heap_bytes())
    }

    /// The least memory of the [longer](Self::longer) list.
    pub fn bytes_of_longer(&self) -> usize {
        let of_one = size_of::<u64>() + usize::from(self.stamps.is_some());
        (homes_for(self.items) + BEHIND) * of_one
    }

    pub fn heap_bytes(&self) -> usize {
        let of_stamps = |stamps: &Stamps| {
            size_of_val(stamps) + stamps.of_slots.len() + stamps.of_zeros.capacity()
        };
        size_of_val(&*self.slots) + self.stamps.as_deref().map_or(0, of_stamps)
    }

    pub fn len(&self) -> usize {
        self.items + self.zeros
    }

    /// The hashes in ascending order.
    pub fn hashes(&self) -> impl Iterator<Item = u64> + Clone {
        let others = self.slots.iter().copied().filter(|slot| *slot != 0);
        std::iter::repeat_n(0, self.zeros).chain(others)
    }

    /// The stamps in the order of the hashes, in a filter that forgets.
    pub fn stamps(&self) -> Option<impl Iterator<Item = u8> + Clone> {
        let stamps = self.stamps.as_deref()?;
        let others = self.slots.iter().zip(&stamps.of_slots).filter(|(slot, _)| **slot != 0);
        Some(stamps.of_zeros.iter().copied().chain(others.map(|(_, stamp)| *stamp)))
    }

    /// Places the hashes in these slots in order, with their stamps. Returns `false` if there would be no
    /// gap after the last one.
    fn place(&mut self, (from, stamps): (&[u64], &[u8])) -> bool {
        let mut next = 0;
        for (index, &hash) in from.iter().enumerate().filter(|(_, slot)| **slot != 0) {
            let at = self.home(hash).max(next);
            if at >= self.slots.len() {
                return false;
            }
            self.set(at, hash, stamps.get(index).copied());
            next = at + 1;
        }
        next < self.slots.len()
    }

    /// Puts a hash into a slot, and a stamp beside it.
    fn set(&mut self, at: usize, hash: u64, stamp: Option<u8>) {
        self.slots[at] = hash;
        if let (Some(stamps), Some(stamp)) = (&mut self.stamps, stamp) {
            stamps.of_slots[at] = stamp;
        }
    }

    /// Moves slots to where these begin.
    fn move_within(&mut self, slots: Range<usize>, to: usize) {
        self.slots.copy_within(slots.clone(), to);
        if let Some(stamps) = &mut self.stamps {
            stamps.of_slots.copy_within(slots, to);
        }
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

    /// Adds an item, or another copy of it. The stamp is that of a filter that forgets.
    pub fn insert(&mut self, Mixed(hash): Mixed, stamp: u8) -> Result<(), NoGap> {
        if hash == 0 {
            self.zeros += 1;
            self.stamps.iter_mut().for_each(|stamps| stamps.of_zeros.push(stamp));
            return Ok(());
        }
        if !self.has_room() {
            return Err(NoGap);
        }
        let at = self.find(hash);
        let gap = self.slots[at..].iter().position(|slot| *slot == 0).ok_or(NoGap)?;
        // Those between here and the next gap move on by one.
        self.move_within(at..at + gap, at + 1);
        self.set(at, hash, Some(stamp));
        self.items += 1;
        Ok(())
    }

    /// The slots of all copies of an item whose hash is not zero.
    fn copies(&self, hash: u64) -> Range<usize> {
        let at = self.find(hash);
        at..at + self.count(Mixed(hash))
    }

    /// The stamps of all copies of an item.
    pub fn stamps_of(&self, Mixed(hash): Mixed) -> &[u8] {
        let Some(stamps) = &self.stamps else { return &[] };
        if hash == 0 { &stamps.of_zeros } else { &stamps.of_slots[self.copies(hash)] }
    }

    fn stamps_of_mut(&mut self, hash: u64) -> &mut [u8] {
        let copies = self.copies(hash);
        let Some(stamps) = &mut self.stamps else { return &mut [] };
        if hash == 0 { &mut stamps.of_zeros } else { &mut stamps.of_slots[copies] }
    }

    /// Gives all copies of an item this stamp. Returns whether there are any.
    pub fn refresh(&mut self, Mixed(hash): Mixed, stamp: u8) -> bool {
        self.stamps_of_mut(hash).fill(stamp);
        self.contains(Mixed(hash))
    }

    /// Makes the youngest copy of an item, of which there is one, at most as old as this stamp.
    pub fn keep(&mut self, Mixed(hash): Mixed, stamp: u8, age_of: impl Fn(u8) -> u64) {
        let youngest = self.stamps_of_mut(hash).iter_mut().min_by_key(|own| age_of(**own));
        if let Some(youngest) = youngest.filter(|own| age_of(**own) > age_of(stamp)) {
            *youngest = stamp;
        }
    }

    /// Removes the items that have these stamps.
    pub fn expire(&mut self, is_dead: impl Fn(u8) -> bool) {
        let Some(mut stamps) = self.stamps.take() else { return };
        stamps.of_zeros.retain(|stamp| !is_dead(*stamp));
        self.zeros = stamps.of_zeros.len();
        // The others move back toward their homes, as far as those before them let them.
        let mut next = 0;
        for at in 0..self.slots.len() {
            let (hash, stamp) = (std::mem::take(&mut self.slots[at]), stamps.of_slots[at]);
            if hash == 0 {
                continue;
            }
            if is_dead(stamp) {
                self.items -= 1;
                continue;
            }
            let to = self.home(hash).max(next);
            (self.slots[to], stamps.of_slots[to]) = (hash, stamp);
            next = to + 1;
        }
        self.stamps = Some(stamps);
    }

    /// Removes one copy of an item, the oldest one. Returns whether there was one.
    pub fn remove(&mut self, Mixed(hash): Mixed, age_of: impl Fn(u8) -> u64) -> bool {
        // The first goes, and leaves its stamp to the oldest.
        let stamps = self.stamps_of_mut(hash);
        if let Some(oldest) = (0..stamps.len()).max_by_key(|copy| age_of(stamps[*copy])) {
            stamps.swap(0, oldest);
        }
        if hash == 0 {
            let had_any = self.zeros > 0;
            self.zeros -= usize::from(had_any);
            let of_zeros = self.stamps.iter_mut().map(|stamps| &mut stamps.of_zeros);
            of_zeros.for_each(|stamps| drop(stamps.drain(..usize::from(had_any))));
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
        self.move_within(after..after + moved, at);
        self.slots[at + moved] = 0;
        self.items -= 1;
        true
    }
}

/// The homes of a new list.
fn homes_for(items: usize) -> usize {
    items + items / (OF_SLOTS - 1) + items / GROWTH + AT_ONCE
}

fn gaps<T: Clone + Default>(count: usize) -> Result<Box<[T]>, usize> {
    let mut slots = Vec::new();
    slots.try_reserve_exact(count).map_err(|_| size_of::<T>() * count)?;
    slots.resize(count, T::default());
    Ok(slots.into())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
