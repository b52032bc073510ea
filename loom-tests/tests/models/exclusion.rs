//! Writers do not undo each other's changes, and there is no deadlock.

use crate::toy::{Kick, Model, Toy, Winners, all_there_once};
use koel_under_loom::internals::{Bucket, Copies, Outcome, Path, Place, execute, kick};

#[test]
fn two_inserts_into_one_bucket_both_stay() {
    Model::new(50).run::<Toy, [Place; 2]>(
        |toy| [toy.item(0, 3, 0), toy.item(0, 5, 0)],
        &[|toy, [x, _]| toy.insert(x), |toy, [_, y]| toy.insert(y)],
        |toy, items| {
            assert_eq!(items.map(|it| toy.copies(&it)), [1, 1], "an insert overwrote another");
        },
    );
}

#[test]
fn a_remove_and_an_insert_in_one_bucket_both_count() {
    Model::new(45).run::<Toy, [Place; 2]>(
        |toy| {
            let [x, y] = [toy.item(0, 3, 0), toy.item(0, 5, 0)];
            toy.put(&x, 0);
            // Bucket 5 is as full as bucket 0, so the insert goes to bucket 0.
            toy.put(&toy.item(5, 6, 9), 5);
            [x, y]
        },
        &[|toy, [x, _]| toy.remove(x), |toy, [_, y]| toy.insert(y)],
        |toy, items| {
            let copies = items.map(|it| toy.copies(&it));
            assert_eq!(copies, [0, 1], "a removal or an insert was undone");
        },
    );
}

fn walk_or_kick(toy: &Toy, Kick { path, newcomer, .. }: &Kick) {
    if execute(toy.shard(), path, *newcomer, Copies::Add) == Ok(Outcome::Stale) {
        kick(toy.shard(), *newcomer, Copies::Add).expect("there is room");
    }
}

/// An item is removed while it is being moved.
#[test]
fn a_removed_item_leaves_no_phantom() {
    Model::new(60).run(
        |toy: &Toy| toy.one_move(0, 3, 0),
        &[walk_or_kick, |toy, kick| toy.remove(&kick.moved[0])],
        |toy, kick| {
            assert_eq!(toy.copies(&kick.moved[0]), 0, "a removed item is still there");
            assert_eq!(toy.copies(&kick.newcomer), 1);
        },
    );
}

#[test]
fn two_removes_of_one_copy_take_it_once() {
    let remove: fn(&Toy, &(Place, Winners)) = |toy, (x, removed)| {
        removed.add(toy.shard().remove_locked(*x) == Ok(true));
    };
    Model::new(60).run(
        |toy: &Toy| {
            let x = toy.item(0, 3, 0);
            toy.put(&x, 3);
            (x, Winners::default())
        },
        &[remove, remove],
        |toy, (x, removed)| {
            assert_eq!(removed.count(), 1, "one copy was not removed once");
            assert_eq!(toy.copies(x), 0);
        },
    );
}

const KICKERS: [fn(&Toy, &[Kick; 2]); 2] =
    [|toy, [kick, _]| walk_or_kick(toy, kick), |toy, [_, kick]| walk_or_kick(toy, kick)];

fn both_there_once(toy: &Toy, kicks: &[Kick; 2]) {
    kicks.iter().for_each(|kick| all_there_once(toy, kick));
}

/// Both kicks move the same item to the same lane.
#[test]
fn two_kickers_on_one_path_lose_nothing() {
    Model::new(60).run(
        |toy: &Toy| {
            let moved = vec![toy.item(0, 3, 0), toy.item(0, 5, 0)];
            moved.iter().for_each(|item| toy.put(item, 0));
            let path = toy.path(&[(&moved[0], 0)], 3);
            [toy.item(0, 1, 1), toy.item(0, 7, 1)].map(|newcomer| Kick {
                path: path.clone(),
                newcomer,
                moved: moved.clone(),
            })
        },
        &KICKERS,
        both_there_once,
    );
}

