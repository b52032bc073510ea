//! The operations on an item are linearizable, also while ticks pass.
//!
//! Shuttle runs threads of random operations on one small, nearly full filter and switches between
//! them at random atomic accesses. A linearizability checker then examines the history of each
//! item. Shuttle treats every access as sequentially consistent, so these tests check the logic,
//! with more threads and operations than the models in `loom-tests` can take. The memory orderings
//! are left to those models.

use koel_small::{ConcurrentCuckooFilter, Prehashed};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use std::sync::{Arc, Mutex};
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::Action::{self, Call, Response};
use todc_utils::linearizability::history::History;
use todc_utils::specifications::Specification;

type Filter = ConcurrentCuckooFilter;

/// The ticks for which items are remembered, in filters that forget.
const REMEMBERED: u64 = 1;

/// An operation on an item, and its result: `None` until it has returned.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Insert(Option<bool>),
    InsertIfAbsent(Option<Result<bool, ()>>),
    InsertOrRefresh(Option<Result<bool, ()>>),
    Refresh(Option<bool>),
    Remove(Option<bool>),
    Contains(Option<bool>),
    Count(Option<usize>),
    /// The first part of a tick: time passes, and what is stamped after that has the new stamp.
    Pass,
    /// The second part: the item goes if it has expired.
    Expire,
}

use Operation::{
    Contains, Count, Expire, Insert, InsertIfAbsent, InsertOrRefresh, Pass, Refresh, Remove,
};

impl Operation {
    fn random(forgets: bool) -> Self {
        match (thread_rng().gen_range(0..10), forgets) {
            (0 | 1, false) => Insert(None),
            (2 | 3, false) | (0..=2, true) => InsertIfAbsent(None),
            (4..=6, false) | (6, true) => Remove(None),
            (9, false) => Count(None),
            (3 | 4, true) => InsertOrRefresh(None),
            (5, true) => Refresh(None),
            _ => Contains(None),
        }
    }

    /// Returns the operation with its result.
    fn run(self, filter: &Filter, item: &Prehashed) -> Self {
        match self {
            Insert(_) => Insert(Some(filter.insert(item).is_ok())),
            InsertIfAbsent(_) => {
                InsertIfAbsent(Some(filter.insert_if_absent(item).map_err(|_| ())))
            }
            InsertOrRefresh(_) => {
                InsertOrRefresh(Some(filter.insert_or_refresh(item).map_err(|_| ())))
            }
            Refresh(_) => Refresh(Some(filter.refresh(item))),
            Remove(_) => Remove(Some(filter.remove(item))),
            Contains(_) => Contains(Some(filter.contains(item))),
            Count(_) => Count(Some(filter.count(item))),
            Pass | Expire => unreachable!("a tick is of all items"),
        }
    }
}

/// The specification of one item.
struct Item;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    passed: u64,
    expired: u64,
    /// For each copy, the tick in which it came, or was refreshed. The oldest is the first.
    stamps: Vec<u64>,
}

impl Specification for Item {
    type State = State;
    type Operation = Operation;

    fn init() -> State {
        State::default()
    }

    fn apply(operation: &Operation, state: &State) -> (bool, State) {
        let State { passed, expired, ref stamps } = *state;
        let is_there = !stamps.is_empty();
        let with = |stamps| State { stamps, ..state.clone() };
        let another = || with([&stamps[..], &[passed]].concat());
        let refreshed = || with(vec![passed; stamps.len()]);
        match *operation {
            // An insert may be refused at any time, and then changes nothing.
            Insert(Some(true)) => (true, another()),
            Insert(Some(false)) => (true, state.clone()),
            InsertIfAbsent(Some(Ok(true))) | InsertOrRefresh(Some(Ok(true))) => {
                (!is_there, another())
            }
            InsertOrRefresh(Some(Ok(false))) | Refresh(Some(true)) => (is_there, refreshed()),
            InsertIfAbsent(Some(Err(()))) | InsertOrRefresh(Some(Err(()))) => {
                (!is_there, state.clone())
            }
            Remove(Some(true)) => (is_there, with(stamps.iter().skip(1).copied().collect())),
            InsertIfAbsent(Some(Ok(false))) => (is_there, state.clone()),
            Refresh(Some(false)) | Remove(Some(false)) => (!is_there, state.clone()),
            Contains(Some(found)) => (found == is_there, state.clone()),
            Count(Some(count)) => (count == stamps.len(), state.clone()),
            Pass => (true, State { passed: passed + 1, ..state.clone() }),
            Expire => {
                let expired = expired + 1;
                let mut stamps = stamps.clone();
                stamps.retain(|stamp| stamp + REMEMBERED >= expired);
                (expired <= passed, State { expired, stamps, ..state.clone() })
            }
            _ => unreachable!("all have returned"),
        }
    }
}

