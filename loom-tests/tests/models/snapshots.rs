//! Every item that is in the filter when a save begins is in the file exactly once, while items
//! move and shards are split.

use crate::grove::{
    Grove, ROOT, half_of_root, in_whole, into_whole, item, place, shrinking, split_root, there_once,
};
use crate::toy::{Kick, Model, Toy, World, all_there_once, walk};
use koel_under_loom::internals::{AtomicU64, Backend, Bucket, Mixed, Place};
use koel_under_loom::{ConcurrentCuckooFilter, StableHash};
use loom::sync::atomic::Ordering::{Acquire, Release};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Number, Ordering::Relaxed};

/// The contents of a shard, as a file holds them.
pub struct Saved {
    depth: u32,
    items: i64,
    buckets: [u64; 8],
}

impl Saved {
    pub fn all_of(backend: &Backend) -> Vec<Saved> {
        let mut next = Some(0);
        let copies = std::iter::from_fn(|| {
            let mut buckets = [0; 8];
            let (depth, copied) = backend.copy_shard(&mut next, &mut buckets)?;
            Some(Saved { depth, items: copied.items, buckets })
        });
        // More shards than any model has, so that a faulty save ends, too.
        copies.take(16).collect()
    }

    fn word(&self, bucket: Bucket) -> u64 {
        self.buckets[bucket.0 as usize]
    }
}

// A shard of a fixed filter.

fn copy(toy: &Toy) -> Saved {
    Saved::all_of(toy.backend()).swap_remove(0)
}

fn times_in(toy: &Toy, copy: &Saved, item: &Place) -> usize {
    let lanes = toy.table().geometry.lanes();
    let both = [item.first, item.second];
    both.iter().map(|bucket| lanes.matching(copy.word(*bucket), item.fp).len()).sum()
}

fn copy_kicked(toy: &Toy, kick: &Kick) {
    let copy = copy(toy);
    for item in &kick.moved {
        let times = times_in(toy, &copy, item);
        assert_eq!(times, 1, "an item that moves is in the copy {times} times");
    }
    assert!(times_in(toy, &copy, &kick.newcomer) <= 1, "a newcomer is copied twice");
}

fn one_move(from: u32, to: u32, floor: usize) {
    let setup = move |toy: &Toy| toy.one_move(from, to, from);
    Model::new(floor).run(setup, &[walk, copy_kicked], all_there_once);
}

#[test]
fn an_item_that_moves_up_is_in_a_copy_once() {
    one_move(0, 3, 75);
    one_move(0, 1, 15);
}

#[test]
fn an_item_that_moves_down_is_in_a_copy_once() {
    one_move(3, 0, 75);
    one_move(1, 0, 15);
}

#[test]
fn items_on_a_longer_path_are_in_a_copy_once() {
    Model::new(380).run(Toy::two_moves, &[walk, copy_kicked], all_there_once);
}

/// One item is inserted and one is removed: either may be in the copy or not. The third one stays.
#[test]
fn a_copy_counts_what_is_in_it_while_items_come_and_go() {
    Model::blocking(400, 3).run::<Toy, [Place; 3]>(
        |toy| {
            let [goes, comes, stays] = [toy.item(0, 3, 0), toy.item(3, 4, 0), toy.item(5, 0, 1)];
            toy.put(&goes, 3);
            toy.put(&stays, 5);
            [goes, comes, stays]
        },
        &[
            |toy, [goes, ..]| toy.remove(goes),
            |toy, [_, comes, _]| {
                assert_eq!(toy.shard().insert_if_absent_locked(*comes, [0; 2]), Some(true));
            },
            |toy, [goes, comes, stays]| {
                let copy = copy(toy);
                let times = |item| times_in(toy, &copy, item);
                assert!(times(goes) <= 1 && times(comes) <= 1, "an item is copied twice");
                assert_eq!(times(stays), 1, "an item that stays is not in the copy once");
                let lanes = toy.table().geometry.lanes();
                let taken: usize = copy.buckets.iter().map(|word| lanes.taken(*word).len()).sum();
                assert_eq!(copy.items, taken as i64, "a copy does not count its lanes");
            },
        ],
        |toy, items| assert_eq!(items.map(|it| toy.copies(&it)), [0, 1, 1]),
    );
}

/// One execution is enough: unless a copy changes versions, a lookup and a copy have nothing in
/// common that loom would interleave.
#[test]
fn a_lookup_does_not_wait_for_a_copy() {
    Model::new(1).run::<Toy, [Place; 2]>(
        |toy| {
            let [there, absent] = [toy.item(0, 3, 0), toy.item(0, 3, 1)];
            toy.put(&there, 3);
            [there, absent]
        },
        &[
            |toy, _| _ = copy(toy),
            |toy, items| {
                let looks = items.map(|item| toy.shard().look(item));
                assert_eq!(looks, [Some(true), Some(false)], "a lookup has to wait for a copy");
            },
        ],
        |_, _| {},
    );
}

