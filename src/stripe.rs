//! One stripe: the lock, the version and the count of a segment of buckets.
//!
//! Writers hold the stripe of every bucket that they write, as [`One`], [`Two`] or [`Many`]. Whoever
//! needs several takes them at once, and here: in ascending order and each once, so no two threads
//! ever wait for each other in a circle. What they are given is the witness, [`Locks`], that the
//! writing functions ask for.
//!
//! Readers hold nothing. They take [`Stamps`] of the two stripes that they are about to look into,
//! look, and ask whether the stamps still hold. They do unless something [moved](Locks::moving)
//! meanwhile, or a copy was [erased](Locks::outdate) while another stayed; filling or emptying a
//! single lane does not count, because it is one store of one word, seen whole or not at all.
//!
//! This file never looks at a bucket.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | mover: version → odd | `Relaxed` | made visible no later than the data stores, which are `Release` |
//! | any writer: data stores (in `shard`) | `Release` | the reader's data loads. Twin `words_are_stored_relaxed` |
//! | mover: version → even | `Release` | the reader's first load: a reader that starts on the new version sees all of the move. Twin `the_version_ends_relaxed` |
//! | eraser: version + 2 | `Release` | the same, of the copy that stays. Twin `a_version_is_outdated_relaxed` |
//! | reader: versions, first | `Acquire` | the even versions. Twin `the_first_version_is_read_relaxed` |
//! | reader: data loads (in `shard`) | `Acquire` | the data stores: a reader that saw the word without the item sees the odd version too, and loads what follows no earlier. Twin `words_are_loaded_relaxed` |
//! | reader: versions, again | `Relaxed` | ordered after the data loads, which are `Acquire` |
//! | `items` | `Relaxed` | written under the lock only; a sum over stripes is a sum of recent values |
//!
//! Every data store is `Release`, not only those of movers behind a fence of their own: the word
//! that a reader sees without the item may have been stored by a later writer, who came after the
//! mover by the lock alone. A release fence in the mover says nothing about that store.

use crate::lock::{Held, Lock};
use crate::sync::{AtomicU32, AtomicU64, Ordering, read_owned, read_owned_u32};
use arrayvec::ArrayVec;

pub struct Stripe {
    /// Odd while items of the segment are being moved. 64 bits never come round.
    version: AtomicU64,
    /// The taken lanes of the segment.
    items: AtomicU32,
    lock: Lock,
}

impl Stripe {
    pub fn new() -> Self {
        Stripe { version: AtomicU64::new(0), items: AtomicU32::new(0), lock: Lock::new() }
    }

    /// The taken lanes of the segment a moment ago.
    pub fn items(&self) -> u32 {
        self.items.load(Ordering::Relaxed)
    }

    /// Adds to the count.
    #[inline]
    pub fn add_items(&self, locks: &impl Locks, change: i32) {
        debug_assert!(locks.include(self));
        let items = read_owned_u32(&self.items);
        self.items.store(items.wrapping_add_signed(change), Ordering::Relaxed);
    }
}

/// The versions of two stripes, read before looking into their buckets.
pub struct Stamps<'a> {
    first: &'a Stripe,
    second: &'a Stripe,
    first_version: u64,
    second_version: u64,
}

impl<'a> Stamps<'a> {
    /// Before either bucket is looked into: whoever reads a version between the two buckets does not
    /// notice an item that has moved from the second to the first by then. (A move changes both
    /// versions, so one of them, read here and again at the end, would tell as much.)
    #[inline]
    pub fn take(first: &'a Stripe, second: &'a Stripe) -> Self {
        let first_version = first.version.load(Ordering::Acquire);
        let second_version = second.version.load(Ordering::Acquire);
        Stamps { first, second, first_version, second_version }
    }

