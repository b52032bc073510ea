//! Entries of another filter come while shards are split, cleared and looked into.

use crate::grove::{Grove, into_whole, item, place, split_root, there_once};
use crate::toy::{Kick, Model, Toy, all_there_once, look};
use koel_under_loom::internals::{Fingerprint, Incoming, Mixed, Place, Union};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Takes over a copy of a shard of depth 0 that has this item. Returns how many entries were counted.
fn adopt(grove: &Grove, Place { first, fp, .. }: Place) -> usize {
    let mut words = [0; 8];
    words[first.0 as usize] = u64::from(fp.head());
    let lanes = grove.shard(Mixed(0)).0.lanes();
    let (start, words) = (Mixed(0), words.to_vec());
    let copy = Incoming { start, depth: 0, words, lanes, ages: None, done: 0 };
    let mut union = Union::default();
    union.merge_into_growing(grove.room(), copy).expect("memory");
    union.result().expect("there is room");
    union.added
}

/// The same item with a window that is exhausted: nothing is known of its place but its bucket, so it belongs to both
/// halves.
fn vague(place: Place) -> Place {
    let anchor_and_one = place.fp.head() >> 16 << 16 | 1 << 15;
    Place { fp: Fingerprint::new(anchor_and_one).unwrap(), ..place }
}

#[test]
fn an_entry_that_comes_during_a_split_is_found() {
    let adopt: fn(&Grove, &Mixed) = |grove, item| {
        assert_eq!(adopt(grove, place(*item, 0)), 1, "an absent entry was not added");
    };
    Model::blocking(450, 3).run_each([0, 1], into_whole, &[split_root, adopt], there_once);
}

#[test]
fn an_entry_that_belongs_to_both_halves_of_a_split_is_in_both() {
    let adopt: fn(&Grove, &Mixed) = |grove, item| {
        assert_eq!(adopt(grove, vague(place(*item, 0))), 0, "a void entry was counted");
    };
    let model = Model::blocking(450, 3);
    model.run_each([0], into_whole, &[split_root, adopt], |grove, item| {
        let (_, like) = grove.shard(*item);
        for half in [0, 1 << 63] {
            let lanes = grove.shard(Mixed(half)).0.count(like);
            assert_eq!(lanes.ok(), Some(1), "an entry is not in each half once");
        }
        assert_eq!(grove.backend.items(), 0, "a void entry counts as an item");
    });
}

/// The copy is of both halves, and what is left of it after the first is merged with the whole.
#[test]
fn an_item_that_is_removed_does_not_come_back_by_a_join() {
    let in_halves: fn(&Grove, u64) -> (Mixed, Arc<AtomicBool>) = |grove, half| {
        split_root(grove, &into_whole(grove, half));
        (item(half, 1), Arc::default())
    };
    Model::blocking(45, 3).run_each(
        [0, 1],
        in_halves,
        &[
            |grove, (item, _)| _ = adopt(grove, place(*item, 0)),
            |grove, (item, is_gone)| {
                is_gone.store(grove.remove(*item), Relaxed);
                grove.room().join_halves(*item);
            },
        ],
        |grove, (item, is_gone)| {
            let left = usize::from(!is_gone.load(Relaxed));
            assert_eq!(grove.copies(*item), left, "an entry is lost, or came back");
            assert_eq!(grove.backend.items(), left, "a removed item is counted");
        },
    );
}

#[test]
fn an_entry_and_its_item_are_there_once() {
    Model::blocking(27, 3).run::<Grove, Mixed>(
        |_| item(1, 1),
        &[
            |grove, item| _ = grove.insert_if_absent(*item),
            |grove, item| _ = adopt(grove, place(*item, 0)),
        ],
        |grove, item| {
            there_once(grove, item);
            assert_eq!(grove.backend.items(), 1, "an item and its entry count as two");
        },
    );
}

/// A union moves what is in an entry's way, and a lookup looks for it. (The path is known: loom would mistake the
/// loads of a search for the reader's.)
#[test]
fn what_is_moved_out_of_the_way_of_an_entry_is_found() {
    let make_room: fn(&Toy, &Kick) = |toy, kick| {
        let Ok(locked) = toy.shard().lock_all();
        let added = toy.shard().add_along(&locked, &kick.path, kick.newcomer.fp, true);
        assert_eq!(added, Some(()), "no room was made");
    };
    Model::new(100).run_each(
        [3, 0],
        |toy: &Toy, first| toy.one_move(0, 3, first),
        &[make_room, look],
        all_there_once,
    );
}
