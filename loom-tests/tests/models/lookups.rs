//! An inserted item is found until it is removed, while items move.

use crate::toy::{Model, Toy};
use koel_under_loom::internals::{AtomicU64, Path, Place};
use loom::sync::atomic::Ordering::{Acquire, Release};
use std::sync::Arc;

#[derive(Clone)]
struct Move {
    path: Path,
    newcomer: Place,
    moved: Vec<Place>,
}

/// Puts an item into bucket `from`, fills that bucket, and plans the item's move to bucket `to`.
/// Lookups of the item begin at bucket `first`, which is one of the two.
fn one_move(toy: &Toy, from: u32, to: u32, first: u32) -> Move {
    let x = toy.item(first, from + to - first, 0);
    toy.put(&x, from);
    toy.stuff(from);
    let path = toy.path(&[(&x, from)], to);
    Move { path, newcomer: toy.item(from, from ^ 1, 1), moved: vec![x] }
}

fn execute(toy: &Toy, this: &Move) {
    toy.execute(&this.path, &this.newcomer);
}

/// Looks once, without locks. The result may be undecided, but not wrong.
fn look(toy: &Toy, this: &Move) {
    for item in &this.moved {
        let found = toy.shard().look(*item);
        assert_ne!(found, Some(false), "a lookup missed an item that was moving");
    }
}

/// Runs the whole lookup, which takes the locks if all its looks are undecided.
fn contains(toy: &Toy, this: &Move) {
    for item in &this.moved {
        assert_eq!(
            toy.shard().contains(*item),
            Ok(true),
            "a lookup missed an item that was moving"
        );
    }
}

fn count(toy: &Toy, this: &Move) {
    for item in &this.moved {
        assert_eq!(toy.shard().count(*item), Ok(1), "a moving item was not counted once");
    }
}

fn all_there_once(toy: &Toy, this: &Move) {
    for item in this.moved.iter().chain([&this.newcomer]) {
        assert_eq!(toy.copies(item), 1, "an item is not there once");
    }
}

#[test]
fn an_item_that_moves_to_another_stripe_is_found() {
    for first in [3, 0] {
        Model::new("two stripes", 70).run(
            move |toy| one_move(toy, 0, 3, first),
            &[execute, look],
            all_there_once,
        );
    }
}

#[test]
fn an_item_that_moves_down_to_another_stripe_is_found() {
    for first in [3, 0] {
        Model::new("two stripes, down", 70).run(
            move |toy| one_move(toy, 3, 0, first),
            &[execute, look],
            all_there_once,
        );
    }
}

#[test]
fn an_item_that_moves_within_its_stripe_is_found() {
    for first in [1, 0] {
        Model::new("one stripe", 70).run(
            move |toy| one_move(toy, 0, 1, first),
            &[execute, look],
            all_there_once,
        );
    }
}

#[test]
fn a_lookup_that_gives_up_looking_is_right_under_the_locks() {
    Model::new("contains", 3_800).in_short(3, 170).run(
        |toy| one_move(toy, 0, 3, 3),
        &[execute, contains],
        all_there_once,
    );
}

#[test]
fn an_item_that_moves_is_counted_once() {
    Model::new("count", 12_500).in_short(3, 360).run(
        |toy| one_move(toy, 0, 3, 3),
        &[execute, count],
        all_there_once,
    );
}

/// `a` moves from bucket 0 to 3, and `b` from there to 4. Each of them is looked for.
#[test]
fn items_on_a_longer_path_are_found() {
    for looked_for in [0, 1] {
        Model::new("two moves", 210).run(
            move |toy| {
                let (a, b) = (toy.item(3, 0, 0), toy.item(4, 3, 0));
                toy.put(&a, 0);
                toy.put(&b, 3);
                toy.stuff(0);
                toy.stuff(3);
                let path = toy.path(&[(&a, 0), (&b, 3)], 4);
                let moved = vec![[a, b][looked_for]];
                Move { path, newcomer: toy.item(0, 1, 1), moved }
            },
            &[execute, look],
            all_there_once,
        );
    }
}

