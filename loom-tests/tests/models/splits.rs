//! An inserted item is found, once, while its shard is split.

use crate::grove::{
    Entry, Grove, ROOT, half_of_root, in_whole, insert, into_whole, item, items_in, look, place,
    random, remove, removed, split_root, there_once,
};
use crate::toy::{FALSELY_FOUND, Model, Winners};
use koel_under_loom::internals::{Copies, Mixed, Outcome, Path, Place, Step, execute};

#[test]
fn an_item_is_found_while_its_shard_is_split() {
    let model = Model::new(2_900).in_short(2, 115);
    model.run_each([0, 1], in_whole, &[split_root, look], |grove, item| {
        there_once(grove, item);
        assert_eq!(grove.backend.items(), 1, "a split changed the number of items");
    });
}

/// The directory has enough entries before the split, so the split makes no new list.
#[test]
fn an_item_is_found_while_its_shard_is_split_in_a_deep_directory() {
    Model::new(650).in_short(2, 110).run_each::<Grove, Mixed, u64>(
        [0b00, 0b01],
        |grove, half| {
            let item = item(half, 2);
            grove.pretend(item);
            grove.split(item, ROOT);
            // The split of the other half makes a list of level 2, where this half has two entries.
            let other = into_whole(grove, 1);
            grove.split(other, half_of_root(1));
            grove.put(item);
            item
        },
        &[
            |grove, item| grove.split_as_seen(*item, 2, half_of_root(0)).expect("a full shard"),
            look,
        ],
        there_once,
    );
}

#[test]
fn a_lookup_that_gives_up_looking_is_right_after_a_split() {
    let contains: fn(&Grove, &Mixed) = |grove, item| {
        assert!(grove.backend.contains_slow(*item), "{}", crate::toy::MISSED);
    };
    let model = Model::blocking(630, 3).in_short(2, 175);
    model.run_each([0, 1], in_whole, &[split_root, contains], there_once);
}

/// Two items with the same anchor and the same buckets. The window of the first, once the split has
/// shifted it, equals the window of the second before the split.
fn two_that_meet_in_the_middle() -> (Mixed, Mixed) {
    let there = item(0, 1);
    let of_there = place(there, 0);
    let mut absent = random().map(|random| Mixed(there.0 << 1 >> 50 << 50 | random >> 14));
    let same_buckets = |hash: &Mixed| {
        let place = place(*hash, 0);
        let anchor = |fp: u32| fp >> 16;
        place.first == of_there.first && anchor(place.fp.head()) == anchor(of_there.fp.head())
    };
    (there, absent.find(same_buckets).unwrap())
}

fn first_of_two(grove: &Grove, items: (Mixed, Mixed)) -> (Mixed, Mixed) {
    grove.put(items.0);
    items
}

fn split_first(grove: &Grove, (there, _): &(Mixed, Mixed)) {
    split_root(grove, there);
}

/// A lane means something else after a split. No lookup reads it with the other meaning.
#[test]
fn an_item_that_is_absent_is_not_found_in_the_middle_of_a_split() {
    let look: fn(&Grove, &(Mixed, Mixed)) = |grove, (_, absent)| {
        let (shard, place) = grove.shard(*absent);
        assert_ne!(shard.look(place), Some(true), "{FALSELY_FOUND}");
    };
    let (model, cases) = (Model::new(2_900).in_short(2, 115), [two_that_meet_in_the_middle()]);
    model.run_each(cases, first_of_two, &[split_first, look], |grove, (there, absent)| {
        assert_eq!([there, absent].map(|it| grove.copies(*it)), [1, 0]);
    });
}

/// A writer waits for a stripe of a shard that is being split. After the split, its item may belong
/// to the other half.
#[test]
fn an_item_that_comes_during_a_split_is_found() {
    Model::blocking(28, 3).run_each([0, 1], into_whole, &[split_root, insert], there_once);
}

type Change = fn(&Grove, Mixed) -> bool;

