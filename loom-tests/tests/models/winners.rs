//! If several calls race to add an absent item, exactly one of them adds it.

use crate::toy::{Model, Toy};
use koel_under_loom::internals::{Copies, Outcome, Path, Place, execute, kick};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone)]
struct Race {
    item: Place,
    paths: Vec<Path>,
    winners: Arc<AtomicUsize>,
}

impl Race {
    fn of(item: Place, paths: Vec<Path>) -> Self {
        Race { item, paths, winners: Arc::default() }
    }

    fn won(&self, added: bool) {
        self.winners.fetch_add(usize::from(added), Ordering::Relaxed);
    }
}

fn exactly_one(toy: &Toy, race: &Race) {
    assert_eq!(race.winners.load(Ordering::Relaxed), 1, "not exactly one call added the item");
    assert_eq!(toy.copies(&race.item), 1, "the item is not there once");
}

#[test]
fn one_call_wins_where_there_is_room() {
    let add: fn(&Toy, &Race) = |toy, race| {
        race.won(toy.shard().insert_if_absent(race.item).expect("there is room"));
    };
    Model::new("room", 200).run(
        |toy| Race::of(toy.item(0, 3, 0), Vec::new()),
        &[add, add],
        exactly_one,
    );
}

#[test]
fn one_call_wins_under_the_locks() {
    let add: fn(&Toy, &Race) = |toy, race| {
        let Ok(added) = toy.shard().insert_if_absent_locked(race.item);
        race.won(added.expect("there is room"));
    };
    Model::new("locked", 60).run(
        |toy| Race::of(toy.item(0, 3, 0), Vec::new()),
        &[add, add],
        exactly_one,
    );
}

/// The first bucket fills up while the two calls decide, so they may choose different buckets.
#[test]
fn one_call_wins_while_a_bucket_fills_up() {
    let add: fn(&Toy, &Race) = |toy, race| {
        let Ok(added) = toy.shard().insert_if_absent_locked(race.item);
        race.won(added.expect("there is room"));
    };
    Model::new("filling up", 120).blocking().preemptions(2).run(
        |toy| {
            // All three buckets are equally full, so each call prefers bucket 0 while it has room.
            toy.put(&toy.item(0, 1, 4), 0);
            toy.put(&toy.item(3, 6, 4), 3);
            toy.put(&toy.item(7, 6, 4), 7);
            Race::of(toy.item(0, 3, 0), Vec::new())
        },
        &[add, |toy, _| toy.shard().insert(toy.item(0, 7, 5)).expect("there is room"), add],
        exactly_one,
    );
}

/// Both calls have found both buckets full, and a path: the same one, or one from each bucket. Two
/// different paths have no bucket in common, so the calls notice each other only in the item's own
/// two buckets.
#[test]
fn one_call_wins_on_the_kick_path() {
    fn add(toy: &Toy, race: &Race, path: usize) {
        let path = &race.paths[path];
        race.won(match execute(toy.shard(), path, race.item, Copies::UnlessPresent) {
            Ok(Outcome::Placed) => true,
            Ok(Outcome::Present) => false,
            Ok(Outcome::Stale) => {
                kick(toy.shard(), race.item, Copies::UnlessPresent).expect("there is room")
            }
        });
    }
    let from_first: fn(&Toy, &Race) = |toy, race| add(toy, race, 0);
    let from_second: fn(&Toy, &Race) = |toy, race| add(toy, race, 1);
    for other in [from_first, from_second] {
        Model::new("kick path", 60).run(
            |toy| {
                let in_the_way = [toy.item(0, 7, 0), toy.item(3, 4, 0)];
                toy.put(&in_the_way[0], 0);
                toy.put(&in_the_way[1], 3);
                toy.stuff(0);
                toy.stuff(3);
                let from_first = toy.path(&[(&in_the_way[0], 0)], 7);
                let from_second = toy.path(&[(&in_the_way[1], 3)], 4);
                Race::of(toy.item(0, 3, 0), [from_first, from_second].into())
            },
            &[from_first, other],
            exactly_one,
        );
    }
}

/// There is room for one item only. The call that finds none left finds the item there.
#[test]
fn the_loser_of_the_last_room_is_not_refused() {
    let add: fn(&Toy, &Race) = |toy, race| {
        let added = kick(toy.shard(), race.item, Copies::UnlessPresent);
        race.won(added.expect("refused though the item is in"));
    };
    Model::new("last room", 70).blocking().preemptions(2).run(
        |toy| {
            for bucket in [0, 1, 2, 3, 4, 6, 7] {
                toy.stuff(bucket);
            }
            toy.put(&toy.item(5, 0, 9), 5);
            Race::of(toy.item(0, 3, 0), Vec::new())
        },
        &[add, add],
        exactly_one,
    );
}

/// An insert takes the last empty lane a moment before its item is in.
#[test]
fn nobody_is_refused_while_the_item_comes_in() {
    Model::new("last room for a copy", 55).blocking().preemptions(2).run::<Race>(
        |toy| {
            for bucket in [0, 1, 2, 3, 4, 5, 7] {
                toy.stuff(bucket);
            }
            toy.put(&toy.item(6, 3, 9), 6);
            Race::of(toy.item(3, 0, 0), Vec::new())
        },
        &[
            |toy, race| race.won(kick(toy.shard(), race.item, Copies::Add).is_ok()),
            |toy, race| {
                let added = kick(toy.shard(), race.item, Copies::UnlessPresent);
                race.won(added.expect("refused though the item comes in"));
            },
        ],
        exactly_one,
    );
}

/// Both calls find the buckets full and search for a path.
#[test]
fn one_call_wins_after_a_search() {
    let alone: fn(&Toy, &Race) = |toy, race| {
        race.won(kick(toy.shard(), race.item, Copies::UnlessPresent).expect("there is room"));
    };
    let whole: fn(&Toy, &Race) = |toy, race| {
        race.won(toy.shard().insert_if_absent(race.item).expect("there is room"));
    };
    for add in [alone, whole] {
        Model::new("search", 32).blocking().preemptions(2).run::<Race>(
            |toy| {
                toy.stuff(0);
                toy.stuff(3);
                Race::of(toy.item(0, 3, 0), Vec::new())
            },
            &[add, add],
            exactly_one,
        );
    }
}
