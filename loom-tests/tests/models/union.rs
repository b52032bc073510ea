//! Entries of another filter come while shards are split.

use crate::grove::{Grove, ROOT, item, split_root, there_once};
use crate::toy::Model;
use koel_under_loom::internals::{InsertIfAbsent, Mixed, Moment, Place, Remove, Shards, act};

/// How many lanes the shard of this hash has that match an item, whatever its window.
fn lanes_in(grove: &Grove, half: u64, like: Mixed) -> usize {
    let (_, Place { first, second, fp }) = grove.shard(like);
    let (shard, _) = grove.shard(Mixed(half << 63));
    shard.count(Place { first, second, fp }).unwrap()
}

#[test]
fn an_entry_that_comes_during_a_split_is_found() {
    for half in [0, 1] {
        Model::new("split and adopt", 28).blocking().preemptions(3).run_in::<Grove, Mixed>(
            move |grove: &Grove| {
                let item = item(half, 1);
                grove.pretend(item);
                item
            },
            &[split_root, |grove, item| {
                let added = grove.room.adopt_item(*item, Moment::FIRST);
                assert_eq!(added, Ok(true), "an absent entry was not added");
            }],
            there_once,
        );
    }
}

twins! { an_entry_that_comes_during_a_split_is_found:
    "an item is not there once after a split" => [an_entry_is_given_up_when_its_shard_is_split],
}

/// Nothing is known of the entry's place but its bucket: it belongs to both halves.
#[test]
fn an_entry_that_belongs_to_both_halves_of_a_split_is_in_both() {
    Model::new("split and adopt for both", 28).blocking().preemptions(3).run_in::<Grove, Mixed>(
        move |grove: &Grove| {
            let item = item(0, 1);
            grove.pretend(item);
            item
        },
        &[split_root, |grove, item| {
            let added = grove.room.adopt_vaguely::<false>(*item, 0);
            assert_eq!(added, Ok(true), "an absent entry was not added");
        }],
        |grove, item| {
            for half in [0, 1] {
                assert_eq!(lanes_in(grove, half, *item), 1, "an entry is not in each half once");
            }
            assert_eq!(grove.room.items(), 9, "an entry does not count as one item");
        },
    );
}

twins! { an_entry_that_belongs_to_both_halves_of_a_split_is_in_both:
    "an entry is not in each half once" => [an_entry_goes_to_the_first_of_its_shards],
    "an entry does not count as one item" => [an_entry_counts_in_each_of_its_shards],
}

#[test]
fn an_entry_and_its_item_are_there_once() {
    Model::new("insert and adopt", 12).blocking().preemptions(3).run_in::<Grove, Mixed>(
        |_: &Grove| item(1, 1),
        &[
            |grove, item| {
                act::<InsertIfAbsent, _>(&grove.room, *item).expect("there is room");
            },
            |grove, item| {
                grove.room.adopt_item(*item, Moment::FIRST).expect("there is room");
            },
        ],
        there_once,
    );
}

twins! { an_entry_and_its_item_are_there_once:
    "an item is not there once after a split" => [absence_is_decided_before_the_locks],
}

/// A window like that of an entry with nothing left: a one, and zeros.
#[test]
fn an_entry_is_covered_only_by_what_has_lost_as_much() {
    Model::new("cover", 1).run_in::<Grove, Mixed>(
        |grove: &Grove| {
            let item = item(1 << 15, 16);
            grove.fill(item);
            grove.room.adopt_vaguely::<false>(item, 0).expect("there is room");
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

twins! { an_entry_is_covered_only_by_what_has_lost_as_much:
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
            let added = grove.room.adopt_vaguely::<false>(*item, 0);
            assert_eq!(added, Ok(false), "an entry was added beside a finer lane");
        }],
        |grove, item| {
            grove.split(*item, ROOT);
            for half in [0, 1] {
                assert_eq!(lanes_in(grove, half, *item), 1, "a finer lane did not lose its bits");
            }
            assert_eq!(grove.room.items(), 9, "an entry of a known item was counted");
        },
    );
}

twins! { a_finer_lane_becomes_like_the_entry:
    "a finer lane did not lose its bits" => [a_finer_lane_keeps_its_bits],
}

/// One lane stands for the item, and the others are erased with it.
#[test]
fn nothing_is_left_of_an_entry_in_several_shards() {
    Model::new("adopt and remove", 1).run_in::<Grove, Mixed>(
        |grove: &Grove| {
            let item = item(1, 1);
            grove.pretend(item);
            grove.split(item, ROOT);
            grove.room.clear();
            item
        },
        &[|grove, item| {
            grove.room.adopt_vaguely::<false>(*item, 0).expect("there is room");
        }],
        |grove, item| {
            assert!(act::<Remove, _>(&grove.room, *item), "an entry was not removed");
            let left = [0, 1].map(|half| lanes_in(grove, half, *item));
            assert_eq!((grove.room.items(), left), (0, [0, 0]), "something of an entry is left");
        },
    );
}

twins! { nothing_is_left_of_an_entry_in_several_shards:
    "something of an entry is left" => [nobody_knows_that_an_entry_is_in_several_shards],
}