/// Makes a change of an item of a half on two threads, one of which splits its shard before. Exactly one makes it.
fn made_once(
    model: Model,
    before: fn(&Grove, u64) -> Mixed,
    change: Change,
    after: fn(&Grove, &Mixed),
    message: &'static str,
) {
    fn make(grove: &Grove, (item, change, made): &(Mixed, Change, Winners)) {
        made.add(change(grove, *item));
    }
    model.run_each(
        [0, 1],
        move |grove, half| (before(grove, half), change, Winners::default()),
        &[make, |grove, change| {
            split_root(grove, &change.0);
            make(grove, change);
        }],
        move |grove, (item, _, made)| {
            assert_eq!(made.count(), 1, "{message}");
            after(grove, item);
        },
    );
}

#[test]
fn one_call_wins_on_either_side_of_a_split() {
    let (model, message) = (Model::blocking(150, 3), "not exactly one call added the item");
    let model = model.in_short(2, 70);
    made_once(model, into_whole, Grove::insert_if_absent, there_once, message);
}

#[test]
fn an_item_is_removed_once_on_either_side_of_a_split() {
    let (model, message) = (Model::blocking(150, 3), "an item was not removed once");
    made_once(model, in_whole, Grove::remove, removed, message);
}

#[test]
fn an_item_is_removed_during_a_split() {
    let model = Model::blocking(80, 3);
    model.run_each([0, 1], in_whole, &[split_root, remove], removed);
}

/// Both threads have found the shard full. It is split once, and neither is refused.
#[test]
fn two_that_find_the_same_shard_full_split_it_once() {
    Model::blocking(21, 3).run::<Grove, Mixed>(
        |grove| {
            let item = in_whole(grove, 1);
            // Enough for another split, if a thread tried.
            grove.pretend(item);
            grove.pretend(item);
            item
        },
        &[split_root, split_root],
        |grove, item| {
            assert_eq!(grove.room().splits(), 1, "a shard was split twice");
            there_once(grove, item);
        },
    );
}

/// Makes a directory of four entries, of which the other half has two. Both items' shards are half full.
fn deep_and_shallow(grove: &Grove, shallow: Mixed) -> [Mixed; 2] {
    let deep = item(0b00, 2);
    for depth in [0, 1] {
        grove.pretend(deep);
        grove.split(deep, Entry { depth, ..ROOT });
    }
    grove.put(deep);
    grove.put(shallow);
    [deep, shallow]
}

fn split_deep(grove: &Grove, [deep, _]: &[Mixed; 2]) {
    grove.split(*deep, Entry { depth: 2, ..ROOT });
}

fn split_shallow(grove: &Grove, [_, shallow]: &[Mixed; 2]) {
    grove.split_as_seen(*shallow, 2, half_of_root(1)).expect("a full shard was not split");
}

/// The directory has four entries, and two of them belong to one shard. That shard is split while
/// another one needs a longer list.
#[test]
fn a_shard_is_split_while_the_directory_gets_longer() {
    Model::blocking(16, 3).run::<Grove, [Mixed; 2]>(
        |grove| deep_and_shallow(grove, item(0b11, 2)),
        &[split_deep, split_shallow],
        |grove, items| {
            assert_eq!(grove.room().splits(), 4, "a split was lost");
            items.iter().for_each(|item| there_once(grove, item));
            let depths = [0b000, 0b001, 0b010, 0b100, 0b110]
                .map(|bits| grove.shard(item(bits, 3)).0.depth());
            assert_eq!(depths, [3, 3, 2, 2, 2], "an entry was lost");
        },
    );
}

/// The directory gets a longer list for another shard. Then a shard is split that has several
/// entries in an old list.
#[test]
fn an_item_is_found_by_an_old_list() {
    Model::new(2_900).in_short(2, 115).run_each::<Grove, [Mixed; 2], u64>(
        [0b100, 0b111],
        |grove, bits| deep_and_shallow(grove, item(bits, 3)),
        &[
            |grove, items| {
                split_deep(grove, items);
                split_shallow(grove, items);
            },
            |grove, [_, shallow]| look(grove, shallow),
        ],
        |grove, [_, shallow]| there_once(grove, shallow),
    );
}

