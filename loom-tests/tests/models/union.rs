//! Entries of another filter come while shards are split, cleared and looked into.

use crate::grove::{Grove, item, place, split_root, there_once};
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
