//! A user's `Hash` or hasher may panic, anywhere and in many threads at once. The operation then has no effect, and
//! leaves no lock held. Of a batch, a part may be done.

use crate::common::{
    Filter, Fixed, FixedHasher, Hashes, LAYOUTS, Layout, SplitMix, in_time, layouts, together,
};
use koel::{ConcurrentCuckooFilter, Prehashed};
use std::hash::{BuildHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The pieces that a [`Bomb`] feeds to the hasher.
const PIECES: u64 = 4;

/// An item whose hash panics before the piece `at`, or not at all if there is no such piece.
struct Bomb {
    item: u64,
    at: u64,
}

impl Hash for Bomb {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for piece in 0..=PIECES {
            if piece == self.at {
                explode();
            }
            if piece < PIECES {
                state.write_u64(self.item ^ piece);
            }
        }
    }
}

/// Unwinds like a panic, but prints no message, because there are very many.
fn explode() -> ! {
    resume_unwind(Box::new("the hash panicked"));
}

fn whole(item: u64) -> Bomb {
    Bomb { item, at: u64::MAX }
}

/// A hasher that panics after so many steps: it is made, is given a piece, or tells the hash.
struct Fused<'a>(&'a AtomicUsize);

struct FusedHasher<'a>(FixedHasher, Fused<'a>);

impl Fused<'_> {
    fn step(&self) {
        let left = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        left.unwrap_or_else(|_| explode());
    }
}

impl<'a> BuildHasher for Fused<'a> {
    type Hasher = FusedHasher<'a>;

    fn build_hasher(&self) -> FusedHasher<'a> {
        self.step();
        FusedHasher(Fixed { key: 0 }.build_hasher(), Fused(self.0))
    }
}

impl Hasher for FusedHasher<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.1.step();
        self.0.write(bytes);
    }

    fn finish(&self) -> u64 {
        self.1.step();
        self.0.finish()
    }
}

type Operation<S> = fn(&Filter<S>, &[Bomb]);

/// All operations that hash an item, on the first of these, and all that hash a batch.
fn operations<S: BuildHasher + Sync>() -> [Vec<(&'static str, Operation<S>)>; 2] {
    let single: [(_, Operation<S>); 6] = [
        ("insert", |filter, bombs| _ = filter.insert(&bombs[0])),
        ("insert_if_absent", |filter, bombs| _ = filter.insert_if_absent(&bombs[0])),
        ("contains", |filter, bombs| _ = filter.contains(&bombs[0])),
        ("count", |filter, bombs| _ = filter.count(&bombs[0])),
        ("remove", |filter, bombs| _ = filter.remove(&bombs[0])),
        ("hash_of", |filter, bombs| _ = filter.hash_of(&bombs[0])),
    ];
    let many: [(_, Operation<S>); 4] = [
        ("insert_many", |filter, bombs| _ = filter.insert_many(bombs)),
        ("insert_if_absent_many", |filter, bombs| _ = filter.insert_if_absent_many(bombs)),
        ("contains_many", |filter, bombs| _ = filter.contains_many(bombs)),
        ("remove_many", |filter, bombs| _ = filter.remove_many(bombs)),
    ];
    #[cfg(feature = "rayon")]
    let in_parallel: [(_, Operation<S>); 4] = [
        ("par_insert_many", |filter, bombs| _ = filter.par_insert_many(bombs)),
        ("par_insert_if_absent_many", |filter, bombs| _ = filter.par_insert_if_absent_many(bombs)),
        ("par_contains_many", |filter, bombs| _ = filter.par_contains_many(bombs)),
        ("par_remove_many", |filter, bombs| _ = filter.par_remove_many(bombs)),
    ];
    #[cfg(not(feature = "rayon"))]
    let in_parallel = [];
    [single.to_vec(), [&many[..], &in_parallel].concat()]
}

fn panics(work: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(work)).is_err()
}

const CAPACITIES: [usize; 3] = [10, 1_000, 20_000];

fn full<S: BuildHasher>(layout: &Layout, capacity: usize, hasher: S) -> Filter<S> {
    let filter = layout.filter_with(capacity, hasher);
    for item in 0..capacity as u64 {
        filter.insert(&whole(item)).expect("the capacity fits");
    }
    filter
}

/// Checks that all items are present and that every operation gets the locks that it needs.
fn assert_works<S: BuildHasher>(filter: &Filter<S>) {
    let items = || (0..filter.capacity() as u64).map(whole);
    assert_eq!(filter.len(), filter.capacity());
    assert!(items().all(|item| filter.contains(&item) && filter.count(&item) >= 1));
    assert!(items().all(|item| filter.insert_if_absent(&item) == Ok(false)));
    for item in items().step_by(3) {
        assert!(filter.remove(&item));
        filter.insert(&item).expect("the room that it had");
    }
    assert_eq!(filter.len(), filter.capacity());
    assert!(items().all(|item| filter.remove(&item)));
    assert!(filter.is_empty());
    filter.clear();
    assert!(items().all(|item| filter.insert(&item).is_ok()));
}

