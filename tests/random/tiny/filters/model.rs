//! Compares random sequences of operations with an exact multiset, while the filter grows from one
//! shard to thousands and fingerprints become void.
//!
//! A filter may take one item for another, so it may contain an item that the multiset does not, or
//! count more copies. The opposite is an error. The shards are so small that one that is less than
//! half full may refuse an item; a refusal must change nothing.

use crate::common::{SplitMix, rounds};
use crate::small::{EXACT, Filter, Layout, layouts, loaded};
use koel::Full;
use koel_small::Prehashed;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::HashMap;

/// An operation. Items are numbers modulo the number of items in the test. The length of a run is a
/// percentage of the number of items, and each item of a run may be repeated.
#[derive(Clone, Copy, Debug)]
enum Op {
    Insert(u16),
    InsertIfAbsent(u16),
    Remove(u16),
    Clear,
    SaveAndLoad,
    Shrink,
    ShrinkPart(u64, usize),
    Run(Kind, Form, u16, u8, usize),
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Insert,
    InsertIfAbsent,
    Remove,
    Contains,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Single,
    Many,
    HashMany,
    ParMany,
    ParHashMany,
}

fn any_op() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![
        3 => Just(Kind::Insert),
        4 => Just(Kind::InsertIfAbsent),
        3 => Just(Kind::Remove),
        1 => Just(Kind::Contains),
    ];
    let form = prop_oneof![
        Just(Form::Single),
        Just(Form::Many),
        Just(Form::HashMany),
        Just(Form::ParMany),
        Just(Form::ParHashMany),
    ];
    let run = (kind, form, any::<u16>(), 0..=100u8, 1..=2usize);
    prop_oneof![
        20 => any::<u16>().prop_map(Op::Insert),
        20 => any::<u16>().prop_map(Op::InsertIfAbsent),
        20 => any::<u16>().prop_map(Op::Remove),
        1 => Just(Op::Clear),
        4 => Just(Op::SaveAndLoad),
        4 => Just(Op::Shrink),
        8 => (any::<u64>(), 0..20usize).prop_map(|(cursor, most)| Op::ShrinkPart(cursor, most)),
        25 => run.prop_map(|(kind, form, from, percent, times)| Op::Run(kind, form, from, percent, times)),
    ]
}

struct Pair {
    filter: Filter,
    layout: Layout,
    /// Whether all items can be told apart.
    exact: bool,
    /// Whether there may be void lanes.
    has_void: bool,
    items: u64,
    copies: HashMap<u64, usize>,
    len: usize,
    refused: usize,
}

impl Pair {
    fn new(layout: Layout, items: u64) -> Self {
        let exact = layout.bits == EXACT.bits && layout.words == EXACT.words;
        Pair {
            filter: layout.filter(),
            layout,
            exact,
            has_void: false,
            items,
            copies: HashMap::new(),
            len: 0,
            refused: 0,
        }
    }

    fn notice_void_lanes(&mut self) {
        self.has_void |= self.layout.may_have_void(&self.filter);
        self.exact &= !self.has_void;
    }

    fn check_len(&self) {
        let counted = self.filter.len();
        assert!(counted == self.len || self.has_void && counted < self.len, "{counted}");
        assert_eq!(self.filter.is_empty(), counted == 0);
    }

    fn copies(&self, item: u64) -> usize {
        self.copies.get(&item).copied().unwrap_or(0)
    }

