//! The items of a small filter: a list of their mixed hashes, in ascending order, in [`Slots`].
//!
//! Items are told apart by all 64 bits. Copies of an item are side by side. In a filter that forgets, each
//! slot has a [stamp](crate::layout::stamps) beside it, in an array that only writers read.
//!
//! All of this requires the list's lock. Lookups read only the slots.

pub mod slots;

use crate::backend::growing::list::slots::{GAP, GROUP, Slots};
use crate::layout::geometry::Mixed;
use std::ops::Range;
use std::sync::Arc;

/// Of this many slots, one stays empty.
const OF_SLOTS: usize = 20;

/// A new list has room for one more item per this many items, and one more group.
const GROWTH: usize = 20;

pub struct List {
    slots: Arc<Slots>,
    items: usize,
    /// The stamp beside each slot, if the filter forgets.
    stamps: Option<Box<[u8]>>,
}

impl List {
    /// Makes an empty list, with stamps if the filter forgets.
    pub fn new(forgets: bool) -> Self {
        List { slots: Arc::default(), items: 0, stamps: forgets.then(Box::default) }
    }

    /// Makes a list of these hashes, which are in ascending order, with room for more. If the filter forgets,
    /// each has a stamp. The error is the number of bytes that could not be allocated.
    pub fn of(hashes: &[u64], stamps: Option<&[u8]>) -> Result<Self, usize> {
        let stamps = stamps.map(|stamps| stamps.iter().copied());
        Self::placed(hashes.iter().copied(), hashes.len(), stamps)
    }

    /// Returns the same list with room for more.
    pub fn longer(&self) -> Result<Self, usize> {
        let hashes = self.slots.hashes().map(|(_, hash)| hash);
        let stamps = self.stamps.is_some().then(|| self.items().map(|(_, stamp)| stamp));
        Self::placed(hashes, self.items, stamps)
    }

    fn placed(
        hashes: impl Iterator<Item = u64>,
        items: usize,
        stamps: Option<impl Iterator<Item = u8>>,
    ) -> Result<Self, usize> {
        let groups = groups_for(items);
        // The last group takes hashes that have no room in their homes.
        let slots = Slots::of(hashes, (groups - 1).max(1), groups)?;
        let mut list = List { slots: slots.into(), items, stamps: None };
        if let Some(stamps) = stamps {
            let mut of_slots = Vec::new();
            of_slots.try_reserve_exact(list.slots.len()).map_err(|_| list.slots.len())?;
            of_slots.resize(list.slots.len(), 0);
            list.slots.hashes().zip(stamps).for_each(|((slot, _), stamp)| of_slots[slot] = stamp);
            list.stamps = Some(of_slots.into());
        }
        Ok(list)
    }

    pub fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    /// Returns the memory of a list of these hashes, which are in ascending order.
    pub fn bytes_of(hashes: &[u64], stamps: Option<&[u8]>) -> usize {
        Self::of(hashes, stamps).map_or(usize::MAX, |list| list.heap_bytes())
    }

    /// Returns the least memory of the [longer](Self::longer) list.
    pub fn bytes_of_longer(&self) -> usize {
        self.bytes_with(groups_for(self.items) * GROUP)
    }

    pub fn heap_bytes(&self) -> usize {
        self.bytes_with(self.slots.len())
    }

    fn bytes_with(&self, slots: usize) -> usize {
        SHARED_BYTES + slots * (size_of::<u64>() + usize::from(self.stamps.is_some()))
    }

    pub fn len(&self) -> usize {
        self.items
    }

    /// Returns the hashes in ascending order, with their stamps (or zeros, in a filter that does not forget).
    pub fn items(&self) -> impl Iterator<Item = (u64, u8)> + Clone {
        self.slots.hashes().map(|(slot, hash)| (hash, self.stamp(slot)))
    }

    fn stamp(&self, slot: usize) -> u8 {
        self.stamps.as_ref().map_or(0, |stamps| stamps[slot])
    }

