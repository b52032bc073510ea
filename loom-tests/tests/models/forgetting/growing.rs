//! Ticks pass while shards are split and swept.
//!
//! A filter of tiny shards that remembers items for two ticks. A stamp has two bits, so the one of the
//! next tick is that of what expires in the present one.

use crate::grove::{self, Entry, LEFT, ROOT, half_of_root, random};
use crate::toy::{MISSED, Model, NOT_ONCE, World, lanes};
use koel_under_loom::internals::{Ages, Incoming, Mixed, Moment, Place, Shards, Time, Union};

type Grove = grove::Grove<false, true>;

const WRONGLY_COUNTED: &str = "what expired is counted wrong";

/// Items in this shard of two, or of one, whose buckets are in two stripes.
fn items(shard: u64, grove: &Grove) -> impl Iterator<Item = Mixed> {
    random().map(move |random| Mixed(shard << 63 | random >> 2)).filter(|hash| {
        let (_, place) = grove.shard(*hash);
        place.first.0 / 2 == 0 && place.second.0 / 2 == 3
    })
}

fn item(shard: u64, grove: &Grove) -> Mixed {
    items(shard, grove).next().expect("an item")
}

/// Inserts an item that expires with the next tick, and one that stays.
fn insert_both(grove: &Grove, [gone, stays]: [Mixed; 2]) {
    grove.insert(gone);
    grove.set_clock(2);
    grove.insert(stays);
}

/// A shard that is to be split, with an item that expires with the next tick and one that stays.
fn to_be_split(grove: &Grove) -> [Mixed; 2] {
    let mut items = items(1, grove);
    let items = [items.next().unwrap(), items.next().unwrap()];
    insert_both(grove, items);
    grove.pretend(items[1]);
    items
}

fn split(grove: &Grove, [_, item]: &[Mixed; 2]) {
    grove.split(*item, ROOT);
}

fn tick<T>(grove: &Grove, _: &T) {
    grove.backend.tick();
}

fn begin_and_finish<T>(grove: &Grove, _: &T) {
    grove.begin_tick();
    grove.finish_tick();
}

/// Begins a tick, and sweeps for an item that expires with it.
fn sweep_for(grove: &Grove, item: Mixed) {
    grove.begin_tick();
    grove.shards().sweep_for(item);
    // (To count them would sweep them.)
    let (shard, place) = grove.shard(item);
    assert_eq!(shard.matches_of(place).lanes, 0, "{LEFT}");
}

/// Only what stays is there, and counted, beside what is pretended to be.
fn only_one_stays(grove: &Grove, items: &[Mixed; 2]) {
    let [gone, stays] = items.map(|it| grove.copies(it));
    assert_eq!(gone, 0, "{LEFT}");
    assert_eq!(stays, 1, "{NOT_ONCE}");
    assert_eq!(grove.backend.items() % 8, 1, "{WRONGLY_COUNTED}");
}

/// Nothing that expires escapes to the half that is split off, nothing else goes, and the counts are right.
#[test]
fn a_tick_passes_while_a_shard_is_split() {
    Model::blocking(60, 2).run(to_be_split, &[tick, split], only_one_stays);
}

/// The tick has passed the place of a shard that was joined when another one is split into it.
#[test]
fn a_tick_passes_what_a_split_takes_next() {
    Model::blocking(30, 2).run::<Grove, [Mixed; 2]>(
        |grove| {
            let of_quarter = |bits: u64| {
                let mut hashes = random().map(|random| Mixed(bits << 62 | random >> 2));
                [hashes.next().unwrap(), hashes.next().unwrap()]
            };
            let ([lower, _], upper) = (of_quarter(0b00), of_quarter(0b11));
            // Four quarters, the last of which comes after the second, which is joined to the first again.
            for (item, entry) in
                [(lower, ROOT), (lower, half_of_root(0)), (upper[0], half_of_root(1))]
            {
                grove.pretend(item);
                grove.split(item, entry);
            }
            assert!(grove.room().join_halves(lower));
            insert_both(grove, upper);
            grove.pretend(upper[1]);
            upper
        },
        &[tick, |grove, [_, item]| grove.split(*item, Entry { shard: 3, depth: 2 })],
        |grove, [gone, stays]| {
            assert_eq!(grove.copies(*gone), 0, "{LEFT}");
            assert_eq!(grove.copies(*stays), 1, "{NOT_ONCE}");
        },
    );
}

