//! Wide buckets: two words that are neither written nor read at once.
//!
//! A lookup reads the first word of a bucket before the second. So it may see the head of one item and
//! the tail of another that took its lane. Each model has a lookup of an item that is there all the
//! time, or never.

use crate::grove::{Grove, items_in, split_root, there_once};
use crate::toy::{Model, Toy};
use koel_under_loom::internals::{Mixed, Path, Place};

type Wide = Toy<true>;

fn with_tail(item: Place, tail: u64) -> Place {
    Place { fp: item.fp.with_tail(tail), ..item }
}

fn fill(toy: &Wide, item: &Place) {
    let Ok(locked) = toy.shard().lock_one(item.first);
    assert!(toy.shard().fill_locked(&locked, item.first, item.fp));
}

fn remove(toy: &Wide, item: &Place) {
    assert_eq!(toy.shard().remove_locked(*item), Ok(true));
}

fn is_found(toy: &Wide, item: &Place) {
    assert_ne!(toy.shard().look(*item), Some(false), "a lookup missed an item that was there");
}

fn is_not_found(toy: &Wide, item: &Place) {
    assert_ne!(toy.shard().look(*item), Some(true), "a lookup found an item that was never there");
}

/// The head of an item that was inserted meets the tail that was in its lane before.
#[test]
fn an_item_that_arrives_is_not_taken_for_one_with_its_head() {
    Model::new("wide, arrival", 4).run_in::<Wide, Place>(
        |toy| with_tail(toy.item(0, 3, 0), 5),
        &[fill, |toy, item| is_not_found(toy, &with_tail(*item, 0))],
        |toy, item| assert_eq!(toy.copies(item), 1),
    );
}

/// The head of an item that was removed meets the tail of the next one in its lane.
#[test]
fn a_lane_that_is_used_again_is_not_taken_for_a_third_item() {
    for third_first in [0, 3] {
        Model::new("wide, reuse", 1_000).in_short(2, 150).run_in::<Wide, [Place; 3]>(
            move |toy| {
                let gone = with_tail(toy.item(0, 3, 0), 5);
                let next = with_tail(toy.item(0, 5, 1), 6);
                let third = with_tail(toy.item(third_first, 3 - third_first, 0), 6);
                toy.put(&gone, 0);
                [gone, next, third]
            },
            &[
                |toy, [gone, next, _]| {
                    remove(toy, gone);
                    fill(toy, next);
                },
                |toy, [.., third]| is_not_found(toy, third),
            ],
            |toy, [gone, next, _]| assert_eq!([gone, next].map(|it| toy.copies(it)), [0, 1]),
        );
    }
}

/// The tail of an item that was removed is gone before a lookup that has seen its head reads it.
#[test]
fn an_item_that_leaves_is_not_taken_for_one_with_its_head() {
    Model::new("wide, departure", 400).run_in::<Wide, Place>(
        |toy| {
            let item = with_tail(toy.item(0, 3, 0), 5);
            toy.put(&item, 0);
            item
        },
        &[remove, |toy, item| is_not_found(toy, &with_tail(*item, 0))],
        |toy, item| assert_eq!(toy.copies(item), 0),
    );
}

/// One copy arrives in the bucket of another, which goes, and its lane is used again. There is a copy
/// at every moment.
#[test]
fn a_copy_that_comes_while_another_goes_is_found() {
    Model::new("wide, copies", 700).in_short(2, 320).run_in::<Wide, [Place; 2]>(
        |toy| {
            let copied = with_tail(toy.item(0, 3, 0), 5);
            toy.put(&copied, 0);
            [copied, with_tail(toy.item(0, 5, 1), 6)]
        },
        &[
            |toy, [copied, next]| {
                fill(toy, copied);
                remove(toy, copied);
                fill(toy, next);
            },
            |toy, [copied, _]| is_found(toy, copied),
        ],
        |toy, [copied, next]| assert_eq!([copied, next].map(|it| toy.copies(it)), [1, 1]),
    );
}

