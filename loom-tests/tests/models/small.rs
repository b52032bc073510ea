//! The list of a small filter changes while other threads look into it, and its items go to shards while other
//! threads use it. The list has two slots at first, four from its third item on, and ends with the fifth.

use crate::toy::{Model, World};
use koel_under_loom::Prehashed;
use koel_under_loom::internals::Mixed;
use koel_under_loom::{ConcurrentCuckooFilter, StableHash};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Its hashes are 1, 2, 3, …
pub struct Small(ConcurrentCuckooFilter<StableHash>);

impl World for Small {
    fn of_shards(_: usize) -> Self {
        let builder = ConcurrentCuckooFilter::builder().capacity(1).growing();
        let builder = builder.false_positive_rate(2e-9).expected_growth(1.0);
        Small(builder.hasher(StableHash::with_seed(7)).build().expect("a small filter"))
    }

    fn check(&self) {}
}

impl Small {
    fn insert(&self, hash: u64) {
        self.0.insert(&Prehashed(hash)).expect("memory for a small table");
    }
}

/// How often something was done to an item that several threads want.
#[derive(Clone, Default)]
pub struct Race {
    done: Arc<AtomicU64>,
}

fn listed(small: &Small) -> Race {
    (1..=4).for_each(|hash| small.insert(hash));
    Race::default()
}

/// Four items in the order in which a list has them.
fn in_order() -> [u64; 4] {
    let mut items = [1, 2, 3, 4];
    items.sort_unstable_by_key(|item| Mixed::of(*item).0);
    items
}

/// Looks for the items that are there all the time, at first to get a share in the list.
fn look(small: &Small, items: &[u64]) {
    for item in items.iter().take(1).chain(items) {
        assert!(small.0.contains(&Prehashed(*item)), "a listed item was missed");
    }
}

fn all_there_once(small: &Small) {
    assert!(in_order().iter().all(|item| small.0.count(&Prehashed(*item)) == 1), "an item is lost");
}

#[test]
fn an_item_is_found_while_others_move_on_for_a_new_one() {
    let [_, second, third, fourth] = in_order();
    Model::new("insert into a list", 180)
        .blocking()
        .preemptions(3)
        .in_short(2, 70)
        .run_in::<Small, [u64; 4]>(
            move |small: &Small| {
                [second, third, fourth].iter().for_each(|item| small.insert(*item));
                in_order()
            },
            &[
                |small, [first, ..]| small.insert(*first),
                |small, [_, _, third, _]| look(small, &[*third]),
            ],
            |small, _| all_there_once(small),
        );
}

twins! { an_item_is_found_while_others_move_on_for_a_new_one:
    "a listed item was missed" => [
        a_lookup_in_a_list_is_not_validated,
        a_list_changes_without_its_version,
        hashes_are_loaded_relaxed,
        hashes_are_stored_relaxed,
        the_first_version_is_read_relaxed,
        the_version_ends_relaxed,
        an_odd_version_is_not_noticed,
    ],
}

#[test]
fn an_item_is_found_while_others_move_back_for_one_that_goes() {
    Model::new("removal from a list", 800)
        .blocking()
        .preemptions(3)
        .in_short(2, 380)
        .run_in::<Small, [u64; 4]>(
            |small: &Small| {
                in_order().iter().for_each(|item| small.insert(*item));
                in_order()
            },
            &[
                |small, [first, ..]| assert!(small.0.remove(&Prehashed(*first))),
                |small, [_, _, third, _]| {
                    look(small, &[*third]);
                    assert_eq!(
                        small.0.count(&Prehashed(*third)),
                        1,
                        "a listed item was not counted once"
                    );
                },
            ],
            |small, [first, ..]| {
                small.insert(*first);
                all_there_once(small);
            },
        );
}

twins! { an_item_is_found_while_others_move_back_for_one_that_goes:
    "a listed item was " => [
        a_lookup_in_a_list_is_not_validated,
        a_list_changes_without_its_version,
        hashes_are_loaded_relaxed,
        hashes_are_stored_relaxed,
        the_first_version_is_read_relaxed,
        the_version_ends_relaxed,
        an_odd_version_is_not_noticed,
    ],
}

