//! Filters that remember for ever.

use crate::{Filter, Item, histories_are_linearizable, item};
use koel_small::{Builder, Prehashed};
use shuttle::rand::{Rng, thread_rng};
use todc_utils::specifications::Specification;

/// An operation on an item, and its result: `None` until it has returned.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Insert(Option<bool>),
    InsertIfAbsent(Option<Result<bool, ()>>),
    Remove(Option<bool>),
    Contains(Option<bool>),
    Count(Option<usize>),
}

/// The specification of one item: its state is the number of its copies.
struct Copies;

impl Specification for Copies {
    type State = usize;
    type Operation = Operation;

    fn init() -> usize {
        0
    }

    fn apply(operation: &Operation, &copies: &usize) -> (bool, usize) {
        use Operation::*;
        match *operation {
            // An insert may be refused at any time, and then changes nothing.
            Insert(Some(true)) => (true, copies + 1),
            Insert(Some(false)) => (true, copies),
            InsertIfAbsent(Some(Ok(true))) if copies == 0 => (true, 1),
            InsertIfAbsent(Some(Ok(new))) => (!new && copies > 0, copies),
            InsertIfAbsent(Some(Err(()))) => (copies == 0, copies),
            Remove(Some(true)) if copies > 0 => (true, copies - 1),
            Remove(Some(found)) => (!found && copies == 0, copies),
            Contains(Some(found)) => (found == (copies > 0), copies),
            Count(Some(count)) => (count == copies, copies),
            Insert(None) | InsertIfAbsent(None) | Remove(None) | Contains(None) | Count(None) => {
                unreachable!("all have returned")
            }
        }
    }
}

impl Item for Copies {
    const SCHEDULES: [usize; 2] = [150, 10_000];
    const TICK: Option<[Operation; 2]> = None;

    fn builder(builder: Builder) -> Builder {
        builder
    }

    fn random_operation() -> Operation {
        use Operation::*;
        match thread_rng().gen_range(0..10) {
            0 | 1 => Insert(None),
            2 | 3 => InsertIfAbsent(None),
            4..=6 => Remove(None),
            7 | 8 => Contains(None),
            _ => Count(None),
        }
    }

    fn run(filter: &Filter, operation: Operation, item: &Prehashed) -> Operation {
        use Operation::*;
        match operation {
            Insert(_) => Insert(Some(filter.insert(item).is_ok())),
            InsertIfAbsent(_) => {
                InsertIfAbsent(Some(filter.insert_if_absent(item).map_err(|_| ())))
            }
            Remove(_) => Remove(Some(filter.remove(item))),
            Contains(_) => Contains(Some(filter.contains(item))),
            Count(_) => Count(Some(filter.count(item))),
        }
    }

    fn check_end(filter: &Filter, items: u64, others: usize) {
        let left: usize = (0..items).map(|it| filter.count(&item(it))).sum();
        assert_eq!(filter.len(), others + left, "the item count does not match the contents");
    }
}

#[test]
fn four_threads_on_two_items_in_a_nearly_full_filter() {
    histories_are_linearizable::<Copies>(4, 5, 2, 9);
}

#[test]
fn eight_threads_on_four_items() {
    histories_are_linearizable::<Copies>(8, 8, 4, 6);
}

#[test]
fn three_threads_on_one_item_among_few() {
    histories_are_linearizable::<Copies>(3, 6, 1, 4);
}
