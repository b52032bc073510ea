//! To other threads, a batch behaves like a loop: bulk inserts beside readers and single writers.
//!
//! The table has two shards, and a batch processes them one after the other.

use crate::toy::{Model, NOT_ONCE, Toy, Winners};
use koel_under_loom::Prehashed;
use koel_under_loom::internals::{
    Copies, Geometry, Insert, InsertIfAbsent, Lease, Mixed, Operation, Outcome, Path, Place, Shard,
    Shards, execute, write_batch,
};
use std::cell::RefCell;

/// Returns the first hash from `from` on that belongs to this shard, and its place there.
fn hash_in(geometry: &Geometry, shard: usize, from: u64) -> (u64, Place) {
    let located = (from..).map(|hash| (hash, geometry.locate(hash)));
    let (hash, (_, place)) = located.into_iter().find(|(_, (index, _))| *index == shard).unwrap();
    (hash, place)
}

#[derive(Clone)]
struct Batch {
    hashes: Vec<Prehashed>,
    /// The places of the items of the first shard.
    places: Vec<Place>,
    winners: Winners,
}

impl Batch {
    fn of(toy: &Toy, hashes: Vec<u64>) -> Self {
        let located = hashes.iter().map(|&hash| toy.table().geometry.locate(hash));
        let places = located.filter(|(shard, _)| *shard == 0).map(|(_, place)| place).collect();
        let hashes = hashes.into_iter().map(Prehashed).collect();
        Batch { hashes, places, winners: Winners::default() }
    }
}

/// Returns two items of the first shard, with one of the second shard between them.
fn three(toy: &Toy) -> Vec<u64> {
    let geometry = &toy.table().geometry;
    let (a, _) = hash_in(geometry, 0, 0);
    let (b, _) = hash_in(geometry, 0, a + 1);
    let (other, _) = hash_in(geometry, 1, 0);
    vec![b, other, a]
}

fn insert_all(toy: &Toy, batch: &Batch) {
    let mut answers = vec![Ok(()); batch.hashes.len()];
    write_batch(toy.shards(), &batch.hashes, &mut answers, Insert);
    assert!(answers.iter().all(Result::is_ok), "a batch was refused though there is room");
}

fn all_there_once(toy: &Toy, batch: &Batch) {
    batch.places.iter().for_each(|place| assert_eq!(toy.copies(place), 1, "{NOT_ONCE}"));
}

fn add_all(toy: &Toy, batch: &Batch) {
    let mut answers = vec![Ok(false); batch.hashes.len()];
    write_batch(toy.shards(), &batch.hashes, &mut answers, InsertIfAbsent);
    answers.iter().for_each(|answer| batch.winners.add(*answer == Ok(true)));
}

thread_local! {
    /// The item that kicks, and the path on which it does. (All threads of a model run on one real
    /// thread.)
    static KICK: RefCell<Option<(Place, Path)>> = const { RefCell::new(None) };
}

/// Inserts an item, on a known path if it has to kick.
#[derive(Clone, Copy)]
struct Kick;

impl Operation for Kick {
    type Answer = Outcome;

    fn at_once<'a, L: Lease<'a>>(self, shard: Shard<L>, place: Place) -> Option<Outcome> {
        let (newcomer, path) = KICK.with_borrow(|kick| kick.clone().expect("a path"));
        if place != newcomer {
            return shard.insert_at_once(place).map(|()| Outcome::Placed);
        }
        execute(shard, &path, place, Copies::Add).ok()
    }

    fn settle<'a, S: Shards<'a>>(self, _: S, _: Mixed) -> Outcome {
        unreachable!("there is room")
    }
}

/// An item of the batch finds its buckets full and kicks another item, which is found meanwhile.
/// (The path is known: loom would mistake the loads of a search for the reader's.)
#[test]
fn a_reader_finds_what_a_batch_moves() {
    Model::new(70).shards(2).run::<Toy, ([Prehashed; 2], Path, Place)>(
        |toy| {
            let (hash, newcomer) = hash_in(&toy.table().geometry, 0, 1);
            let (other, _) = hash_in(&toy.table().geometry, 1, 0);
            let from = newcomer.first.0;
            let x = toy.item(from ^ 3, from, 0);
            toy.put(&x, from);
            toy.stuff(from);
            let path = toy.path(&[(&x, from)], from ^ 3);
            ([other, hash].map(Prehashed), path, x)
        },
        &[
            |toy, (hashes, path, _)| {
                let mut answers = [Outcome::Stale; 2];
                let newcomer = toy.table().geometry.locate(hashes[1].0).1;
                KICK.set(Some((newcomer, path.clone())));
                write_batch(toy.shards(), hashes, &mut answers, Kick);
                assert_eq!(answers, [Outcome::Placed; 2]);
            },
            |toy, (_, _, x)| toy.is_found(x),
        ],
        |toy, (_, _, x)| assert_eq!(toy.copies(x), 1, "a batch lost an item"),
    );
}

/// A single writer inserts and removes an item in the segments that a batch fills.
#[test]
fn a_batch_and_a_single_writer_keep_each_others_items() {
    Model::new(70).shards(2).run::<Toy, Batch>(
        |toy| Batch::of(toy, three(toy)),
        &[insert_all, |toy, batch| {
            let Place { first, second, .. } = batch.places[0];
            let single = toy.item(first.0, second.0, 9);
            toy.insert(&single);
            toy.remove(&single);
        }],
        all_there_once,
    );
}

/// A batch and a single writer add the same items, and so do two batches in opposite order. Each
/// item has one winner, and there is no deadlock.
#[test]
fn each_item_of_racing_batches_has_one_winner() {
    let single: fn(&Toy, &Batch) = |toy, batch| {
        for place in &batch.places {
            let added = toy.shard().insert_if_absent(*place).expect("there is room");
            batch.winners.add(added);
        }
    };
    let backwards: fn(&Toy, &Batch) = |toy, batch| {
        let hashes = batch.hashes.iter().rev().copied().collect();
        add_all(toy, &Batch { hashes, ..batch.clone() });
    };
    for other in [single, backwards] {
        Model::new(450).shards(2).preemptions(3).in_short(2, 175).run(
            |toy| Batch::of(toy, three(toy)),
            &[add_all, other],
            |toy, batch| {
                assert_eq!(batch.winners.count(), 3, "not one winner for each item");
                all_there_once(toy, batch);
            },
        );
    }
}
