//! Code that the benches share: tables of a given size, keys, and threads that start together.

// Each bench uses a part of this.
#![allow(dead_code)]

use koel::ConcurrentCuckooFilter;
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::time::{Duration, Instant};

pub type Filter = ConcurrentCuckooFilter;

/// Builds a filter of 16-bit fingerprints whose buckets take this many bytes, give or take a
/// percent.
pub fn filter_of(bytes: usize) -> Filter {
    let slots = bytes / 2;
    Filter::with_capacity((slots as f64 * 0.93) as usize)
}

/// Returns the number of keys that fill the filter to this load.
pub fn keys_at(filter: &Filter, load: f64) -> u64 {
    (filter.stats().slots as f64 * load) as u64
}

/// The first absent key: the keys `0..n` are inserted, keys from here on are not. The filter mixes
/// the hashes it is given, so consecutive numbers go to unrelated buckets.
pub const ABSENT: u64 = 1 << 40;

/// Runs `work(thread)` on each of `threads` threads, all at once. Returns the time from the first
/// thread's start to the last thread's end.
pub fn timed(threads: u64, work: impl Fn(u64) + Sync) -> Duration {
    let barrier = Barrier::new(threads as usize);
    let run = |thread| {
        barrier.wait();
        let start = Instant::now();
        work(thread);
        (start, Instant::now())
    };
    let times: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let spawned: Vec<_> = (1..threads)
            .map(|thread| {
                let run = &run;
                scope.spawn(move || run(thread))
            })
            .collect();
        let own = run(0);
        let others = spawned.into_iter().map(|thread| thread.join().expect("no bench panics"));
        others.chain([own]).collect()
    });
    let first_start = times.iter().map(|(start, _)| start).min();
    let last_end = times.iter().map(|(_, end)| end).max();
    *last_end.expect("a thread") - *first_start.expect("a thread")
}

/// Returns one thread's share of `0..n`.
pub fn share(n: u64, threads: u64, thread: u64) -> std::ops::Range<u64> {
    n * thread / threads..n * (thread + 1) / threads
}

/// Million operations a second, by operation and number of threads.
pub type Rates = BTreeMap<(&'static str, u64), f64>;

pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints the medians of all measurements, and returns the repetitions that had both cores. In
/// these, an empty loop really ran twice as fast on two threads.
pub fn print_rates(runs: &[Rates]) -> Vec<&Rates> {
    let both_cores: Vec<&Rates> = runs
        .iter()
        .filter(|rates| rates[&("(empty loop)", 2)] > 1.9 * rates[&("(empty loop)", 1)])
        .collect();
    println!("  {} repetitions had both cores", both_cores.len());
    println!("  {:28} {:>9} {:>9} {:>9}", "", "1 thread", "2 threads", "2 : 1");
    for &(name, threads) in runs[0].keys().filter(|(_, threads)| *threads == 1) {
        let one = median(runs.iter().map(|rates| rates[&(name, threads)]));
        let two = median(both_cores.iter().map(|rates| rates[&(name, 2)]));
        let ratio = median(both_cores.iter().map(|rates| rates[&(name, 2)] / rates[&(name, 1)]));
        println!("  {name:28} {one:7.1} M {two:7.1} M {ratio:9.2}");
    }
    both_cores
}
