//! Stripes: the lock, the version and the count of each segment of buckets.
//!
//! Writers hold the stripe of every bucket that they write, as [`One`], [`Two`] or [`Many`]. Whoever
//! needs several takes them at once, and here: in ascending order and each once, so no two threads
//! ever wait for each other in a circle. What they are given is the witness, [`Locks`], that the
//! writing functions ask for.
//!
//! Readers hold nothing. They take a [`Stamp`] of one of the two stripes that they are about to look
//! into, look, and ask whether the stamp still holds. It does unless something
//! [moved](Stripes::moving) meanwhile, or a copy was [erased](Stripes::outdate) while another stayed;
//! filling or emptying a single lane does not count, because it is one store of one word, seen whole
//! or not at all.
//!
//! This file never looks at a bucket.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | mover: version → odd | `Relaxed` | made visible no later than the data stores, which are `Release` |
//! | any writer: data stores (in `table`) | `Release` | the reader's data loads. Twin `words_are_stored_relaxed` |
//! | mover: version → even | `Release` | the reader's first load: a reader that starts on the new version sees all of the move. Twin `the_version_ends_relaxed` |
//! | eraser: version + 2 | `Release` | the same, of the copy that stays. Twin `a_version_is_outdated_relaxed` |
//! | reader: version, first | `Acquire` | the even version. Twin `the_first_version_is_read_relaxed` |
//! | reader: data loads (in `table`) | `Acquire` | the data stores: a reader that saw the word without the item sees the odd version too, and loads what follows no earlier. Twin `words_are_loaded_relaxed` |
//! | reader: version, again | `Relaxed` | ordered after the data loads, which are `Acquire` |
//! | `items` | `Relaxed` | written under the lock only; a sum over stripes is a sum of recent values |
//!
//! Every data store is `Release`, not only those of movers behind a fence of their own: the word
//! that a reader sees without the item may have been stored by a later writer, who came after the
//! mover by the lock alone. A release fence in the mover says nothing about that store.

use crate::sync::{AtomicU32, AtomicU64, Ordering, read_owned, read_owned_u32};
use crate::table::lock::{Held, Lock};
use crate::table::memory::prefetch;
use arrayvec::ArrayVec;

/// All stripes of a table, in two rows: what readers look at is seldom written, and lies apart
/// from what every writer writes.
pub struct Stripes {
    /// Odd while items of the segment are being moved. 64 bits never come round.
    versions: Box<[AtomicU64]>,
    guards: Box<[Guard]>,
}

struct Guard {
    /// The items of the segment. In a fixed filter each takes one lane; in a growing one some lanes
    /// are left over from splits, so a number may even be below zero, and only their sum counts.
    items: AtomicU32,
    lock: Lock,
}

impl Stripes {
    /// `None` if there is no memory for so many.
    pub fn new(count: usize) -> Option<Self> {
        let (mut versions, mut guards) = (Vec::new(), Vec::new());
        versions.try_reserve_exact(count).ok()?;
        guards.try_reserve_exact(count).ok()?;
        versions.extend((0..count).map(|_| AtomicU64::new(0)));
        guards.extend((0..count).map(|_| Guard { items: AtomicU32::new(0), lock: Lock::new() }));
        Some(Stripes { versions: versions.into(), guards: guards.into() })
    }

    pub fn count(&self) -> usize {
        self.guards.len()
    }

    /// What so many take.
    pub fn bytes(count: usize) -> usize {
        count * (size_of::<AtomicU64>() + size_of::<Guard>())
    }

    /// The items of a segment a moment ago.
    pub fn items(&self, stripe: usize) -> i32 {
        self.guards[stripe].items.load(Ordering::Relaxed).cast_signed()
    }

    /// Those of all segments.
    pub fn all_items(&self) -> i64 {
        (0..self.count()).map(|stripe| i64::from(self.items(stripe))).sum()
    }

    pub fn set_items(&self, locks: &impl Locks, stripe: usize, items: i32) {
        debug_assert!(locks.include(self, stripe));
        self.guards[stripe].items.store(items.cast_unsigned(), Ordering::Relaxed);
    }

    /// Adds to the count of a segment.
    #[inline]
    pub fn add_items(&self, locks: &impl Locks, stripe: usize, change: i32) {
        debug_assert!(locks.include(self, stripe));
        let count = &self.guards[stripe].items;
        count.store(read_owned_u32(count).wrapping_add_signed(change), Ordering::Relaxed);
    }

    /// Asks for the version of a stripe.
    #[inline]
    pub fn prefetch(&self, stripe: usize) {
        prefetch(&self.versions[stripe]);
    }