#[test]
fn changes_that_had_returned_are_in_a_copy() {
    Model::new(7_000).in_short(3, 140).run::<Toy, ([Place; 2], Arc<AtomicU64>)>(
        |toy| {
            let [comes, goes] = [toy.item(0, 3, 0), toy.item(4, 7, 0)];
            toy.put(&goes, 7);
            ([comes, goes], Arc::new(AtomicU64::new(0)))
        },
        &[
            |toy, ([comes, goes], done)| {
                assert_eq!(toy.shard().insert_if_absent_locked(*comes, [0; 2]), Some(true));
                toy.remove(goes);
                done.store(1, Release);
            },
            |toy, (items, done)| {
                let before = done.load(Acquire) == 1;
                let copy = copy(toy);
                let times = items.map(|item| times_in(toy, &copy, &item));
                assert!(times == [1, 0] || !before, "what was done before is not in the copy");
            },
        ],
        |toy, (items, _)| assert_eq!(items.map(|item| toy.copies(&item)), [1, 0]),
    );
}

// All shards of a filter that grows.

/// The number of times that a filter loaded from these copies would contain the item.
pub fn times_saved(copies: &[Saved], item: Mixed) -> usize {
    let in_one = |copy: &Saved| {
        let place = place(item, copy.depth);
        let both = [place.first, place.second].map(|bucket| copy.word(bucket));
        both.iter().map(|word| shrinking().matching(*word, place.fp).len()).sum::<usize>()
    };
    copies.iter().map(in_one).sum()
}

/// Copies all shards, as a save does, and checks that this item is in them once. The counts include the items
/// that shards only pretend to have.
fn save(grove: &Grove, items: &[Mixed]) -> Vec<Saved> {
    let copies = Saved::all_of(&grove.backend);
    for item in items {
        let depths: Vec<u32> = copies.iter().map(|copy| copy.depth).collect();
        let times = times_saved(&copies, *item);
        assert_eq!(times, 1, "an item is saved {times} times, in shards of depths {depths:?}");
        let mut begin = 0u128;
        for copy in &copies {
            let end = begin + (1 << 64 >> copy.depth);
            let here = times_saved(std::slice::from_ref(copy), *item) == 1;
            let belongs = (begin..end).contains(&u128::from(item.0));
            assert_eq!(here, belongs, "an item is saved where it is not looked for");
            begin = end;
        }
        assert_eq!(begin, 1 << 64, "the copies do not make up the filter");
    }
    copies
}

fn save_all(grove: &Grove, (item, items): &(Mixed, usize)) {
    let saved: i64 = save(grove, &[*item]).iter().map(|copy| copy.items).sum();
    // A split finds out that eight are not there.
    assert_eq!(saved % 8, *items as i64 % 8, "a save counts other items than there are");
}

#[test]
fn an_item_is_saved_once_while_its_shard_is_split() {
    Model::blocking(120, 3).run_each::<Grove, (Mixed, usize), u64>(
        [1, 0],
        |grove, half| (in_whole(grove, half), grove.backend.items()),
        &[|grove, (item, _)| split_root(grove, item), save_all],
        |grove, (item, _)| there_once(grove, item),
    );
}

/// The shard has two entries in the directory, and is the first or the last one in a save.
#[test]
fn an_item_is_saved_once_while_its_shard_is_split_in_a_deep_directory() {
    Model::blocking(62, 3).run_each::<Grove, (Mixed, usize), u64>(
        [0b00, 0b01, 0b10, 0b11],
        |grove, bits| {
            grove.split(into_whole(grove, 0), ROOT);
            // The other half makes the directory deeper.
            let other = 1 - (bits >> 1);
            grove.split(into_whole(grove, other), half_of_root(other));
            let item = item(bits, 2);
            grove.put(item);
            (item, grove.backend.items())
        },
        &[
            |grove, (item, _)| {
                let split = grove.split_as_seen(*item, 2, half_of_root(item.0 >> 63));
                split.expect("a full shard was not split");
            },
            save_all,
        ],
        |grove, (item, _)| there_once(grove, item),
    );
}

