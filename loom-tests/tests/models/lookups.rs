//! An inserted item is found until it is removed, while items move.

use crate::toy::{Kick, Model, NOT_ONCE, Toy, all_there_once, look, walk};
use koel_under_loom::internals::{AtomicU64, Place};
use loom::sync::atomic::Ordering::{Acquire, Release};
use std::sync::Arc;

/// An item moves from one bucket to another; lookups begin at either.
fn is_found_on_the_way(from: u32, to: u32) {
    let setup = move |toy: &Toy, first| toy.one_move(from, to, first);
    Model::new(70).run_each([to, from], setup, &[walk, look], all_there_once);
}

#[test]
fn an_item_that_moves_to_another_stripe_is_found() {
    is_found_on_the_way(0, 3);
}

#[test]
fn an_item_that_moves_down_to_another_stripe_is_found() {
    is_found_on_the_way(3, 0);
}

#[test]
fn an_item_that_moves_within_its_stripe_is_found() {
    is_found_on_the_way(0, 1);
}

/// Runs the whole lookup, which takes the locks if all its looks are undecided.
#[test]
fn a_lookup_that_gives_up_looking_is_right_under_the_locks() {
    let contains: fn(&Toy, &Kick) = |toy, kick| {
        assert_eq!(toy.shard().contains(kick.moved[0]), Ok(true), "{}", crate::toy::MISSED);
    };
    let model = Model::new(3_800).in_short(3, 170);
    model.run(|toy| toy.one_move(0, 3, 3), &[walk, contains], all_there_once);
}

#[test]
fn an_item_that_moves_is_counted_once() {
    let count: fn(&Toy, &Kick) = |toy, kick| {
        let copies = toy.shard().count(kick.moved[0]);
        assert_eq!(copies, Ok(1), "a moving item was not counted once");
    };
    let model = Model::new(12_500).in_short(3, 360);
    model.run(|toy| toy.one_move(0, 3, 3), &[walk, count], all_there_once);
}

#[test]
fn items_on_a_longer_path_are_found() {
    let setup = |toy: &Toy, looked_for: usize| {
        let kick = toy.two_moves();
        Kick { moved: vec![kick.moved[looked_for]], ..kick }
    };
    Model::new(210).run_each([0, 1], setup, &[walk, look], all_there_once);
}

/// Items `x` and `y` have the same fingerprint and the same two buckets, in opposite order, so they
/// are copies of each other. There is a copy at every moment: one is inserted into bucket 0 before
/// the one in bucket `other` is removed.
#[test]
fn a_copy_that_comes_while_another_goes_is_found() {
    Model::new(65).run_each::<Toy, (Place, Place), u32>(
        [3, 1],
        |toy, other| {
            let x = toy.item(0, other, 0);
            let y = Place { first: x.second, second: x.first, fp: x.fp };
            toy.put(&y, other);
            (x, y)
        },
        &[
            |toy, (x, y)| {
                toy.put(x, 0);
                toy.remove(y);
            },
            |toy, (x, _)| toy.is_found(x),
        ],
        |toy, (x, _)| assert_eq!(toy.copies(x), 1),
    );
}

/// Another writer changes the bucket that the item has left. So a reader may see that bucket
/// without the item, in a word that the mover did not store.
#[test]
fn an_item_is_found_whoever_wrote_last_where_it_was() {
    let remove_newcomer: fn(&Toy, &Kick) = |toy, kick| {
        let _ = toy.shard().remove_locked(kick.newcomer);
    };
    let remove_other: fn(&Toy, &Kick) = |toy, _| toy.remove(&toy.item(0, 5, 9));
    for second_writer in [remove_newcomer, remove_other] {
        Model::blocking(250, 2).run(
            |toy| toy.one_move(0, 3, 3),
            &[walk, second_writer, look],
            |toy, kick| assert_eq!(toy.copies(&kick.moved[0]), 1),
        );
    }
}

/// A copy is added, and then the shard is cleared. A lookup that misses the item is not followed by
/// one that finds it.
#[test]
fn a_clear_takes_an_item_away_at_one_moment() {
    Model::blocking(390, 3).run::<Toy, Place>(
        |toy| {
            let x = toy.item(0, 3, 0);
            toy.put(&x, 0);
            Place { first: x.second, second: x.first, fp: x.fp }
        },
        &[
            |toy, y| {
                toy.put(y, 3);
                drop(toy.shard().clear());
            },
            |toy, y| {
                let looks = [toy.shard().look(*y), toy.shard().look(*y)];
                assert_ne!(looks, [Some(false), Some(true)], "a cleared item came back");
            },
        ],
        |toy, y| assert_eq!(toy.copies(y), 0),
    );
}

/// A thread that has synchronised with the inserting thread finds the item, even if it was moved in
/// between.
#[test]
fn an_item_is_found_by_whoever_was_told_of_it() {
    Model::new(300).run::<Toy, (Place, Arc<AtomicU64>)>(
        |toy| {
            toy.stuff(3);
            toy.stuff(0);
            toy.remove(&toy.item(0, 5, 9));
            (toy.item(0, 3, 0), Arc::new(AtomicU64::new(0)))
        },
        &[
            |toy, (x, inserted)| {
                toy.put(x, 0);
                inserted.store(1, Release);
                toy.remove(&toy.item(3, 6, 9));
                let (path, newcomer) = (toy.path(&[(x, 0)], 3), toy.item(0, 1, 1));
                walk(toy, &Kick { path, newcomer, moved: Vec::new() });
            },
            |toy, (x, inserted)| {
                if inserted.load(Acquire) == 1 {
                    toy.is_found(x);
                }
            },
        ],
        |toy, (x, _)| {
            assert_eq!([*x, toy.item(0, 1, 1)].map(|it| toy.copies(&it)), [1, 1], "{NOT_ONCE}");
        },
    );
}

#[test]
fn items_of_two_kickers_are_found_by_a_third_thread() {
    Model::blocking(19_000, 3).in_short(1, 700).run::<Toy, [Kick; 2]>(
        |toy| [toy.one_move(0, 3, 3), toy.one_move(4, 7, 4)],
        &[
            |toy, [one, _]| walk(toy, one),
            |toy, kicks| kicks.iter().for_each(|kick| look(toy, kick)),
            |toy, [_, two]| walk(toy, two),
        ],
        |toy, kicks| kicks.iter().for_each(|kick| all_there_once(toy, kick)),
    );
}
