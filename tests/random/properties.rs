//! Compares random sequences of operations with an exact multiset.
//!
//! A filter may take one item for another, so it may contain an item that the multiset does not, or
//! count more copies. The opposite is an error. With 21 bits and more, the filter tells these few
//! items apart, so it has to agree exactly.

#[path = "../common/mod.rs"]
mod common;

use common::{Filter, Layout, layouts, rounds};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::HashMap;

fn capacities() -> &'static [usize] {
    rounds(&[1, 3, 37, 500], &[1, 2, 3, 10, 37, 100, 500, 1_000, 5_000])
}

/// An operation. Items are numbers modulo the number of items in the test. The length of a run is a
/// percentage of the number of items.
#[derive(Clone, Copy, Debug)]
enum Op {
    Insert(u16),
    InsertIfAbsent(u16),
    Remove(u16),
    Contains(u16),
    Count(u16),
    Len,
    Clear,
    InsertRun(u16, u8),
    InsertIfAbsentRun(u16, u8),
    RemoveRun(u16, u8),
}

fn any_op() -> impl Strategy<Value = Op> {
    let run = || (any::<u16>(), 0..=100u8);
    prop_oneof![
        20 => any::<u16>().prop_map(Op::Insert),
        20 => any::<u16>().prop_map(Op::InsertIfAbsent),
        20 => any::<u16>().prop_map(Op::Remove),
        10 => any::<u16>().prop_map(Op::Contains),
        10 => any::<u16>().prop_map(Op::Count),
        5 => Just(Op::Len),
        1 => Just(Op::Clear),
        3 => run().prop_map(|(from, percent)| Op::InsertRun(from, percent)),
        8 => run().prop_map(|(from, percent)| Op::InsertIfAbsentRun(from, percent)),
        4 => run().prop_map(|(from, percent)| Op::RemoveRun(from, percent)),
    ]
}

struct Pair {
    filter: Filter,
    exact: bool,
    items: u64,
    copies: HashMap<u64, usize>,
    len: usize,
}

impl Pair {
    fn new(layout: &Layout, capacity: usize, items: usize) -> Self {
        Pair {
            filter: layout.filter(capacity),
            exact: layout.is_exact(),
            items: items as u64,
            copies: HashMap::new(),
            len: 0,
        }
    }

    fn item(&self, number: u16) -> u64 {
        u64::from(number) % self.items
    }

    fn run(&self, from: u16, percent: u8) -> impl Iterator<Item = u64> + use<> {
        let items = self.items;
        let length = items * u64::from(percent) / 100;
        (0..length).map(move |step| (u64::from(from) + step) % items)
    }