#[derive(Clone)]
struct Kick {
    path: Path,
    newcomer: Place,
    moved: Place,
}

/// The item moves from bucket 0 to bucket `to`, and the newcomer takes its lane.
fn kick(toy: &Wide, to: u32, first: u32) -> Kick {
    let moved = with_tail(toy.item(first, to - first, 0), 5);
    toy.put(&moved, 0);
    toy.stuff(0);
    let path = toy.path(&[(&moved, 0)], to);
    Kick { path, newcomer: with_tail(toy.item(0, 1, 1), 6), moved }
}

fn execute(toy: &Wide, kick: &Kick) {
    toy.execute(&kick.path, &kick.newcomer);
}

fn both_are_there(toy: &Wide, kick: &Kick) {
    assert_eq!([kick.moved, kick.newcomer].map(|it| toy.copies(&it)), [1, 1]);
}

#[test]
fn an_item_that_moves_is_found() {
    for (to, first) in [(3, 3), (3, 0), (1, 1), (1, 0)] {
        Model::new("wide, move", 1_500).in_short(2, 220).run_in::<Wide, Kick>(
            move |toy| kick(toy, to, first),
            &[execute, |toy, kick| is_found(toy, &kick.moved)],
            both_are_there,
        );
    }
}

/// The head of the item that moves away meets the tail of the newcomer.
#[test]
fn an_item_that_moves_is_not_taken_for_another() {
    Model::new("wide, move and other", 1_500).in_short(2, 220).run_in::<Wide, Kick>(
        move |toy| kick(toy, 3, 0),
        &[execute, |toy, kick| is_not_found(toy, &with_tail(kick.moved, 6))],
        both_are_there,
    );
}

#[test]
fn an_item_that_is_cleared_is_not_taken_for_another() {
    Model::new("wide, clear", 900).in_short(2, 140).run_in::<Wide, Place>(
        |toy| {
            let item = with_tail(toy.item(0, 3, 0), 5);
            toy.put(&item, 0);
            item
        },
        &[
            |toy, _| {
                let Ok(()) = toy.shard().clear(|| ());
            },
            |toy, item| is_not_found(toy, &with_tail(*item, 0)),
        ],
        |toy, item| assert_eq!(toy.copies(item), 0),
    );
}

type WideGrove = Grove<true>;

fn look(grove: &WideGrove, hash: Mixed) -> Option<bool> {
    let (shard, place) = grove.shard(hash);
    shard.look(place)
}

#[test]
fn an_item_is_found_while_its_shard_is_split() {
    for half in [0, 1] {
        Model::new("wide, split", 2_000).in_short(2, 100).run_in::<WideGrove, Mixed>(
            move |grove| {
                let item = items_in::<true>(half, 1).next().unwrap();
                grove.put(item);
                item
            },
            &[split_root, |grove, item| {
                let found = look(grove, *item);
                assert_ne!(found, Some(false), "a lookup missed an item of a shard that was split");
            }],
            there_once,
        );
    }
}

/// The window of the item, once the split has shifted it, equals the window of an absent one before the
/// split. (The absent one has the head and the buckets of the item; no hash that leads to them is
/// known.)
#[test]
fn an_item_is_not_taken_for_another_in_the_middle_of_a_split() {
    Model::new("wide, split and other", 2_000)
        .in_short(2, 100)
        .run_in::<WideGrove, (Mixed, Place)>(
            |grove| {
                let item = items_in::<true>(0, 1).next().unwrap();
                let (_, place) = grove.shard(item);
                grove.put(item);
                (item, place)
            },
            &[
                |grove, (item, _)| split_root(grove, item),
                |grove, (item, place)| {
                    let (shard, at) = grove.shard(Mixed(item.0 << 1));
                    let absent = with_tail(*place, at.fp.tail().into());
                    assert_ne!(shard.look(absent), Some(true), "a lookup found what is not there");
                },
            ],
            |grove, (item, _)| there_once(grove, item),
        );
}
