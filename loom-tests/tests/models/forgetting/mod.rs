//! Ticks pass while items are looked for, inserted, moved, refreshed and copied.

mod growing;

use crate::mutants::alone;
use crate::toy::{Kick, Model, Toy, Winners};
use crate::wide::with_tail;
use koel_under_loom::internals::{
    Bucket, Clock, Copied, Copies, Mixed, Moment, Place, Ticking, execute,
};

const LOST: &str = "an item within its window is lost";
const STILL_THERE: &str = "an item that expired is still there";
const NOT_OF_ITS_TIME: &str = "a copy is not of the time that it tells";

type Narrow = Toy<false, true>;

fn ticking<const WIDE: bool>(toy: &Toy<WIDE, true>) -> &Ticking {
    toy.table().ticking().expect("that it forgets")
}

fn clock<const WIDE: bool>(toy: &Toy<WIDE, true>) -> &Clock {
    ticking(toy).clock()
}

/// Sets the clock to a tick that has passed.
fn set_clock<const WIDE: bool>(toy: &Toy<WIDE, true>, tick: u64) {
    clock(toy).set(Moment::of_tick(tick));
}

/// Lets a tick pass through these stripes, in this order. Nothing is in the others.
fn tick<const WIDE: bool>(toy: &Toy<WIDE, true>, stripes: &[usize]) {
    begin(toy);
    sweep(toy, stripes);
    set_clock(toy, clock(toy).own_time().tick());
}

/// Begins a tick.
fn begin<const WIDE: bool>(toy: &Toy<WIDE, true>) {
    let now = clock(toy).own_time().next(false);
    clock(toy).set(now);
}

fn sweep<const WIDE: bool>(toy: &Toy<WIDE, true>, stripes: &[usize]) {
    let now = clock(toy).now();
    stripes.iter().for_each(|stripe| toy.shard().sweep(*stripe, now, || true, |_| 0));
}

/// Begins a tick in the library's own way.
fn begin_tick(toy: &Narrow) {
    toy.backend().finish_tick();
    assert!(toy.backend().begin_tick(), "a tick is passing");
}

fn tick_whole<T>(toy: &Narrow, _: &T) {
    toy.backend().tick();
}

fn nothing_is_left_that_expired<const WIDE: bool>(toy: &Toy<WIDE, true>) {
    let (shard, now) = (toy.shard(), clock(toy).now());
    let Ok(locked) = shard.lock_all();
    for bucket in shard.buckets() {
        let words = shard.read_locked(&locked, bucket);
        assert!(shard.lanes().expired(words, now).is_empty(), "{STILL_THERE}");
    }
}

/// Puts an item into bucket 0 so that it expires with the next tick. Lookups begin at bucket `first`.
fn expiring<const WIDE: bool>(toy: &Toy<WIDE, true>, first: u32) -> Place {
    let item = toy.item(first, 3 - first, 0);
    toy.put(&item, 0);
    set_clock(toy, 2);
    item
}

/// A second copy comes into the item's other bucket before the first one expires.
fn renew_and_tick<const WIDE: bool>(toy: &Toy<WIDE, true>, item: &Place) {
    toy.put(item, 3);
    tick(toy, &[0, 1]);
}

fn is_there_once<const WIDE: bool>(toy: &Toy<WIDE, true>, item: &Place) {
    assert_eq!(toy.copies(item), 1);
    nothing_is_left_that_expired(toy);
}

#[test]
fn an_item_that_came_again_is_found_while_its_older_copy_expires() {
    let threads: [fn(&Narrow, &Place); 2] = [renew_and_tick, Toy::is_found];
    Model::new(50).run_each([3, 0], expiring, &threads, is_there_once);
}

