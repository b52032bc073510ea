//! The operations on an item are linearizable while ticks pass.
//!
//! Threads of random operations on one small, nearly full filter let ticks pass meanwhile, as in
//! `linearizability`. For an item, a tick is two operations, one after the other, each at some moment of
//! the call: in the first, time passes, and what is stamped after that has the new stamp; in the second,
//! the item goes if it has expired.

use koel_small::ConcurrentCuckooFilter;
use koel_small::Prehashed;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use std::sync::{Arc, Mutex};
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::Action::{self, Call, Response};
use todc_utils::linearizability::history::History;
use todc_utils::specifications::Specification;

/// Schedules of each kind (random and PCT) if `KOEL_LONG_TESTS` is in the environment.
const MANY_SCHEDULES: usize = 5_000;
/// Schedules of each kind in a short run.
const SCHEDULES: usize = 100;

/// The ticks for which items are remembered.
const REMEMBERED: u64 = 1;

type Filter = ConcurrentCuckooFilter;

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
struct Item;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    passed: u64,
    expired: u64,
    /// The tick in which the item came, or was refreshed.
    stamp: Option<u64>,
}

impl Specification for Item {
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

fn run(filter: &Filter, operation: Operation, hash: u64) -> Operation {
    use Operation::*;
    match operation {
        InsertIfAbsent(_) => {
            InsertIfAbsent(Some(filter.insert_if_absent(&Prehashed(hash)).map_err(|_| ())))
        }
        InsertOrRefresh(_) => {
            InsertOrRefresh(Some(filter.insert_or_refresh(&Prehashed(hash)).map_err(|_| ())))
        }
        Refresh(_) => Refresh(Some(filter.refresh(&Prehashed(hash)))),
        Remove(_) => Remove(Some(filter.remove(&Prehashed(hash)))),
        Contains(_) => Contains(Some(filter.contains(&Prehashed(hash)))),
        Pass | Expire => unreachable!("a tick is of all items"),
    }
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

/// A filter with room for ten items, which are told apart.
fn small(rate: f64) -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(10).false_positive_rate(rate);
    builder.remembers(REMEMBERED as u32).build().expect("room for ten items")
}

type Histories = Vec<Vec<(usize, Action<Operation>)>>;

/// Checks the histories of `threads` threads, each with `operations` operations on `items` items or ticks.
/// There are `others`, which expire with the second tick: until then, some inserts have to move items.
fn histories_are_linearizable(
    rate: f64,
    threads: usize,
    operations: usize,
    items: u64,
    others: u64,
) {
    let model = move || {
        let filter = Arc::new(small(rate));
        for other in 100..100 + others {
            let _ = filter.insert(&Prehashed(other << 40));
        }
        let hash = |item: u64| (item + 1) << 20;
        assert!(
            (0..items).all(|item| !filter.contains(&Prehashed(hash(item)))),
            "other items are needed"
        );
        let histories: Arc<Mutex<Histories>> =
            Arc::new(Mutex::new(vec![Vec::new(); items as usize]));
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let (filter, histories) = (Arc::clone(&filter), Arc::clone(&histories));
                thread::spawn(move || {
                    for _ in 0..operations {
                        if thread_rng().gen_range(0..6) == 0 {
                            let note = |action: fn(Operation) -> Action<Operation>| {
                                for history in &mut *histories.lock().unwrap() {
                                    history.push((number, action(Operation::Pass)));
                                    history.push((threads + number, action(Operation::Expire)));
                                }
                            };
                            note(Call);
                            filter.tick();
                            note(Response);
                            continue;
                        }
                        let item = thread_rng().gen_range(0..items);
                        let note = |action| {
                            histories.lock().unwrap()[item as usize].push((number, action));
                        };
                        let call = random_operation();
                        note(Call(call));
                        note(Response(run(&filter, call, hash(item))));
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        for history in histories.lock().unwrap().iter().filter(|history| !history.is_empty()) {
            assert!(
                WGLChecker::<Item>::is_linearizable(History::from_actions(history.clone())),
                "no order explains this: {history:#?}",
            );
        }
        assert_eq!(filter.expiring().iter().sum::<usize>(), filter.len());
        for _ in 0..=REMEMBERED {
            filter.tick();
        }
        assert_eq!(filter.len(), 0, "what has expired is counted");
    };
    let long = std::env::var_os("KOEL_LONG_TESTS").is_some();
    let schedules = if long { MANY_SCHEDULES } else { SCHEDULES };
    shuttle::check_random(model, schedules);
    shuttle::check_pct(model, schedules, 3);
    println!("checked: {} schedules: 0 histories that are not linearizable", 2 * schedules);
}

/// Rates for narrow buckets and for wide ones.
const RATES: [f64; 2] = [1e-3, 1e-5];

#[test]
fn four_threads_on_two_items_in_a_nearly_full_filter() {
    RATES.into_iter().for_each(|rate| histories_are_linearizable(rate, 4, 6, 2, 9));
}

#[test]
fn six_threads_on_three_items() {
    RATES.into_iter().for_each(|rate| histories_are_linearizable(rate, 6, 8, 3, 6));
}

#[test]
fn three_threads_on_one_item_alone() {
    RATES.into_iter().for_each(|rate| histories_are_linearizable(rate, 3, 7, 1, 0));
}