/// Each kick moves its item to the bucket that the other item leaves. Both lock the same two
/// stripes, and list them in opposite order.
#[test]
fn kickers_in_opposite_directions_do_not_wait_for_each_other() {
    Model::blocking(10, None).run(
        |toy: &Toy| {
            let (x, y) = (toy.item(0, 3, 0), toy.item(3, 0, 1));
            toy.put(&x, 0);
            toy.put(&y, 3);
            let [up, down] = [toy.path(&[(&x, 0)], 3), toy.path(&[(&y, 3)], 0)];
            [
                Kick { path: up, newcomer: toy.item(0, 1, 1), moved: vec![x] },
                Kick { path: down, newcomer: toy.item(3, 2, 1), moved: vec![y] },
            ]
        },
        &KICKERS,
        both_there_once,
    );
}

#[test]
fn removes_that_start_from_either_side_do_not_wait_for_each_other() {
    Model::blocking(8, None).run::<Toy, [Place; 2]>(
        |toy| {
            let items = [toy.item(0, 3, 0), toy.item(3, 0, 1)];
            toy.put(&items[0], 0);
            toy.put(&items[1], 3);
            items
        },
        &[|toy, [x, _]| toy.remove(x), |toy, [_, y]| toy.remove(y)],
        |toy, items| assert!(items.iter().all(|item| toy.copies(item) == 0)),
    );
}

#[test]
fn a_remove_of_what_is_absent_lets_others_in() {
    Model::blocking(4, None).run::<Toy, [Place; 2]>(
        |toy| [toy.item(0, 3, 0), toy.item(0, 3, 1)],
        &[
            |toy, [x, _]| assert_eq!(toy.shard().remove_locked(*x), Ok(false)),
            |toy, [_, y]| assert_eq!(toy.shard().insert_if_absent_locked(*y, [0; 2]), Some(true)),
        ],
        |toy, items| assert_eq!(items.map(|it| toy.copies(&it)), [0, 1]),
    );
}

/// An item moves out of a segment that is still to be cleared.
#[test]
fn nothing_escapes_a_clear() {
    Model::blocking(8, None).run::<Toy, Kick>(
        |toy| toy.one_move(3, 0, 3),
        &[
            |toy, _| drop(toy.shard().clear()),
            |toy, Kick { path, newcomer, .. }| {
                let _ = execute(toy.shard(), path, *newcomer, Copies::Add);
            },
        ],
        |toy, kick| assert_eq!(toy.copies(&kick.moved[0]), 0, "an item escaped the clear"),
    );
}

#[test]
fn a_path_that_comes_back_to_a_bucket_is_not_walked() {
    Model::new(1).run::<Toy, Place>(
        |toy| toy.item(0, 1, 1),
        &[|toy, newcomer| {
            let [a, b, c] = [toy.item(0, 3, 0), toy.item(3, 0, 2), toy.item(0, 5, 0)];
            let moves = [(a, 0), (b, 3), (c, 0)];
            [0, 2, 1].iter().for_each(|it| toy.put(&moves[*it].0, moves[*it].1));
            let steps = moves.map(|(item, bucket)| toy.path(&[(&item, bucket)], 5).steps()[0]);
            if let Some(path) = Path::new(steps.into_iter().collect(), Bucket(5)) {
                let outcome = execute(toy.shard(), &path, *newcomer, Copies::Add);
                assert_eq!(outcome, Ok(Outcome::Stale), "a detour was walked");
            }
        }],
        |_, _| {},
    );
}

#[test]
fn three_writers_on_two_stripes_all_get_on() {
    Model::blocking(90, 2).run::<Toy, [Place; 3]>(
        |toy| {
            let items = [toy.item(0, 3, 0), toy.item(3, 0, 1), toy.item(0, 1, 2)];
            toy.put(&items[0], 0);
            items
        },
        &[
            |toy, [x, _, _]| toy.remove(x),
            |toy, [_, y, _]| {
                assert_eq!(toy.shard().insert_if_absent_locked(*y, [0; 2]), Some(true))
            },
            |toy, [_, _, z]| toy.insert(z),
        ],
        |toy, items| assert_eq!(items.map(|it| toy.copies(&it)), [0, 1, 1]),
    );
}
