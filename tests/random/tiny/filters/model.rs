//! Filters agree with an exact multiset while they grow from one shard to thousands and fingerprints become void. The
//! shards are so small that one that is less than half full may refuse an item; a refusal must change nothing.

use crate::common::rounds;
use crate::multiset::{Pair, check};
use crate::small::{EXACT, Layout, Tiny, layouts};

fn pair(layout: Layout, items: u64) -> Pair {
    let exact = layout.bits == EXACT.bits && layout.words == EXACT.words;
    Pair::new(layout.tiny(), exact, items).with_void(move |filter| layout.may_have_void(filter))
}

#[test]
fn a_filter_that_grows_agrees_with_a_multiset() {
    for &layout in layouts() {
        check(rounds(3, 12), 60, 2, || pair(layout, 300));
        check(rounds(1, 6), 40, 4, || pair(layout, 2_000));
        check(rounds(1, 2), rounds(8, 16), 8, || pair(layout, 20_000));
    }
}

/// Few items, with so many copies that their buckets are full.
#[test]
fn a_filter_that_grows_agrees_with_a_multiset_of_many_copies() {
    for &layout in layouts() {
        for items in [1, 3, 9, 40] {
            check(rounds(4, 24), 120, 0, || pair(layout, items));
        }
    }
}