/// Items `x` and `y` have the same fingerprint and the same two buckets, in opposite order, so they
/// are copies of each other. There is a copy at every moment: one is inserted into bucket 0 before
/// the one in bucket `other` is removed.
#[test]
fn a_copy_that_comes_while_another_goes_is_found() {
    for other in [3, 1] {
        Model::new("copies", 65).run::<(Place, Place)>(
            move |toy| {
                let x = toy.item(0, other, 0);
                let y = Place { first: x.second, second: x.first, fp: x.fp };
                toy.put(&y, other);
                (x, y)
            },
            &[
                |toy, (x, y)| {
                    let Ok(locked) = toy.shard().lock_one(x.first);
                    assert!(toy.shard().fill_locked(&locked, x.first, x.fp));
                    drop(locked);
                    assert_eq!(toy.shard().remove_locked(*y), Ok(true));
                },
                |toy, (x, _)| {
                    let found = toy.shard().look(*x);
                    assert_ne!(found, Some(false), "a lookup missed the copy that stayed");
                },
            ],
            |toy, (x, _)| assert_eq!(toy.copies(x), 1),
        );
    }
}

/// Another writer changes the bucket that the item has left. So a reader may see that bucket
/// without the item, in a word that the mover did not store.
#[test]
fn an_item_is_found_whoever_wrote_last_where_it_was() {
    let remove_newcomer: fn(&Toy, &Move) = |toy, this| {
        let _ = toy.shard().remove_locked(this.newcomer);
    };
    let remove_other: fn(&Toy, &Move) = |toy, _| {
        assert_eq!(toy.shard().remove_locked(toy.item(0, 5, 9)), Ok(true));
    };
    for second_writer in [remove_newcomer, remove_other] {
        Model::new("two writers, one reader", 250).blocking().preemptions(2).run(
            |toy| one_move(toy, 0, 3, 3),
            &[execute, second_writer, look],
            |toy, this| assert_eq!(toy.copies(&this.moved[0]), 1),
        );
    }
}

/// A copy is added, and then the shard is cleared. A lookup that misses the item is not followed by
/// one that finds it.
#[test]
fn a_clear_takes_an_item_away_at_one_moment() {
    Model::new("clear and look", 390).blocking().preemptions(3).run::<(Place, Place)>(
        |toy| {
            let x = toy.item(0, 3, 0);
            toy.put(&x, 0);
            (x, Place { first: x.second, second: x.first, fp: x.fp })
        },
        &[
            |toy, (_, y)| {
                let Ok(locked) = toy.shard().lock_one(y.first);
                assert!(toy.shard().fill_locked(&locked, y.first, y.fp));
                drop(locked);
                assert_eq!(toy.shard().clear(|| ()), Ok(()));
            },
            |toy, (_, y)| {
                let looks = [toy.shard().look(*y), toy.shard().look(*y)];
                assert_ne!(looks, [Some(false), Some(true)], "a cleared item came back");
            },
        ],
        |toy, (x, _)| assert_eq!(toy.copies(x), 0),
    );
}

/// A thread that has synchronised with the inserting thread finds the item, even if it was moved in
/// between.
#[test]
fn an_item_is_found_by_whoever_was_told_of_it() {
    Model::new("told", 300).run::<(Place, Place, Arc<AtomicU64>)>(
        |toy| {
            let x = toy.item(0, 3, 0);
            toy.stuff(3);
            toy.stuff(0);
            assert_eq!(toy.shard().remove_locked(toy.item(0, 5, 9)), Ok(true));
            (x, toy.item(0, 1, 1), Arc::new(AtomicU64::new(0)))
        },
        &[
            |toy, (x, _, inserted)| {
                let Ok(locked) = toy.shard().lock_one(x.first);
                assert!(toy.shard().fill_locked(&locked, x.first, x.fp));
                drop(locked);
                inserted.store(1, Release);
                assert_eq!(toy.shard().remove_locked(toy.item(3, 6, 9)), Ok(true));
                let path = toy.path(&[(x, 0)], 3);
                toy.execute(&path, &toy.item(0, 1, 1));
            },
            |toy, (x, _, inserted)| {
                if inserted.load(Acquire) == 1 {
                    let found = toy.shard().look(*x);
                    assert_ne!(found, Some(false), "a lookup missed an item it was told of");
                }
            },
        ],
        |toy, (x, newcomer, _)| {
            assert_eq!((toy.copies(x), toy.copies(newcomer)), (1, 1));
        },
    );
}

#[test]
fn items_of_two_kickers_are_found_by_a_third_thread() {
    Model::new("two kickers, one reader", 19_000)
        .blocking()
        .preemptions(3)
        .in_short(1, 700)
        .run::<(Move, Move)>(
            |toy| (one_move(toy, 0, 3, 3), one_move(toy, 4, 7, 4)),
            &[
                |toy, (one, _)| execute(toy, one),
                |toy, (one, two)| {
                    look(toy, one);
                    look(toy, two);
                },
                |toy, (_, two)| execute(toy, two),
            ],
            |toy, (one, two)| {
                all_there_once(toy, one);
                all_there_once(toy, two);
            },
        );
}
