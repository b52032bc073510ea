//! Filters of fixed size agree with an exact multiset.

#[path = "../common/mod.rs"]
mod common;
mod model;

use common::{Layout, layouts, rounds};
use model::{Pair, check};

fn capacities() -> &'static [usize] {
    rounds(&[1, 3, 37, 500], &[1, 2, 3, 10, 37, 100, 500, 1_000, 5_000])
}

fn pair(layout: &Layout, capacity: usize, items: usize) -> Pair {
    let filter = layout.filter(capacity);
    Pair::new(filter, layout.is_exact(), items as u64).with_room(capacity)
}

/// Somewhat more items than slots, mostly once each.
#[test]
fn a_filter_agrees_with_a_multiset() {
    for layout in layouts() {
        for &capacity in capacities() {
            let cases = if capacity < 500 { rounds(2, 24) } else { rounds(1, 6) };
            let items = layout.filter(capacity).stats().slots * 11 / 10;
            check(cases, 1..200, 0, || pair(layout, capacity, items));
        }
    }
}

/// A few items, with so many copies that their buckets are full.
#[test]
fn a_filter_agrees_with_a_multiset_of_many_copies() {
    for layout in layouts() {
        for &capacity in capacities() {
            for (items, cases) in [(1, rounds(2, 4)), (3, rounds(2, 12)), (9, rounds(2, 12))] {
                check(cases, 1..200, 0, || pair(layout, capacity, items));
            }
        }
    }
}
