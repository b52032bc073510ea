//! Stripes: the lock, the version and the count of each segment of buckets.
//!
//! Writers hold the stripe of every bucket that they write, as [`One`], [`Two`] or [`Many`]. Whoever
//! needs several takes them at once, and here: in ascending order and each once, so no two threads
//! ever wait for each other in a circle. What they are given is the witness, [`Locks`], that the
//! writing functions ask for.
//!
//! Readers hold nothing. They take a [`Stamp`] of one of the two stripes that they are about to look
//! into, look, and ask whether the stamp still holds. It does unless something
//! [moved](Locks::moving) meanwhile, or a copy was [erased](Locks::outdate) while another stayed;
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

use crate::lock::{Held, Lock};
use crate::prefetch::prefetch;
use crate::sync::{AtomicU32, AtomicU64, Ordering, read_owned, read_owned_u32};
use arrayvec::ArrayVec;

/// All stripes of a table, in two rows: what readers look at is seldom written, and lies apart
/// from what every writer writes.
pub struct Stripes {
    /// Odd while items of the segment are being moved. 64 bits never come round.
    versions: Box<[AtomicU64]>,
    guards: Box<[Guard]>,
}

struct Guard {
    /// The taken lanes of the segment.
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

    pub fn len(&self) -> usize {
        self.guards.len()
    }

    /// What so many take.
    pub fn bytes(count: usize) -> usize {
        count * (size_of::<AtomicU64>() + size_of::<Guard>())
    }

    /// The taken lanes of a segment a moment ago.
    pub fn items(&self, stripe: usize) -> u32 {
        self.guards[stripe].items.load(Ordering::Relaxed)
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
        One { stripes: self, stripe, _held: self.guards[stripe].lock.lock() }
    }

    /// The locks of two stripes, which may be one.
    #[inline]
    pub fn lock_two(&self, [a, b]: [usize; 2]) -> Two<'_> {
        let lower = self.lock(a.min(b));
        let upper = (a != b).then(|| self.lock(a.max(b)));
        Two { lower, upper }
    }

    /// The locks of up to `N` stripes, which may come in any order, and repeat.
    pub fn lock_many<const N: usize>(&self, mut stripes: ArrayVec<usize, N>) -> Many<'_, N> {
        stripes.sort_unstable();
        let mut held = ArrayVec::new();
        let mut last = None;
        for stripe in stripes {
            if last != Some(stripe) {
                held.push(self.lock(stripe));
                last = Some(stripe);
            }
        }
        Many { held }
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

/// The locks of some stripes. Whoever writes a bucket shows that it has them.
pub trait Locks {
    fn for_each(&self, visit: impl FnMut(&One<'_>));

    fn include(&self, stripes: &Stripes, stripe: usize) -> bool {
        let mut found = false;
        self.for_each(|one| found |= std::ptr::eq(one.stripes, stripes) && one.stripe == stripe);
        found
    }

    /// Sends away every reader that meets one of these stripes, until the result is dropped.
    /// What is copied from one bucket to another, and erased in the first, goes in between.
    #[inline]
    fn moving(&self) -> Moving<'_, Self> {
        self.for_each(|one| {
            let even = read_owned(one.version());
            one.version().store(even + 1, Ordering::Relaxed);
        });
        Moving { locks: self }
    }

    /// Sends away every reader that has begun already, and none that begins from here on: before an
    /// item is erased from one bucket while it may be in its other one as well.
    #[inline]
    fn outdate(&self) {
        self.for_each(|one| {
            let even = read_owned(one.version());
            one.version().store(even + 2, Ordering::Release);
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
        self.locks.for_each(|one| {
            let odd = read_owned(one.version());
            one.version().store(odd + 1, Ordering::Release);
        });
    }
}

/// The lock of one stripe.
pub struct One<'a> {
    stripes: &'a Stripes,
    stripe: usize,
    _held: Held<'a>,
}

impl One<'_> {
    #[inline]
    fn version(&self) -> &AtomicU64 {
        &self.stripes.versions[self.stripe]
    }
}

impl Locks for One<'_> {
    #[inline]
    fn for_each(&self, mut visit: impl FnMut(&One<'_>)) {
        visit(self);
    }
}

/// The locks of the stripes of two buckets, which may be one stripe.
pub struct Two<'a> {
    lower: One<'a>,
    upper: Option<One<'a>>,
}

impl Locks for Two<'_> {
    #[inline]
    fn for_each(&self, mut visit: impl FnMut(&One<'_>)) {
        visit(&self.lower);
        if let Some(upper) = &self.upper {
            visit(upper);
        }
    }
}

/// The locks of up to `N` stripes.
pub struct Many<'a, const N: usize> {
    held: ArrayVec<One<'a>, N>,
}

impl<const N: usize> Locks for Many<'_, N> {
    #[inline]
    fn for_each(&self, visit: impl FnMut(&One<'_>)) {
        self.held.iter().for_each(visit);
    }
}
