//! Removals from a filter with lanes that stand for no item.

use crate::grove::{Grove, ROOT, item, place};
use crate::toy::Model;
use koel_under_loom::internals::Shards;
use koel_under_loom::internals::{Bucket, Fingerprint, Insert, Mixed, Remove, act};

/// Splits a shard with two items and six used-up lanes, which go to both halves. Each half has an
/// item then, and its accounts have what `accounts` says.
fn leftovers(grove: &Grove, accounts: [i64; 2]) -> [Mixed; 2] {
    let items = [item(0, 1), item(1, 1)];
    items.iter().for_each(|item| grove.fill(*item));
    let (shard, _) = grove.shard(items[0]);
    let mut used_up = (1..7).map(|anchor| Fingerprint::new(anchor << 16 | 1 << 15).unwrap());
    for bucket in shard.buckets() {
        let locked = shard.lock_one(bucket).unwrap();
        while !shard.lanes().empty(shard.read(bucket)).is_empty() {
            let Some(fp) = used_up.next() else { break };
            assert!(shard.fill_locked(&locked, bucket, fp));
        }
    }
    assert_eq!(used_up.next(), None);
    grove.split(items[0], ROOT);
    for (item, account) in items.iter().zip(accounts) {
        let (shard, _) = grove.shard(*item);
        let locked = shard.lock_all().unwrap();
        shard.share_out(&locked, account, place(*item, 0).first);
    }
    items
}

fn take(grove: &Grove, item: Mixed) {
    assert!(act::<Remove, _>(&grove.room, item), "a present item was not removed");
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
    Model::new("two last removals", 40).blocking().preemptions(2).run_in::<Grove, [Mixed; 2]>(
        |grove: &Grove| leftovers(grove, [1, 1]),
        &[|grove, items| take(grove, items[0]), |grove, items| take(grove, items[1])],
        nothing_is_left,
    );
}

twins! { the_last_of_two_removals_clears_what_is_left_over:
    "lanes are left over" => [a_last_removal_does_not_see_the_other],
}

/// One shard has nothing to pay with, and the other shard has what both need.
#[test]
fn an_item_is_removed_while_another_shard_pays() {
    Model::new("paid removal", 40)
        .blocking()
        .preemptions(2)
        .in_short(1, 8)
        .run_in::<Grove, [Mixed; 2]>(
            |grove: &Grove| leftovers(grove, [0, 2]),
            &[|grove, items| take(grove, items[0]), |grove, items| take(grove, items[1])],
            nothing_is_left,
        );
}

/// The last item goes, and the filter is cleared, while another comes.
#[test]
fn what_comes_while_the_filter_is_cleared_stays() {
    Model::new("last removal and insert", 40)
        .blocking()
        .preemptions(2)
        .run_in::<Grove, [Mixed; 2]>(
            |grove: &Grove| {
                let items = leftovers(grove, [1, 1]);
                take(grove, items[1]);
                items
            },
            &[
                |grove, items| take(grove, items[0]),
                |grove, items| act::<Insert, _>(&grove.room, items[1]).expect("room"),
            ],
            |grove, items| {
                assert_eq!(grove.copies(items[1]), 1, "an item went with what was left over");
                assert_eq!((grove.copies(items[0]), grove.room.items()), (0, 1));
            },
        );
}

twins! { what_comes_while_the_filter_is_cleared_stays:
    "an item went with what was left over" => [a_shard_is_cleared_without_a_look_at_its_items],
}