/// A tick that several threads work at may come to a new shard before it comes to the one that is split.
#[test]
fn a_tick_comes_to_a_new_shard_first() {
    let tick: fn(&Grove, &[Mixed; 2]) = |grove, _| {
        grove.begin_tick();
        let (now, old) = (grove.ticking().clock().now(), grove.site(0));
        let in_old = old.shard().own_stripes().count();
        // The number of shards is no event to loom.
        loom::thread::yield_now();
        let all = grove.room().segments();
        grove.room().sweep(in_old..all, now);
        grove.room().sweep(0..in_old, now);
        // Made since: it has nothing that was not sorted out before.
        grove.room().sweep(all..grove.room().segments(), now);
    };
    Model::blocking(120, 3).run(to_be_split, &[split, tick], |grove, items| {
        grove.check();
        grove.finish_tick();
        only_one_stays(grove, items);
    });
}

/// A writer sweeps the stripes of its item before the tick gets there.
#[test]
fn an_item_that_came_again_is_found_while_a_writer_sweeps() {
    Model::blocking(90, 3).run::<Grove, Mixed>(
        |grove| {
            let item = item(0, grove);
            // The older copy is in the bucket that a lookup reads last.
            let (_, place) = grove.shard(item);
            assert!(grove.fill_with(item, place.second, place.fp));
            grove.set_clock(2);
            item
        },
        &[
            |grove, item| {
                grove.fill(*item);
                grove.begin_tick();
                grove.shards().sweep_for(*item);
            },
            |grove, item| {
                let (shard, place) = grove.shard(*item);
                assert_ne!(shard.look(place), Some(false), "{MISSED}");
            },
        ],
        |grove, item| {
            grove.finish_tick();
            assert_eq!((grove.copies(*item), grove.backend.items()), (1, 1));
        },
    );
}

/// What expires does not get to a new shard behind the back of a writer that has swept the old one.
#[test]
fn a_writer_sweeps_while_a_shard_is_split() {
    let sweep: fn(&Grove, &[Mixed; 2]) = |grove, [gone, _]| sweep_for(grove, *gone);
    Model::blocking(100, 2).run(to_be_split, &[sweep, split], |grove, items| {
        grove.finish_tick();
        only_one_stays(grove, items);
    });
}

/// A copy of a shard is of one moment, though the tick has not passed elsewhere: its items, and their count.
#[test]
fn a_shard_is_copied_while_a_tick_passes() {
    let copy: fn(&Grove, &[Mixed; 2]) = |grove, _| {
        let (mut next, mut buckets) = (Some(0), [0; 8]);
        let (_, copied) = grove.backend.copy_shard(&mut next, &mut buckets).expect("a shard");
        let left = usize::from(copied.time.expect("that it forgets").tick == 2);
        let in_copy = buckets.map(|word| lanes::<false, true>().taken(word).count()).iter().sum();
        let found = (copied.items, in_copy);
        assert_eq!(found, (9 + left as i64, 1 + left), "a copy is not of its time");
    };
    Model::blocking(50, 3).run(to_be_split, &[tick, copy], |grove, _| {
        assert_eq!(grove.backend.items(), 9, "{WRONGLY_COUNTED}");
    });
}

