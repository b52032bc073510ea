//! Stripes: the lock, the version and the count of each segment of buckets. This file never accesses a bucket.
//!
//! Writers hold the lock of the stripe of every bucket that they write, as [`LockGuard`], [`Two`] or [`Many`]: a
//! witness of the locks, [`Locks`], which the writing functions require. Threads never wait for each other in a cycle,
//! because all of them lock in this order, and never go back:
//!
//! 1. In a shard, all stripes that are needed, at once, ascending and each once, and only here.
//! 2. In a join, the lower half, and then the upper half.
//! 3. In a split, the shard with items, and then the one without.
//!
//! Readers hold no lock. They take a [`SeenVersion`] of a stripe that they are about to read, read both buckets, and
//! then check whether the version still holds. It holds unless an item was [moved](Stripes::write_section) meanwhile,
//! as by a kick, a split or a join, or readers were [invalidated](Stripes::invalidate_readers): by a removal of one of
//! several copies, a sweep or a clear. [Kicks](mod@crate::guide::kick) has what a version has to tell, and
//! [sweeps](mod@crate::guide::sweep#is-a-lookup-right) whose version a reader takes.
//!
//! # Orderings
//!
//! | access | ordering | partner, and what breaks without it |
//! |---|---|---|
//! | mover: version → odd | `Relaxed` | visible no later than the data stores, which are `Release` |
//! | any writer: data stores (in `table`) | `Release` | the reader's data loads |
//! | mover: version → even | `Release` | the reader's first load: a reader of this version sees all of the move |
//! | eraser: version + 2 | `Release` | the reader's first load: a reader of this version sees the copy that stays |
//! | reader: version, first | `Acquire` | the even version |
//! | reader: data loads (in `table`) | `Acquire` | the data stores: whoever sees a word without the item also sees the odd version |
//! | reader: second words of wide buckets | `Acquire` | the store of another tail: the odd version of the removal is seen, too |
//! | reader: version, again | `Relaxed` | ordered after the data loads, which are `Acquire` |
//! | the mark of a sweep, set | `Release` | whoever reads it without the lock sees that the expired lanes are gone |
//! | the same, read | `Acquire` | the same |
//! | `items` | `Relaxed` | written only under the lock; a sum over stripes is one of recent values |
//!
//! A split or a join that depends on a sum of `items` is decided again under all locks of the shards, and a refusal to
//! split under those of the item.
//!
//! Every data store is `Release`. A release fence in the mover alone would not be enough: a later writer may have
//! stored the word that a reader sees without the item. Only the lock orders that writer after the mover, and the
//! mover's fence does not cover its store.

use crate::layout::stamps::Moment;
use crate::sync::{AtomicU16, AtomicU32, AtomicU64, Ordering, read_owned, read_owned_u32};
use crate::table::lock::{Lock, LockGuard};
use arrayvec::ArrayVec;

/// All stripes of a table. The versions, which readers read, are seldom written, so they are apart from what writers
/// write.
pub(crate) struct Stripes {
    /// Odd while items of the segment are being moved. 64 bits never wrap around.
    versions: Box<[AtomicU64]>,
    writers: Box<[WriterState]>,
}

/// What writers read and write of a stripe.
struct WriterState {
    /// The number of items inserted under this stripe's lock, less the number removed under it. An item may move
    /// between its two segments in between, and a load or a split shares the items of a shard out evenly. So only the
    /// sum over a shard is meaningful, and a single count may be negative.
    items: AtomicU32,
    lock: Lock,
    /// The [mark](Moment::mark) of the tick in which the segment was last swept, if it ever was.
    swept: AtomicU16,
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<WriterState>() == 8);

impl Stripes {
    /// Returns `None` if there is not enough memory.
    pub(crate) fn new(count: usize) -> Option<Self> {
        let (mut versions, mut writers) = (Vec::new(), Vec::new());
        versions.try_reserve_exact(count).ok()?;
        writers.try_reserve_exact(count).ok()?;
        versions.extend((0..count).map(|_| AtomicU64::new(0)));
        writers.extend((0..count).map(|_| WriterState {
            items: AtomicU32::new(0),
            lock: Lock::new(),
            swept: AtomicU16::new(0),
        }));
        Some(Stripes { versions: versions.into(), writers: writers.into() })
    }

    pub(crate) fn count(&self) -> usize {
        self.writers.len()
    }

    /// Returns the memory of `count` stripes, in bytes.
    pub(crate) fn bytes(count: usize) -> usize {
        count * (size_of::<AtomicU64>() + size_of::<WriterState>())
    }

