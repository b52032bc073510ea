//! If several calls race to add an absent item, exactly one of them adds it.

use crate::toy::{Model, NOT_ONCE, Toy, Winners};
use koel_under_loom::internals::{Copies, Outcome, Path, Place, execute, kick};

#[derive(Clone)]
struct Race {
    item: Place,
    paths: Vec<Path>,
    winners: Winners,
}

impl Race {
    fn of(item: Place) -> Self {
        Race { item, paths: Vec::new(), winners: Winners::default() }
    }
}

fn exactly_one(toy: &Toy, race: &Race) {
    assert_eq!(race.winners.count(), 1, "not exactly one call added the item");
    assert_eq!(toy.copies(&race.item), 1, "{NOT_ONCE}");
}

fn add(toy: &Toy, race: &Race) {
    race.winners.add(toy.shard().insert_if_absent(race.item).expect("there is room"));
}

fn add_locked(toy: &Toy, race: &Race) {
    let added = toy.shard().insert_if_absent_locked(race.item, [0; 2]);
    race.winners.add(added.expect("there is room"));
}

fn search_and_add(toy: &Toy, race: &Race) {
    let added = kick(toy.shard(), race.item, Copies::UnlessPresent);
    race.winners.add(added.expect("refused though the item is in or comes in"));
}

#[test]
fn one_call_wins_where_there_is_room() {
    Model::new(200).run(|toy| Race::of(toy.item(0, 3, 0)), &[add, add], exactly_one);
}

#[test]
fn one_call_wins_under_the_locks() {
    let threads: [fn(&Toy, &Race); 2] = [add_locked; 2];
    Model::new(60).run(|toy| Race::of(toy.item(0, 3, 0)), &threads, exactly_one);
}

/// The first bucket fills up while the two calls decide, so they may choose different buckets.
#[test]
fn one_call_wins_while_a_bucket_fills_up() {
    Model::blocking(120, 2).run(
        |toy: &Toy| {
            // All three buckets are equally full, so each call prefers bucket 0 while it has room.
            toy.put(&toy.item(0, 1, 4), 0);
            toy.put(&toy.item(3, 6, 4), 3);
            toy.put(&toy.item(7, 6, 4), 7);
            Race::of(toy.item(0, 3, 0))
        },
        &[add_locked, |toy, _| toy.insert(&toy.item(0, 7, 5)), add_locked],
        exactly_one,
    );
}

/// Both calls have found both buckets full, and a path: the same one, or one from each bucket. Two
/// different paths have no bucket in common, so the calls notice each other only in the item's own
/// two buckets.
#[test]
fn one_call_wins_on_the_kick_path() {
    fn add(toy: &Toy, race: &Race, path: usize) {
        match execute(toy.shard(), &race.paths[path], race.item, Copies::UnlessPresent) {
            Ok(Outcome::Stale) => search_and_add(toy, race),
            Ok(outcome) => race.winners.add(outcome == Outcome::Placed),
        }
    }
    let from_first: fn(&Toy, &Race) = |toy, race| add(toy, race, 0);
    let from_second: fn(&Toy, &Race) = |toy, race| add(toy, race, 1);
    for other in [from_first, from_second] {
        Model::new(60).run(
            |toy| {
                let in_the_way = [toy.item(0, 7, 0), toy.item(3, 4, 0)];
                toy.put(&in_the_way[0], 0);
                toy.put(&in_the_way[1], 3);
                toy.stuff(0);
                toy.stuff(3);
                let from_first = toy.path(&[(&in_the_way[0], 0)], 7);
                let from_second = toy.path(&[(&in_the_way[1], 3)], 4);
                Race { paths: vec![from_first, from_second], ..Race::of(toy.item(0, 3, 0)) }
            },
            &[from_first, other],
            exactly_one,
        );
    }
}

/// Fills all buckets but one, which gets one item with these buckets.
fn with_room_for_one(toy: &Toy, bucket: u32, other: u32, item: Place) -> Race {
    (0..8).filter(|it| *it != bucket).for_each(|bucket| toy.stuff(bucket));
    toy.put(&toy.item(bucket, other, 9), bucket);
    Race::of(item)
}

/// There is room for one item only. The call that finds none left finds the item there.
#[test]
fn the_loser_of_the_last_room_is_not_refused() {
    Model::blocking(70, 2).run(
        |toy| with_room_for_one(toy, 5, 0, toy.item(0, 3, 0)),
        &[search_and_add, search_and_add],
        exactly_one,
    );
}

/// An insert takes the last empty lane a moment before its item is in.
#[test]
fn nobody_is_refused_while_the_item_comes_in() {
    Model::blocking(55, 2).run::<Toy, Race>(
        |toy| with_room_for_one(toy, 6, 3, toy.item(3, 0, 0)),
        &[
            |toy, race| race.winners.add(kick(toy.shard(), race.item, Copies::Add).is_ok()),
            search_and_add,
        ],
        exactly_one,
    );
}

/// Both calls find the buckets full and search for a path.
#[test]
fn one_call_wins_after_a_search() {
    let ways: [fn(&Toy, &Race); 2] = [search_and_add, add];
    for add in ways {
        Model::blocking(32, 2).run(
            |toy| {
                toy.stuff(0);
                toy.stuff(3);
                Race::of(toy.item(0, 3, 0))
            },
            &[add, add],
            exactly_one,
        );
    }
}
