//! A small filter changes from its list to shards while other threads use it. The list changes with
//! its fifth item.

use crate::toy::{Model, World};
use koel_under_loom::{ConcurrentCuckooFilter, GrowingCuckooFilter, StableHash};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Its hashes are 1, 2, 3, …
pub struct Small(GrowingCuckooFilter<StableHash>);

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
        self.0.insert_hash(hash).expect("memory for a small table");
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

#[test]
fn an_item_is_found_while_its_list_ends() {
    Model::new("end of a list", 3).blocking().run_in::<Small, Race>(
        |small: &Small| listed(small),
        &[
            |small, _| small.insert(5),
            |small, _| {
                assert!(small.0.contains_hash(1), "a listed item was missed");
                assert_eq!(small.0.count_hash(2), 1, "a listed item was not counted once");
            },
        ],
        |small, _| assert!((1..=5).all(|hash| small.0.count_hash(hash) == 1), "an item is lost"),
    );
}

twins! { an_item_is_found_while_its_list_ends:
    "a listed item was " => [a_list_answers_after_its_end],
    "an item is lost" => [a_list_ends_before_its_shards_are_known],
}

#[test]
fn one_call_wins_while_the_list_ends() {
    let add = |small: &Small, race: &Race| {
        let won = small.0.insert_hash_if_absent(6).expect("memory for a small table");
        race.done.fetch_add(won.into(), Relaxed);
    };
    Model::new("winner at the end of a list", 3)
        .blocking()
        .preemptions(2)
        .in_short(1, 3)
        .run_in::<Small, Race>(
            |small: &Small| listed(small),
            &[|small, _| small.insert(5), add, add],
            |small, race| {
                assert_eq!(race.done.load(Relaxed), 1, "an item has not one winner");
                assert!((1..=6).all(|hash| small.0.count_hash(hash) == 1), "an item is lost");
            },
        );
}

twins! { one_call_wins_while_the_list_ends:
    "Causality violation" => [the_shards_are_set_relaxed, the_shards_are_read_relaxed],
    "an item" => [an_item_is_added_to_a_list_that_has_ended],
}

#[test]
fn an_item_is_removed_once_while_the_list_ends() {
    let take = |small: &Small, race: &Race| {
        race.done.fetch_add(small.0.remove_hash(1).into(), Relaxed);
    };
    Model::new("removal at the end of a list", 3)
        .blocking()
        .preemptions(2)
        .in_short(1, 3)
        .run_in::<Small, Race>(
            |small: &Small| listed(small),
            &[|small, _| small.insert(5), take, take],
            |small, race| {
                assert_eq!(race.done.load(Relaxed), 1, "an item was not removed once");
                assert!(!small.0.contains_hash(1), "a removed item came back");
                assert_eq!(small.0.len(), 4);
            },
        );
}

twins! { an_item_is_removed_once_while_the_list_ends:
    "an item was not removed once" => [an_item_is_removed_from_a_list_that_has_ended],
}

#[test]
fn an_item_is_saved_while_the_list_ends() {
    Model::new("save at the end of a list", 3).blocking().run_in::<Small, Race>(
        |small: &Small| listed(small),
        &[
            |small, _| small.insert(5),
            |small, _| {
                let mut file = Vec::new();
                let report = small.0.write_to(&mut file).expect("there is room");
                let loaded = GrowingCuckooFilter::<StableHash>::read_from(&file[..]);
                let loaded = loaded.expect("what was saved cannot be loaded");
                assert!((1..=4).all(|hash| loaded.count_hash(hash) == 1), "an item is not saved");
                assert_eq!(loaded.len(), report.items(), "items are reported wrong");
            },
        ],
        |small, _| assert_eq!(small.0.len(), 5),
    );
}
