//! The operations on an item are linearizable.
//!
//! Shuttle runs threads of random operations on one small, nearly full shard and switches between
//! them at random atomic accesses. A linearizability checker then examines the history of each
//! item. Shuttle treats every access as sequentially consistent, so these tests check the logic,
//! with more threads and operations than the models in `loom-tests` can take. The memory orderings
//! are left to those models.

use koel_small::internals::{Bucket, Fingerprint, Geometry, Lanes, Permanent, Place, Shard, Table};
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

/// A shard of eight buckets of two lanes.
fn small_table<const WIDE: bool>() -> Table {
    let lanes = if WIDE { Lanes::of_wide(64) } else { Lanes::of_bits(32) };
    Table::new(Geometry::new(lanes, 1, 8)).expect("room for eight buckets")
}

/// Returns the item with this fingerprint, or its twin, which has the same fingerprint and its two
/// buckets in the opposite order. In wide buckets, two fingerprints share each head.
fn item<const WIDE: bool>(table: &Table, number: u32, twin: bool) -> Place {
    let fp = match WIDE {
        false => Fingerprint::new(number).expect("not zero"),
        true => Fingerprint::nth(number / 2).with_tail(u64::from(number % 2)),
    };
    let first = Bucket(fp.head() * 3 % table.geometry.buckets());
    let second = table.geometry.alternate(first, fp);
    let (first, second) = if twin { (second, first) } else { (first, second) };
    Place { first, second, fp }
}

fn run(shard: Shard<Permanent<'_>>, operation: Operation, item: Place) -> Operation {
    use Operation::*;
    match operation {
        Insert(_) => Insert(Some(shard.insert(item).is_ok())),
        InsertIfAbsent(_) => InsertIfAbsent(Some(shard.insert_if_absent(item).map_err(|_| ()))),
        Remove(_) => Remove(shard.remove(item).ok()),
        Contains(_) => Contains(shard.contains(item).ok()),
        Count(_) => Count(shard.count(item).ok()),
    }
}

fn shard_of(table: &Table) -> Shard<Permanent<'_>> {
    Shard::new(table, 0)
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

/// Checks the histories of `threads` threads, each with `operations` operations on `items` items.
/// The more `others` the table holds, the more inserts have to move an item.
fn histories_are_linearizable<const WIDE: bool>(
    threads: usize,
    operations: usize,
    items: u32,
    others: u32,
) {
    let model = move || {
        let table = Arc::new(small_table::<WIDE>());
        for fp in 100..100 + others {
            let _ = shard_of(&table).insert(item::<WIDE>(&table, fp, false));
        }
        let others = table.stripes.all_items() as usize;
        type Histories = Vec<Vec<(usize, Action<Operation>)>>;
        let histories: Arc<Mutex<Histories>> =
            Arc::new(Mutex::new(vec![Vec::new(); items as usize]));
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let (table, histories) = (Arc::clone(&table), Arc::clone(&histories));
                thread::spawn(move || {
                    for _ in 0..operations {
                        let fp = thread_rng().gen_range(0..items);
                        let item = item::<WIDE>(&table, fp + 2, thread_rng().r#gen());
                        let note = |action| {
                            histories.lock().unwrap()[fp as usize].push((number, action));
                        };
                        let call = random_operation();
                        note(Call(call));
                        note(Response(run(shard_of(&table), call, item)));
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
        let count = |fp| {
            let Ok(copies) = shard_of(&table).count(item::<WIDE>(&table, fp + 2, false));
            copies
        };
        let left: usize = (0..items).map(count).sum();
        let items = table.stripes.all_items() as usize;
        assert_eq!(items, others + left, "the item count does not match the contents");
    };
    let long = std::env::var_os("KOEL_LONG_TESTS").is_some();
    let schedules = if long { MANY_SCHEDULES } else { SCHEDULES };
    shuttle::check_random(model, schedules);
    shuttle::check_pct(model, schedules, 3);
    println!("checked: {} schedules: 0 histories that are not linearizable", 2 * schedules);
}

#[test]
fn four_threads_on_two_items_in_a_nearly_full_table() {
    histories_are_linearizable::<false>(4, 5, 2, 12);
    histories_are_linearizable::<true>(4, 5, 2, 12);
}

#[test]
fn eight_threads_on_four_items() {
    histories_are_linearizable::<false>(8, 8, 4, 8);
    histories_are_linearizable::<true>(8, 8, 4, 8);
}

#[test]
fn three_threads_on_one_item_among_few() {
    histories_are_linearizable::<false>(3, 6, 1, 4);
    histories_are_linearizable::<true>(3, 6, 1, 4);
}