/// The largest of all models. Its halves are tests of their own, so that two processors share it.
fn an_item_in_wide_buckets_comes_again(test: &str, first: u32) {
    let threads: [fn(&Toy<true, true>, &Place); 2] = [renew_and_tick, Toy::is_found];
    alone(module_path!(), test, || {
        let model = Model::new(2_000).in_short(2, 20);
        model.run_each([first], expiring, &threads, is_there_once);
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
    Model::new(100).in_short(2, 20).run_each::<Toy<true, true>, [Place; 3], u32>(
        [0, 3],
        |toy, first| {
            let gone = with_tail(toy.item(0, 3, 0), 4);
            toy.put(&gone, 0);
            set_clock(toy, 2);
            let third = with_tail(toy.item(first, 3 - first, 0), 8);
            [gone, with_tail(toy.item(0, 5, 1), 8), third]
        },
        &[
            |toy, [_, next, _]| {
                tick(toy, &[0]);
                toy.put(next, 0);
            },
            |toy, [.., third]| toy.is_not_found(third),
        ],
        |toy, [gone, next, _]| assert_eq!([gone, next].map(|it| toy.copies(it)), [0, 1]),
    );
}

fn kick(toy: &Narrow, Kick { path, newcomer, .. }: &Kick) {
    let _ = execute(toy.shard(), path, *newcomer, Copies::Add);
}

/// A kick wants to move an expiring item from bucket 0 to bucket 3, which the tick has passed already.
#[test]
fn an_item_that_expires_does_not_escape_by_a_move() {
    Model::new(20).run::<Narrow, Kick>(
        |toy| {
            let (item, other) = (expiring(toy, 0), toy.item(0, 1, 3));
            toy.put(&other, 0);
            let path = toy.path(&[(&item, 0)], 3);
            Kick { path, newcomer: toy.item(0, 1, 1), moved: vec![other] }
        },
        &[|toy, _| tick(toy, &[1, 0]), kick],
        |toy, kick| {
            assert_eq!(toy.copies(&kick.moved[0]), 1, "{LOST}");
            nothing_is_left_that_expired(toy);
        },
    );
}

/// A writer sweeps while a tick goes on. The next tick may be there when it has the locks, and what has come in
/// that one has the stamp of what expired before.
#[test]
fn an_item_that_has_just_come_is_not_taken_for_one_that_expired() {
    Model::blocking(10, 2).run::<Narrow, Place>(
        |toy| {
            let item = expiring(toy, 0);
            begin_tick(toy);
            item
        },
        &[
            |toy, item| {
                let Ok(()) = toy.shard().sweep_both(*item);
            },
            |toy, _| {
                begin_tick(toy);
                toy.backend().finish_tick();
                toy.put(&toy.item(1, 2, 2), 1);
            },
        ],
        |toy, item| {
            toy.backend().finish_tick();
            assert_eq!(toy.copies(&toy.item(1, 2, 2)), 1, "{LOST}");
            assert_eq!(toy.copies(item), 0, "{STILL_THERE}");
        },
    );
}

/// A kick sweeps what it locks.
#[test]
fn an_item_that_came_again_is_found_while_a_kick_sweeps_its_older_copy() {
    Model::new(20).in_short(3, 20).run::<Narrow, Kick>(
        |toy| {
            let item = expiring(toy, 3);
            let path = toy.path(&[(&item, 0)], 3);
            Kick { path, newcomer: toy.item(0, 1, 1), moved: vec![item] }
        },
        &[
            |toy, kick_of| {
                toy.put(&kick_of.moved[0], 3);
                begin(toy);
                kick(toy, kick_of);
            },
            |toy, kick| toy.is_found(&kick.moved[0]),
        ],
        |toy, kick| is_there_once(toy, &kick.moved[0]),
    );
}

/// Whoever knows of the tick, and sweeps, knows what came before it.
#[test]
fn an_item_that_came_again_before_a_tick_is_found_by_who_sweeps() {
    Model::new(5).preemptions(3).run::<Narrow, Place>(
        |toy| expiring(toy, 0),
        &[
            |toy, item| {
                put_unasked(toy, item);
                begin(toy);
            },
            |toy, item| {
                let now = clock(toy).now();
                if now.tick() == 3 {
                    toy.shard().sweep(0, now, || true, |_| 0);
                    toy.is_found(item);
                }
            },
        ],
        |toy, item| {
            sweep(toy, &[0, 1]);
            is_there_once(toy, item);
        },
    );
}

/// Puts a copy of the item into bucket 3 without a look at the clock: a load by the thread that sets it would hide
/// the loads of the other from loom.
fn put_unasked(toy: &Narrow, item: &Place) {
    let (shard, bucket) = (toy.shard(), Bucket(3));
    let lanes = shard.lanes();
    let Ok(locked) = shard.lock_one(bucket);
    let words = shard.read_locked(&locked, bucket);
    let lane = lanes.empty(words.heads).first().expect("room");
    let stamped = lanes.stamped(item.fp, Moment::of_tick(2));
    shard.write(&locked, bucket, lanes.with_whole(words, lane, stamped));
    shard.add_items(&locked, bucket, 1);
}

/// The same for a tick that passes through all stripes, in the library's own order.
#[test]
fn an_item_that_came_again_is_found_while_a_whole_tick_passes() {
    let renew_and_tick: fn(&Narrow, &Place) = |toy, item| {
        toy.put(item, 3);
        tick_whole(toy, item);
    };
    let model = Model::new(20).preemptions(3);
    model.run_each([3], expiring, &[renew_and_tick, Toy::is_found], is_there_once);
}

/// Whoever writes after a tick began does what it would do if the tick had passed.
#[test]
fn an_item_that_expired_is_new_while_the_tick_passes() {
    let place = |toy: &Narrow, hash| toy.table().geometry.locate_mixed(hash, false).1;
    Model::blocking(20, 3).run::<Narrow, Mixed>(
        move |toy| {
            let item = place(toy, Mixed::of(7));
            toy.put(&item, item.first.0);
            set_clock(toy, 2);
            begin_tick(toy);
            Mixed::of(7)
        },
        &[
            |toy, hash| {
                let added = toy.backend().insert_if_absent(*hash);
                assert_eq!(added, Ok(true), "an item that expired is in the way");
            },
            |toy, _| toy.backend().finish_tick(),
        ],
        move |toy, hash| is_there_once(toy, &place(toy, *hash)),
    );
}

/// An item, and how many calls were told that it is new, or there.
type Asked = (Place, Winners);

fn tick_from_first(toy: &Narrow, _: &Asked) {
    tick(toy, &[0, 1]);
}

/// It is new, and there afterwards, or it was still there, and is gone afterwards.
#[test]
fn an_expiring_item_is_new_if_it_is_there_afterwards() {
    let add: fn(&Narrow, &Asked) = |toy, (item, new)| {
        new.add(toy.shard().insert_if_absent_locked(*item, [0; 2]) == Some(true));
    };
    Model::new(30).in_short(3, 30).run(
        |toy| (expiring(toy, 3), Winners::default()),
        &[tick_from_first, add],
        |toy, (item, new)| {
            assert_eq!(toy.copies(item), new.count(), "an item that was new is not there once");
            nothing_is_left_that_expired(toy);
        },
    );
}

/// Two copies of an item, which expire with the next tick.
fn two_expiring(toy: &Narrow) -> Asked {
    let item = toy.item(3, 0, 0);
    toy.put(&item, 0);
    toy.put(&item, 3);
    set_clock(toy, 2);
    (item, Winners::default())
}

/// Both copies of an item are refreshed, or none.
#[test]
fn no_copy_is_refreshed_beside_one_that_expired() {
    let refresh: fn(&Narrow, &Asked) = |toy, (item, there)| {
        there.add(toy.shard().refresh(*item) == Ok(true));
    };
    let threads = [tick_from_first, refresh];
    Model::new(40).preemptions(3).run(two_expiring, &threads, |toy, (item, there)| {
        assert_eq!(toy.copies(item), 2 * there.count(), "a copy is there without the other");
        nothing_is_left_that_expired(toy);
    });
}

/// Both are counted, or none; and they are as old as an item can be, or there is none.
#[test]
fn no_copy_is_counted_beside_one_that_expired() {
    let count: fn(&Narrow, &Asked) = |toy, (item, _)| {
        assert_ne!(toy.copies(item), 1, "a copy is counted without the other");
    };
    let threads = [tick_from_first, count];
    Model::new(40).preemptions(3).run(two_expiring, &threads, |toy, (item, _)| {
        assert_eq!(toy.copies(item), 0);
    });
}

#[test]
fn an_item_is_not_older_than_items_can_be() {
    let age: fn(&Narrow, &Asked) = |toy, (item, _)| {
        let Ok(age) = toy.shard().age(*item);
        assert!(age.is_none_or(|age| age == 2), "an item is older than it can be");
    };
    let threads = [|toy: &Narrow, _: &Asked| begin(toy), age];
    let sweep = |toy: &Narrow, _: &Asked| sweep(toy, &[0, 1]);
    Model::new(4).preemptions(3).run(two_expiring, &threads, sweep);
}

/// Two threads that let a tick pass each do not overtake each other.
#[test]
fn ticks_pass_one_after_the_other() {
    Model::blocking(20, 2).run::<Narrow, Place>(
        |toy| {
            let item = expiring(toy, 0);
            toy.put(&toy.item(5, 6, 2), 5);
            item
        },
        &[tick_whole, |toy, item| {
            tick_whole(toy, item);
            // If the other tick is passing still, its stamp is that of what expires there.
            toy.put(&toy.item(1, 2, 2), 1);
        }],
        |toy, item| {
            assert_eq!(clock(toy).now().tick(), 4, "a tick was lost");
            assert_eq!(toy.copies(item), 0, "{STILL_THERE}");
            for stays in [toy.item(1, 2, 2), toy.item(5, 6, 2)] {
                assert_eq!(toy.copies(&stays), 1, "{LOST}");
            }
            nothing_is_left_that_expired(toy);
        },
    );
}

/// A copy of a shard has the ages of one moment, and nothing that has expired by then.
#[test]
fn a_shard_is_copied_while_a_tick_passes() {
    Model::blocking(10, 2).run::<Narrow, Place>(
        |toy| expiring(toy, 0),
        &[tick_whole, |toy, _| {
            let mut buckets = [0; 8];
            let Ok(Copied { items, time }) = toy.shard().copy(&mut buckets);
            let is_first = time.expect("that it forgets").tick == 2;
            let copied = (items, buckets.iter().any(|word| *word != 0));
            assert_eq!(copied, (i64::from(is_first), is_first), "{NOT_OF_ITS_TIME}");
        }],
        |toy, item| assert_eq!(toy.copies(item), 0),
    );
}
