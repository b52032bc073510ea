//! An inserted item is found, once, while the halves of a shard are joined.

use crate::grove::{Entry, Grove, ROOT, item, place, split_root};
use crate::toy::Model;
use koel_under_loom::act;
use koel_under_loom::internals::{Mixed, Shards};

/// Looks once, without locks. The result may be undecided, but not wrong.
fn look(grove: &Grove, hash: &Mixed) {
    let (shard, place) = grove.shard(*hash);
    assert_ne!(shard.look(place), Some(false), "a lookup missed an item of joined shards");
}

fn join(grove: &Grove, hash: &Mixed) {
    assert!(grove.room.join_halves(*hash), "two empty halves were not joined");
}

fn there_once(grove: &Grove, hash: &Mixed) {
    assert_eq!(grove.copies(*hash), 1, "an item is not there once after a join");
}

/// An item in one of two halves.
fn in_a_half(half: u64) -> impl Fn(&Grove) -> Mixed + Clone {
    move |grove| {
        let item = item(half, 1);
        grove.put(item);
        split_root(grove, &item);
        item
    }
}

#[test]
fn an_item_is_found_while_its_halves_are_joined() {
    for half in [0, 1] {
        Model::new("join and look", 25).run_in::<Grove, Mixed>(
            in_a_half(half),
            &[join, look],
            |grove, item| {
                there_once(grove, item);
                assert_eq!(grove.room.items(), 1, "a join changed the number of items");
            },
        );
    }
}

/// The entry is the same before the split and after the join.
#[test]
fn an_item_is_found_while_its_shard_is_split_and_joined_again() {
    for half in [0, 1] {
        Model::new("split, join and look", 1_000)
            .preemptions(3)
            .in_short(2, 100)
            .run_in::<Grove, Mixed>(
                move |grove: &Grove| {
                    let item = item(half, 1);
                    grove.put(item);
                    item
                },
                &[
                    |grove, item| {
                        split_root(grove, item);
                        join(grove, item);
                    },
                    look,
                ],
                there_once,
            );
    }
}

/// The second shard has the items of one root, then those of another one, and then those of the first again.
#[test]
fn an_item_is_found_while_its_shard_goes_to_others_and_comes_back() {
    Model::new("there and back", 400).shards(2).preemptions(2).run_in::<Grove, [Mixed; 2]>(
        |grove: &Grove| {
            let (own, other) = (item(0b01, 2), item(0b11, 2));
            grove.put(own);
            grove.split(own, ROOT);
            grove.pretend(other);
            [own, other]
        },
        &[
            |grove, [own, other]| {
                join(grove, own);
                grove.split(*other, Entry { shard: 1, depth: 0 });
                join(grove, other);
                grove.pretend(*own);
                grove.split(*own, ROOT);
            },
            |grove, [own, _]| look(grove, own),
        ],
        |grove, [own, _]| there_once(grove, own),
    );
}

/// A writer waits for a stripe of a shard that is being joined to its other half.
#[test]
fn an_item_that_comes_during_a_join_is_found() {
    for half in [0, 1] {
        Model::new("join and insert", 17).blocking().preemptions(3).run_in::<Grove, Mixed>(
            move |grove: &Grove| {
                let item = item(half, 1);
                grove.pretend(item);
                split_root(grove, &item);
                item
            },
            &[join, |grove, item| {
                act(&grove.room, *item, Shards::insert).expect("there is room");
            }],
            there_once,
        );
    }
}

#[test]
fn an_item_is_removed_during_a_join() {
    for half in [0, 1] {
        Model::new("join and remove", 20).blocking().preemptions(3).run_in::<Grove, Mixed>(
            in_a_half(half),
            &[join, |grove, item| {
                let removed = act(&grove.room, *item, Shards::remove);
                assert!(removed, "a present item was not removed");
            }],
            |grove, item| assert_eq!(grove.copies(*item), 0, "a removed item is there"),
        );
    }
}

/// One thread finds the upper half full and splits it, while another one joins it to the lower.
#[test]
fn a_half_is_split_or_joined() {
    Model::new("join and split", 20).blocking().preemptions(3).run_in::<Grove, Mixed>(
        |grove: &Grove| {
            let item = item(1, 1);
            grove.put(item);
            split_root(grove, &item);
            // With its item, enough for a split, and little enough for a join.
            let (shard, place) = grove.shard(item);
            let locked = shard.lock_one(place.first).unwrap();
            shard.add_items(&locked, place.first, 7);
            item
        },
        &[
            |grove, item| _ = grove.room.join_halves(*item),
            |grove, item| {
                let entry = Entry { shard: 1, depth: 1 };
                _ = grove.split_as_seen(*item, 1, entry);
            },
        ],
        there_once,
    );
}

/// A copy of the filter, shard by shard, while halves that it has copied or is about to copy are joined.
#[test]
fn an_item_is_copied_once_while_its_halves_are_joined() {
    for half in [0, 1] {
        Model::new("join and copy", 4).blocking().preemptions(3).run_in::<Grove, Mixed>(
            in_a_half(half),
            &[
                |grove, item| _ = grove.room.join_halves(*item),
                |grove, item| {
                    let _no_joins = grove.room.keep_shards();
                    let (mut next, mut times) = (Some(0), 0);
                    while next.is_some() {
                        let mut buckets = [0; 8];
                        let copied = grove.room.copy_shard(&mut next, &mut buckets);
                        let place = place(*item, copied.expect("a shard").depth);
                        let both = [place.first, place.second].map(|it| buckets[it.0 as usize]);
                        let lanes = crate::grove::shrinking();
                        times += both
                            .map(|word| lanes.matching(word, place.fp).len())
                            .iter()
                            .sum::<usize>();
                    }
                    assert_eq!(times, 1, "an item is not in a copy once");
                },
            ],
            there_once,
        );
    }
}

/// A clear meets the halves, or the whole.
#[test]
fn nothing_escapes_a_clear_by_a_join() {
    for half in [1, 0] {
        let model = Model::new("join and clear", 20).preemptions(3).in_short(2, 20);
        model.blocking().run_in::<Grove, Mixed>(
            in_a_half(half),
            &[|grove, item| _ = grove.room.join_halves(*item), |grove, _| grove.room.clear()],
            |grove, item| {
                assert_eq!(grove.copies(*item), 0, "an item escaped a clear");
                assert_eq!(grove.room.items(), 0, "items are counted that were cleared");
            },
        );
    }
}
