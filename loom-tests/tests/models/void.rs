//! Items whose lanes have no bits left.

use crate::grove::{Grove, items_in, split_root};
use crate::toy::Model;
use koel_under_loom::internals::Mixed;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A split takes the last bit of an item, which is removed at the same time: before that, or not at all.
#[test]
fn an_item_that_loses_its_last_bit_is_removed_or_stays() {
    Model::blocking(40, 2).run::<Grove, (Mixed, Arc<AtomicBool>)>(
        |grove| {
            let mut items = items_in::<false>(1, 1);
            let mut next = || items.next().unwrap();
            let (item, other) = (next(), next());
            grove.fill_with_bits(item, grove.shard(item).1.first, 1);
            grove.put(other);
            (item, Arc::default())
        },
        &[
            |grove, (item, _)| split_root(grove, item),
            |grove, (item, is_gone)| is_gone.store(grove.remove(*item), Relaxed),
        ],
        |grove, (item, is_gone)| {
            let left = usize::from(!is_gone.load(Relaxed));
            assert_eq!(grove.copies(*item), left, "an item is lost, or was not removed");
            assert_eq!(grove.backend.items(), 1, "a void item is counted, or another one is not");
            assert!(!grove.remove(*item), "a void item was removed");
        },
    );
}
