//! Batches compared with loops, and with the limit of the machine's memory.
//!
//! ```text
//! cargo bench -p koel-benches --bench many [-- --reps N] [-- "2 MiB" | "128 MiB" | "1 GiB"]
//! ```
//!
//! The roofline comes first: independent random pairs of 8-byte loads, prefetched 32 pairs ahead,
//! over a table of the same size and on the same number of threads. It is measured in ordinary
//! pages, and in huge pages (which koel asks for, too) if the system provides them on request. Then
//! a filter is filled to 94 %, one by one and in batches, and present and absent keys are looked
//! up. All figures of a repetition are measured one after the other, and ratios are medians over
//! repetitions.

mod common;
#[allow(dead_code, unused_imports)]
#[path = "../src/table/memory.rs"]
mod memory;
#[path = "common/sync.rs"]
mod sync;

use common::{ABSENT, Filter, Rates, filter_of, keys_at, median, print_rates, share, timed};
use koel::Prehashed;
use memory::{huge_pages, prefetch};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

const SIZES: [(&str, usize, usize); 3] =
    [("2 MiB", 2 << 20, 21), ("128 MiB", 128 << 20, 5), ("1 GiB", 1 << 30, 1)];
const LOAD: f64 = 0.94;
/// Keys in a batch of lookups.
const BATCH: usize = 1 << 16;
/// The number of pairs by which the roofline prefetches ahead.
const AHEAD: u64 = 32;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let test = args.iter().any(|arg| arg == "--test");
    let reps =
        args.iter().position(|arg| arg == "--reps").and_then(|at| args.get(at + 1)?.parse().ok());
    let all = !SIZES.iter().any(|(name, ..)| args.iter().any(|arg| arg == name));
    for (name, bytes, usual_reps) in SIZES {
        if !all && !args.iter().any(|arg| arg == name) {
            continue;
        }
        let bytes = if test { (bytes / 64).min(8 << 20) } else { bytes };
        let reps = if test { 1 } else { reps.unwrap_or(usual_reps) };
        println!("{name}, 16-bit fingerprints, to {:.0} % load, {reps} repetitions", 100.0 * LOAD);
        let bench = Bench::new(bytes);
        let runs: Vec<Rates> = (0..reps).map(|_| bench.one_repetition()).collect();
        report(&runs);
    }
}

struct Bench {
    filter: Filter,
    keys: Vec<Prehashed>,
    absent: Vec<Prehashed>,
    ordinary: Vec<AtomicU64>,
    huge: Vec<AtomicU64>,
    pools: [ThreadPool; 2],
}

impl Bench {
    fn new(bytes: usize) -> Self {
        let filter = filter_of(bytes);
        let keys: Vec<Prehashed> = (0..keys_at(&filter, LOAD)).map(Prehashed).collect();
        let absent = keys.iter().map(|key| Prehashed(key.0 + ABSENT)).collect();
        let pool = |threads| ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let ordinary = (0..bytes / 8).map(|_| AtomicU64::new(1)).collect();
        let mut huge: Vec<AtomicU64> = Vec::with_capacity(bytes / 8);
        huge_pages::prefer(huge.spare_capacity_mut());
        huge.extend((0..bytes / 8).map(|_| AtomicU64::new(1)));
        Bench { filter, keys, absent, ordinary, huge, pools: [1, 2].map(pool) }
    }