    /// Returns the slots of all copies of an item.
    fn copies(&self, Mixed(hash): Mixed) -> Range<usize> {
        let first = self.slots.find(hash);
        let is_copy = |slot: &usize| hash != GAP && self.slots.at(*slot) == hash;
        first..first + (first..self.slots.len()).take_while(is_copy).count()
    }

    /// Counts the copies of an item.
    pub fn count(&self, hash: Mixed) -> usize {
        self.copies(hash).len()
    }

    pub fn contains(&self, hash: Mixed) -> bool {
        !self.copies(hash).is_empty()
    }

    /// Adds an item, or another copy of it. Returns `false` if the list has to become longer first. The stamp
    /// is ignored in a filter that does not forget.
    pub fn insert(&mut self, Mixed(hash): Mixed, stamp: u8) -> bool {
        debug_assert_ne!(hash, GAP);
        let all = self.slots.len();
        if self.items >= all - all / OF_SLOTS || self.slots.at(all - 1) != GAP {
            return false;
        }
        let slot = self.slots.find(hash);
        let gap = self.slots.put(slot, hash);
        if let Some(stamps) = &mut self.stamps {
            stamps.copy_within(slot..gap, slot + 1);
            stamps[slot] = stamp;
        }
        self.items += 1;
        true
    }

    fn take(&mut self, slot: usize) {
        let last = self.slots.take(slot);
        if let Some(stamps) = &mut self.stamps {
            stamps.copy_within(slot + 1..last + 1, slot);
        }
        self.items -= 1;
    }

    /// Removes one copy of an item, the oldest one. Returns whether there was one.
    pub fn remove(&mut self, hash: Mixed, age_of: impl Fn(u8) -> u64) -> bool {
        let copies = self.copies(hash);
        let oldest = match &self.stamps {
            None => copies.last(),
            Some(stamps) => copies.max_by_key(|slot| age_of(stamps[*slot])),
        };
        oldest.map(|slot| self.take(slot)).is_some()
    }

    /// Removes the items that have these stamps.
    pub fn expire(&mut self, is_dead: impl Fn(u8) -> bool) {
        for slot in 0..self.slots.len() {
            while self.slots.at(slot) != GAP && is_dead(self.stamp(slot)) {
                self.take(slot);
            }
        }
    }

    /// Returns the stamps of all copies of an item.
    pub fn stamps_of(&self, hash: Mixed) -> &[u8] {
        let copies = self.copies(hash);
        self.stamps.as_ref().map_or(&[], |stamps| &stamps[copies])
    }

    fn stamps_of_mut(&mut self, hash: Mixed) -> &mut [u8] {
        let copies = self.copies(hash);
        self.stamps.as_mut().map_or(&mut [], |stamps| &mut stamps[copies])
    }

    /// Gives all copies of an item this stamp. Returns whether there are any.
    pub fn refresh(&mut self, hash: Mixed, stamp: u8) -> bool {
        self.stamps_of_mut(hash).fill(stamp);
        self.contains(hash)
    }

    /// Makes the youngest copy of an item, if there is any, at most as old as this stamp.
    pub fn keep(&mut self, hash: Mixed, stamp: u8, age_of: impl Fn(u8) -> u64) {
        let youngest = self.stamps_of_mut(hash).iter_mut().min_by_key(|own| age_of(**own));
        if let Some(youngest) = youngest.filter(|own| age_of(**own) > age_of(stamp)) {
            *youngest = stamp;
        }
    }
}

/// The memory allocated beside the slots: their [`Slots`], and the two counts of its [`Arc`].
const SHARED_BYTES: usize = size_of::<Slots>() + 2 * size_of::<usize>();

/// Returns the number of groups of a new list.
fn groups_for(items: usize) -> usize {
    (items + items / (OF_SLOTS - 1) + items / GROWTH + GROUP) / GROUP
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
