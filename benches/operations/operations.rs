//! Each operation of a fixed and of a growing filter: in cache and out of cache, on one thread and on two, in loops and
//! in batches. Every answer is checked.
//!
//! `cargo bench -- '2 MiB, 1 thread/contains'` measures what has this in its name. `cargo bench -- --test` runs
//! everything once, on small tables. A filter always holds three quarters of its capacity: the clock stands still while
//! a measurement is undone.

use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput, measurement::WallTime};
use koel::ConcurrentCuckooFilter as Filter;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// The number of items that each thread takes at a time.
const BATCH: u64 = 1 << 16;
/// Items from here on are in no filter.
const ABSENT: u64 = 1 << 40;

/// Does an operation with each of these items, and returns the answers.
type Act = fn(&Filter, &[u64]) -> Vec<bool>;

struct Operation {
    name: &'static str,
    act: Act,
    /// Whether its items are in the filter before.
    there: bool,
    /// The right answer. For an absent item, the answer may be wrong at the filter's rate.
    right: bool,
    /// What undoes it, with the items whose answer was `true`.
    undo: Option<Act>,
}

const fn row(
    name: &'static str,
    act: Act,
    there: bool,
    right: bool,
    undo: Option<Act>,
) -> Operation {
    Operation { name, act, there, right, undo }
}

const OPERATIONS: [Operation; 12] = [
    row("contains, hit", contains, true, true, None),
    row("contains_many, hit", Filter::contains_many, true, true, None),
    row("contains, miss", contains, false, false, None),
    row("contains_many, miss", Filter::contains_many, false, false, None),
    row("insert", insert, false, true, Some(remove)),
    row("insert_many", insert_many, false, true, Some(remove)),
    row("insert_if_absent, new", insert_if_absent, false, true, Some(remove)),
    row("insert_if_absent_many, new", insert_if_absent_many, false, true, Some(remove)),
    row("insert_if_absent, known", insert_if_absent, true, false, None),
    row("insert_if_absent_many, known", insert_if_absent_many, true, false, None),
    row("remove", remove, true, true, Some(insert)),
    row("remove_many", Filter::remove_many, true, true, Some(insert)),
];

fn contains(filter: &Filter, items: &[u64]) -> Vec<bool> {
    items.iter().map(|item| filter.contains(item)).collect()
}

fn insert(filter: &Filter, items: &[u64]) -> Vec<bool> {
    items.iter().map(|item| filter.insert(item).map(|()| true).expect("there is room")).collect()
}

fn insert_many(filter: &Filter, items: &[u64]) -> Vec<bool> {
    let added = filter.insert_many(items).into_iter();
    added.map(|added| added.map(|()| true).expect("there is room")).collect()
}

fn insert_if_absent(filter: &Filter, items: &[u64]) -> Vec<bool> {
    items.iter().map(|item| filter.insert_if_absent(item).expect("there is room")).collect()
}

fn insert_if_absent_many(filter: &Filter, items: &[u64]) -> Vec<bool> {
    let added = filter.insert_if_absent_many(items).into_iter();
    added.map(|added| added.expect("there is room")).collect()
}

fn remove(filter: &Filter, items: &[u64]) -> Vec<bool> {
    items.iter().map(|item| filter.remove(item)).collect()
}

/// A filter, and the number of items that it holds: 0, 1, 2 and so on.
struct Table {
    filter: Filter,
    held: u64,
    false_positive_rate: f64,
    /// The number of items that have been taken for measurements.
    taken: u64,
}

impl Table {
    fn new(bytes: usize, grows: bool) -> Table {
        // The buckets of a fixed filter take these bytes, give or take a percent.
        let capacity = (bytes as f64 / 2.0 * 0.93) as usize;
        let filter = if grows {
            let small = Filter::builder().capacity(capacity / 64);
            small.growing().build().expect("the machine has the memory")
        } else {
            Filter::with_capacity(capacity)
        };
        let items: Vec<u64> = (0..capacity as u64 / 4 * 3).collect();
        assert!(filter.par_insert_many(&items).iter().all(Result::is_ok));
        let (held, false_positive_rate) = (items.len() as u64, filter.false_positive_rate());
        Table { filter, held, false_positive_rate, taken: 0 }
    }

    /// Returns the next items for a thread. Those that are there come round again; those that are absent are new.
    fn items(&mut self, there: bool) -> Vec<u64> {
        let count = BATCH.min(self.held / 16);
        self.taken += count;
        let first = if there { self.taken % (self.held - count) } else { ABSENT + self.taken };
        (first..first + count).collect()
    }

    /// Returns how long an operation takes with a batch of items on each thread, all threads at once.
    fn time(&mut self, operation: &Operation, threads: usize) -> Duration {
        let batches: Vec<_> = (0..threads).map(|_| self.items(operation.there)).collect();
        let (filter, barrier) = (&self.filter, Barrier::new(threads));
        let run = |items: &[u64]| {
            barrier.wait();
            let start = Instant::now();
            let answers = (operation.act)(filter, items);
            (start.elapsed(), answers)
        };
        let runs: Vec<(Duration, Vec<bool>)> = std::thread::scope(|scope| {
            let others = batches[1..].iter().map(|items| scope.spawn(|| run(items)));
            let others: Vec<_> = others.collect();
            let own = run(&batches[0]);
            let others = others.into_iter().map(|it| it.join().expect("no operation panics"));
            [own].into_iter().chain(others).collect()
        });
        for (items, (_, answers)) in batches.iter().zip(&runs) {
            let wrong = answers.iter().filter(|answer| **answer != operation.right).count();
            let expected = self.false_positive_rate * items.len() as f64;
            let most = if operation.there { 0.0 } else { 2.0 * expected + 8.0 };
            assert!(wrong as f64 <= most, "{}: {wrong} of {} wrong", operation.name, items.len());
            if let Some(undo) = operation.undo {
                let done =
                    items.iter().zip(answers).filter_map(|(item, done)| done.then_some(*item));
                assert!(undo(filter, &done.collect::<Vec<_>>()).into_iter().all(|undone| undone));
            }
        }
        runs.iter().map(|run| run.0).max().expect("a thread")
    }
}

fn measure(group: &mut BenchmarkGroup<'_, WallTime>, table: &mut Table, threads: usize) {
    let items = table.items(true).len() * threads;
    group.throughput(Throughput::Elements(items as u64)).sampling_mode(SamplingMode::Flat);
    for operation in &OPERATIONS {
        group.bench_function(operation.name, |bencher| {
            bencher.iter_custom(|times| (0..times).map(|_| table.time(operation, threads)).sum());
        });
        assert_eq!(table.filter.len() as u64, table.held, "{} is undone", operation.name);
    }
}

fn main() {
    let seconds = Duration::from_secs_f64;
    let criterion = Criterion::default().sample_size(10).warm_up_time(seconds(0.3));
    let mut criterion = criterion.measurement_time(seconds(1.0)).configure_from_args();
    // As criterion decides.
    let is_test = std::env::args().all(|word| word != "--bench")
        || std::env::args().any(|word| word == "--test");
    for (kind, grows) in [("fixed", false), ("growing", true)] {
        for mib in [2, 128] {
            let mut table = Table::new(if is_test { mib << 14 } else { mib << 20 }, grows);
            for (threads, named) in [(1, "1 thread"), (2, "2 threads")] {
                let mut group = criterion.benchmark_group(format!("{kind}, {mib} MiB, {named}"));
                measure(&mut group, &mut table, threads);
                group.finish();
            }
        }
    }
    criterion.final_summary();
}
