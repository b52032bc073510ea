//! Batches beside loops, and beside the limit of the machine, in cache and out of cache, on one thread and on two.
//!
//! What is promised as a ratio is measured as one: each repetition runs all measurements in turn, and each ratio is
//! the median of those of the repetitions. Other work on the machine can take the second core away. So a repetition counts for two
//! threads only if an empty loop took no longer on both of them than on one.
//!
//! The limit of the machine is independent random pairs of words, prefetched, in pages as they come and in huge pages,
//! which koel asks for, too.

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{Figures, rate};
use crate::kit::machine::{all_cores, share, timed};
use crate::kit::memory::{read_lines, words};
use crate::kit::{ABSENT, BATCH};
use koel::{ConcurrentCuckooFilter, Prehashed};
use rayon::ThreadPoolBuilder;
use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

type Filter = ConcurrentCuckooFilter;

/// A filter, and how many keys fill it, from 0 on. It mixes the hashes it is given, so consecutive numbers go to
/// unrelated buckets.
struct Bench {
    filter: Filter,
    bytes: usize,
    keys: u64,
    threads: u64,
    /// The place of the figures: the size.
    at: String,
    figures: Figures,
    /// Whether the repetition counts for this number of threads.
    counts: bool,
}

impl Bench {
    /// Notes an operation that is done with each part of these keys, several times over if there are few.
    fn part(
        &mut self,
        name: &'static str,
        keys: Range<u64>,
        rounds: u64,
        act: impl Fn(&Filter, Range<u64>) + Sync,
    ) {
        let count = keys.end - keys.start;
        let (time, _) = timed(self.threads, |thread| {
            let own = share(count, self.threads, thread);
            for _ in 0..rounds {
                act(&self.filter, keys.start + own.start..keys.start + own.end);
            }
        });
        self.note(name, rounds * count, time);
    }

    fn note(&mut self, name: &'static str, operations: u64, time: Duration) {
        if self.counts {
            let threads = THREADS[self.threads as usize - 1];
            self.figures.note(name, threads, &self.at, "M/s", rate(operations, time));
        }
    }
}

const THREADS: [&str; 2] = ["1 thread", "2 threads"];

/// The sizes of tables in MiB, and how often each is measured.
const SIZES: [(u64, u64); 2] = [(2, 41), (128, 5)];
const LOAD: f64 = 0.94;

/// The ratios that are noted.
const RATIOS: [(&str, &str); 8] = [
    ("contains_many, hit", "pairs, pages as they come"),
    ("contains_many, miss", "pairs, pages as they come"),
    ("contains_many, hit", "pairs, huge pages"),
    ("contains_many, miss", "pairs, huge pages"),
    ("contains_many, hit", "contains, hit, loop"),
    ("contains_many, miss", "contains, miss, loop"),
    ("insert_many", "insert, loop"),
    ("par_insert_many", "insert, loop"),
];

/// Runs repetitions on tables of each size, each on one thread and on two.
pub fn run(mut arguments: Arguments) -> Result<()> {
    let (out, test) = (arguments.out("")?, arguments.test);
    arguments.end()?;
    let mut figures = Figures::new("many");
    for (mib, reps) in SIZES {
        let bytes = if test { mib << 14 } else { mib << 20 } as usize;
        let reps = if test { 1 } else { reps };
        let at = format!("{mib} MiB, 16 bits, to {:.0} % load", 100.0 * LOAD);
        // The buckets take these bytes, give or take a percent.
        let filter = Filter::with_capacity((bytes as f64 / 2.0 * 0.93) as usize);
        let keys = (filter.stats().slots as f64 * LOAD) as u64;
        let mut bench = Bench { filter, bytes, keys, threads: 1, at, figures, counts: true };
        for _ in 0..reps {
            for threads in [1, 2] {
                (bench.threads, bench.counts) = (threads, test || all_cores(threads, 6));
                measure(&mut bench);
            }
        }
        let at;
        Bench { at, figures, .. } = bench;
        for pair in RATIOS {
            THREADS.into_iter().for_each(|threads| figures.ratio(pair, threads, &at));
        }
    }
    figures.write(&out.join("many.csv"))
}

/// Looks keys up, and checks that all of them are found, or nearly none.
fn look_up(filter: &Filter, keys: Range<u64>) {
    let (all, are_in) = (keys.end - keys.start, keys.start < ABSENT);
    let found = keys.filter(|&key| filter.contains(&Prehashed(key))).count() as u64;
    check(found, all, are_in);
}

fn check(found: u64, all: u64, are_in: bool) {
    let most = 0.000_2 * all as f64 + 8.0;
    assert!(if are_in { found == all } else { (found as f64) <= most }, "{found} of {all} found");
}

fn measure(bench: &mut Bench) {
    let count = bench.keys;
    let rounds = ((16 << 20) / count).clamp(1, 8);
    for (name, huge) in [("pairs, pages as they come", false), ("pairs, huge pages", true)] {
        let table = words(bench.bytes, huge);
        bench.part(name, 0..rounds * count, 1, |_, part| {
            black_box(read_lines::<2>(&table, part.start, part.end - part.start));
        });
    }
    bench.filter.clear();
    bench.part("insert, loop", 0..count, 1, |filter, keys| {
        keys.for_each(|key| filter.insert(&Prehashed(key)).expect("less than the filter holds"));
    });
    let there: Vec<Prehashed> = (0..count).map(Prehashed).collect();
    let absent: Vec<Prehashed> = (ABSENT..ABSENT + count).map(Prehashed).collect();
    for (one, many, keys) in [
        ("contains, hit, loop", "contains_many, hit", &there),
        ("contains, miss, loop", "contains_many, miss", &absent),
    ] {
        let first = keys[0].0;
        bench.part(one, first..first + count, rounds, look_up);
        bench.part(many, 0..count, rounds, |filter, part| {
            for batch in keys[part.start as usize..part.end as usize].chunks(BATCH) {
                let found = filter.contains_many(batch).into_iter().map(u64::from).sum();
                check(found, batch.len() as u64, first < ABSENT);
            }
        });
    }
    bench.filter.clear();
    bench.part("insert_many", 0..count, 1, |filter, part| {
        let added = filter.insert_many(&there[part.start as usize..part.end as usize]);
        assert!(added.iter().all(|added| added.is_ok()));
    });
    bench.filter.clear();
    let threads = bench.threads as usize;
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    let start = Instant::now();
    let added = pool.install(|| bench.filter.par_insert_many(&there));
    bench.note("par_insert_many", count, start.elapsed());
    assert!(added.iter().all(|added| added.is_ok()));
}
