//! Filters that forget. Threads let ticks pass meanwhile: in the first part of a tick, time passes, and what is stamped
//! after that has the new stamp; in the second, the item goes if it has expired. The other items expire with the second
//! tick: until then, some inserts have to move items.

use crate::{Filter, Item, histories_are_linearizable};
use koel_small::{Builder, Prehashed};
use shuttle::rand::{Rng, thread_rng};
use todc_utils::specifications::Specification;

/// The ticks for which items are remembered.
const REMEMBERED: u64 = 1;

/// An operation on an item, and its result: `None` until it has returned.
#[derive(Clone, Copy, Debug)]
enum Operation {
    InsertIfAbsent(Option<Result<bool, ()>>),
    InsertOrRefresh(Option<Result<bool, ()>>),
    Refresh(Option<bool>),
    Remove(Option<bool>),
    Contains(Option<bool>),
    /// The first part of a tick.
    Pass,
    /// The second part.
    Expire,
}

/// The specification of one item, of which there is one copy at most.
struct Once;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    passed: u64,
    expired: u64,
    /// The tick in which the item came, or was refreshed.
    stamp: Option<u64>,
}

impl Specification for Once {
    type State = State;
    type Operation = Operation;

    fn init() -> State {
        State::default()
    }

    fn apply(operation: &Operation, state: &State) -> (bool, State) {
        use Operation::*;
        let is_there = state.stamp.is_some();
        let stamped = || State { stamp: Some(state.passed), ..state.clone() };
        match *operation {
            InsertIfAbsent(Some(Ok(true))) | InsertOrRefresh(Some(Ok(true))) => {
                (!is_there, stamped())
            }
            InsertIfAbsent(Some(Ok(false))) => (is_there, state.clone()),
            InsertOrRefresh(Some(Ok(false))) | Refresh(Some(true)) => (is_there, stamped()),
            InsertIfAbsent(Some(Err(()))) | InsertOrRefresh(Some(Err(()))) => {
                (!is_there, state.clone())
            }
            Refresh(Some(false)) | Contains(Some(false)) | Remove(Some(false)) => {
                (!is_there, state.clone())
            }
            Contains(Some(true)) => (is_there, state.clone()),
            Remove(Some(true)) => (is_there, State { stamp: None, ..state.clone() }),
            Pass => (true, State { passed: state.passed + 1, ..state.clone() }),
            Expire => {
                let expired = state.expired + 1;
                let stays = |stamp: &u64| stamp + REMEMBERED >= expired;
                let stamp = state.stamp.filter(stays);
                (expired <= state.passed, State { expired, stamp, ..state.clone() })
            }
            InsertIfAbsent(None)
            | InsertOrRefresh(None)
            | Refresh(None)
            | Remove(None)
            | Contains(None) => unreachable!("all have returned"),
        }
    }
}

impl Item for Once {
    const SCHEDULES: [usize; 2] = [100, 5_000];
    const TICK: Option<[Operation; 2]> = Some([Operation::Pass, Operation::Expire]);

    fn builder(builder: Builder) -> Builder {
        builder.remembers(REMEMBERED as u32)
    }

    fn random_operation() -> Operation {
        use Operation::*;
        match thread_rng().gen_range(0..10) {
            0..=2 => InsertIfAbsent(None),
            3 | 4 => InsertOrRefresh(None),
            5 => Refresh(None),
            6 => Remove(None),
            _ => Contains(None),
        }
    }

    fn run(filter: &Filter, operation: Operation, item: &Prehashed) -> Operation {
        use Operation::*;
        match operation {
            InsertIfAbsent(_) => {
                InsertIfAbsent(Some(filter.insert_if_absent(item).map_err(|_| ())))
            }
            InsertOrRefresh(_) => {
                InsertOrRefresh(Some(filter.insert_or_refresh(item).map_err(|_| ())))
            }
            Refresh(_) => Refresh(Some(filter.refresh(item))),
            Remove(_) => Remove(Some(filter.remove(item))),
            Contains(_) => Contains(Some(filter.contains(item))),
            Pass | Expire => unreachable!("a tick is of all items"),
        }
    }

    fn check_end(filter: &Filter, _items: u64, _others: usize) {
        assert_eq!(filter.expiring().iter().sum::<usize>(), filter.len());
        (0..=REMEMBERED).for_each(|_| filter.tick());
        assert_eq!(filter.len(), 0, "what has expired is counted");
    }
}

#[test]
fn four_threads_on_two_items_in_a_nearly_full_filter() {
    histories_are_linearizable::<Once>(4, 6, 2, 9);
}

#[test]
fn six_threads_on_three_items() {
    histories_are_linearizable::<Once>(6, 8, 3, 6);
}

#[test]
fn three_threads_on_one_item_alone() {
    histories_are_linearizable::<Once>(3, 7, 1, 0);
}
