//! Writers do not undo each other's changes, and there is no deadlock.

use crate::toy::{Model, Toy};
use koel_under_loom::internals::{Copies, Outcome, Path, Place, execute, kick};

#[test]
fn two_inserts_into_one_bucket_both_stay() {
    Model::new("one bucket", 50).run::<[Place; 2]>(
        |toy| [toy.item(0, 3, 0), toy.item(0, 5, 0)],
        &[
            |toy, [x, _]| toy.shard().insert(*x).expect("there is room"),
            |toy, [_, y]| toy.shard().insert(*y).expect("there is room"),
        ],
        |toy, items| {
            for item in items {
                assert_eq!(toy.copies(item), 1, "an insert overwrote another");
            }
        },
    );
}

#[test]
fn a_remove_and_an_insert_in_one_bucket_both_count() {
    Model::new("come and go", 45).run::<[Place; 2]>(
        |toy| {
            let [x, y] = [toy.item(0, 3, 0), toy.item(0, 5, 0)];
            toy.put(&x, 0);
            // Bucket 5 is as full as bucket 0, so the insert goes to bucket 0.
            toy.put(&toy.item(5, 6, 9), 5);
            [x, y]
        },
        &[
            |toy, [x, _]| {
                assert_eq!(
                    toy.shard().remove_locked(*x),
                    Ok(true),
                    "a present item was not removed"
                )
            },
            |toy, [_, y]| toy.shard().insert(*y).expect("there is room"),
        ],
        |toy, [x, y]| {
            let copies = (toy.copies(x), toy.copies(y));
            assert_eq!(copies, (0, 1), "a removal or an insert was undone");
        },
    );
}

/// An item is removed while it is being moved.
#[test]
fn a_removed_item_leaves_no_phantom() {
    Model::new("remove and move", 60).run::<(Path, Place, Place)>(
        |toy| {
            let x = toy.item(0, 3, 0);
            toy.put(&x, 0);
            toy.stuff(0);
            (toy.path(&[(&x, 0)], 3), x, toy.item(0, 1, 1))
        },
        &[
            |toy, (path, _, newcomer)| {
                if execute(toy.shard(), path, *newcomer, Copies::Add) == Ok(Outcome::Stale) {
                    kick(toy.shard(), *newcomer, Copies::Add).expect("there is room");
                }
            },
            |toy, (_, x, _)| {
                assert_eq!(
                    toy.shard().remove_locked(*x),
                    Ok(true),
                    "a present item was not removed"
                )
            },
        ],
        |toy, (_, x, newcomer)| {
            assert_eq!(toy.copies(x), 0, "a removed item is still there");
            assert_eq!(toy.copies(newcomer), 1);
        },
    );
}

#[test]
fn two_removes_of_one_copy_take_it_once() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    let remove: fn(&Toy, &(Place, Arc<AtomicUsize>)) = |toy, (x, removed)| {
        removed.fetch_add(usize::from(toy.shard().remove_locked(*x) == Ok(true)), Relaxed);
    };
    Model::new("two removes", 60).run(
        |toy| {
            let x = toy.item(0, 3, 0);
            toy.put(&x, 3);
            (x, Arc::new(AtomicUsize::new(0)))
        },
        &[remove, remove],
        |toy, (x, removed)| {
            assert_eq!(removed.load(Relaxed), 1, "one copy was not removed once");
            assert_eq!(toy.copies(x), 0);
        },
    );
}

#[derive(Clone)]
struct Kick {
    path: Path,
    newcomer: Place,
    in_the_way: Place,
}

fn walk_or_kick(toy: &Toy, this: &Kick) {
    if execute(toy.shard(), &this.path, this.newcomer, Copies::Add) == Ok(Outcome::Stale) {
        kick(toy.shard(), this.newcomer, Copies::Add).expect("there is room");
    }
}

/// Both kicks move the same item to the same lane.
#[test]
fn two_kickers_on_one_path_lose_nothing() {
    Model::new("one path", 60).run::<[Kick; 2]>(
        |toy| {
            let [x, y] = [toy.item(0, 3, 0), toy.item(0, 5, 0)];
            toy.put(&x, 0);
            toy.put(&y, 0);
            let path = toy.path(&[(&x, 0)], 3);
            [toy.item(0, 1, 1), toy.item(0, 7, 1)].map(|newcomer| Kick {
                path: path.clone(),
                newcomer,
                in_the_way: x,
            })
        },
        &[|toy, [one, _]| walk_or_kick(toy, one), |toy, [_, two]| walk_or_kick(toy, two)],
        |toy, [one, two]| {
            for item in [&one.newcomer, &two.newcomer, &one.in_the_way, &toy.item(0, 5, 0)] {
                assert_eq!(toy.copies(item), 1, "a kick lost an item");
            }
        },
    );
}

