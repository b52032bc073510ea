//! Compares random sequences of operations with an exact multiset.
//!
//! A filter may take one item for another, so it may contain an item that the multiset does not, or
//! count more copies. The opposite is an error. With long fingerprints, it tells these few items apart,
//! so it has to agree exactly.

// Each test program uses only a part of this.
#![allow(dead_code)]

use crate::common::{Filter, loaded};
use koel::Prehashed;
use proptest::collection::SizeRange;
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

/// A filter and what is in it.
pub struct Pair {
    filter: Filter,
    /// Whether all items can be told apart.
    exact: bool,
    /// Tells whether there may be void lanes.
    may_have_void: Box<dyn Fn(&Filter) -> bool>,
    has_void: bool,
    /// So many items are not refused, if each is there once.
    room: usize,
    items: u64,
    copies: HashMap<u64, usize>,
    len: usize,
}

/// The answers of an operation in this form.
macro_rules! in_form {
    ($pair:ident, $form:expr, $items:expr, $one:ident $many:ident $par:ident) => {
        match $form {
            Form::Single => $items.iter().map(|item| $pair.filter.$one(item)).collect::<Vec<_>>(),
            Form::Many => $pair.filter.$many($items),
            Form::HashMany => $pair.filter.$many(&$pair.hashes($items)),
            Form::ParMany => $pair.filter.$par($items),
            Form::ParHashMany => $pair.filter.$par(&$pair.hashes($items)),
        }
    };
}

impl Pair {
    pub fn new(filter: Filter, exact: bool, items: u64) -> Self {
        let may_have_void = Box::new(|_: &Filter| false);
        let copies = HashMap::new();
        Pair { filter, exact, may_have_void, has_void: false, room: 0, items, copies, len: 0 }
    }

    pub fn with_room(self, room: usize) -> Self {
        Pair { room, ..self }
    }

    pub fn with_void(self, may_have_void: impl Fn(&Filter) -> bool + 'static) -> Self {
        Pair { may_have_void: Box::new(may_have_void), ..self }
    }

    fn notice_void_lanes(&mut self) {
        self.has_void |= (self.may_have_void)(&self.filter);
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
        let answers = in_form!(self, form, items, insert insert_many par_insert_many);
        let mut refused = Vec::new();
        for (&item, answer) in items.iter().zip(answers) {
            match answer {
                Ok(()) => self.added(item),
                Err(_) => refused.push(item),
            }
        }
        refused.into_iter().for_each(|item| self.check_refusal(item));
    }

    fn insert_if_absent(&mut self, form: Form, items: &[u64]) {
        let answers = in_form!(self, form, items, insert_if_absent insert_if_absent_many par_insert_if_absent_many);
        let mut refused = Vec::new();
        for (&item, answer) in items.iter().zip(answers) {
            let copies = self.copies(item);
            match answer {
                Ok(true) => {
                    assert_eq!(copies, 0, "{item} was reported as new, but was inserted before");
                    self.added(item);
                }
                Ok(false) => {
                    assert!(self.filter.contains(&item), "{item} is no news, but is absent");
                    let is_exact = self.exact && !(self.may_have_void)(&self.filter);
                    assert!(copies > 0 || !is_exact, "{item} was never inserted");
                }
                Err(_) => {
                    assert_eq!(copies, 0, "{item} was refused, but is present");
                    refused.push(item);
                }
            }
        }
        refused.into_iter().for_each(|item| self.check_refusal(item));
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

    /// Distinct items fit as far as there is room; copies may be refused earlier.
    fn check_refusal(&self, item: u64) {
        let distinct = self.copies(item) == 0 && self.copies.values().all(|&copies| copies <= 1);
        assert!(
            !distinct || self.len >= self.room,
            "{item} was refused beside {} distinct items",
            self.len
        );
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
        let removed = in_form!(self, form, &items, remove remove_many par_remove_many);
        for (item, removed) in items.iter().zip(removed) {
            assert!(removed || self.has_void, "{item} is present, but was not removed");
        }
    }

    fn check_contains(&self, form: Form, items: &[u64]) {
        let found = in_form!(self, form, items, contains contains_many par_contains_many);
        for (&item, found) in items.iter().zip(found) {
            assert_eq!(found, self.filter.contains(&item));
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
        assert!(self.has_void || (0..self.items).all(|item| !self.filter.contains(&item)));
    }
}

/// Makes pairs, and runs random sequences of operations on each. In the middle, it grows until its directory has this
/// depth.
pub fn check(cases: u32, ops: impl Into<SizeRange>, depth: u32, make: impl Fn() -> Pair) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let ops = prop::collection::vec(any_op(), ops);
    let result = TestRunner::new(config).run(&ops, |ops| {
        let mut pair = make();
        let (before, after) = ops.split_at(ops.len() / 2);
        before.iter().for_each(|&op| pair.apply(op));
        pair.grow(depth);
        after.iter().for_each(|&op| pair.apply(op));
        pair.check_all();
        pair.drain();
        Ok(())
    });
    if let Err(error) = result {
        panic!("{:?}, {error}", make().filter);
    }
}