    fn apply(&mut self, op: Op) {
        let item = |number: u16| vec![u64::from(number) % self.items];
        match op {
            Op::Insert(number) => self.insert(Form::Single, &item(number)),
            Op::InsertIfAbsent(number) => self.insert_if_absent(Form::Single, &item(number)),
            Op::Remove(number) => self.remove(Form::Single, item(number)),
            Op::Clear => {
                self.filter.clear();
                self.copies.clear();
                self.len = 0;
            }
            Op::SaveAndLoad => {
                let before = self.filter.stats();
                self.filter = loaded(&self.filter);
                let after = self.filter.stats();
                // One that is mostly empty shrinks.
                assert!(after.splits <= before.splits);
                assert!(after.directory_depth <= before.directory_depth);
            }
            Op::Shrink => {
                let before = self.filter.stats();
                let given_back = self.filter.shrink();
                let after = self.filter.stats();
                let less = before.size_in_bytes.saturating_sub(after.size_in_bytes);
                assert_eq!(given_back, less);
                assert!(after.splits <= before.splits);
                // Shards with void lanes stay.
                if self.len == 0 && after.false_positive_rate == 0.0 {
                    assert_eq!(after.splits, 0);
                }
            }
            Op::ShrinkPart(cursor, shards) => _ = self.filter.shrink_part(cursor, shards),
            Op::Run(kind, form, from, percent, times) => {
                let length = self.items * u64::from(percent) / 100;
                let steps = (0..length).flat_map(|step| vec![step; times]);
                let run: Vec<u64> =
                    steps.map(|step| (u64::from(from) + step) % self.items).collect();
                match kind {
                    Kind::Insert => self.insert(form, &run),
                    Kind::InsertIfAbsent => self.insert_if_absent(form, &run),
                    Kind::Remove => self.remove(form, run),
                    Kind::Contains => self.check_contains(form, &run),
                }
            }
        }
        self.notice_void_lanes();
        self.check_len();
        if self.items < 1_000 || matches!(op, Op::Run(..) | Op::SaveAndLoad | Op::Shrink) {
            self.check_all();
        }
    }

    fn hashes(&self, items: &[u64]) -> Vec<Prehashed> {
        items.iter().map(|item| self.filter.hash_of(item)).collect()
    }

    fn insert(&mut self, form: Form, items: &[u64]) {
        let filter = &self.filter;
        let answers: Vec<Result<(), Full>> = match form {
            Form::Single => items.iter().map(|item| filter.insert(item)).collect(),
            Form::Many => filter.insert_many(items),
            Form::HashMany => filter.insert_many(&self.hashes(items)),
            Form::ParMany => filter.par_insert_many(items),
            Form::ParHashMany => filter.par_insert_many(&self.hashes(items)),
        };
        for (&item, answer) in items.iter().zip(answers) {
            match answer {
                Ok(()) => self.added(item),
                Err(_) => self.refused += 1,
            }
        }
    }

    fn insert_if_absent(&mut self, form: Form, items: &[u64]) {
        let filter = &self.filter;
        let answers: Vec<Result<bool, Full>> = match form {
            Form::Single => items.iter().map(|item| filter.insert_if_absent(item)).collect(),
            Form::Many => filter.insert_if_absent_many(items),
            Form::HashMany => filter.insert_if_absent_many(&self.hashes(items)),
            Form::ParMany => filter.par_insert_if_absent_many(items),
            Form::ParHashMany => filter.par_insert_if_absent_many(&self.hashes(items)),
        };
        for (&item, answer) in items.iter().zip(answers) {
            let copies = self.copies(item);
            match answer {
                Ok(true) => {
                    assert_eq!(copies, 0, "{item} was reported as new, but was inserted before");
                    self.added(item);
                }
                Ok(false) => {
                    assert!(
                        self.filter.contains(&item),
                        "{item} was reported as present, but is absent"
                    );
                    let is_exact = self.exact && !self.layout.may_have_void(&self.filter);
                    assert!(copies > 0 || !is_exact, "{item} was never inserted");
                }
                Err(_) => {
                    assert_eq!(copies, 0, "{item} was refused, but is present");
                    self.refused += 1;
                }
            }
        }
    }

    /// Inserts until the directory has this depth, in case the random operations did not reach it.
    fn grow(&mut self, depth: u32) {
        let mut items = (0..self.items).cycle().take(8 * self.items as usize);
        while self.filter.stats().directory_depth < depth {
            let item = items.next().expect("eight copies of every item make it grow");
            self.insert(Form::Single, &[item]);
        }
        self.notice_void_lanes();
        self.check_all();
    }

    fn added(&mut self, item: u64) {
        *self.copies.entry(item).or_default() += 1;
        self.len += 1;
    }

    /// Removes those of the items that were inserted, each at most as often as it was inserted.
    fn remove(&mut self, form: Form, mut items: Vec<u64>) {
        let (copies, len) = (&mut self.copies, &mut self.len);
        items.retain(|item| {
            let Some(left) = copies.get_mut(item) else { return false };
            *left -= 1;
            *len -= 1;
            if *left == 0 {
                copies.remove(item);
            }
            true
        });
        let filter = &self.filter;
        let removed: Vec<bool> = match form {
            Form::Single => items.iter().map(|item| filter.remove(item)).collect(),
            Form::Many => filter.remove_many(&items),
            Form::HashMany => filter.remove_many(&self.hashes(&items)),
            Form::ParMany => filter.par_remove_many(&items),
            Form::ParHashMany => filter.par_remove_many(&self.hashes(&items)),
        };
        for (item, removed) in items.iter().zip(removed) {
            assert!(removed || self.has_void, "{item} is present, but was not removed");
        }
    }