    /// To be taken before an item is looked for in its two buckets, of which one is in this segment.
    ///
    /// One stripe tells for both: an item moves under the stripes of both its buckets, and changes
    /// both versions. But it has to be taken before *both* words are read, and asked after both.
    /// Whoever looks into one bucket, asks, and then looks into the other, does not notice an item
    /// that has gone from the second to the first meanwhile.
    #[inline]
    pub fn stamp(&self, stripe: usize) -> Stamp<'_> {
        let version = &self.versions[stripe];
        Stamp { version, taken: version.load(Ordering::Acquire) }
    }

    /// The lock of one stripe, on its own. To take several, use [`Two`] or [`Many`].
    #[inline]
    pub fn lock(&self, stripe: usize) -> One<'_> {
        One { held: self.guards[stripe].lock.lock() }
    }

    /// The locks of two stripes, which may be one.
    #[inline]
    pub fn lock_two(&self, [a, b]: [usize; 2]) -> Two<'_> {
        let lower = self.lock(a.min(b));
        let upper = (a != b).then(|| self.lock(a.max(b)));
        Two { lower, upper }
    }

    /// The locks of all these stripes.
    #[inline]
    pub fn lock_many<const N: usize>(&self, which: &StripeSet<N>) -> Many<'_, N> {
        Many { held: which.ascending.iter().map(|&stripe| self.lock(stripe)).collect() }
    }

    /// Sends away every reader that meets one of these stripes, until the result is dropped.
    /// What is copied from one bucket to another, and erased in the first, goes in between.
    #[inline]
    pub fn moving<'a, const N: usize>(
        &'a self,
        locked: &'a impl Locks,
        which: &'a StripeSet<N>,
    ) -> Moving<'a, N> {
        for &stripe in &which.ascending {
            debug_assert!(locked.include(self, stripe));
            let even = read_owned(&self.versions[stripe]);
            self.versions[stripe].store(even + 1, Ordering::Relaxed);
        }
        Moving { stripes: self, which }
    }

    /// Sends away every reader that has begun already, and none that begins from here on: before an
    /// item is erased from one bucket while it may be in its other one as well.
    #[inline]
    pub fn outdate(&self, locked: &impl Locks, stripe: usize) {
        debug_assert!(locked.include(self, stripe));
        let even = read_owned(&self.versions[stripe]);
        self.versions[stripe].store(even + 2, Ordering::Release);
    }
}

/// Up to `N` stripes in ascending order, each once.
pub struct StripeSet<const N: usize> {
    ascending: ArrayVec<usize, N>,
}

impl<const N: usize> FromIterator<usize> for StripeSet<N> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = usize>>(stripes: I) -> Self {
        let mut ascending = ArrayVec::<usize, N>::new();
        for stripe in stripes {
            // Down to its place, of which there are hardly ever more than four.
            let mut at = ascending.len();
            while at > 0 && ascending[at - 1] > stripe {
                at -= 1;
            }
            if at == 0 || ascending[at - 1] != stripe {
                ascending.push(stripe);
                ascending[at..].rotate_right(1);
            }
        }
        StripeSet { ascending }
    }
}

/// The version of a stripe, read before looking.
pub struct Stamp<'a> {
    version: &'a AtomicU64,
    taken: u64,
}

impl Stamp<'_> {
    /// Whether nothing was being moved when the stamp was taken, nor has been since.
    #[inline]
    pub fn still_holds(self) -> bool {
        let changed = self.version.load(Ordering::Relaxed) ^ self.taken;
        let moving = self.taken & 1;
        changed | moving == 0
    }
}

/// Versions are odd while this lives.
pub struct Moving<'a, const N: usize> {
    stripes: &'a Stripes,
    which: &'a StripeSet<N>,
}

impl<const N: usize> Drop for Moving<'_, N> {
    #[inline]
    fn drop(&mut self) {
        for &stripe in &self.which.ascending {
            let odd = read_owned(&self.stripes.versions[stripe]);
            self.stripes.versions[stripe].store(odd + 1, Ordering::Release);
        }
    }
}

/// The locks of some stripes. Whoever writes a bucket, or changes a version, shows that it has them.
pub trait Locks {
    fn include(&self, stripes: &Stripes, stripe: usize) -> bool;
}

/// The lock of one stripe.
pub struct One<'a> {
    held: Held<'a>,
}

impl Locks for One<'_> {
    #[inline]
    fn include(&self, stripes: &Stripes, stripe: usize) -> bool {
        std::ptr::eq(self.held.lock(), &stripes.guards[stripe].lock)
    }
}

/// The locks of the stripes of two buckets, which may be one stripe.
pub struct Two<'a> {
    lower: One<'a>,
    upper: Option<One<'a>>,
}

impl Locks for Two<'_> {
    #[inline]
    fn include(&self, stripes: &Stripes, stripe: usize) -> bool {
        let upper = self.upper.as_ref();
        self.lower.include(stripes, stripe) || upper.is_some_and(|one| one.include(stripes, stripe))
    }
}

/// The locks of up to `N` stripes, in ascending order.
pub struct Many<'a, const N: usize> {
    held: ArrayVec<One<'a>, N>,
}

impl<const N: usize> Locks for Many<'_, N> {
    fn include(&self, stripes: &Stripes, stripe: usize) -> bool {
        self.held.iter().any(|one| one.include(stripes, stripe))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_stripes_is_ascending_and_has_each_once() {
        let mut seed = 1u64;
        for size in 0..=17 {
            for _ in 0..1_000 {
                let mut next = || {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (seed >> 33) as usize % 9
                };
                let stripes: Vec<usize> = (0..size).map(|_| next()).collect();
                let set: StripeSet<17> = stripes.iter().copied().collect();
                let expected: std::collections::BTreeSet<usize> = stripes.into_iter().collect();
                assert!(set.ascending.iter().eq(expected.iter()));
            }
        }
    }
}
