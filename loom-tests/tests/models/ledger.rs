//! Removals from a filter with lanes that stand for no item.

use crate::grove::{Grove, ROOT, item};
use crate::toy::Model;
use koel_under_loom::internals::Shards;
use koel_under_loom::internals::{Bucket, Fingerprint, Mixed, act};

/// Splits a shard with two items and six exhausted lanes, which go to both halves and stand for no item. Each half
/// has an item then.
fn leftovers(grove: &Grove) -> [Mixed; 2] {
    let items = [item(0, 1), item(1, 1)];
    items.iter().for_each(|item| grove.fill(*item));
    let (shard, _) = grove.shard(items[0]);
    let mut exhausted = (1..7).map(|anchor| Fingerprint::new(anchor << 16 | 1 << 15).unwrap());
    for bucket in shard.buckets() {
        let locked = shard.lock_one(bucket).unwrap();
        while !shard.lanes().empty(shard.read(bucket)).is_empty() {
            let Some(fp) = exhausted.next() else { break };
            assert!(shard.fill_locked(&locked, bucket, fp));
        }
    }
    assert_eq!(exhausted.next(), None);
    grove.split(items[0], ROOT);
    items
}

/// Fills a lane of the item's shard, with a fingerprint without bits that the item matches. It is not counted.
fn fill_without_bits(grove: &Grove, item: Mixed, bucket: Bucket) {
    let (shard, place) = grove.shard(item);
    let exhausted = place.fp.head() & 0xFFFF_0000 | 1 << 15;
    let locked = shard.lock_one(bucket).unwrap();
    assert!(shard.fill_locked(&locked, bucket, Fingerprint::new(exhausted).unwrap()));
    shard.add_items(&locked, bucket, -1);
}

fn take(grove: &Grove, item: Mixed) {
    assert!(act(&grove.room, item, Shards::remove), "a present item was not removed");
}

/// The same without the second item.
fn with_one_item(grove: &Grove) -> [Mixed; 2] {
    let items = leftovers(grove);
    take(grove, items[1]);
    items
}

fn nothing_is_left(grove: &Grove, items: &[Mixed; 2]) {
    assert_eq!(grove.room.items(), 0, "items are counted that were removed");
    for item in items {
        let (shard, _) = grove.shard(*item);
        let words = (0..8).map(|bucket| shard.read(Bucket(bucket)));
        assert_eq!(words.filter(|word| *word != 0).count(), 0, "lanes are left over");
    }
}

/// Each removal is the last of its shard. The later one of them clears both shards.
#[test]
fn the_last_of_two_removals_clears_what_is_left_over() {
    Model::new("two last removals", 40).blocking().preemptions(4).run_in::<Grove, [Mixed; 2]>(
        leftovers,
        &[|grove, items| take(grove, items[0]), |grove, items| take(grove, items[1])],
        nothing_is_left,
    );
}

twins! { the_last_of_two_removals_clears_what_is_left_over:
    "lanes are left over" => [a_last_removal_does_not_see_the_other],
}

/// The last item goes, and the filter is cleared, while another comes.
#[test]
fn what_comes_while_the_filter_is_cleared_stays() {
    Model::new("last removal and insert", 40)
        .blocking()
        .preemptions(2)
        .run_in::<Grove, [Mixed; 2]>(
            with_one_item,
            &[
                |grove, items| take(grove, items[0]),
                |grove, items| act(&grove.room, items[1], Shards::insert).expect("room"),
            ],
            |grove, items| {
                assert_eq!(grove.copies(items[1]), 1, "an item went with what was left over");
                assert_eq!((grove.copies(items[0]), grove.room.items()), (0, 1));
            },
        );
}

twins! { what_comes_while_the_filter_is_cleared_stays:
    "an item went with what was left over" => [what_has_come_is_erased_with_what_is_left_over],
}

/// The last item goes, while another comes to be in a exhausted lane.
#[test]
fn an_item_without_bits_is_not_left_over() {
    Model::new("last removal and last bit", 15)
        .blocking()
        .preemptions(2)
        .run_in::<Grove, [Mixed; 2]>(
            with_one_item,
            &[
                |grove, items| take(grove, items[0]),
                |grove, items| {
                    // The ledger is no event to loom. This makes it try what comes before the removal, and after it.
                    drop(grove.shard(items[0]).0.lock(grove.shard(items[0]).1));
                    grove.room.as_in_a_split(|| {
                        let (_, place) = grove.shard(items[1]);
                        grove.room.put_on_the_ledger(1, 0, 1);
                        fill_without_bits(grove, items[1], place.first);
                    });
                },
            ],
            |grove, items| {
                assert_eq!(grove.copies(items[1]), 1, "an item went with what was left over");
                assert_eq!((grove.copies(items[0]), grove.room.items()), (0, 1));
            },
        );
}

twins! { an_item_without_bits_is_not_left_over:
    "an item went with what was left over" => [
        used_up_lanes_are_erased_without_a_look_at_the_ledger,
    ],
}

/// A split takes the last bit of an item, which is removed at the same time.
#[test]
fn an_item_that_loses_its_last_bit_is_removed() {
    Model::new("removal and last bit", 40).blocking().preemptions(2).run_in::<Grove, Mixed>(
        |grove: &Grove| {
            let item = item(1, 1);
            let (shard, place) = grove.shard(item);
            let window = 1 << 16;
            let first_bit = place.fp.head() & (window / 2);
            let fp = place.fp.head() & !(window - 1) | first_bit | (window / 4);
            let locked = shard.lock_one(place.first).unwrap();
            assert!(shard.fill_locked(&locked, place.first, Fingerprint::new(fp).unwrap()));
            drop(locked);
            grove.pretend(item);
            item
        },
        &[
            |grove, item| grove.split(*item, ROOT),
            |grove, item| {
                let removed = act(&grove.room, *item, Shards::remove);
                assert!(removed, "an item without bits was not removed");
            },
        ],
        |grove, item| assert_eq!((grove.copies(*item), grove.room.items()), (0, 0)),
    );
}

twins! { an_item_that_loses_its_last_bit_is_removed:
    "an item without bits was not removed" => [a_lane_without_bits_is_not_put_on_the_ledger],
}

/// An item and a lane that is left over from another one, which the item matches too.
#[test]
fn what_is_left_over_is_not_removed() {
    Model::new("removals of an item and what is left over", 20)
        .blocking()
        .preemptions(2)
        .run_in::<Grove, [Mixed; 2]>(
            |grove: &Grove| {
                let (removed, other) = (item(0, 1), item(1, 1));
                grove.fill(other);
                let (_, place) = grove.shard(removed);
                let both = [place.first, place.second];
                both.iter().for_each(|bucket| fill_without_bits(grove, removed, *bucket));
                grove.room.put_on_the_ledger(0, 0, 1);
                [removed, other]
            },
            &[
                |grove, items| _ = act(&grove.room, items[0], Shards::remove),
                |grove, items| _ = act(&grove.room, items[0], Shards::remove),
            ],
            |grove, items| {
                assert_eq!(grove.copies(items[0]), 1, "a lane was removed that is left over");
                assert_eq!((grove.copies(items[1]), grove.room.items()), (1, 1));
            },
        );
}

twins! { what_is_left_over_is_not_removed:
    "a lane was removed that is left over" => [a_lane_that_is_left_over_is_removed],
}
