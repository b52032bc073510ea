//! Wide buckets: two words that are neither written nor read at once.
//!
//! A lookup reads the first word of a bucket before the second. So it may see the head of one item and
//! the tail of another that took its lane. Each model has a lookup of an item that is there all the
//! time, or never.

use crate::grove::{self, Grove, items_in, split_root, there_once};
use crate::toy::{FALSELY_FOUND, Kick, Model, Toy, all_there_once, look, walk};
use koel_under_loom::internals::{Mixed, Place};

type Wide = Toy<true>;

pub fn with_tail(item: Place, tail: u64) -> Place {
    Place { fp: item.fp.with_tail(tail), ..item }
}

fn fill(toy: &Wide, item: &Place) {
    toy.put(item, item.first.0);
}

fn remove(toy: &Wide, item: &Place) {
    toy.remove(item);
}

fn is_not_found_with_another_tail(toy: &Wide, item: &Place) {
    toy.is_not_found(&with_tail(*item, 0));
}

fn gone(toy: &Wide, item: &Place) {
    assert_eq!(toy.copies(item), 0);
}

/// The head of an item that was inserted meets the tail that was in its lane before.
#[test]
fn an_item_that_arrives_is_not_taken_for_one_with_its_head() {
    Model::new(4).run(
        |toy: &Wide| with_tail(toy.item(0, 3, 0), 5),
        &[fill, is_not_found_with_another_tail],
        |toy, item| assert_eq!(toy.copies(item), 1),
    );
}

/// The head of an item that was removed meets the tail of the next one in its lane.
#[test]
fn a_lane_that_is_used_again_is_not_taken_for_a_third_item() {
    Model::new(1_000).in_short(2, 150).run_each::<Wide, [Place; 3], u32>(
        [0, 3],
        |toy, third_first| {
            let gone = with_tail(toy.item(0, 3, 0), 5);
            let next = with_tail(toy.item(0, 5, 1), 6);
            fill(toy, &gone);
            [gone, next, with_tail(toy.item(third_first, 3 - third_first, 0), 6)]
        },
        &[
            |toy, [gone, next, _]| {
                remove(toy, gone);
                fill(toy, next);
            },
            |toy, [.., third]| toy.is_not_found(third),
        ],
        |toy, [gone, next, _]| assert_eq!([gone, next].map(|it| toy.copies(it)), [0, 1]),
    );
}

fn one_with_tail(toy: &Wide) -> Place {
    let item = with_tail(toy.item(0, 3, 0), 5);
    fill(toy, &item);
    item
}

/// The tail of an item that was removed is gone before a lookup that has seen its head reads it.
#[test]
fn an_item_that_leaves_is_not_taken_for_one_with_its_head() {
    Model::new(400).run(one_with_tail, &[remove, is_not_found_with_another_tail], gone);
}

#[test]
fn an_item_that_is_cleared_is_not_taken_for_another() {
    let clear: fn(&Wide, &Place) = |toy, _| {
        drop(toy.shard().clear());
    };
    let model = Model::new(900).in_short(2, 140);
    model.run(one_with_tail, &[clear, is_not_found_with_another_tail], gone);
}

/// One copy arrives in the bucket of another, which goes, and its lane is used again. There is a copy
/// at every moment.
#[test]
fn a_copy_that_comes_while_another_goes_is_found() {
    Model::new(700).in_short(2, 320).run::<Wide, [Place; 2]>(
        |toy| [one_with_tail(toy), with_tail(toy.item(0, 5, 1), 6)],
        &[
            |toy, [copied, next]| {
                fill(toy, copied);
                remove(toy, copied);
                fill(toy, next);
            },
            |toy, [copied, _]| toy.is_found(copied),
        ],
        |toy, items| assert_eq!(items.map(|it| toy.copies(&it)), [1, 1]),
    );
}

/// The item moves from bucket 0 to bucket `to`, and the newcomer takes its lane.
fn one_move(toy: &Wide, (to, first): (u32, u32)) -> Kick {
    let moved = with_tail(toy.item(first, to - first, 0), 5);
    toy.put(&moved, 0);
    toy.stuff(0);
    let path = toy.path(&[(&moved, 0)], to);
    Kick { path, newcomer: with_tail(toy.item(0, 1, 1), 6), moved: vec![moved] }
}

#[test]
fn an_item_that_moves_is_found() {
    let (model, cases) = (Model::new(1_500).in_short(2, 220), [(3, 3), (3, 0), (1, 1), (1, 0)]);
    model.run_each(cases, one_move, &[walk, look], all_there_once);
}

/// The head of the item that moves away meets the tail of the newcomer.
#[test]
fn an_item_that_moves_is_not_taken_for_another() {
    let look: fn(&Wide, &Kick) = |toy, kick| toy.is_not_found(&with_tail(kick.moved[0], 6));
    let model = Model::new(1_500).in_short(2, 220);
    model.run_each([(3, 0)], one_move, &[walk, look], all_there_once);
}

type WideGrove = Grove<true>;

#[test]
fn an_item_is_found_while_its_shard_is_split() {
    let setup = |grove: &WideGrove, half| {
        let item = items_in::<true>(half, 1).next().unwrap();
        grove.put(item);
        item
    };
    let model = Model::new(2_000).in_short(2, 100);
    model.run_each([0, 1], setup, &[split_root, grove::look], there_once);
}

/// The window of the item, once the split has shifted it, equals the window of an absent one before the
/// split. (The absent one has the head and the buckets of the item; no hash that leads to them is
/// known.)
#[test]
fn an_item_is_not_taken_for_another_in_the_middle_of_a_split() {
    Model::new(2_000).in_short(2, 100).run::<WideGrove, (Mixed, Place)>(
        |grove| {
            let item = items_in::<true>(0, 1).next().unwrap();
            grove.put(item);
            (item, grove.shard(item).1)
        },
        &[
            |grove, (item, _)| split_root(grove, item),
            |grove, (item, place)| {
                let (shard, at) = grove.shard(Mixed(item.0 << 1));
                let absent = with_tail(*place, at.fp.tail().into());
                assert_ne!(shard.look(absent), Some(true), "{FALSELY_FOUND}");
            },
        ],
        |grove, (item, _)| there_once(grove, item),
    );
}
