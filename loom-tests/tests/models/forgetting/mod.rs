//! Ticks pass while items are looked for, inserted, moved, refreshed and copied.

mod growing;

use crate::toy::{Forgetful, Model};
use crate::twins::alone;
use koel_under_loom::Room;
use koel_under_loom::internals::{Clock, Copies, Mixed, Moment, Path, Place, walk};
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
    let now = clock(toy).now().next(false);
    clock(toy).set(now);
    stripes.iter().for_each(|stripe| toy.0.shard().announce(*stripe));
    stripes.iter().for_each(|stripe| toy.0.shard().expire(*stripe, now, |_| 0));
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
        Model::new("came again", 60).run_in::<Narrow, Place>(
            move |toy| expiring(toy, first),
            &[renew_and_tick, is_found],
            is_there_once,
        );
    }
}

twins! { an_item_that_came_again_is_found_while_its_older_copy_expires:
    "a lookup missed an item that was within its window" => [a_tick_sends_no_lookup_away],
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

twins! { a_lane_in_which_an_item_expired_is_not_taken_for_a_third_item:
    "a lookup found an item that was never there" => [
        items_expire_from_wide_buckets_without_a_new_version,
        a_lookup_in_wide_buckets_reads_one_version,
    ],
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
    let _ = walk(toy.0.shard(), &kick.path, kick.newcomer, Copies::Add);
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

twins! { an_item_that_expires_does_not_escape_by_a_move:
    "an item that expired is still there" => [a_kick_moves_what_has_expired],
}

/// The path goes on behind the expiring item. It need not, and then what is there stays where it is.
#[test]
fn a_path_ends_at_an_item_that_expired() {
    Model::new("short path", 20).in_short(3, 20).run_in::<Narrow, Kick>(
        |toy| {
            let item = expiring(toy, 0);
            let other = toy.0.item(3, 6, 3);
            put_now(toy, &other, 3);
            let path = toy.0.path(&[(&item, 0), (&other, 3)], 6);
            Kick { path, newcomer: toy.0.item(0, 1, 1), other }
        },
        &[|toy, _| tick(toy, &[1, 0]), kick],
        |toy, kick| {
            assert_eq!(toy.0.copies(&kick.other), 1, "an item within its window is lost");
            nothing_is_left_that_expired(toy);
        },
    );
}

twins! { a_path_ends_at_an_item_that_expired:
    "the count is not the number of taken lanes" => [a_path_is_taken_for_whole_that_ends_early],
}

/// A kick takes its place in the table while a tick goes on. The item that it would move came after the
/// tick began, and its stamp is what that of an expired item was a moment ago.
#[test]
fn an_item_that_has_just_come_is_not_taken_for_one_that_expired() {
    Model::new("just come", 2_500).in_short(3, 50).run_in::<Narrow, Kick>(
        |toy| {
            let item = toy.0.item(0, 3, 0);
            put_now(toy, &item, 0);
            let path = toy.0.path(&[(&item, 0)], 3);
            assert!(toy.0.shard().remove_locked(item).is_ok());
            Kick { path, newcomer: toy.0.item(0, 1, 1), other: item }
        },
        &[
            |toy, kick| {
                tick(toy, &[0, 1]);
                put_now(toy, &kick.other, 0);
            },
            kick,
        ],
        |toy, kick| {
            assert_eq!(toy.0.copies(&kick.other), 1, "an item within its window is lost");
            nothing_is_left_that_expired(toy);
        },
    );
}

twins! { an_item_that_has_just_come_is_not_taken_for_one_that_expired:
    "an item within its window is lost" => [a_kick_takes_the_time_of_before_the_tick],
}

/// A kick may come upon an expiring item before the tick has sent any lookup away.
#[test]
fn an_item_that_came_again_is_found_while_a_kick_replaces_its_older_copy() {
    Model::new("replaced", 20).in_short(3, 20).run_in::<Narrow, Kick>(
        |toy| {
            let item = expiring(toy, 3);
            let path = toy.0.path(&[(&item, 0)], 3);
            Kick { path, newcomer: toy.0.item(0, 1, 1), other: item }
        },
        &[
            |toy, kick_of| {
                put_now(toy, &kick_of.other, 3);
                let now = clock(toy).now().next(false);
                clock(toy).set(now);
                kick(toy, kick_of);
                [0, 1].iter().for_each(|stripe| toy.0.shard().announce(*stripe));
            },
            |toy, kick| is_found(toy, &kick.other),
        ],
        |toy, kick| is_there_once(toy, &kick.other),
    );
}

twins! { an_item_that_came_again_is_found_while_a_kick_replaces_its_older_copy:
    "a lookup missed an item that was within its window" => [
        an_item_is_replaced_without_a_new_version,
    ],
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

twins! { an_item_that_came_again_is_found_while_a_whole_tick_passes:
    "a lookup missed an item that was within its window" => [a_tick_erases_at_once],
}

/// Takes a tick that is passing through all stripes ahead of its passes.
fn ahead(toy: &Narrow) {
    let (ticking, through) = toy.0.room().time().expect("that it forgets");
    ticking.ahead(through, Mixed(0));
}

fn begin_tick(toy: &Narrow) {
    let (ticking, through) = toy.0.room().time().expect("that it forgets");
    ticking.finish(through);
    assert!(ticking.begin(through), "a tick is passing");
}

fn finish_tick(toy: &Narrow) {
    let (ticking, through) = toy.0.room().time().expect("that it forgets");
    ticking.finish(through);
}

#[test]
fn an_item_that_came_again_is_found_while_a_tick_is_taken_ahead() {
    Model::new("tick ahead", 20).preemptions(3).run_in::<Narrow, Place>(
        |toy| expiring(toy, 3),
        &[
            |toy, item| {
                put_now(toy, item, 3);
                begin_tick(toy);
                ahead(toy);
                assert_eq!(toy.0.copies(item), 1, "an item that expired is still there");
            },
            is_found,
        ],
        |toy, item| {
            finish_tick(toy);
            is_there_once(toy, item);
        },
    );
}

twins! { an_item_that_came_again_is_found_while_a_tick_is_taken_ahead:
    "a lookup missed an item that was within its window" => [
        a_tick_taken_ahead_sends_no_lookup_away,
    ],
}

/// Who takes a tick ahead knows what expires. In the next tick it would be what has just come.
#[test]
fn no_tick_ends_while_it_is_taken_ahead() {
    Model::new("tick ahead and next", 20).preemptions(2).blocking().run_in::<Narrow, Place>(
        |toy| {
            let item = expiring(toy, 0);
            begin_tick(toy);
            item
        },
        &[
            |toy, _| ahead(toy),
            |toy, _| {
                begin_tick(toy);
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

twins! { no_tick_ends_while_it_is_taken_ahead:
    "an item within its window is lost" => [a_tick_ends_while_it_is_taken_ahead],
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
    Model::new("expiring, if absent", 1_000).in_short(3, 50).run_in::<Narrow, Asked>(
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

#[test]
fn an_item_that_was_refreshed_stays() {
    Model::new("refresh", 20_000).in_short(3, 50).run_in::<Narrow, Asked>(
        asked,
        &[
            |toy, _| tick(toy, &[0, 1]),
            |toy, this| {
                let Ok(was_there) = toy.0.shard().refresh(this.item);
                note(this, was_there);
            },
        ],
        |toy, this| {
            let was_there = this.answer.load(Relaxed) as usize;
            assert_eq!(toy.0.copies(&this.item), was_there, "a refreshed item is not there once");
            nothing_is_left_that_expired(toy);
        },
    );
}

twins! { an_item_that_was_refreshed_stays:
    "a refreshed item is not there once" => [an_item_that_was_found_is_not_stamped],
}

fn tick_whole(toy: &Narrow, _: &Place) {
    let (ticking, through) = toy.0.room().time().expect("that it forgets");
    ticking.tick(through);
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

twins! { ticks_pass_one_after_the_other:
    "an item within its window is lost" => [a_tick_overtakes_the_one_before],
}

/// A copy has the ages of one moment, and nothing that expired before it.
#[test]
fn a_copy_is_made_between_two_ticks() {
    Model::new("copy and tick", 10).preemptions(2).blocking().run_in::<Narrow, Place>(
        |toy| expiring(toy, 0),
        &[tick_whole, |toy, item| {
            let (ticking, through) = toy.0.room().time().expect("that it forgets");
            let held = ticking.hold(through);
            let found = toy.0.copies(item);
            let is_first = held.time().tick == 2;
            assert_eq!(found, usize::from(is_first), "a copy is not of the time that it tells");
        }],
        |toy, item| assert_eq!(toy.0.copies(item), 0),
    );
}

twins! { a_copy_is_made_between_two_ticks:
    "a copy is not of the time that it tells" => [
        a_copy_is_made_while_a_tick_passes,
        a_tick_begins_while_a_copy_is_made,
    ],
}

/// So has a copy of one shard, which does not wait for the tick to pass elsewhere.
#[test]
fn a_shard_is_copied_while_a_tick_passes() {
    Model::new("copy of a shard and tick", 10).preemptions(2).blocking().run_in::<Narrow, Place>(
        |toy| expiring(toy, 0),
        &[tick_whole, |toy, item| {
            let (ticking, through) = toy.0.room().time().expect("that it forgets");
            let held = ticking.hold_in(through, Mixed(0));
            let found = toy.0.copies(item);
            let is_first = held.time().tick == 2;
            assert_eq!(found, usize::from(is_first), "a copy is not of the time that it tells");
        }],
        |toy, item| assert_eq!(toy.0.copies(item), 0),
    );
}

twins! { a_shard_is_copied_while_a_tick_passes:
    "a copy is not of the time that it tells" => [
        a_shard_is_copied_before_a_tick_gets_there,
        a_tick_begins_while_a_copy_is_made,
    ],
}
