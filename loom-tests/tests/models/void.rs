//! Items whose lanes have no bits left.

use crate::grove::{Grove, ROOT, item, split_root};
use crate::toy::Model;
use koel_under_loom::internals::Mixed;

/// Fills a lane of the item with one bit left, in a shard that counts as half full.
fn with_one_bit(grove: &Grove) -> Mixed {
    let item = item(1, 1);
    grove.fill_with_bits(item, grove.shard(item).1.first, 1);
    grove.pretend(item);
    item
}

/// A split takes the last bit of an item, which is removed at the same time.
#[test]
fn an_item_that_loses_its_last_bit_is_removed() {
    let remove: fn(&Grove, &Mixed) = |grove, item| {
        assert!(grove.remove(*item), "an item without bits was not removed");
    };
    Model::blocking(40, 2).run(with_one_bit, &[split_root, remove], |grove, _| {
        assert_eq!(grove.backend.items(), 0, "items are counted wrong");
    });
}

/// Two lanes that stand for one item, which two threads remove.
#[test]
fn a_void_item_is_removed_once() {
    let remove: fn(&Grove, &Mixed) = |grove, item| assert!(grove.remove(*item));
    Model::blocking(8, 2).run(
        |grove: &Grove| {
            let item = item(0, 1);
            let (_, place) = grove.shard(item);
            for bucket in [place.first, place.second] {
                grove.fill_with_bits(item, bucket, 0);
            }
            // One for each thread, and one to be left: what they take is counted in the number.
            grove.room().add_void_items(3);
            item
        },
        &[remove, remove],
        |grove, item| {
            assert_eq!(grove.backend.items(), 1, "items are counted wrong");
            assert!(grove.remove(*item), "an item was not removed");
            assert!(!grove.remove(*item), "more void items were removed than there were");
        },
    );
}

/// While the filter is cleared, an item comes and loses its last bit.
#[test]
fn an_item_that_loses_its_last_bit_after_a_clear_is_counted() {
    Model::blocking(20, 3).run::<Grove, Mixed>(
        |_| item(1, 1),
        &[
            |grove, _| grove.backend.clear(),
            |grove, _| {
                let item = with_one_bit(grove);
                // The clear may have taken the item away.
                let _ = grove.split_as_seen(item, 0, ROOT);
            },
        ],
        |grove, item| {
            let (copies, counted) = (grove.copies(*item), grove.backend.items() % 8);
            assert_eq!(copies, counted, "a void item is not counted, or counted and not there");
        },
    );
}