    fn check_contains(&self, form: Form, items: &[u64]) {
        let filter = &self.filter;
        let found: Vec<bool> = match form {
            Form::Single => items.iter().map(|item| filter.contains(item)).collect(),
            Form::Many => filter.contains_many(items),
            Form::HashMany => filter.contains_many(&self.hashes(items)),
            Form::ParMany => filter.par_contains_many(items),
            Form::ParHashMany => filter.par_contains_many(&self.hashes(items)),
        };
        for (&item, found) in items.iter().zip(found) {
            assert_eq!(found, filter.contains(&item));
            assert!(found || self.copies(item) == 0, "{item} is absent");
        }
    }

    fn check_all(&self) {
        for item in 0..self.items {
            let (counted, copies) = (self.filter.count(&item), self.copies(item));
            assert!(counted >= copies, "{counted} of {copies} copies of {item}");
            assert!(counted == copies || !self.exact, "{counted} for {copies} copies of {item}");
            assert_eq!(self.filter.contains(&item), counted > 0, "{item}");
        }
    }

    /// Removes all inserted items, in any order.
    fn drain(&mut self) {
        for (item, copies) in std::mem::take(&mut self.copies) {
            for _ in 0..copies {
                let removed = self.filter.remove(&item);
                assert!(removed || self.has_void, "{item} is present, but was not removed");
            }
        }
        assert!(self.filter.is_empty());
        self.notice_void_lanes();
        assert!(!self.exact || (0..self.items).all(|item| !self.filter.contains(&item)));
    }
}

fn check(layout: Layout, items: u64, cases: u32, ops: usize, depth: u32) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let ops = prop::collection::vec(any_op(), ops);
    let result = TestRunner::new(config).run(&ops, |ops| {
        let mut pair = Pair::new(layout, items);
        let (before, after) = ops.split_at(ops.len() / 2);
        before.iter().for_each(|&op| pair.apply(op));
        pair.grow(depth);
        after.iter().for_each(|&op| pair.apply(op));
        pair.drain();
        Ok(())
    });
    if let Err(error) = result {
        panic!("{layout:?}, {items} items: {error}");
    }
}

#[test]
fn a_filter_that_grows_agrees_with_a_multiset() {
    for &layout in layouts() {
        check(layout, 300, rounds(3, 12), 60, 2);
        check(layout, 2_000, rounds(1, 6), 40, 4);
        check(layout, 20_000, rounds(1, 2), rounds(8, 16), 8);
    }
}

/// Few items, with so many copies that their buckets are full.
#[test]
fn a_filter_that_grows_agrees_with_a_multiset_of_many_copies() {
    for &layout in layouts() {
        for items in [1, 3, 9, 40] {
            check(layout, items, rounds(4, 24), 120, 0);
        }
    }
}

/// Neither a split nor a refused insert changes an answer: the count of every item stays the same.
#[test]
fn growing_and_refusing_change_no_answer() {
    for &layout in layouts() {
        let filter = layout.filter();
        let items = 40 * layout.slots() as u64;
        let mut random = SplitMix(1);
        let (mut refused, mut splits) = (0, 0);
        let all = || (0..items).map(|item| filter.count(&item)).collect::<Vec<_>>();
        for _ in 0..rounds(1_000, 3_000) {
            let item = random.below(items as usize).min(random.below(items as usize)) as u64;
            let (before, len, splits_before) = (all(), filter.len(), filter.stats().splits);
            let outcome = filter.insert(&item);
            let grown = filter.stats().splits > splits_before;
            splits += usize::from(grown);
            if outcome.is_err() {
                refused += 1;
                assert_eq!((all(), filter.len()), (before, len), "{layout:?}, {item}");
            } else if grown {
                for (now, before) in all().into_iter().zip(before) {
                    assert!(now == before || now == before + 1, "{layout:?}");
                }
            }
        }
        assert!(refused > 0 && splits > 3, "{layout:?}: {refused} refused, {splits} splits");
    }
}
