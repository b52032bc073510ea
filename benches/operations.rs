//! Each operation at each load, in cache and out of cache, on one thread and on two.
//!
//! ```text
//! cargo bench -p koel-benches --bench operations [-- FILTER]
//! ```
//!
//! A group is one operation on a table of one size. It has one bench for each load and number of
//! threads. The table stays at its load: a bench removes the items that it inserted, and inserts
//! those that it removed, outside the measured time. Every answer is checked.

mod common;

use common::{ABSENT, Filter, filter_of, keys_at, share, timed};
use criterion::{Bencher, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use koel::Prehashed;
use std::time::Duration;

const SIZES: [(&str, usize); 2] = [("2MiB", 2 << 20), ("128MiB", 128 << 20)];
const LOADS: [u64; 3] = [50, 90, 95];
const THREADS: [u64; 2] = [1, 2];

/// Operations between two readings of the clock. Operations that change the load run in batches
/// that are small beside the table. The others run in large batches, so that starting the threads
/// takes a negligible part of the time.
const CHANGES: u64 = 10_000;
const LOOKS: u64 = 400_000;

type Operation = fn(&Filter, u64, u64, u64) -> Duration;

const OPERATIONS: [(&str, Operation, u64); 6] = [
    ("insert", insert, CHANGES),
    ("insert_if_absent, new", insert_if_absent_new, CHANGES),
    ("insert_if_absent, there", insert_if_absent_there, LOOKS),
    ("contains, hit", contains_hit, LOOKS),
    ("contains, miss", contains_miss, LOOKS),
    ("remove", remove, CHANGES),
];

fn operations(criterion: &mut Criterion) {
    let test = std::env::args().any(|arg| arg == "--test");
    for (name, bytes) in SIZES {
        let filter = filter_of(if test { bytes / 64 } else { bytes });
        let mut keys = 0;
        for load in LOADS {
            for key in keys..keys_at(&filter, load as f64 / 100.0) {
                filter.insert(&Prehashed(key)).expect("tables take 96 % and more");
            }
            keys = keys_at(&filter, load as f64 / 100.0);
            for (operation, run, batch) in OPERATIONS {
                let batch = batch.min(keys / 2);
                let mut group = criterion.benchmark_group(format!("{operation}, {name}"));
                group.throughput(Throughput::Elements(1));
                for threads in THREADS {
                    let id = BenchmarkId::new(format!("{load} %"), format!("{threads} threads"));
                    group.bench_function(id, |bencher: &mut Bencher<'_>| {
                        bencher.iter_custom(|operations| {
                            in_batches(operations, batch, |from, to| {
                                // Consecutive batches use distant keys.
                                let offset = from.wrapping_mul(7_919) % (keys - batch);
                                run(&filter, offset, to - from, threads)
                            })
                        });
                    });
                }
                group.finish();
                assert_eq!(filter.len() as u64, keys, "{operation} changed the load");
            }
        }
    }
}

fn in_batches(operations: u64, batch: u64, mut run: impl FnMut(u64, u64) -> Duration) -> Duration {
    let starts = (0..operations).step_by(batch as usize);
    starts.map(|start| run(start, operations.min(start + batch))).sum()
}

/// Measures the time that `operation` takes for all of `count` keys from `first` on.
fn time(first: u64, count: u64, threads: u64, operation: impl Fn(u64) + Sync) -> Duration {
    timed(threads, |thread| {
        share(count, threads, thread).for_each(|key| operation(first + key));
    })
}

fn insert(filter: &Filter, offset: u64, count: u64, threads: u64) -> Duration {
    let first = ABSENT + offset;
    let time = time(first, count, threads, |key| filter.insert(&Prehashed(key)).expect("room"));
    (first..first + count).for_each(|key| assert!(filter.remove(&Prehashed(key))));
    time
}

fn insert_if_absent_new(filter: &Filter, offset: u64, count: u64, threads: u64) -> Duration {
    let before = filter.len();
    // No false positives: removing one afterwards would remove another item's fingerprint.
    let keys: Vec<u64> = (ABSENT + offset..)
        .filter(|&key| !filter.contains(&Prehashed(key)))
        .take(count as usize)
        .collect();
    let time = time(0, count, threads, |index| {
        let _ = filter.insert_if_absent(&Prehashed(keys[index as usize])).expect("room");
    });
    let added = filter.len() - before;
    assert!(count as usize - added <= 10, "only {added} of {count} were new");
    let removed = keys.iter().filter(|&&key| filter.remove(&Prehashed(key))).count();
    assert_eq!(removed, added);
    time
}

fn insert_if_absent_there(filter: &Filter, offset: u64, count: u64, threads: u64) -> Duration {
    time(offset, count, threads, |key| {
        assert_eq!(filter.insert_if_absent(&Prehashed(key)), Ok(false));
    })
}

fn contains_hit(filter: &Filter, offset: u64, count: u64, threads: u64) -> Duration {
    time(offset, count, threads, |key| assert!(filter.contains(&Prehashed(key))))
}

fn contains_miss(filter: &Filter, offset: u64, count: u64, threads: u64) -> Duration {
    let first = ABSENT + offset;
    timed(threads, |thread| {
        let keys = share(count, threads, thread).map(|key| first + key);
        let found = keys.filter(|&key| filter.contains(&Prehashed(key))).count() as u64;
        assert!(found <= 10 + count / 1_000, "{found} false positives of {count}");
    })
}

fn remove(filter: &Filter, offset: u64, count: u64, threads: u64) -> Duration {
    let first = ABSENT + offset;
    (first..first + count).for_each(|key| filter.insert(&Prehashed(key)).expect("room"));
    time(first, count, threads, |key| assert!(filter.remove(&Prehashed(key))))
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1_500));
    targets = operations
}
criterion_main!(benches);