    fn one_repetition(&self) -> Rates {
        let Bench { filter, keys, absent, .. } = self;
        let count = keys.len() as u64;
        // Several passes over a small table, so that starting the threads takes a negligible part.
        let rounds = ((16 << 20) / count).clamp(1, 8);
        let mut rates = Rates::new();
        let mut note = |name, threads, operations: u64, time: std::time::Duration| {
            rates.insert((name, threads), operations as f64 / time.as_secs_f64() / 1e6);
        };
        for threads in [1, 2] {
            let spin = 20_000_000;
            let time = timed(threads, |thread| {
                black_box(share(spin, threads, thread).fold(1u64, |x, i| black_box(x) ^ i));
            });
            note("(empty loop)", threads, spin, time);
            let roofs = [("R, pages as they come", &self.ordinary), ("R, huge pages", &self.huge)];
            for (name, words) in roofs {
                let time = timed(threads, |thread| {
                    let seed = ABSENT * (thread + 1);
                    black_box(pairs(words, seed, rounds * count / threads));
                });
                note(name, threads, rounds * count, time);
            }

            filter.clear();
            let time = timed(threads, |thread| {
                for key in share(count, threads, thread) {
                    filter.insert(&Prehashed(key)).expect("less than the filter holds");
                }
            });
            note("insert, loop", threads, count, time);
            for (loop_name, many_name, asked, all_in) in [
                ("contains, hit, loop", "contains_many, hit", keys, true),
                ("contains, miss, loop", "contains_many, miss", absent, false),
            ] {
                let right = |found: usize, of: usize| {
                    let errors = 0.000_2 * of as f64 + 8.0;
                    assert!(if all_in { found == of } else { (found as f64) < errors });
                };
                let time = timed(threads, |thread| {
                    let own = part(asked, threads, thread);
                    for _ in 0..rounds {
                        right(own.iter().filter(|key| filter.contains(*key)).count(), own.len());
                    }
                });
                note(loop_name, threads, rounds * count, time);
                let time = timed(threads, |thread| {
                    for batch in
                        (0..rounds).flat_map(|_| part(asked, threads, thread).chunks(BATCH))
                    {
                        let found = filter.contains_many(batch);
                        right(found.iter().filter(|found| **found).count(), batch.len());
                    }
                });
                note(many_name, threads, rounds * count, time);
            }

            filter.clear();
            let time = timed(threads, |thread| {
                let inserted = filter.insert_many(part(keys, threads, thread));
                assert!(inserted.iter().all(Result::is_ok));
            });
            note("insert_many", threads, count, time);

            self.pools[threads as usize - 1].install(|| {
                filter.clear();
                let start = Instant::now();
                let inserted = filter.par_insert_many(keys);
                note("par_insert_many", threads, count, start.elapsed());
                assert!(inserted.iter().all(Result::is_ok) && filter.len() as u64 == count);

                let start = Instant::now();
                let found = filter.par_contains_many(keys);
                note("par_contains_many, hit", threads, count, start.elapsed());
                assert!(found.iter().all(|found| *found));

                let start = Instant::now();
                let removed = filter.par_remove_many(keys);
                note("par_remove_many", threads, count, start.elapsed());
                assert!(removed.iter().all(|removed| *removed) && filter.is_empty());

                let start = Instant::now();
                let added = filter.par_insert_if_absent_many(keys);
                note("par_insert_if_absent_many", threads, count, start.elapsed());
                assert!(added.iter().all(Result::is_ok));
            });
        }
        rates
    }
}

fn part(keys: &[Prehashed], threads: u64, thread: u64) -> &[Prehashed] {
    let own = share(keys.len() as u64, threads, thread);
    &keys[own.start as usize..own.end as usize]
}

/// Adds up the words of `count` random pairs.
fn pairs(words: &[AtomicU64], seed: u64, count: u64) -> u64 {
    let place = |number: u64| {
        let mut random = (seed + number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        random = (random ^ (random >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let scale = |half: u64| ((half * words.len() as u64) >> 32) as usize;
        [scale(random >> 32), scale(random & 0xFFFF_FFFF)]
    };
    let mut sum = 0u64;
    for number in 0..count {
        place(number + AHEAD).into_iter().for_each(|at| prefetch(&words[at]));
        let [first, second] = place(number).map(|at| words[at].load(Relaxed));
        sum = sum.wrapping_add(first ^ second);
    }
    sum
}

fn report(runs: &[Rates]) {
    let both_cores = print_rates(runs);
    for (over, under) in [
        ("contains_many, hit", "R, pages as they come"),
        ("contains_many, miss", "R, pages as they come"),
        ("contains_many, hit", "R, huge pages"),
        ("contains_many, miss", "R, huge pages"),
        ("contains_many, hit", "contains, hit, loop"),
        ("contains_many, miss", "contains, miss, loop"),
        ("insert_many", "insert, loop"),
        ("par_insert_many", "insert, loop"),
    ] {
        let one = median(runs.iter().map(|rates| rates[&(over, 1)] / rates[&(under, 1)]));
        let two = median(both_cores.iter().map(|rates| rates[&(over, 2)] / rates[&(under, 2)]));
        println!("  {over} : {under} {one:.2}, on two threads {two:.2}");
    }
}
