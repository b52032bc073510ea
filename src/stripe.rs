//! One stripe: the lock, the version and the count of a segment of buckets.
//!
//! Writers hold the stripe of every bucket that they write, as [`One`], [`Two`] or [`Many`]. Whoever
//! needs several takes them at once, and here: in ascending order and each once, so no two threads
//! ever wait for each other in a circle. What they are given is the witness, [`Locks`], that the
//! writing functions ask for.
//!
//! Readers hold nothing. They take [`Stamps`] of the two stripes that they are about to look into,
//! look, and ask whether the stamps still hold. They do unless something [`moved`](Locks::moving)
//! meanwhile; filling or emptying a single lane does not count, because it is one store of one
//! word, seen whole or not at all.
//!
//! This file never looks at a bucket.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | mover: version → odd | `Relaxed` | made visible before the data stores by the fence below it |
//! | mover: fence after it | `Release` | the reader's fence: a reader that saw any data store of this move sees the odd version too. Twin `no_release_fence` |
//! | mover: data stores (in `shard`) | `Relaxed` | between the fence and the even version |
//! | mover: version → even | `Release` | the reader's first load: a reader that starts on the new version sees all of the move. Twin `the_version_ends_relaxed` |
//! | reader: versions, first | `Acquire` | the mover's even version. Twin `the_first_version_is_read_relaxed` |
//! | reader: data loads (in `shard`) | `Relaxed` | between the two looks at the versions |
//! | reader: fence after them | `Acquire` | the mover's fence. Twin `no_acquire_fence` |
//! | reader: versions, again | `Relaxed` | ordered after the data loads by the fence above it |
//! | `items` | `Relaxed` | written under the lock only; a sum over stripes is a sum of recent values |

use crate::lock::{Held, Lock};
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, read_owned, read_owned_u32};
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
    /// Both stripes at once: an item that moves from the bucket looked at second to the bucket
    /// looked at first is noticed only if the second's version was read before the first's bucket.
    #[inline]
    pub fn take(first: &'a Stripe, second: &'a Stripe) -> Self {
        let first_version = first.version.load(Ordering::Acquire);
        let second_version = second.version.load(Ordering::Acquire);
        Stamps { first, second, first_version, second_version }
    }

    /// Whether nothing was being moved when the stamps were taken, nor has been since.
    #[inline]
    pub fn still_hold(self) -> bool {
        fence(Ordering::Acquire);
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
    /// Everything that is copied from one bucket to another, or erased from one bucket while it
    /// stays in another, goes in between.
    #[inline]
    fn moving(&self) -> Moving<'_, Self> {
        self.for_each(|stripe| {
            let even = read_owned(&stripe.version);
            stripe.version.store(even + 1, Ordering::Relaxed);
        });
        fence(Ordering::Release);
        Moving { locks: self }
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