    fn copies(&self, item: u64) -> usize {
        self.copies.get(&item).copied().unwrap_or(0)
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Insert(number) => self.insert(self.item(number)),
            Op::InsertIfAbsent(number) => self.insert_if_absent(self.item(number)),
            Op::Remove(number) => self.remove(self.item(number)),
            Op::Contains(number) => self.check_contains(self.item(number)),
            Op::Count(number) => self.check_count(self.item(number)),
            Op::Len => {}
            Op::Clear => self.clear(),
            Op::InsertRun(from, percent) => {
                self.run(from, percent).for_each(|item| self.insert(item));
            }
            Op::InsertIfAbsentRun(from, percent) => {
                self.run(from, percent).for_each(|item| self.insert_if_absent(item));
            }
            Op::RemoveRun(from, percent) => {
                self.run(from, percent).for_each(|item| self.remove(item));
            }
        }
        assert_eq!(self.filter.len(), self.len);
        assert_eq!(self.filter.is_empty(), self.len == 0);
    }

    fn insert(&mut self, item: u64) {
        match self.filter.insert(&item) {
            Ok(()) => self.added(item),
            Err(_) => self.check_refusal(item),
        }
    }

    fn insert_if_absent(&mut self, item: u64) {
        match self.filter.insert_if_absent(&item) {
            Ok(true) => {
                assert_eq!(
                    self.copies(item),
                    0,
                    "{item} was reported as new, but was inserted before"
                );
                self.added(item);
            }
            Ok(false) if self.exact => {
                assert!(self.copies(item) > 0, "{item} was reported as present, but is absent");
            }
            Ok(false) => {}
            Err(_) => {
                assert_eq!(self.copies(item), 0, "{item} was refused, but is present");
                self.check_refusal(item);
            }
        }
    }

    fn added(&mut self, item: u64) {
        *self.copies.entry(item).or_default() += 1;
        self.len += 1;
        assert!(self.filter.contains(&item), "{item} was inserted, but is absent");
    }

    /// Distinct items fit up to the capacity; copies may be refused earlier.
    fn check_refusal(&self, item: u64) {
        let distinct = self.copies(item) == 0 && self.copies.values().all(|&copies| copies <= 1);
        assert!(
            !distinct || self.len >= self.filter.capacity(),
            "{item} was refused beside {} distinct items",
            self.len
        );
        assert_eq!(self.filter.len(), self.len);
        self.check_contains(item);
    }

    fn remove(&mut self, item: u64) {
        let Some(copies) = self.copies.get_mut(&item) else { return };
        *copies -= 1;
        if *copies == 0 {
            self.copies.remove(&item);
        }
        self.len -= 1;
        assert!(self.filter.remove(&item), "{item} is present, but was not removed");
    }

    fn clear(&mut self) {
        self.filter.clear();
        self.copies.clear();
        self.len = 0;
    }

    fn check_contains(&self, item: u64) {
        let (found, inserted) = (self.filter.contains(&item), self.copies(item) > 0);
        assert!(found || !inserted, "{item} is absent");
        assert!(found == inserted || !self.exact, "{item} was never inserted");
    }

    fn check_count(&self, item: u64) {
        let (counted, copies) = (self.filter.count(&item), self.copies(item));
        assert!(counted >= copies, "{counted} of {copies} copies of {item}");
        assert!(counted == copies || !self.exact, "{counted} for {copies} copies of {item}");
    }

    fn check_all(&self) {
        for item in 0..self.items {
            self.check_contains(item);
            self.check_count(item);
        }
    }

    /// Removes all inserted items, and checks that nothing is left.
    fn drain(&mut self) {
        for (item, copies) in std::mem::take(&mut self.copies) {
            for _ in 0..copies {
                assert!(self.filter.remove(&item), "{item} is present, but was not removed");
            }
        }
        assert!(self.filter.is_empty());
        assert!((0..self.items).all(|item| !self.filter.contains(&item)));
    }
}

/// Runs random sequences of operations with `items` different items on a filter of this capacity.
fn check(layout: &Layout, capacity: usize, items: usize, cases: u32) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let ops = prop::collection::vec(any_op(), 1..200);
    let result = TestRunner::new(config).run(&ops, |ops| {
        let mut pair = Pair::new(layout, capacity, items);
        ops.into_iter().for_each(|op| pair.apply(op));
        pair.check_all();
        pair.drain();
        Ok(())
    });
    if let Err(error) = result {
        panic!("{layout:?}, capacity {capacity}, {items} items: {error}");
    }
}

/// Somewhat more items than slots, mostly once each.
#[test]
fn a_filter_agrees_with_a_multiset() {
    for layout in layouts() {
        for &capacity in capacities() {
            let cases = if capacity < 500 { rounds(2, 24) } else { rounds(1, 6) };
            let slots = layout.filter(capacity).stats().slots;
            check(layout, capacity, slots * 11 / 10, cases);
        }
    }
}

/// A few items, with so many copies that their buckets are full.
#[test]
fn a_filter_agrees_with_a_multiset_of_many_copies() {
    for layout in layouts() {
        for &capacity in capacities() {
            check(layout, capacity, 1, rounds(2, 4));
            check(layout, capacity, 3, rounds(2, 12));
            check(layout, capacity, 9, rounds(2, 12));
        }
    }
}

/// With few items, many copies and tables that are full to the last lane, a refused insert changes
/// the count of no item.
#[test]
fn a_refused_insert_changes_no_answer() {
    for layout in layouts() {
        for &capacity in rounds(&[1, 3, 37][..], &[1, 2, 3, 10, 37, 100]) {
            let filter = layout.filter(capacity);
            let items = 4 * capacity as u64 + 20;
            let all = || (0..items).map(|item| filter.count(&item)).collect::<Vec<_>>();
            let mut random = common::SplitMix(capacity as u64);
            let mut refused = 0;
            for round in 0..rounds(2, 10) * items {
                // The lower of two random numbers, so that low items are frequent.
                let item = random.below(items as usize).min(random.below(items as usize)) as u64;
                let before = (all(), filter.len());
                let outcome = if round % 2 == 0 {
                    filter.insert(&item)
                } else {
                    filter.insert_if_absent(&item).map(drop)
                };
                if outcome.is_err() {
                    refused += 1;
                    assert_eq!((all(), filter.len()), before, "{layout:?}, capacity {capacity}");
                }
            }
            assert!(refused > 0, "{layout:?}, capacity {capacity}: nothing was refused");
        }
    }
}