/// A shard is split, and then one of its halves. The directory becomes deeper each time.
#[test]
fn an_item_is_saved_once_while_its_shard_is_split_twice() {
    Model::blocking(700, 3).in_short(1, 16).run_each::<Grove, Mixed, u64>(
        [0b00, 0b01, 0b10, 0b11],
        |grove, bits| {
            grove.put(item(bits, 2));
            item(bits, 2)
        },
        &[
            |grove, item| {
                split_root(grove, item);
                // Changes the count only: no item is inserted.
                grove.pretend(*item);
                grove.split(*item, half_of_root(item.0 >> 63));
            },
            |grove, item| _ = save(grove, &[*item]),
        ],
        there_once,
    );
}

/// Both shards are split while the save goes from one to the next.
#[test]
fn items_of_two_shards_are_saved_once_while_both_are_split() {
    Model::blocking(950, 3).in_short(2, 240).run::<Grove, [Mixed; 2]>(
        |grove| {
            let items = [item(0b01, 2), item(0b11, 2)];
            grove.pretend(items[0]);
            grove.split(items[0], ROOT);
            items.iter().for_each(|item| grove.put(*item));
            items
        },
        &[
            |grove, items| {
                items.iter().for_each(|item| grove.split(*item, half_of_root(item.0 >> 63)));
            },
            |grove, items| _ = save(grove, items),
        ],
        |grove, items| items.iter().for_each(|item| there_once(grove, item)),
    );
}

// From end to end.

type Filter = ConcurrentCuckooFilter<StableHash>;

impl World for Filter {
    fn of_shards(_: usize) -> Self {
        let builder = ConcurrentCuckooFilter::builder().capacity(1).growing();
        let builder = builder.false_positive_rate(2e-9).expected_growth(1.0);
        let filter = builder.hasher(StableHash::with_seed(7)).build().expect("a small filter");
        assert_eq!(filter.stats().slots, 16);
        filter
    }
}

/// Returns the number of items after which the next insert splits the shard.
fn items_before_a_split() -> u64 {
    let before = Arc::new(Number::new(0));
    let found = Arc::clone(&before);
    let mut alone = loom::model::Builder::new();
    alone.max_branches = 100_000;
    alone.check(move || {
        let filter = Filter::of_shards(1);
        let splits = |item: &u64| {
            filter.insert(item).expect("memory for a small table");
            filter.stats().splits > 0
        };
        found.store((0..).find(splits).expect("a filter grows"), Relaxed);
    });
    before.load(Relaxed)
}

/// While the filter is saved, an insert splits its only shard.
#[test]
fn what_is_loaded_is_what_was_in_when_the_save_began() {
    Model::blocking(34, 3).run_each::<Filter, u64, u64>(
        [items_before_a_split()],
        |filter, before| {
            (0..before).for_each(|item| filter.insert(&item).expect("there is room"));
            before
        },
        &[
            |filter, newcomer| filter.insert(newcomer).expect("memory for a small table"),
            |filter, newcomer| {
                let mut file = Vec::new();
                let report = filter.write_to(&mut file).expect("there is room");
                let loaded = Filter::read_from(&file[..]).expect("what was saved cannot be loaded");
                for item in 0..*newcomer {
                    assert_eq!(loaded.count(&item), 1, "a saved item is not loaded once");
                }
                let with_newcomer = *newcomer as usize + loaded.count(newcomer);
                assert_eq!(loaded.len(), with_newcomer, "loaded items are counted wrong");
                assert_eq!(loaded.len(), report.items, "a save reports other items than it saves");
            },
        ],
        |filter, newcomer| {
            assert_eq!((filter.len() as u64, filter.stats().splits), (newcomer + 1, 1));
        },
    );
}

fn are_in(copy: &Filter, items: u64) {
    assert_eq!(copy.len() as u64, items, "items are not in a copy once");
    assert!((0..items).all(|item| copy.count(&item) == 1), "items are not in a copy once");
}

/// Makes a copy of a filter of two shards, which are joined meanwhile, because its items would fit into one.
fn copy_and_join(copy: fn(&Filter, &u64)) {
    Model::blocking(9, 3).run_each::<Filter, u64, u64>(
        [items_before_a_split()],
        |filter, before| {
            (0..=before).for_each(|item| filter.insert(&item).expect("there is room"));
            (4..=before).for_each(|item| assert!(filter.remove(&item)));
            assert_eq!(filter.stats().splits, 1);
            4
        },
        &[|filter, _| _ = filter.shrink(), copy],
        |filter, items| are_in(filter, *items),
    );
}

#[test]
fn a_save_is_whole_while_shards_are_joined() {
    copy_and_join(|filter, items| {
        let mut file = Vec::new();
        filter.write_to(&mut file).expect("items are not in a copy once");
        are_in(&Filter::read_from(&file[..]).expect("a file"), *items);
    });
}

#[test]
fn a_clone_is_whole_while_shards_are_joined() {
    copy_and_join(|filter, items| are_in(&filter.try_clone().expect("memory"), *items));
}