    /// Returns a recent item count of a segment.
    pub(crate) fn items(&self, stripe: usize) -> i32 {
        self.writers[stripe].items.load(Ordering::Relaxed).cast_signed()
    }

    /// Returns the sum of the item counts of all segments.
    pub(crate) fn all_items(&self) -> i64 {
        (0..self.count()).map(|stripe| i64::from(self.items(stripe))).sum()
    }

    pub(crate) fn set_items(&self, locks: &impl Locks, stripe: usize, items: i32) {
        debug_assert!(locks.include(self, stripe));
        self.writers[stripe].items.store(items.cast_unsigned(), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn add_items(&self, locks: &impl Locks, stripe: usize, change: i32) {
        debug_assert!(locks.include(self, stripe));
        let count = &self.writers[stripe].items;
        count.store(read_owned_u32(count).wrapping_add_signed(change), Ordering::Relaxed);
    }

    /// Whether the segment has been swept in this tick.
    pub(crate) fn is_swept(&self, stripe: usize, now: Moment) -> bool {
        self.writers[stripe].swept.load(Ordering::Acquire) == now.mark()
    }

    pub(crate) fn set_swept(&self, locks: &impl Locks, stripe: usize, now: Moment) {
        debug_assert!(locks.include(self, stripe));
        self.writers[stripe].swept.store(now.mark(), Ordering::Release);
    }

    #[inline]
    pub(crate) fn version(&self, stripe: usize) -> &AtomicU64 {
        &self.versions[stripe]
    }

    /// Reads the version for the lookup of an item that has one of its two buckets in this segment. A move changes the
    /// versions of both stripes, so one covers both buckets. But it has to be read [before both words, and checked
    /// after both](mod@crate::guide::kick#how-does-a-lookup-stay-right-while-an-item-moves).
    #[inline]
    pub(crate) fn see(&self, stripe: usize) -> SeenVersion<'_> {
        SeenVersion::of(&self.versions[stripe])
    }

    /// Returns the versions of all stripes from this one on.
    pub(crate) fn versions_from(&self, stripe: usize) -> Option<&[AtomicU64]> {
        self.versions.get(stripe..)
    }

    /// Locks one stripe. To acquire several locks, use [`Two`] or [`Many`].
    #[inline]
    pub(crate) fn lock(&self, stripe: usize) -> LockGuard<'_> {
        self.writers[stripe].lock.lock()
    }

    /// Locks two stripes, which may be the same.
    #[inline]
    pub(crate) fn lock_two(&self, [a, b]: [usize; 2]) -> Two<'_> {
        let lower = self.lock(a.min(b));
        let upper = (a != b).then(|| self.lock(a.max(b)));
        Two { lower, upper }
    }

    /// Locks all these stripes.
    #[inline]
    pub(crate) fn lock_many<const N: usize>(&self, which: &StripeSet<N>) -> Many<'_, N> {
        Many { held: which.ascending.iter().map(|&stripe| self.lock(stripe)).collect() }
    }

    /// Makes the versions of these stripes odd until the result is dropped, which invalidates every reader that uses
    /// one of them. The caller moves items meanwhile.
    #[inline]
    pub(crate) fn write_section<'a, const N: usize>(
        &'a self,
        locked: &'a impl Locks,
        which: &'a StripeSet<N>,
    ) -> WriteSection<'a, N> {
        for &stripe in which.moved() {
            debug_assert!(locked.include(self, stripe));
            make_odd(&self.versions[stripe]);
        }
        WriteSection { stripes: self, which }
    }

    /// Invalidates every reader that has already begun, and none that begins later. Called before an item is erased
    /// from one bucket while its other bucket may hold a copy.
    #[inline]
    pub(crate) fn invalidate_readers(&self, locked: &impl Locks, stripe: usize) {
        debug_assert!(locked.include(self, stripe));
        let even = read_owned(&self.versions[stripe]);
        self.versions[stripe].store(even + 2, Ordering::Release);
    }
}

/// Up to `N` stripes in ascending order, each once.
#[derive(PartialEq)]
pub(crate) struct StripeSet<const N: usize> {
    ascending: ArrayVec<usize, N>,
}

impl<const N: usize> FromIterator<usize> for StripeSet<N> {
    #[inline(always)] // a kick takes 2 % fewer instructions
    fn from_iter<I: IntoIterator<Item = usize>>(stripes: I) -> Self {
        let mut ascending = ArrayVec::<usize, N>::new();
        for stripe in stripes {
            // An insertion sort: there are hardly ever more than four stripes, or they come in order.
            let mut at = ascending.len();
            while at > 0 && ascending[at - 1] > stripe {
                at -= 1;
            }
            if at == 0 || ascending[at - 1] != stripe {
                ascending.push(stripe);
                for later in (at + 1..ascending.len()).rev() {
                    ascending.swap(later, later - 1);
                }
            }
        }
        StripeSet { ascending }
    }
}