#[test]
fn an_item_is_found_while_its_list_becomes_longer() {
    Model::new("a longer list", 50).blocking().run_in::<Small, [u64; 4]>(
        |small: &Small| {
            let [_, second, third, _] = in_order();
            [second, third].iter().for_each(|item| small.insert(*item));
            in_order()
        },
        &[
            |small, [first, ..]| small.insert(*first),
            |small, [_, second, third, _]| look(small, &[*second, *third]),
        ],
        |small, [.., fourth]| {
            assert!(small.0.contains(&Prehashed(in_order()[0])), "an item is lost");
            small.insert(*fourth);
            all_there_once(small);
        },
    );
}

twins! { an_item_is_found_while_its_list_becomes_longer:
    "an item is lost" => [any_slots_are_asked],
}

#[test]
fn an_item_is_found_by_who_looked_before_it_came() {
    let look = |small: &Small, _: &Race| {
        let _ = small.0.contains(&Prehashed(1));
    };
    Model::new("a list's first item", 8).blocking().run_in::<Small, Race>(
        move |small: &Small| {
            look(small, &Race::default());
            Race::default()
        },
        &[|small, _| small.insert(1), look],
        |small, _| assert!(small.0.contains(&Prehashed(1)), "an item is lost"),
    );
}

twins! { an_item_is_found_by_who_looked_before_it_came:
    "an item is lost" => [lookups_do_not_learn_of_a_longer_list, any_slots_are_asked],
}

#[test]
fn an_item_is_found_while_its_list_ends() {
    Model::new("end of a list", 45).blocking().run_in::<Small, Race>(
        |small: &Small| listed(small),
        &[
            |small, _| small.insert(5),
            |small, _| {
                // Takes the lock.
                assert!(small.0.len() > 3, "an item is lost");
                look(small, &[1]);
                assert_eq!(small.0.count(&Prehashed(2)), 1, "a listed item was not counted once");
            },
        ],
        |small, _| {
            assert!((1..=5).all(|hash| small.0.count(&Prehashed(hash)) == 1), "an item is lost")
        },
    );
}

twins! { an_item_is_found_while_its_list_ends:
    "an item is lost" => [a_list_ends_before_its_shards_are_known],
}

#[test]
fn one_call_wins_while_the_list_ends() {
    let add = |small: &Small, race: &Race| {
        let won = small.0.insert_if_absent(&Prehashed(6)).expect("memory for a small table");
        race.done.fetch_add(won.into(), Relaxed);
    };
    Model::new("winner at the end of a list", 110)
        .blocking()
        .preemptions(2)
        .in_short(1, 3)
        .run_in::<Small, Race>(
            |small: &Small| listed(small),
            &[|small, _| small.insert(5), add, add],
            |small, race| {
                assert_eq!(race.done.load(Relaxed), 1, "an item has not one winner");
                assert!(
                    (1..=6).all(|hash| small.0.count(&Prehashed(hash)) == 1),
                    "an item is lost"
                );
            },
        );
}

twins! { one_call_wins_while_the_list_ends:
    "Causality violation" => [the_shards_are_set_relaxed, the_shards_are_read_relaxed],
}

#[test]
fn an_item_is_removed_once_while_the_list_ends() {
    let take = |small: &Small, race: &Race| {
        race.done.fetch_add(small.0.remove(&Prehashed(1)).into(), Relaxed);
    };
    Model::new("removal at the end of a list", 12)
        .blocking()
        .preemptions(2)
        .in_short(1, 3)
        .run_in::<Small, Race>(
            |small: &Small| listed(small),
            &[|small, _| small.insert(5), take, take],
            |small, race| {
                assert_eq!(race.done.load(Relaxed), 1, "an item was not removed once");
                assert!(!small.0.contains(&Prehashed(1)), "a removed item came back");
                assert_eq!(small.0.len(), 4);
            },
        );
}

#[test]
fn an_item_is_saved_while_the_list_ends() {
    Model::new("save at the end of a list", 9).blocking().run_in::<Small, Race>(
        |small: &Small| listed(small),
        &[
            |small, _| small.insert(5),
            |small, _| {
                let mut file = Vec::new();
                let report = small.0.write_to(&mut file).expect("there is room");
                let loaded = ConcurrentCuckooFilter::<StableHash>::read_from(&file[..]);
                let loaded = loaded.expect("what was saved cannot be loaded");
                assert!(
                    (1..=4).all(|hash| loaded.count(&Prehashed(hash)) == 1),
                    "an item is not saved"
                );
                assert_eq!(loaded.len(), report.items, "items are reported wrong");
            },
        ],
        |small, _| assert_eq!(small.0.len(), 5),
    );
}
