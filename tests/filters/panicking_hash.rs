//! A user's `Hash` may panic, anywhere and in many threads at once. The operation then has no
//! effect, and leaves no lock held.

use crate::common::{Filter, Fixed, FixedHasher, Layout, in_time, layouts};
use koel::ConcurrentCuckooFilter;
use std::hash::{BuildHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

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

type Operation<S> = fn(&Filter<S>, &Bomb);

/// Returns all operations that hash an item.
fn operations<S: BuildHasher>() -> [(&'static str, Operation<S>); 6] {
    [
        ("insert", |filter, bomb| _ = filter.insert(bomb)),
        ("insert_if_absent", |filter, bomb| _ = filter.insert_if_absent(bomb)),
        ("contains", |filter, bomb| _ = filter.contains(bomb)),
        ("count", |filter, bomb| _ = filter.count(bomb)),
        ("remove", |filter, bomb| _ = filter.remove(bomb)),
        ("hash_of", |filter, bomb| _ = filter.hash_of(bomb)),
    ]
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
        for layout in layouts() {
            for capacity in CAPACITIES {
                let filter = full(layout, capacity, Fixed { key: 0 });
                for (name, operation) in operations() {
                    for at in 0..=PIECES {
                        for item in 0..20 {
                            // Alternately present and absent items.
                            let item = item % 2 * capacity as u64 + item;
                            let bomb = Bomb { item, at };
                            assert!(
                                panics(|| operation(&filter, &bomb)),
                                "{name} swallowed a panic"
                            );
                            assert_eq!(filter.len(), capacity, "{name}, {layout:?}");
                        }
                    }
                }
                assert_works(&filter);
            }
        }
    });
}

/// Some threads panic all the time, while others use the same buckets.
#[test]
fn panics_in_many_threads_at_once_disturb_no_other_thread() {
    in_time(|| {
        for layout in layouts() {
            for capacity in CAPACITIES {
                let filter = full(layout, capacity - capacity / 10, Fixed { key: 0 });
                let items = capacity - capacity / 10;
                let begin = Barrier::new(6);
                std::thread::scope(|scope| {
                    for thread in 0..4 {
                        let (filter, begin) = (&filter, &begin);
                        scope.spawn(move || {
                            begin.wait();
                            for round in 0..500 {
                                let (_, operation) = operations()[round as usize % 6];
                                let bomb =
                                    Bomb { item: round * 4 + thread, at: round % (PIECES + 1) };
                                assert!(panics(|| operation(filter, &bomb)));
                            }
                        });
                    }
                    for thread in 0..2 {
                        let (filter, begin) = (&filter, &begin);
                        scope.spawn(move || {
                            begin.wait();
                            for round in 0..2_000u64 {
                                let own = whole(1_000_000 + 2 * round + thread);
                                if filter.insert(&own).is_ok() {
                                    assert!(filter.contains(&own));
                                    assert!(filter.remove(&own));
                                }
                                assert!(filter.contains(&whole(round % items as u64)));
                            }
                        });
                    }
                });
                assert_eq!(filter.len(), items, "{layout:?}, capacity {capacity}");
                assert_works(&filter);
            }
        }
    });
}

/// A hasher that panics at the given place while `angry` is set.
struct Moody<'a> {
    angry: &'a AtomicBool,
    place: Place,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Build,
    Write,
    Finish,
}

struct MoodyHasher<'a> {
    inner: FixedHasher,
    angry: &'a AtomicBool,
    place: Place,
}

impl<'a> BuildHasher for Moody<'a> {
    type Hasher = MoodyHasher<'a>;

    fn build_hasher(&self) -> MoodyHasher<'a> {
        let Moody { angry, place } = *self;
        let hasher = MoodyHasher { inner: Fixed { key: 0 }.build_hasher(), angry, place };
        hasher.explode_at(Place::Build);
        hasher
    }
}

impl MoodyHasher<'_> {
    fn explode_at(&self, place: Place) {
        if self.place == place && self.angry.load(Ordering::Relaxed) {
            explode();
        }
    }
}

impl Hasher for MoodyHasher<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.explode_at(Place::Write);
        self.inner.write(bytes);
    }

    fn finish(&self) -> u64 {
        self.explode_at(Place::Finish);
        self.inner.finish()
    }
}

#[test]
fn a_panic_in_the_hasher_changes_nothing() {
    in_time(|| {
        for layout in layouts() {
            for place in [Place::Build, Place::Write, Place::Finish] {
                let angry = AtomicBool::new(false);
                let filter = full(layout, 300, Moody { angry: &angry, place });
                angry.store(true, Ordering::Relaxed);
                for (name, operation) in operations() {
                    for item in 0..600 {
                        assert!(panics(|| operation(&filter, &whole(item))), "{name}");
                    }
                    assert_eq!(filter.len(), 300, "{name}, {layout:?}");
                }
                angry.store(false, Ordering::Relaxed);
                assert_works(&filter);
            }
        }
    });
}

/// The same with an ordinary panic, which prints a message, and with the default hasher.
#[test]
fn an_ordinary_panic_changes_nothing() {
    in_time(|| {
        struct Picky(u64);

        impl Hash for Picky {
            fn hash<H: Hasher>(&self, state: &mut H) {
                assert!(self.0 < 100, "{} is too large to be hashed", self.0);
                self.0.hash(state);
            }
        }

        let filter = ConcurrentCuckooFilter::with_capacity(200);
        for item in 0..200 {
            assert_eq!(panics(|| filter.insert(&Picky(item)).expect("room for 200")), item >= 100);
        }
        assert_eq!(filter.len(), 100);
        assert!((0..100).all(|item| filter.contains(&Picky(item))));
        assert!((0..100).all(|item| filter.remove(&Picky(item))));
        assert!(filter.is_empty());
    });
}