/// Each kick moves its item to the bucket that the other item leaves. Both lock the same two
/// stripes, and list them in opposite order.
#[test]
fn kickers_in_opposite_directions_do_not_wait_for_each_other() {
    Model::new("opposite", 10).blocking().run::<[Kick; 2]>(
        |toy| {
            let [x, y] = [toy.item(0, 3, 0), toy.item(3, 0, 1)];
            toy.put(&x, 0);
            toy.put(&y, 3);
            [
                Kick { path: toy.path(&[(&x, 0)], 3), newcomer: toy.item(0, 1, 1), in_the_way: x },
                Kick { path: toy.path(&[(&y, 3)], 0), newcomer: toy.item(3, 2, 1), in_the_way: y },
            ]
        },
        &[|toy, [one, _]| walk_or_kick(toy, one), |toy, [_, two]| walk_or_kick(toy, two)],
        |toy, kicks| {
            for kick in kicks {
                assert_eq!(toy.copies(&kick.newcomer), 1);
                assert_eq!(toy.copies(&kick.in_the_way), 1);
            }
        },
    );
}

#[test]
fn removes_that_start_from_either_side_do_not_wait_for_each_other() {
    Model::new("either side", 8).blocking().run::<[Place; 2]>(
        |toy| {
            let items = [toy.item(0, 3, 0), toy.item(3, 0, 1)];
            toy.put(&items[0], 0);
            toy.put(&items[1], 3);
            items
        },
        &[
            |toy, [x, _]| assert_eq!(toy.shard().remove_locked(*x), Ok(true)),
            |toy, [_, y]| assert_eq!(toy.shard().remove_locked(*y), Ok(true)),
        ],
        |toy, items| assert!(items.iter().all(|item| toy.copies(item) == 0)),
    );
}

#[test]
fn a_remove_of_what_is_absent_lets_others_in() {
    Model::new("absent", 4).blocking().run::<[Place; 2]>(
        |toy| [toy.item(0, 3, 0), toy.item(0, 3, 1)],
        &[
            |toy, [x, _]| assert_eq!(toy.shard().remove_locked(*x), Ok(false)),
            |toy, [_, y]| assert_eq!(toy.shard().insert_if_absent_locked(*y), Ok(Some(true))),
        ],
        |toy, [x, y]| assert_eq!((toy.copies(x), toy.copies(y)), (0, 1)),
    );
}

/// An item moves out of a segment that is still to be cleared.
#[test]
fn nothing_escapes_a_clear() {
    Model::new("clear", 8).blocking().run::<(Path, Place, Place)>(
        |toy| {
            let x = toy.item(3, 0, 0);
            toy.put(&x, 3);
            toy.stuff(3);
            (toy.path(&[(&x, 3)], 0), x, toy.item(3, 2, 1))
        },
        &[
            |toy, _| assert_eq!(toy.shard().clear(|| ()), Ok(())),
            |toy, (path, _, newcomer)| {
                let _ = execute(toy.shard(), path, *newcomer, Copies::Add);
            },
        ],
        |toy, (_, x, _)| {
            assert_eq!(toy.copies(x), 0, "an item escaped the clear");
        },
    );
}

#[test]
fn a_path_that_comes_back_to_a_bucket_is_not_walked() {
    Model::new("detour", 1).run::<Place>(
        |toy| toy.item(0, 1, 1),
        &[|toy, newcomer| {
            let [a, b, c] = [toy.item(0, 3, 0), toy.item(3, 0, 2), toy.item(0, 5, 0)];
            toy.put(&a, 0);
            toy.put(&c, 0);
            toy.put(&b, 3);
            if let Some(path) = toy.path_or_detour(&[(&a, 0), (&b, 3), (&c, 0)], 5) {
                let outcome = execute(toy.shard(), &path, *newcomer, Copies::Add);
                assert_eq!(outcome, Ok(Outcome::Stale), "a detour was walked");
            }
        }],
        |_, _| {},
    );
}

#[test]
fn three_writers_on_two_stripes_all_get_on() {
    Model::new("three writers", 90).blocking().preemptions(2).run::<[Place; 3]>(
        |toy| {
            let items = [toy.item(0, 3, 0), toy.item(3, 0, 1), toy.item(0, 1, 2)];
            toy.put(&items[0], 0);
            items
        },
        &[
            |toy, [x, _, _]| assert_eq!(toy.shard().remove_locked(*x), Ok(true)),
            |toy, [_, y, _]| assert_eq!(toy.shard().insert_if_absent_locked(*y), Ok(Some(true))),
            |toy, [_, _, z]| assert!(toy.shard().insert(*z).is_ok()),
        ],
        |toy, items| assert_eq!(items.each_ref().map(|item| toy.copies(item)), [0, 1, 1]),
    );
}
