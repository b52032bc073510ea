//! A few items: their hashes, in order. A filter that grows takes 64 KiB at least, and this 8 bytes an item. An insert
//! moves half of them, which takes less than a microsecond.

use crate::set::totals;
use koel::{FullKind, Prehashed};

/// The hashes of a few items, in ascending order, with as many copies as were added.
#[derive(Debug)]
pub struct Few {
    hashes: Vec<Prehashed>,
}

impl Default for Few {
    fn default() -> Self {
        Few::counted(Vec::new())
    }
}

impl Clone for Few {
    fn clone(&self) -> Self {
        Few::counted(self.hashes.clone())
    }
}

impl Drop for Few {
    fn drop(&mut self) {
        let (items, bytes) = self.figures();
        totals::add_small(-1, -items, -bytes);
    }
}

/// From this number of items on, a set is a filter. They take 32 KiB, and a lookup twelve steps.
const MOST: usize = 4_096;

/// A set has spare room for one item per this many. A set of ten items has none: a spare place in each of a hundred
/// thousand sets would be a megabyte.
const ITEMS_PER_SPARE: usize = 16;

/// More copies of one item than this also make it a filter. Any filter can hold this many.
const MAX_COPIES: usize = 2;

impl Few {
    /// Makes it of hashes in ascending order, or returns `None` if they are not, or too many.
    pub fn of(hashes: Vec<Prehashed>) -> Option<Self> {
        let few = Few::counted(hashes);
        let many =
            few.hashes.len() > MOST || few.hashes.iter().any(|hash| few.count(*hash) > MAX_COPIES);
        (few.hashes.is_sorted() && !many).then_some(few)
    }

    fn counted(hashes: Vec<Prehashed>) -> Self {
        let few = Few { hashes };
        let (items, bytes) = few.figures();
        totals::add_small(1, items, bytes);
        few
    }

    fn figures(&self) -> (isize, isize) {
        (self.hashes.len() as isize, self.bytes() as isize)
    }

    /// Does this to the hashes, and counts what becomes of them.
    fn change(&mut self, act: impl FnOnce(&mut Vec<Prehashed>)) {
        let before = self.figures();
        act(&mut self.hashes);
        let after = self.figures();
        totals::add_small(0, after.0 - before.0, after.1 - before.1);
    }

    pub fn hashes(&self) -> &[Prehashed] {
        &self.hashes
    }

    pub fn bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<Prehashed>()
    }

    pub fn contains(&self, hash: Prehashed) -> bool {
        self.hashes.binary_search(&hash).is_ok()
    }

    pub fn count(&self, hash: Prehashed) -> usize {
        let from = self.hashes.partition_point(|other| *other < hash);
        self.hashes[from..].iter().take_while(|other| **other == hash).count()
    }

    /// Whether there is room for another copy of this item.
    pub fn takes(&self, hash: Prehashed) -> bool {
        self.hashes.len() < MOST && self.count(hash) < MAX_COPIES
    }

    /// Adds a copy, unless they all would take more than `most` bytes. There has to be [room](Self::takes) for it.
    pub fn add(&mut self, hash: Prehashed, most: usize) -> Result<(), FullKind> {
        let at = self.hashes.partition_point(|other| *other < hash);
        let len = self.hashes.len();
        let affordable = (most / size_of::<Prehashed>()).saturating_sub(len);
        if affordable == 0 {
            return Err(FullKind::LimitReached);
        }
        self.change(|hashes| {
            if len == hashes.capacity() {
                hashes.reserve_exact(affordable.min(1 + len / ITEMS_PER_SPARE));
            }
            hashes.insert(at, hash);
        });
        Ok(())
    }

    /// Removes a copy, if there is one.
    pub fn remove(&mut self, hash: Prehashed) -> bool {
        let found = self.hashes.binary_search(&hash);
        if let Ok(at) = found {
            self.change(|hashes| {
                hashes.remove(at);
                if hashes.len() < hashes.capacity() / 2 {
                    hashes.shrink_to_fit();
                }
            });
        }
        found.is_ok()
    }
}
