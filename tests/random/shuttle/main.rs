//! The operations on an item are linearizable, also while ticks pass.
//!
//! Shuttle runs threads of random operations on one small, nearly full filter and switches between
//! them at random atomic accesses. A linearizability checker then examines the history of each
//! item. Shuttle treats every access as sequentially consistent, so these tests check the logic,
//! with more threads and operations than the models in `loom-tests` can take. The memory orderings
//! are left to those models.

use koel_small::{Builder, ConcurrentCuckooFilter, Prehashed};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use std::sync::{Arc, Mutex};
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::Action::{self, Call, Response};
use todc_utils::linearizability::history::History;
use todc_utils::specifications::Specification;

mod copies;
mod forgetting;

type Filter = ConcurrentCuckooFilter;

/// What is true of one item, and how it is asked.
trait Item: Specification<Operation: Copy + Send> + 'static {
    /// Schedules of each kind (random and PCT) in a short run, and if `KOEL_LONG_TESTS` is in the environment.
    const SCHEDULES: [usize; 2];

    /// A tick, for an item: two operations, one after the other, each at some moment of the call.
    const TICK: Option<[Self::Operation; 2]>;

    fn builder(builder: Builder) -> Builder;

    /// An operation that has not returned.
    fn random_operation() -> Self::Operation;

    /// Returns the operation with its result.
    fn run(filter: &Filter, operation: Self::Operation, item: &Prehashed) -> Self::Operation;

    /// Checks what is left, beside so many other items.
    fn check_end(filter: &Filter, items: u64, others: usize);
}

/// The hash of an item. None of those that the tests use is found in place of another one.
fn item(number: u64) -> Prehashed {
    Prehashed((number + 1) << 20)
}

/// Of each item, which thread did what.
type Histories<S> = Vec<Vec<(usize, Action<<S as Specification>::Operation>)>>;

/// Does random operations, and notes them.
fn work<S: Item>(filter: &Filter, thread: usize, threads: usize, histories: &Mutex<Histories<S>>) {
    let items = histories.lock().unwrap().len();
    if let Some([first, second]) = S::TICK
        && thread_rng().gen_range(0..6) == 0
    {
        let note = |action: fn(S::Operation) -> Action<S::Operation>| {
            for history in &mut *histories.lock().unwrap() {
                history.push((thread, action(first)));
                history.push((threads + thread, action(second)));
            }
        };
        note(Call);
        filter.tick();
        note(Response);
        return;
    }
    let chosen = thread_rng().gen_range(0..items);
    let note = |action| histories.lock().unwrap()[chosen].push((thread, action));
    let call = S::random_operation();
    note(Call(call));
    note(Response(S::run(filter, call, &item(chosen as u64))));
}

/// Checks the histories of `threads` threads, each with `operations` operations on `items` items, in a filter with room
/// for ten, of narrow buckets and of wide ones. The more `others` it holds, the more inserts have to move an item.
fn histories_are_linearizable<S: Item>(threads: usize, operations: usize, items: u64, others: u64) {
    let model = |rate: f64| {
        move || {
            let builder = ConcurrentCuckooFilter::builder().capacity(10);
            let builder = S::builder(builder.false_positive_rate(rate));
            let filter = Arc::new(builder.build().expect("room for ten items"));
            for other in 100..100 + others {
                let _ = filter.insert(&Prehashed(other << 40));
            }
            assert!((0..items).all(|it| !filter.contains(&item(it))), "other items are needed");
            let others = filter.len();
            let histories: Arc<Mutex<Histories<S>>> =
                Arc::new(Mutex::new(vec![Vec::new(); items as usize]));
            let workers = (0..threads).map(|number| {
                let (filter, histories) = (Arc::clone(&filter), Arc::clone(&histories));
                thread::spawn(move || {
                    (0..operations).for_each(|_| work::<S>(&filter, number, threads, &histories));
                })
            });
            let workers: Vec<_> = workers.collect();
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            for history in histories.lock().unwrap().iter().filter(|history| !history.is_empty()) {
                assert!(
                    WGLChecker::<S>::is_linearizable(History::from_actions(history.clone())),
                    "no order explains this: {history:#?}",
                );
            }
            S::check_end(&filter, items, others);
        }
    };
    let is_long = std::env::var_os("KOEL_LONG_TESTS").is_some();
    let schedules = S::SCHEDULES[usize::from(is_long)];
    for rate in [1e-3, 1e-5] {
        shuttle::check_random(model(rate), schedules);
        shuttle::check_pct(model(rate), schedules, 3);
        println!("checked: {} schedules: 0 histories that are not linearizable", 2 * schedules);
    }
}