#[test]
fn a_panic_at_any_point_of_the_hash_changes_nothing() {
    in_time(|| {
        for (layout, capacity) in layouts().iter().flat_map(|it| CAPACITIES.map(|size| (it, size)))
        {
            let filter = full(layout, capacity, Fixed { key: 0 });
            for (name, operation) in operations().concat() {
                for (at, item) in (0..=PIECES).flat_map(|at| (0..20).map(move |item| (at, item))) {
                    // Alternately present and absent items.
                    let bomb = Bomb { item: item % 2 * capacity as u64 + item, at };
                    assert!(panics(|| operation(&filter, &[bomb])), "{name} swallowed a panic");
                    assert_eq!(filter.len(), capacity, "{name}, {layout:?}");
                }
            }
            assert_works(&filter);
        }
    });
}

#[test]
fn a_panic_in_the_hasher_changes_nothing() {
    in_time(|| {
        for layout in layouts() {
            let left = AtomicUsize::new(usize::MAX);
            let filter = full(layout, 300, Fused(&left));
            let [single, _] = operations();
            // It is made, given four pieces, and asked for the hash.
            for (steps, item) in (0..6).flat_map(|steps| (0..600).map(move |item| (steps, item))) {
                for (name, operation) in &single {
                    left.store(steps, Relaxed);
                    assert!(panics(|| operation(&filter, &[whole(item)])), "{name}");
                    assert_eq!(filter.len(), 300, "{name}, {layout:?}");
                }
            }
            left.store(usize::MAX, Relaxed);
            assert_works(&filter);
        }
    });
}

#[test]
fn a_panic_in_the_middle_of_a_batch_locks_nothing() {
    let at = |item: u64| if item == 4_711 { 0 } else { u64::MAX };
    let bombs: Vec<Bomb> = (0..50_000).map(|item| Bomb { item, at: at(item) }).collect();
    let harmless: Vec<Bomb> = (0..50_000).map(whole).collect();
    let [_, many] = operations();
    for (name, operation) in many {
        let filter = LAYOUTS[4].filter(200_000);
        assert!(panics(|| operation(&filter, &bombs)), "{name}");
        let before = filter.len();
        assert!(before <= bombs.len());
        assert!(filter.insert_many(&harmless).iter().all(Result::is_ok), "{name}");
        assert!(filter.contains_many(&harmless).iter().all(|found| *found), "{name}");
        assert_eq!(filter.len(), before + harmless.len(), "{name}");
        filter.clear();
        assert!(filter.is_empty());
    }
}

/// A union asks the hashers of both filters whether they are alike.
#[test]
fn a_panic_in_a_hasher_that_a_union_asks_leaves_nothing_locked() {
    in_time(|| {
        for ticks in [0, 3] {
            for enough in 0.. {
                let left = [enough, usize::MAX].map(AtomicUsize::new);
                let [one, other] = left.each_ref().map(|left| {
                    let builder = ConcurrentCuckooFilter::builder().capacity(10).growing();
                    let builder = builder.hasher(Fused(left));
                    if ticks > 0 { builder.remembers(ticks) } else { builder }
                        .build()
                        .expect("memory")
                });
                other.put(&SplitMix(3).take(100));
                let mut united = None;
                let is_done = !panics(|| united = Some(one.union(&other)));
                assert!(is_done || one.is_empty());
                for filter in [&one, &other] {
                    filter.insert(&Prehashed(1)).expect("room");
                    if ticks > 0 {
                        filter.tick();
                    }
                    filter.clear();
                }
                if is_done {
                    assert_eq!(united, Some(Ok(100)));
                    break;
                }
            }
        }
    });
}

/// Some threads panic all the time, while others use the same buckets.
#[test]
fn panics_in_many_threads_at_once_disturb_no_other_thread() {
    in_time(|| {
        for (layout, capacity) in layouts().iter().flat_map(|it| CAPACITIES.map(|size| (it, size)))
        {
            let filter = full(layout, capacity - capacity / 10, Fixed { key: 0 });
            let items = capacity - capacity / 10;
            let [single, _] = operations();
            together(6, |thread| {
                let number = thread as u64;
                if thread < 4 {
                    for round in 0..500 {
                        let (_, operation) = single[round as usize % 6];
                        let bomb = Bomb { item: round * 4 + number, at: round % (PIECES + 1) };
                        assert!(panics(|| operation(&filter, &[bomb])));
                    }
                    return;
                }
                for round in 0..2_000u64 {
                    let own = whole(1_000_000 + 2 * round + number);
                    if filter.insert(&own).is_ok() {
                        assert!(filter.contains(&own));
                        assert!(filter.remove(&own));
                    }
                    assert!(filter.contains(&whole(round % items as u64)));
                }
            });
            assert_eq!(filter.len(), items, "{layout:?}, capacity {capacity}");
            assert_works(&filter);
        }
    });
}
