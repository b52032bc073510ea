//! Entries of another filter come while shards are split, cleared and looked into.

use crate::grove::{Grove, ROOT, item, place, split_root, there_once};
use crate::toy::{Model, Toy};
use koel_under_loom::act;
use koel_under_loom::internals::{
    Bucket, Fingerprint, IncomingShard, MergeReport, Mixed, Path, Place, Shards,
};

/// Takes over a copy of a shard of depth 0 that has this item. Returns how many entries were counted.
fn adopt(grove: &Grove, hash: Mixed) -> usize {
    adopt_as(grove, place(hash, 0))
}

/// The same if nothing is known of the entry's place but its bucket: it belongs to both halves.
fn adopt_vaguely(grove: &Grove, hash: Mixed) -> usize {
    adopt_as(grove, vague(place(hash, 0)))
}

fn adopt_as(grove: &Grove, Place { first, fp, .. }: Place) -> usize {
    let mut words = [0; 8];
    words[first.0 as usize] = u64::from(fp.head());
    let lanes = grove.shard(Mixed(0)).0.lanes();
    let copy = IncomingShard { start: Mixed(0), depth: 0, words: &words, lanes };
    let mut taken = MergeReport::default();
    taken.void_there = u64::MAX;
    grove.room.merge_shard(&copy, &mut taken).expect("memory");
    taken.result().expect("there is room");
    taken.added
}

/// The same item with a window that is exhausted.
fn vague(place: Place) -> Place {
    let anchor_and_one = place.fp.head() >> 16 << 16 | 1 << 15;
    Place { fp: Fingerprint::new(anchor_and_one).unwrap(), ..place }
}

/// How many lanes the shard of this half has that match an item, whatever its window.
fn lanes_in(grove: &Grove, half: u64, like: Mixed) -> usize {
    let (_, Place { first, second, fp }) = grove.shard(like);
    let (shard, _) = grove.shard(Mixed(half << 63));
    shard.count(Place { first, second, fp }).unwrap()
}

#[test]
fn an_entry_that_comes_during_a_split_is_found() {
    for half in [0, 1] {
        Model::new("split and adopt", 450).blocking().preemptions(3).run_in::<Grove, Mixed>(
            move |grove: &Grove| {
                let item = item(half, 1);
                grove.pretend(item);
                item
            },
            &[split_root, |grove, item| {
                assert_eq!(adopt(grove, *item), 1, "an absent entry was not added");
            }],
            there_once,
        );
    }
}

mutants! { an_entry_that_comes_during_a_split_is_found:
    "an absent entry was not added" => [an_entry_is_given_up_when_its_shard_is_split],
    "an item is not there once after a split" => [
        who_splits_does_not_ask_whether_the_shard_was_split,
    ],
}

#[test]
fn an_entry_that_belongs_to_both_halves_of_a_split_is_in_both() {
    Model::new("split and adopt for both", 450).blocking().preemptions(3).run_in::<Grove, Mixed>(
        move |grove: &Grove| {
            let item = item(0, 1);
            grove.pretend(item);
            item
        },
        &[split_root, |grove, item| {
            assert_eq!(adopt_vaguely(grove, *item), 1, "an entry was not counted once");
        }],
        |grove, item| {
            for half in [0, 1] {
                assert_eq!(lanes_in(grove, half, *item), 1, "an entry is not in each half once");
            }
            assert_eq!(grove.room.items(), 1, "an entry does not count as one item");
        },
    );
}

mutants! { an_entry_that_belongs_to_both_halves_of_a_split_is_in_both:
    "an entry is not in each half once" => [an_entry_goes_to_the_first_of_its_shards],
    "an entry was not counted once" => [an_entry_counts_in_each_of_its_shards],
}

#[test]
fn an_entry_and_its_item_are_there_once() {
    Model::new("insert and adopt", 27).blocking().preemptions(3).run_in::<Grove, Mixed>(
        |_: &Grove| item(1, 1),
        &[
            |grove, item| {
                act(&grove.room, *item, Shards::insert_if_absent).expect("there is room");
            },
            |grove, item| {
                adopt(grove, *item);
            },
        ],
        |grove, item| {
            there_once(grove, item);
            assert_eq!(grove.room.items(), 1, "an item and its entry count as two");
        },
    );
}

mutants! { an_entry_and_its_item_are_there_once:
    "an item is not there once after a split" => [absence_is_decided_before_the_locks],
}

#[derive(Clone)]
struct Way {
    path: Path,
    moved: Place,
}

/// A union moves what is in an entry's way, and a lookup looks for it. (The path is known: loom would mistake the
/// loads of a search for the reader's.)
#[test]
fn what_is_moved_out_of_the_way_of_an_entry_is_found() {
    for first in [3, 0] {
        Model::new("moves of a union", 100).run::<Way>(
            move |toy: &Toy| {
                let moved = toy.item(first, 3 - first, 0);
                toy.put(&moved, 0);
                toy.stuff(0);
                Way { path: toy.path(&[(&moved, 0)], 3), moved }
            },
            &[
                |toy, way| {
                    let Ok(locked) = toy.shard().lock_all();
                    let freed = toy.shard().move_along(&locked, &way.path);
                    assert_eq!(freed, Some(Bucket(0)), "no room was made");
                    toy.shard().add_items(&locked, Bucket(0), -1);
                    toy.shard().add_items(&locked, Bucket(3), 1);
                },
                |toy, way| {
                    let found = toy.shard().look(way.moved);
                    assert_ne!(found, Some(false), "a lookup missed an item that was moving");
                },
            ],
            |toy, way| assert_eq!(toy.copies(&way.moved), 1, "an item was lost"),
        );
    }
}

mutants! { what_is_moved_out_of_the_way_of_an_entry_is_found:
    "a lookup missed an item that was moving" => [a_union_moves_items_without_a_version],
}

/// A window like that of an entry with nothing left: a one, and zeros.
#[test]
fn an_entry_is_covered_only_by_what_has_lost_as_much() {
    Model::new("cover", 1).run_in::<Grove, Mixed>(
        |grove: &Grove| {
            let item = item(1 << 15, 16);
            grove.fill(item);
            adopt_vaguely(grove, item);
            item
        },
        &[|_, _| {}],
        |grove, item| {
            grove.pretend(*item);
            grove.split(*item, ROOT);
            let others = lanes_in(grove, 0, *item);
            assert_eq!(others, 1, "an entry was taken for one that knows more");
        },
    );
}

mutants! { an_entry_is_covered_only_by_what_has_lost_as_much:
    "an entry was taken for one that knows more" => [an_entry_is_covered_by_what_knows_more],
}

/// A lane that knows more than an entry of the same item loses bits. (It is one store of one word, which
/// needs no other thread to go wrong.)
#[test]
fn a_finer_lane_becomes_like_the_entry() {
    Model::new("widen", 1).run_in::<Grove, Mixed>(
        |grove: &Grove| {
            let item = item(0, 1);
            grove.put(item);
            item
        },
        &[|grove, item| {
            assert_eq!(adopt_vaguely(grove, *item), 0, "an entry was added beside a finer lane");
        }],
        |grove, item| {
            grove.split(*item, ROOT);
            for half in [0, 1] {
                assert_eq!(lanes_in(grove, half, *item), 1, "a finer lane did not lose its bits");
            }
            assert_eq!(grove.room.items(), 1, "an entry of a known item was counted");
        },
    );
}

mutants! { a_finer_lane_becomes_like_the_entry:
    "a finer lane did not lose its bits" => [a_finer_lane_keeps_its_bits],
}
