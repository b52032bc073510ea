//! The operations on an item are linearizable.
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

/// Schedules of each kind (random and PCT) if `KOEL_LONG_TESTS` is in the environment.
const MANY_SCHEDULES: usize = 10_000;
/// Schedules of each kind in a short run.
const SCHEDULES: usize = 150;

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

/// The hash of an item. None of those that the tests use is found in place of another one.
fn item(number: u64) -> Prehashed {
    Prehashed((number + 1) << 20)
}

fn run(filter: &ConcurrentCuckooFilter, operation: Operation, item: &Prehashed) -> Operation {
    use Operation::*;
    match operation {
        Insert(_) => Insert(Some(filter.insert(item).is_ok())),
        InsertIfAbsent(_) => InsertIfAbsent(Some(filter.insert_if_absent(item).map_err(|_| ()))),
        Remove(_) => Remove(Some(filter.remove(item))),
        Contains(_) => Contains(Some(filter.contains(item))),
        Count(_) => Count(Some(filter.count(item))),
    }
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

/// Checks the histories of `threads` threads, each with `operations` operations on `items` items, in a filter with room
/// for ten. The more `others` it holds, the more inserts have to move an item.
fn histories_are_linearizable(
    rate: f64,
    threads: usize,
    operations: usize,
    items: u64,
    others: u64,
) {
    let model = move || {
        let builder = ConcurrentCuckooFilter::builder().capacity(10).false_positive_rate(rate);
        let filter = Arc::new(builder.build().expect("room for ten items"));
        for other in 100..100 + others {
            let _ = filter.insert(&Prehashed(other << 40));
        }
        assert!((0..items).all(|it| !filter.contains(&item(it))), "other items are needed");
        let others = filter.len();
        type Histories = Vec<Vec<(usize, Action<Operation>)>>;
        let histories: Arc<Mutex<Histories>> =
            Arc::new(Mutex::new(vec![Vec::new(); items as usize]));
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let (filter, histories) = (Arc::clone(&filter), Arc::clone(&histories));
                thread::spawn(move || {
                    for _ in 0..operations {
                        let chosen = thread_rng().gen_range(0..items);
                        let note = |action| {
                            histories.lock().unwrap()[chosen as usize].push((number, action));
                        };
                        let call = random_operation();
                        note(Call(call));
                        note(Response(run(&filter, call, &item(chosen))));
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        for history in histories.lock().unwrap().iter().filter(|history| !history.is_empty()) {
            assert!(
                WGLChecker::<Copies>::is_linearizable(History::from_actions(history.clone())),
                "no order explains this: {history:#?}",
            );
        }
        let left: usize = (0..items).map(|it| filter.count(&item(it))).sum();
        assert_eq!(filter.len(), others + left, "the item count does not match the contents");
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
    RATES.into_iter().for_each(|rate| histories_are_linearizable(rate, 4, 5, 2, 9));
}

#[test]
fn eight_threads_on_four_items() {
    RATES.into_iter().for_each(|rate| histories_are_linearizable(rate, 8, 8, 4, 6));
}

#[test]
fn three_threads_on_one_item_among_few() {
    RATES.into_iter().for_each(|rate| histories_are_linearizable(rate, 3, 6, 1, 4));
}
