//! An inserted item is found, once, while the halves of a shard are joined.

use crate::grove::{
    Entry, Grove, ROOT, half_of_root, in_whole, insert, into_whole, item, look, remove, removed,
    split_root, there_once,
};
use crate::snapshots::{Saved, times_saved};
use crate::toy::Model;
use koel_under_loom::internals::Mixed;

fn join(grove: &Grove, hash: &Mixed) {
    assert!(grove.room().join_halves(*hash), "two empty halves were not joined");
}

fn try_join(grove: &Grove, hash: &Mixed) {
    grove.room().join_halves(*hash);
}

/// Puts an item into one of two halves.
fn in_a_half(grove: &Grove, half: u64) -> Mixed {
    let item = in_whole(grove, half);
    split_root(grove, &item);
    item
}

#[test]
fn an_item_is_found_while_its_halves_are_joined() {
    Model::new(25).run_each([0, 1], in_a_half, &[join, look], |grove, item| {
        there_once(grove, item);
        assert_eq!(grove.backend.items(), 1, "a join changed the number of items");
    });
}

/// The entry is the same before the split and after the join.
#[test]
fn an_item_is_found_while_its_shard_is_split_and_joined_again() {
    let split_and_join: fn(&Grove, &Mixed) = |grove, item| {
        split_root(grove, item);
        join(grove, item);
    };
    let model = Model::new(1_000).preemptions(3).in_short(2, 100);
    model.run_each([0, 1], in_whole, &[split_and_join, look], there_once);
}

/// The second shard has the items of one root, then those of another one, and then those of the first again.
#[test]
fn an_item_is_found_while_its_shard_goes_to_others_and_comes_back() {
    Model::new(400).shards(2).preemptions(2).run::<Grove, [Mixed; 2]>(
        |grove| {
            let (own, other) = (item(0b01, 2), item(0b11, 2));
            grove.put(own);
            grove.split(own, ROOT);
            grove.pretend(other);
            [own, other]
        },
        &[
            |grove, [own, other]| {
                join(grove, own);
                grove.split(*other, Entry { shard: 1, depth: 0 });
                join(grove, other);
                grove.pretend(*own);
                grove.split(*own, ROOT);
            },
            |grove, [own, _]| look(grove, own),
        ],
        |grove, [own, _]| there_once(grove, own),
    );
}

/// A writer waits for a stripe of a shard that is being joined to its other half.
#[test]
fn an_item_that_comes_during_a_join_is_found() {
    let split = |grove: &Grove, half| {
        let item = into_whole(grove, half);
        split_root(grove, &item);
        item
    };
    Model::blocking(17, 3).run_each([0, 1], split, &[join, insert], there_once);
}

#[test]
fn an_item_is_removed_during_a_join() {
    Model::blocking(20, 3).run_each([0, 1], in_a_half, &[join, remove], removed);
}

/// One thread finds the upper half full and splits it, while another one joins it to the lower.
#[test]
fn a_half_is_split_or_joined() {
    Model::blocking(20, 3).run::<Grove, Mixed>(
        |grove| {
            let item = in_a_half(grove, 1);
            // With its item, enough for a split, and little enough for a join.
            grove.add_items(item, 7);
            item
        },
        &[try_join, |grove, item| _ = grove.split_as_seen(*item, 1, half_of_root(1))],
        there_once,
    );
}

/// A copy of the filter, shard by shard, while halves that it has copied or is about to copy are joined.
#[test]
fn an_item_is_copied_once_while_its_halves_are_joined() {
    let copy: fn(&Grove, &Mixed) = |grove, item| {
        let _no_joins = grove.backend.keep_shards();
        let times = times_saved(&Saved::all_of(&grove.backend), *item);
        assert_eq!(times, 1, "an item is not in a copy once");
    };
    Model::blocking(4, 3).run_each([0, 1], in_a_half, &[try_join, copy], there_once);
}

/// A clear meets the halves, or the whole.
#[test]
fn nothing_escapes_a_clear_by_a_join() {
    let clear: fn(&Grove, &Mixed) = |grove, _| grove.backend.clear();
    let model = Model::blocking(20, 3).in_short(2, 20);
    model.run_each([1, 0], in_a_half, &[try_join, clear], |grove, item| {
        assert_eq!(grove.copies(*item), 0, "an item escaped a clear");
        assert_eq!(grove.backend.items(), 0, "items are counted that were cleared");
    });
}