#[test]
fn an_item_without_bits_is_refreshed_or_expires() {
    Model::blocking(70, 2).run::<Grove, Mixed>(
        |grove| {
            let item = item(0, grove);
            let (_, place) = grove.shard(item);
            grove.fill_with_bits(item, place.first, 0);
            grove.add_items(item, 1);
            grove.set_clock(2);
            item
        },
        &[begin_and_finish, |grove, item| _ = grove.backend.refresh(*item)],
        |grove, item| {
            assert_eq!(grove.backend.items(), 1, "a void item is counted as it expires");
            assert!(!grove.remove(*item), "a void item was removed");
        },
    );
}

/// Two halves, each with an item that expires and one that stays.
fn halves(grove: &Grove) -> [Mixed; 4] {
    let of_half = |half: u64| random().map(move |random| Mixed(half << 63 | random >> 2));
    let [mut lower, mut upper] = [of_half(0), of_half(1)];
    let mut both = || [lower.next().unwrap(), upper.next().unwrap()];
    let (gone, stay) = (both(), both());
    gone.iter().for_each(|item| grove.insert(*item));
    grove.set_clock(2);
    stay.iter().for_each(|item| grove.insert(*item));
    grove.pretend(gone[0]);
    grove.split(gone[0], ROOT);
    [gone[0], gone[1], stay[0], stay[1]]
}

fn join(grove: &Grove, items: &[Mixed; 4]) {
    grove.room().join_halves(items[0]);
}

fn only_two_stay(grove: &Grove, items: &[Mixed; 4]) {
    let copies = items.map(|item| grove.copies(item));
    assert_eq!(copies, [0, 0, 1, 1], "what stays is not there once, or what expired is");
    assert_eq!(grove.backend.items(), 2, "items are counted wrong after a join and a tick");
}

/// Two halves, each with an item that expires and one that stays, are joined while a tick passes.
#[test]
fn a_tick_passes_while_halves_are_joined() {
    let model = Model::blocking(30, 2).in_short(1, 30);
    model.run(halves, &[begin_and_finish, join], only_two_stay);
}

/// A writer sweeps a half that is being joined to the other, and then the whole.
#[test]
fn a_writer_sweeps_while_halves_are_joined() {
    let sweep: fn(&Grove, &[Mixed; 4]) = |grove, items| sweep_for(grove, items[0]);
    Model::blocking(20, 2).run(halves, &[sweep, join], |grove, items| {
        grove.finish_tick();
        only_two_stay(grove, items);
    });
}

/// A union brings items that are older than a tick which ended all. They stay, though they come to a half that has been
/// swept in that tick, and are moved to one that has not.
#[test]
fn what_comes_after_a_tick_that_ended_all_stays_in_a_whole() {
    let adopt: fn(&Grove, &(Mixed, Place)) = |grove, (_, place)| {
        assert_eq!(grove.backend.begin_tick_toward(9), Some(8), "the tick makes up for others");
        let lanes = grove.shard(Mixed(0)).0.lanes();
        let mut words = [0; 8];
        words[place.first.0 as usize] = lanes.stamped(place.fp, Moment::of_tick(3)).head().into();
        let there = Time { tick: 4, elapsed: 0, number: Some(9) };
        let ages = Some(Ages::new(grove.ticking(), grove.ticking()).at(there));
        let (start, words) = (Mixed(1 << 63), words.to_vec());
        let copy = Incoming { start, depth: 1, words, lanes, ages, done: 0 };
        let mut union = Union::default();
        union.merge_into_growing(grove.room(), copy).expect("memory");
        assert_eq!(union.added, 1, "an absent entry was not added");
    };
    Model::blocking(500, 2).run::<Grove, (Mixed, Place)>(
        |grove| {
            let item = item(1, grove);
            grove.pretend(item);
            grove.split(item, ROOT);
            assert_eq!(grove.backend.tick_to(1), 0, "the present tick has another number");
            (item, grove.shard(item).1)
        },
        &[|grove, (item, _)| _ = grove.room().join_halves(*item), adopt],
        |grove, (item, _)| {
            grove.finish_tick();
            assert_eq!(grove.copies(*item), 1, "{NOT_ONCE}");
        },
    );
}