/// The hash of an item. None of those that the tests use is found in place of another one.
fn item(number: u64) -> Prehashed {
    Prehashed((number + 1) << 20)
}

/// How many threads make how many operations on how many items. The more others there are, the more inserts have to move
/// an item. In a filter that forgets, threads let ticks pass meanwhile, and the others expire with the second.
#[derive(Clone, Copy)]
struct Scene {
    forgets: bool,
    threads: usize,
    operations: usize,
    items: u64,
    others: u64,
}

/// Of each item, which thread did what.
type Histories = Vec<Vec<(usize, Action<Operation>)>>;

impl Scene {
    /// Does a random operation, and notes it.
    fn work(self, filter: &Filter, thread: usize, histories: &Mutex<Histories>) {
        if self.forgets && thread_rng().gen_range(0..6) == 0 {
            // To each item, two operations, one after the other, each at some moment of the call.
            let note = |action: fn(Operation) -> Action<Operation>| {
                for history in &mut *histories.lock().unwrap() {
                    history.push((thread, action(Pass)));
                    history.push((self.threads + thread, action(Expire)));
                }
            };
            note(Call);
            filter.tick();
            note(Response);
            return;
        }
        let chosen = thread_rng().gen_range(0..self.items);
        let note = |action| histories.lock().unwrap()[chosen as usize].push((thread, action));
        let call = Operation::random(self.forgets);
        note(Call(call));
        note(Response(call.run(filter, &item(chosen))));
    }

    /// Runs the threads once, in a filter with room for ten items.
    fn run(self, rate: f64) {
        let builder = ConcurrentCuckooFilter::builder().capacity(10).false_positive_rate(rate);
        let builder = if self.forgets { builder.remembers(REMEMBERED as u32) } else { builder };
        let filter = Arc::new(builder.build().expect("room for ten items"));
        for other in 100..100 + self.others {
            let _ = filter.insert(&Prehashed(other << 40));
        }
        assert!((0..self.items).all(|it| !filter.contains(&item(it))), "other items are needed");
        let others = filter.len();
        let histories = Arc::new(Mutex::new(vec![Vec::new(); self.items as usize]));
        let workers = (0..self.threads).map(|number| {
            let (filter, histories) = (Arc::clone(&filter), Arc::clone(&histories));
            thread::spawn(move || {
                (0..self.operations).for_each(|_| self.work(&filter, number, &histories));
            })
        });
        let workers: Vec<_> = workers.collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        for history in histories.lock().unwrap().iter().filter(|history| !history.is_empty()) {
            assert!(
                WGLChecker::<Item>::is_linearizable(History::from_actions(history.clone())),
                "no order explains this: {history:#?}",
            );
        }
        if self.forgets {
            assert_eq!(filter.expiring().iter().sum::<usize>(), filter.len());
            (0..=REMEMBERED).for_each(|_| filter.tick());
            assert_eq!(filter.len(), 0, "what has expired is counted");
        } else {
            let left: usize = (0..self.items).map(|it| filter.count(&item(it))).sum();
            assert_eq!(filter.len(), others + left, "the item count does not match the contents");
        }
    }

    /// Checks random schedules, in narrow buckets and in wide ones.
    fn is_linearizable(self) {
        let is_long = std::env::var_os("KOEL_LONG_TESTS").is_some();
        let schedules = match (self.forgets, is_long) {
            (false, false) => 150,
            (false, true) => 10_000,
            (true, false) => 100,
            (true, true) => 5_000,
        };
        for rate in [1e-3, 1e-5] {
            shuttle::check_random(move || self.run(rate), schedules);
            shuttle::check_pct(move || self.run(rate), schedules, 3);
            println!("checked: {} schedules: 0 histories that are not linearizable", 2 * schedules);
        }
    }
}

#[test]
fn copies_in_a_nearly_full_filter() {
    Scene { forgets: false, threads: 4, operations: 5, items: 2, others: 9 }.is_linearizable();
}

#[test]
fn copies_of_eight_threads() {
    Scene { forgets: false, threads: 8, operations: 8, items: 4, others: 6 }.is_linearizable();
}

#[test]
fn copies_of_one_item_among_few() {
    Scene { forgets: false, threads: 3, operations: 6, items: 1, others: 4 }.is_linearizable();
}

#[test]
fn items_that_expire_in_a_nearly_full_filter() {
    Scene { forgets: true, threads: 4, operations: 6, items: 2, others: 9 }.is_linearizable();
}

#[test]
fn items_that_expire_of_six_threads() {
    Scene { forgets: true, threads: 6, operations: 8, items: 3, others: 6 }.is_linearizable();
}

#[test]
fn an_item_that_expires_alone() {
    Scene { forgets: true, threads: 3, operations: 7, items: 1, others: 0 }.is_linearizable();
}