impl<const N: usize> StripeSet<N> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.ascending.iter().copied()
    }

    /// The stripes whose versions change when items move between their buckets: all of them.
    #[inline]
    fn moved(&self) -> &[usize] {
        &self.ascending
    }
}

/// The version of a stripe, as read before the data.
pub(crate) struct SeenVersion<'a> {
    version: &'a AtomicU64,
    seen: u64,
}

impl<'a> SeenVersion<'a> {
    #[inline]
    pub(crate) fn of(version: &'a AtomicU64) -> Self {
        SeenVersion { version, seen: version.load(Ordering::Acquire) }
    }

    /// Returns whether no move was in progress when the version was read, and none has begun since.
    #[inline]
    pub(crate) fn still_holds(self) -> bool {
        // An odd version never holds: it is compared with the even one below it, and versions only rise.
        self.version.load(Ordering::Relaxed) == self.seen & !1
    }
}

/// Keeps the versions of some stripes odd until it is dropped.
pub(crate) struct WriteSection<'a, const N: usize> {
    stripes: &'a Stripes,
    which: &'a StripeSet<N>,
}

impl<const N: usize> Drop for WriteSection<'_, N> {
    #[inline]
    fn drop(&mut self) {
        for &stripe in self.which.moved() {
            make_even(&self.stripes.versions[stripe]);
        }
    }
}

/// Begins a move. The caller holds the lock that guards this version.
#[inline]
fn make_odd(version: &AtomicU64) {
    version.store(read_owned(version) + 1, Ordering::Relaxed);
}

/// Ends a move.
#[inline]
fn make_even(version: &AtomicU64) {
    version.store(read_owned(version) + 1, Ordering::Release);
}

/// The locks of some stripes. A function that writes a bucket or changes a version takes them as proof.
pub(crate) trait Locks {
    fn include(&self, stripes: &Stripes, stripe: usize) -> bool;
}

impl Locks for LockGuard<'_> {
    #[inline]
    fn include(&self, stripes: &Stripes, stripe: usize) -> bool {
        std::ptr::eq(self.lock(), &stripes.writers[stripe].lock)
    }
}

/// The locks of the stripes of two buckets, which may be one stripe.
pub(crate) struct Two<'a> {
    lower: LockGuard<'a>,
    upper: Option<LockGuard<'a>>,
}

impl Locks for Two<'_> {
    #[inline]
    fn include(&self, stripes: &Stripes, stripe: usize) -> bool {
        let upper = self.upper.as_ref();
        self.lower.include(stripes, stripe) || upper.is_some_and(|one| one.include(stripes, stripe))
    }
}

/// The locks of up to `N` stripes, in ascending order.
pub(crate) struct Many<'a, const N: usize> {
    held: ArrayVec<LockGuard<'a>, N>,
}

impl<const N: usize> Locks for Many<'_, N> {
    fn include(&self, stripes: &Stripes, stripe: usize) -> bool {
        self.held.iter().any(|one| one.include(stripes, stripe))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_stripes_is_ascending_and_has_each_once() {
        let mut seed = 1u64;
        for size in 0..=17 {
            for _ in 0..if cfg!(miri) { 10 } else { 1_000 } {
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

    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn a_hundred_threads_take_turns() {
        let lock = Lock::new();
        let turns = AtomicUsize::new(0);
        // Miri takes minutes for a thousand.
        let each = if cfg!(miri) { 100 } else { 1_000 };
        std::thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    for _ in 0..each {
                        let _held = lock.lock();
                        // Not an atomic addition, so two holders at once would lose turns.
                        turns.store(turns.load(Relaxed) + 1, Relaxed);
                    }
                });
            }
        });
        assert_eq!(turns.load(Relaxed), 100 * each);
    }

    #[test]
    fn threads_behind_a_sleeping_holder_get_in_when_it_wakes() {
        let lock = Lock::new();
        let entered = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let held = lock.lock();
            for _ in 0..20 {
                scope.spawn(|| {
                    let _held = lock.lock();
                    entered.fetch_add(1, Relaxed);
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(entered.load(Relaxed), 0);
            drop(held);
        });
        assert_eq!(entered.load(Relaxed), 20);
    }
}