/// A path is found before a split and walked after it.
#[test]
fn a_path_of_before_a_split_is_not_walked() {
    Model::blocking(41, 3).run_each::<Grove, (Path, [Mixed; 2]), u64>(
        [0, 1],
        |grove, half| {
            let moved = in_whole(grove, half);
            let (shard, Place { first, second, .. }) = grove.shard(moved);
            grove.stuff(moved, first, 0);
            let mut others = items_in::<false>(half, 1).filter(|hash| hash.0 != moved.0);
            let newcomer = others.find(|hash| place(*hash, 0).first == first).unwrap();
            let lane = shard.lanes().taken(shard.read(first)).next().unwrap();
            let steps = [Step { bucket: first, lane }].into_iter().collect();
            (Path::new(steps, second).unwrap(), [moved, newcomer])
        },
        &[
            |grove, (_, [moved, _])| split_root(grove, moved),
            |grove, (path, [_, newcomer])| {
                let (shard, place) = grove.shard(*newcomer);
                if execute(shard, path, place, Copies::Add) != Ok(Outcome::Placed) {
                    grove.insert(*newcomer);
                }
            },
        ],
        |grove, (_, items)| items.iter().for_each(|item| there_once(grove, item)),
    );
}

/// A writer is delayed while its shard is split, and then the half that its item belongs to.
#[test]
fn an_item_that_comes_during_two_splits_is_found() {
    Model::blocking(380, 3).in_short(2, 170).run::<Grove, Mixed>(
        |grove| {
            let item = item(0b11, 2);
            grove.pretend(item);
            item
        },
        &[
            |grove, item| {
                split_root(grove, item);
                grove.pretend(*item);
                grove.split(*item, half_of_root(1));
            },
            insert,
        ],
        there_once,
    );
}

/// The shard is full of items of its upper half. The item is of the lower half, which a split leaves
/// empty.
#[test]
fn an_insert_is_not_refused_while_its_shard_is_split() {
    const REFUSED: &str = "refused though a split made room";
    Model::blocking(30, 2).in_short(1, 350).run::<Grove, Mixed>(
        |grove| {
            let item = item(0, 1);
            grove.shard(item).0.buckets().for_each(|bucket| grove.stuff(item, bucket, 1));
            item
        },
        &[
            |grove, item| grove.split_as_seen(*item, 0, ROOT).expect(REFUSED),
            |grove, item| grove.backend.insert(*item).expect(REFUSED),
        ],
        there_once,
    );
}

/// A shard has as many copies of an item as it takes. While it is split, their words match another item by
/// a bit too few.
#[test]
fn an_item_is_not_refused_as_a_copy_of_another_in_the_middle_of_a_split() {
    let insert: fn(&Grove, &(Mixed, Mixed)) = |grove, (_, absent)| {
        let answer = grove.backend.insert(*absent);
        assert_eq!(answer, Ok(()), "an item was taken for a copy of another");
    };
    Model::blocking(100, 2).run_each(
        [two_that_meet_in_the_middle()],
        |grove, items| {
            let Place { second, fp, .. } = place(items.0, 0);
            assert!(grove.fill_with(items.0, second, fp));
            first_of_two(grove, items)
        },
        &[split_first, insert],
        |grove, (there, absent)| {
            assert_eq!(grove.copies(*there), 2, "an item is not there twice after a split");
            there_once(grove, absent);
        },
    );
}

#[test]
fn an_item_is_not_taken_for_another_in_the_middle_of_a_split() {
    let add: fn(&Grove, &(Mixed, Mixed)) = |grove, (_, absent)| {
        assert!(grove.insert_if_absent(*absent), "an item was taken for another");
    };
    let (model, cases) = (Model::blocking(170, 3), [two_that_meet_in_the_middle()]);
    model.run_each(cases, first_of_two, &[split_first, add], |grove, (there, absent)| {
        there_once(grove, there);
        there_once(grove, absent);
    });
}

/// A clear meets the shard, or its halves.
#[test]
fn nothing_escapes_a_clear_by_a_split() {
    let clear: fn(&Grove, &Mixed) = |grove, _| grove.backend.clear();
    let split: fn(&Grove, &Mixed) = |grove, item| _ = grove.split_as_seen(*item, 0, ROOT);
    let model = Model::blocking(20, 3).in_short(2, 15);
    model.run_each([1, 0], in_whole, &[split, clear], |grove, item| {
        assert_eq!(grove.copies(*item), 0, "an item escaped a clear");
        assert_eq!(grove.backend.items(), 0, "items are counted that were cleared");
    });
}
