//! One stripe: the lock, the version and the count of a segment of buckets.
//!
//! Writers hold the stripe of every bucket that they write, through a [`Locked`]: the one
//! constructor for any number of stripes, which takes them in ascending order and each once, so no
//! two threads ever wait for each other in a circle.
//!
//! Readers hold nothing. They take [`Stamps`] of the two stripes that they are about to look into,
//! look, and ask whether the stamps still hold. They do unless something [`moved`](Locked::moving)
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
}

/// The versions of two stripes, read before looking into their buckets.
pub struct Stamps<'a> {
    stripes: [&'a Stripe; 2],
    versions: [u64; 2],
}

impl<'a> Stamps<'a> {
    /// Both stripes at once: an item that moves from the bucket looked at second to the bucket
    /// looked at first is noticed only if the second's version was read before the first's bucket.
    #[inline]
    pub fn take(first: &'a Stripe, second: &'a Stripe) -> Self {
        let stripes = [first, second];
        Stamps { stripes, versions: stripes.map(|stripe| stripe.version.load(Ordering::Acquire)) }
    }

    /// Whether nothing was being moved when the stamps were taken, nor has been since.
    #[inline]
    pub fn still_hold(self) -> bool {
        fence(Ordering::Acquire);
        let [first, second] = self.stripes.map(|stripe| stripe.version.load(Ordering::Relaxed));
        let [first_before, second_before] = self.versions;
        let changed = (first ^ first_before) | (second ^ second_before);
        let moving = (first_before | second_before) & 1;
        changed | moving == 0
    }
}

struct StripeGuard<'a> {
    index: u32,
    stripe: &'a Stripe,
    _held: Held<'a>,
}

/// The locks of at most `N` stripes. Whoever writes a bucket shows one of these.
pub struct Locked<'a, const N: usize> {
    guards: ArrayVec<StripeGuard<'a>, N>,
}

impl<'a, const N: usize> Locked<'a, N> {
    /// Locks the stripes with these indices, which may come in any order and repeat.
    #[inline]
    pub fn new(stripes: &'a [Stripe], mut indices: [u32; N]) -> Self {
        indices.sort_unstable();
        let mut guards = ArrayVec::new();
        let mut last = None;
        for index in indices {
            if last != Some(index) {
                let stripe = &stripes[index as usize];
                guards.push(StripeGuard { index, stripe, _held: stripe.lock.lock() });
                last = Some(index);
            }
        }
        Locked { guards }
    }

    #[inline]
    pub fn holds(&self, index: u32) -> bool {
        self.guards.iter().any(|guard| guard.index == index)
    }

    /// Adds to the count of a stripe that is locked here.
    #[inline]
    pub fn add_items(&self, index: u32, change: i32) {
        for guard in &self.guards {
            if guard.index == index {
                let items = read_owned_u32(&guard.stripe.items);
                guard.stripe.items.store(items.wrapping_add_signed(change), Ordering::Relaxed);
                return;
            }
        }
        debug_assert!(false, "stripe {index} is not locked");
    }

    /// Sends away every reader that meets one of these stripes, until the result is dropped.
    /// Everything that is copied from one bucket to another, or erased from one bucket while it
    /// stays in another, goes in between.
    #[inline]
    pub fn moving(&self) -> Moving<'_, 'a> {
        for StripeGuard { stripe, .. } in &self.guards {
            let even = read_owned(&stripe.version);
            stripe.version.store(even + 1, Ordering::Relaxed);
        }
        fence(Ordering::Release);
        Moving { guards: &self.guards }
    }
}

/// Versions are odd while this lives.
pub struct Moving<'l, 'a> {
    guards: &'l [StripeGuard<'a>],
}

impl Drop for Moving<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        for StripeGuard { stripe, .. } in self.guards {
            let odd = read_owned(&stripe.version);
            stripe.version.store(odd + 1, Ordering::Release);
        }
    }
}
