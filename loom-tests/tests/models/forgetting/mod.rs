//! Ticks pass while items are looked for, inserted, moved, refreshed and copied.

mod growing;

use crate::mutants::alone;
use crate::toy::{Forgetful, Model};
use koel_under_loom::act;
use koel_under_loom::internals::{
    Bucket, Clock, Copies, Mixed, Moment, Path, Place, Shards, execute,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const MISSED: &str = "a lookup missed an item that was within its window";

type Narrow = Forgetful<false>;

fn clock<const WIDE: bool>(toy: &Forgetful<WIDE>) -> &Clock {
    toy.0.table().ticking().expect("that it forgets").clock()
}

/// Sets the clock, in a table that no other thread uses yet.
fn set_clock<const WIDE: bool>(toy: &Forgetful<WIDE>, tick: u64) {
    clock(toy).set(Moment::of_tick(tick));
}

/// Lets a tick pass through these stripes, in this order. Nothing is in the others.
fn tick<const WIDE: bool>(toy: &Forgetful<WIDE>, stripes: &[usize]) {
    let now = begin(toy);
    stripes.iter().for_each(|stripe| toy.0.shard().sweep(*stripe, now, |_| 0));
    clock(toy).end();
}

/// Begins a tick.
fn begin<const WIDE: bool>(toy: &Forgetful<WIDE>) -> Moment {
    let now = clock(toy).own_time().next(false);
    clock(toy).begin(now);
    now
}

fn put_now<const WIDE: bool>(toy: &Forgetful<WIDE>, item: &Place, bucket: u32) {
    toy.0.put(item, bucket);
}

fn nothing_is_left_that_expired<const WIDE: bool>(toy: &Forgetful<WIDE>) {
    let (shard, now) = (toy.0.shard(), clock(toy).now());
    let Ok(locked) = shard.lock_all();
    for bucket in shard.buckets() {
        let words = shard.read_locked(&locked, bucket);
        assert!(
            shard.lanes().expired(words, now).is_empty(),
            "an item that expired is still there"
        );
    }
}

/// Puts an item into bucket 0 so that it expires with the next tick. Lookups begin at bucket `first`.
fn expiring<const WIDE: bool>(toy: &Forgetful<WIDE>, first: u32) -> Place {
    let item = toy.0.item(first, 3 - first, 0);
    put_now(toy, &item, 0);
    set_clock(toy, 2);
    item
}

/// A second copy comes into the item's other bucket before the first one expires.
fn renew_and_tick<const WIDE: bool>(toy: &Forgetful<WIDE>, item: &Place) {
    put_now(toy, item, 3);
    tick(toy, &[0, 1]);
}

fn is_found<const WIDE: bool>(toy: &Forgetful<WIDE>, item: &Place) {
    assert_ne!(toy.0.shard().look(*item), Some(false), "{MISSED}");
}

fn is_there_once<const WIDE: bool>(toy: &Forgetful<WIDE>, item: &Place) {
    assert_eq!(toy.0.copies(item), 1);
    nothing_is_left_that_expired(toy);
}

#[test]
fn an_item_that_came_again_is_found_while_its_older_copy_expires() {
    for first in [3, 0] {
        Model::new("came again", 50).run_in::<Narrow, Place>(
            move |toy| expiring(toy, first),
            &[renew_and_tick, is_found],
            is_there_once,
        );
    }
}

/// The largest of all models. Its halves are tests of their own, so that two processors share it.
fn an_item_in_wide_buckets_comes_again(test: &str, first: u32) {
    alone(module_path!(), test, || {
        Model::new("wide, came again", 2_000).in_short(2, 20).run_in::<Forgetful<true>, Place>(
            move |toy| expiring(toy, first),
            &[renew_and_tick, is_found],
            is_there_once,
        );
    });
}

#[test]
fn an_item_in_wide_buckets_that_came_again_is_found_while_its_older_copy_expires() {
    let own = "an_item_in_wide_buckets_that_came_again_is_found_while_its_older_copy_expires";
    an_item_in_wide_buckets_comes_again(own, 3);
}

#[test]
fn an_item_in_wide_buckets_that_came_again_is_found_from_its_other_bucket() {
    let own = "an_item_in_wide_buckets_that_came_again_is_found_from_its_other_bucket";
    an_item_in_wide_buckets_comes_again(own, 0);
}

/// The head of an item that expires meets the tail of the next one in its lane. A lookup may begin at
/// either bucket.
#[test]
fn a_lane_in_which_an_item_expired_is_not_taken_for_a_third_item() {
    for first in [0, 3] {
        Model::new("wide, expiry", 100).in_short(2, 20).run_in::<Forgetful<true>, [Place; 3]>(
            move |toy| {
                let with_tail = |item: Place, tail| Place { fp: item.fp.with_tail(tail), ..item };
                let gone = with_tail(toy.0.item(0, 3, 0), 4);
                put_now(toy, &gone, 0);
                set_clock(toy, 2);
                let third = with_tail(toy.0.item(first, 3 - first, 0), 8);
                [gone, with_tail(toy.0.item(0, 5, 1), 8), third]
            },
            &[
                |toy, [_, next, _]| {
                    tick(toy, &[0]);
                    put_now(toy, next, 0);
                },
                |toy, [.., third]| {
                    let found = toy.0.shard().look(*third);
                    assert_ne!(found, Some(true), "a lookup found an item that was never there");
                },
            ],
            |toy, [gone, next, _]| assert_eq!([gone, next].map(|it| toy.0.copies(it)), [0, 1]),
        );
    }
}

#[derive(Clone)]
struct Kick {
    path: Path,
    newcomer: Place,
    other: Place,
}

/// A kick wants to move an expiring item from bucket 0 to bucket 3, which the tick has passed already.
fn kick_of_expiring(toy: &Narrow) -> Kick {
    let item = expiring(toy, 0);
    let other = toy.0.item(0, 1, 3);
    put_now(toy, &other, 0);
    let path = toy.0.path(&[(&item, 0)], 3);
    Kick { path, newcomer: toy.0.item(0, 1, 1), other }
}

fn kick(toy: &Narrow, kick: &Kick) {
    let _ = execute(toy.0.shard(), &kick.path, kick.newcomer, Copies::Add);
}

#[test]
fn an_item_that_expires_does_not_escape_by_a_move() {
    Model::new("escape", 20).run_in::<Narrow, Kick>(
        kick_of_expiring,
        &[|toy, _| tick(toy, &[1, 0]), kick],
        |toy, kick| {
            assert_eq!(toy.0.copies(&kick.other), 1, "an item within its window is lost");
            nothing_is_left_that_expired(toy);
        },
    );
}

/// A writer sweeps while a tick goes on. The next tick may be there when it has the locks, and what has come in
/// that one has the stamp of what expired before.
#[test]
fn an_item_that_has_just_come_is_not_taken_for_one_that_expired() {
    Model::new("just come", 10).preemptions(2).blocking().run_in::<Narrow, Place>(
        |toy| {
            let item = expiring(toy, 0);
            begin_tick(toy);
            item
        },
        &[
            |toy, item| {
                let Ok(()) = toy.0.shard().sweep_both(*item);
            },
            |toy, _| {
                begin_tick(toy);
                finish_tick(toy);
                put_now(toy, &toy.0.item(1, 2, 2), 1);
            },
        ],
        |toy, item| {
            finish_tick(toy);
            assert_eq!(toy.0.copies(&toy.0.item(1, 2, 2)), 1, "an item within its window is lost");
            assert_eq!(toy.0.copies(item), 0, "an item that expired is still there");
        },
    );
}

/// A kick sweeps what it locks.
#[test]
fn an_item_that_came_again_is_found_while_a_kick_sweeps_its_older_copy() {
    Model::new("swept by a kick", 20).in_short(3, 20).run_in::<Narrow, Kick>(
        |toy| {
            let item = expiring(toy, 3);
            let path = toy.0.path(&[(&item, 0)], 3);
            Kick { path, newcomer: toy.0.item(0, 1, 1), other: item }
        },
        &[
            |toy, kick_of| {
                put_now(toy, &kick_of.other, 3);
                begin(toy);
                kick(toy, kick_of);
            },
            |toy, kick| is_found(toy, &kick.other),
        ],
        |toy, kick| is_there_once(toy, &kick.other),
    );
}

/// Whoever knows of the tick, and sweeps, knows what came before it.
#[test]
fn an_item_that_came_again_before_a_tick_is_found_by_who_sweeps() {
    Model::new("came before the tick", 5).preemptions(3).run_in::<Narrow, Place>(
        |toy| expiring(toy, 0),
        &[
            |toy, item| {
                put_unasked(toy, item);
                begin(toy);
            },
            |toy, item| {
                let now = clock(toy).now();
                if now.tick() == 3 {
                    toy.0.shard().sweep(0, now, |_| 0);
                    is_found(toy, item);
                }
            },
        ],
        |toy, item| {
            tick_on(toy);
            is_there_once(toy, item);
        },
    );
}

/// Puts a copy of the item into bucket 3 without a look at the clock: a load by the thread that sets it would hide
/// the loads of the other from loom.
fn put_unasked(toy: &Narrow, item: &Place) {
    let (shard, bucket) = (toy.0.shard(), Bucket(3));
    let lanes = shard.lanes();
    let Ok(locked) = shard.lock_one(bucket);
    let words = shard.read_locked(&locked, bucket);
    let lane = lanes.empty(words.heads).first().expect("room");
    let stamped = lanes.stamped(item.fp, Moment::of_tick(2));
    shard.write(&locked, bucket, lanes.with_whole(words, lane, stamped));
    shard.add_items(&locked, bucket, 1);
}

/// Ends the tick that has begun.
fn tick_on(toy: &Narrow) {
    let now = clock(toy).now();
    [0, 1].iter().for_each(|stripe| toy.0.shard().sweep(*stripe, now, |_| 0));
}

/// The same for a tick that passes through all stripes, in the library's own order.
#[test]
fn an_item_that_came_again_is_found_while_a_whole_tick_passes() {
    Model::new("whole tick", 20).preemptions(3).run_in::<Narrow, Place>(
        |toy| expiring(toy, 3),
        &[
            |toy, item| {
                put_now(toy, item, 3);
                tick_whole(toy, item);
            },
            is_found,
        ],
        is_there_once,
    );
}

fn begin_tick(toy: &Narrow) {
    let room = toy.0.room();
    let ticking = room.ticking().expect("that it forgets");
    ticking.finish(room);
    assert!(ticking.begin(room), "a tick is passing");
}

fn finish_tick(toy: &Narrow) {
    let room = toy.0.room();
    let ticking = room.ticking().expect("that it forgets");
    ticking.finish(room);
}

/// Whoever writes after a tick began does what it would do if the tick had passed.
#[test]
fn an_item_that_expired_is_new_while_the_tick_passes() {
    Model::new("new in a tick", 20).preemptions(3).blocking().run_in::<Narrow, Mixed>(
        |toy| {
            let hash = Mixed::of(7);
            let (_, place) = toy.0.table().geometry().locate_mixed::<false>(hash);
            put_now(toy, &place, place.first.0);
            set_clock(toy, 2);
            begin_tick(toy);
            hash
        },
        &[
            |toy, hash| {
                let added = act(toy.0.room(), *hash, Shards::insert_if_absent);
                assert_eq!(added, Ok(true), "an item that expired is in the way");
            },
            |toy, _| finish_tick(toy),
        ],
        |toy, hash| {
            let (_, place) = toy.0.table().geometry().locate_mixed::<false>(*hash);
            is_there_once(toy, &place);
        },
    );
}

#[derive(Clone)]
struct Asked {
    item: Place,
    /// 1 if the answer was yes.
    answer: Arc<AtomicU64>,
}

fn asked(toy: &Narrow) -> Asked {
    Asked { item: expiring(toy, 3), answer: Arc::new(AtomicU64::new(0)) }
}

fn note(asked: &Asked, answer: bool) {
    asked.answer.store(answer.into(), Relaxed);
}

/// It is new, and there afterwards, or it was still there, and is gone afterwards.
#[test]
fn an_expiring_item_is_new_if_it_is_there_afterwards() {
    Model::new("expiring, if absent", 30).in_short(3, 30).run_in::<Narrow, Asked>(
        asked,
        &[
            |toy, _| tick(toy, &[0, 1]),
            |toy, this| {
                let Ok(added) = toy.0.shard().insert_if_absent_locked(this.item);
                note(this, added == Some(true));
            },
        ],
        |toy, this| {
            let was_new = this.answer.load(Relaxed) as usize;
            assert_eq!(toy.0.copies(&this.item), was_new, "an item that was new is not there once");
            nothing_is_left_that_expired(toy);
        },
    );
}

/// Two copies of an item, which expire with the next tick.
fn two_expiring(toy: &Narrow) -> Asked {
    let item = toy.0.item(3, 0, 0);
    put_now(toy, &item, 0);
    put_now(toy, &item, 3);
    set_clock(toy, 2);
    Asked { item, answer: Arc::new(AtomicU64::new(0)) }
}

/// Both copies of an item are refreshed, or none.
#[test]
fn no_copy_is_refreshed_beside_one_that_expired() {
    Model::new("refresh of two copies", 40).preemptions(3).run_in::<Narrow, Asked>(
        two_expiring,
        &[
            |toy, _| tick(toy, &[0, 1]),
            |toy, this| {
                let Ok(was_there) = toy.0.shard().refresh(this.item);
                note(this, was_there);
            },
        ],
        |toy, this| {
            let both = 2 * this.answer.load(Relaxed) as usize;
            assert_eq!(toy.0.copies(&this.item), both, "a copy is there without the other");
            nothing_is_left_that_expired(toy);
        },
    );
}

/// Both are counted, or none; and they are as old as an item can be, or there is none.
#[test]
fn no_copy_is_counted_beside_one_that_expired() {
    Model::new("count of two copies", 40).preemptions(3).run_in::<Narrow, Asked>(
        two_expiring,
        &[
            |toy, _| tick(toy, &[0, 1]),
            |toy, this| {
                let Ok(copies) = toy.0.shard().count(this.item);
                assert_ne!(copies, 1, "a copy is counted without the other");
            },
        ],
        |toy, this| assert_eq!(toy.0.copies(&this.item), 0),
    );
}

#[test]
fn an_item_is_not_older_than_items_can_be() {
    Model::new("age at a tick", 4).preemptions(3).run_in::<Narrow, Asked>(
        two_expiring,
        &[
            |toy, _| _ = begin(toy),
            |toy, this| {
                let Ok(age) = toy.0.shard().age(this.item);
                assert!(age.is_none_or(|age| age == 2), "an item is older than it can be");
            },
        ],
        |toy, _| tick_on(toy),
    );
}

/// Whoever sweeps by the time of a tick lets those who have a lock after it know that the tick is passing.
#[test]
fn who_knows_the_time_knows_that_the_tick_is_passing() {
    Model::new("time and passing", 4).run_in::<Narrow, Place>(
        |toy| expiring(toy, 0),
        &[
            |toy, _| _ = begin(toy),
            |toy, _| {
                if clock(toy).now().tick() == 3 {
                    assert!(clock(toy).is_passing(), "it is not known that a tick is passing");
                }
            },
        ],
        |toy, _| tick_on(toy),
    );
}

fn tick_whole(toy: &Narrow, _: &Place) {
    let room = toy.0.room();
    let ticking = room.ticking().expect("that it forgets");
    ticking.tick(room);
}

/// Two threads that let a tick pass each do not overtake each other.
#[test]
fn ticks_pass_one_after_the_other() {
    Model::new("two ticks", 20).preemptions(2).blocking().run_in::<Narrow, Place>(
        |toy| {
            let item = expiring(toy, 0);
            put_now(toy, &toy.0.item(5, 6, 2), 5);
            item
        },
        &[tick_whole, |toy, item| {
            tick_whole(toy, item);
            // If the other tick is passing still, its stamp is that of what expires there.
            put_now(toy, &toy.0.item(1, 2, 2), 1);
        }],
        |toy, item| {
            assert_eq!(toy.0.copies(&toy.0.item(1, 2, 2)), 1, "an item within its window is lost");
            assert_eq!(clock(toy).now().tick(), 4, "a tick was lost");
            assert_eq!(toy.0.copies(item), 0, "an item that expired is still there");
            assert_eq!(toy.0.copies(&toy.0.item(5, 6, 2)), 1, "an item within its window is lost");
            nothing_is_left_that_expired(toy);
        },
    );
}

/// A copy has the ages of one moment, and nothing that expired before it.
#[test]
fn a_copy_is_made_between_two_ticks() {
    Model::new("copy and tick", 10).preemptions(2).blocking().run_in::<Narrow, Place>(
        |toy| expiring(toy, 0),
        &[tick_whole, |toy, _| {
            let room = toy.0.room();
            let ticking = room.ticking().expect("that it forgets");
            let held = ticking.pause(room);
            let is_there = toy.0.shard().all_words().any(|words| words.heads != 0);
            let is_first = held.time().tick == 2;
            assert_eq!(is_there, is_first, "a copy is not of the time that it tells");
        }],
        |toy, item| assert_eq!(toy.0.copies(item), 0),
    );
}

/// So has a copy of one shard, which does not wait for the tick to pass elsewhere.
#[test]
fn a_shard_is_copied_while_a_tick_passes() {
    Model::new("copy of a shard and tick", 10).preemptions(2).blocking().run_in::<Narrow, Place>(
        |toy| expiring(toy, 0),
        &[tick_whole, |toy, _| {
            let ticking = toy.0.room().ticking().expect("that it forgets");
            let held = ticking.pause_in_a_tick();
            let mut buckets = [0; 8];
            let Ok(items) = toy.0.shard().copy(&mut buckets);
            let is_first = held.time().tick == 2;
            let is_there = buckets.iter().any(|word| *word != 0);
            let expected = (i64::from(is_first), is_first);
            assert_eq!((items, is_there), expected, "a copy is not of the time that it tells");
        }],
        |toy, item| assert_eq!(toy.0.copies(item), 0),
    );
}