    /// Whether nothing was being moved when the stamps were taken, nor has been since.
    #[inline]
    pub fn still_hold(self) -> bool {
        let first_version = self.first.version.load(Ordering::Relaxed);
        let second_version = self.second.version.load(Ordering::Relaxed);
        let changed = (first_version ^ self.first_version) | (second_version ^ self.second_version);
        let moving = (self.first_version | self.second_version) & 1;
        changed | moving == 0
    }
}

/// The locks of some stripes. Whoever writes a bucket shows that it has them.
pub trait Locks {
    fn for_each(&self, visit: impl FnMut(&Stripe));

    fn include(&self, stripe: &Stripe) -> bool {
        let mut found = false;
        self.for_each(|held| found |= std::ptr::eq(held, stripe));
        found
    }

    /// Sends away every reader that meets one of these stripes, until the result is dropped.
    /// What is copied from one bucket to another, and erased in the first, goes in between.
    #[inline]
    fn moving(&self) -> Moving<'_, Self> {
        self.for_each(|stripe| {
            let even = read_owned(&stripe.version);
            stripe.version.store(even + 1, Ordering::Relaxed);
        });
        Moving { locks: self }
    }

    /// Sends away every reader that has begun already, and none that begins from here on: before an
    /// item is erased from one bucket while it may be in its other one as well.
    #[inline]
    fn outdate(&self) {
        self.for_each(|stripe| {
            let even = read_owned(&stripe.version);
            stripe.version.store(even + 2, Ordering::Release);
        });
    }
}

/// Versions are odd while this lives.
pub struct Moving<'l, L: Locks + ?Sized> {
    locks: &'l L,
}

impl<L: Locks + ?Sized> Drop for Moving<'_, L> {
    #[inline]
    fn drop(&mut self) {
        self.locks.for_each(|stripe| {
            let odd = read_owned(&stripe.version);
            stripe.version.store(odd + 1, Ordering::Release);
        });
    }
}

/// The lock of one stripe.
pub struct One<'a> {
    stripe: &'a Stripe,
    _held: Held<'a>,
}

impl<'a> One<'a> {
    /// On its own. To take several, use [`Two`] or [`Many`].
    #[inline]
    pub fn lock(stripe: &'a Stripe) -> Self {
        One { stripe, _held: stripe.lock.lock() }
    }
}

impl Locks for One<'_> {
    #[inline]
    fn for_each(&self, mut visit: impl FnMut(&Stripe)) {
        visit(self.stripe);
    }
}

/// The locks of the stripes of two buckets, which may be one stripe.
pub struct Two<'a> {
    lower: One<'a>,
    upper: Option<One<'a>>,
}

impl<'a> Two<'a> {
    #[inline]
    pub fn lock(stripes: &'a [Stripe], [a, b]: [u32; 2]) -> Self {
        let lower = One::lock(&stripes[a.min(b) as usize]);
        let upper = (a != b).then(|| One::lock(&stripes[a.max(b) as usize]));
        Two { lower, upper }
    }
}

impl Locks for Two<'_> {
    #[inline]
    fn for_each(&self, mut visit: impl FnMut(&Stripe)) {
        visit(self.lower.stripe);
        if let Some(upper) = &self.upper {
            visit(upper.stripe);
        }
    }
}

/// The locks of up to `N` stripes.
pub struct Many<'a, const N: usize> {
    held: ArrayVec<One<'a>, N>,
}

impl<'a, const N: usize> Many<'a, N> {
    /// The indices may come in any order, and repeat.
    pub fn lock(stripes: &'a [Stripe], mut indices: ArrayVec<u32, N>) -> Self {
        indices.sort_unstable();
        let mut held = ArrayVec::new();
        let mut last = None;
        for index in indices {
            if last != Some(index) {
                held.push(One::lock(&stripes[index as usize]));
                last = Some(index);
            }
        }
        Many { held }
    }
}

impl<const N: usize> Locks for Many<'_, N> {
    #[inline]
    fn for_each(&self, mut visit: impl FnMut(&Stripe)) {
        for one in &self.held {
            visit(one.stripe);
        }
    }
}
