//! The figures that are promised as ratios: both sides of each are measured in the same run.
//!
//! ```text
//! cargo bench -p koel-benches --bench ratios [-- --reps N] [-- "2 MiB"]
//! ```
//!
//! Two rows show the limits of the machine: an empty loop, and one compare-and-swap on a random
//! word of a table of the same size. A shared table costs a writer at least that much. When two
//! cores write to a table that fits their caches, each has to fetch the lines that the other wrote
//! last.
//!
//! Each repetition runs all the measurements in turn, and each figure is the median of its ratios.
//! Other work on the machine can take the second core away. So a repetition counts for two threads
//! only if an empty loop really ran twice as fast on two.

mod common;

use common::{ABSENT, Filter, Rates, filter_of, keys_at, median, print_rates, share, timed};
use koel::Prehashed;
use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

const SIZES: [(&str, usize); 2] = [("2 MiB", 2 << 20), ("128 MiB", 128 << 20)];
const LOAD: f64 = 0.94;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let test = args.iter().any(|arg| arg == "--test");
    let reps =
        args.iter().position(|arg| arg == "--reps").and_then(|at| args.get(at + 1)?.parse().ok());
    let all = !SIZES.iter().any(|(name, _)| args.iter().any(|arg| arg == name));
    for (name, bytes) in SIZES {
        if !all && !args.iter().any(|arg| arg == name) {
            continue;
        }
        let bytes = if test { bytes / 64 } else { bytes };
        let reps = if test { 1 } else { reps.unwrap_or(if bytes > 16 << 20 { 5 } else { 41 }) };
        let filter = filter_of(bytes);
        println!("{name}, 16-bit fingerprints, to {:.0} % load, {reps} repetitions", 100.0 * LOAD);
        let runs: Vec<Rates> = (0..reps).map(|_| one_repetition(&filter, bytes)).collect();
        report(&runs);
    }
}

fn one_repetition(filter: &Filter, bytes: usize) -> Rates {
    let keys = keys_at(filter, LOAD);
    // Several passes over a small table, so that starting the threads takes a negligible part.
    let rounds = ((32 << 20) / bytes as u64).clamp(1, 8);
    let mut rates = Rates::new();
    let mut note = |name, threads, operations: u64, time: std::time::Duration| {
        rates.insert((name, threads), operations as f64 / time.as_secs_f64() / 1e6);
    };
    let words: Vec<AtomicU64> = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect();
    for threads in [1, 2] {
        let swaps = keys / 4;
        let time = timed(threads, |thread| {
            for key in share(swaps, threads, thread) {
                let random = u128::from(key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                let word = &words[((random * words.len() as u128) >> 64) as usize];
                let before = word.load(Relaxed);
                black_box(word.compare_exchange(before, key, Acquire, Relaxed)).ok();
            }
        });
        note("(one swap of a word)", threads, swaps, time);

        let spin = 20_000_000;
        let time = timed(threads, |thread| {
            black_box(share(spin, threads, thread).fold(1u64, |x, i| black_box(x) ^ i));
        });
        note("(empty loop)", threads, spin, time);

        filter.clear();
        let insert = |from: u64, to: u64| {
            timed(threads, |thread| {
                for key in share(to - from, threads, thread) {
                    filter.insert(&Prehashed(from + key)).expect("less than the filter holds");
                }
            })
        };
        let last = keys - keys / 20;
        let (before, time) = (insert(0, last), insert(last, keys));
        note("insert, the last 5 %", threads, keys - last, time);
        note("insert, a fill", threads, keys, before + time);
        assert_eq!(filter.len() as u64, keys);

        let time = timed(threads, |thread| {
            for _ in 0..rounds {
                let found =
                    share(keys, threads, thread).filter(|&key| filter.contains(&Prehashed(key)));
                assert_eq!(found.count() as u64, share(keys, threads, thread).count() as u64);
            }
        });
        note("contains, hit", threads, rounds * keys, time);

        let time = timed(threads, |thread| {
            for _ in 0..rounds {
                let absent = share(keys, threads, thread).map(|key| key + ABSENT);
                let found = absent.filter(|&key| filter.contains(&Prehashed(key))).count() as f64;
                assert!(found <= 0.000_2 * keys as f64 + 5.0, "{found} false positives");
            }
        });
        note("contains, miss", threads, rounds * keys, time);

        let time = timed(threads, |thread| {
            for _ in 0..rounds {
                for key in share(keys, threads, thread) {
                    assert_eq!(filter.insert_if_absent(&Prehashed(key)), Ok(false));
                }
            }
        });
        note("insert_if_absent, there", threads, rounds * keys, time);

        let time = timed(threads, |thread| {
            for key in share(keys, threads, thread) {
                assert!(filter.remove(&Prehashed(key)));
            }
        });
        note("remove, there", threads, keys, time);
        assert!(filter.is_empty());

        let time = timed(threads, |thread| {
            for key in share(keys, threads, thread) {
                black_box(filter.insert_if_absent(&Prehashed(key)))
                    .expect("less than the filter holds");
            }
        });
        note("insert_if_absent, a fill", threads, keys, time);
        // Some are false positives.
        let missing = keys - filter.len() as u64;
        assert!(missing as f64 <= 0.000_2 * keys as f64 + 5.0, "{missing} not inserted");

        // Each key is inserted twice, by different threads if there are two.
        filter.clear();
        let time = timed(threads, |thread| {
            for key in share(keys, threads, thread) {
                black_box(filter.insert_if_absent(&Prehashed(key)))
                    .expect("less than the filter holds");
                let before = if key < keys / 2 { key + keys / 2 } else { key - keys / 2 };
                black_box(filter.insert_if_absent(&Prehashed(before)))
                    .expect("less than the filter holds");
            }
        });
        note("insert_if_absent, half new", threads, 2 * keys, time);
        assert!(keys - filter.len() as u64 <= missing + keys / 5_000 + 5);

        // Beginning with a half-full filter: nine lookups, half of them hits, to one insert.
        filter.clear();
        let half = keys / 2;
        (0..half)
            .for_each(|key| filter.insert(&Prehashed(key)).expect("less than the filter holds"));
        let mixed = half * 8 / 10 * 10;
        let time = timed(threads, |thread| {
            let mut found = 0;
            for number in share(mixed, threads, thread) {
                let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                match number % 10 {
                    0 => filter
                        .insert(&Prehashed(half + number))
                        .expect("less than the filter holds"),
                    1..=5 => found += u64::from(filter.contains(&Prehashed((key * half) >> 32))),
                    _ => found += u64::from(filter.contains(&Prehashed(key + ABSENT))),
                }
            }
            let hits =
                share(mixed, threads, thread).filter(|number| (1..=5).contains(&(number % 10)));
            assert!(found >= hits.count() as u64);
        });
        note("90 % lookups, 10 % inserts", threads, mixed, time);

        filter.clear();
        let time = timed(threads, |thread| {
            for _ in 0..rounds {
                for key in share(keys, threads, thread) {
                    assert!(!filter.remove(&Prehashed(key)));
                }
            }
        });
        note("remove, absent", threads, rounds * keys, time);
    }
    rates
}

fn report(runs: &[Rates]) {
    print_rates(runs);
    let ratio =
        |over, under| median(runs.iter().map(|rates| rates[&(over, 1)] / rates[&(under, 1)]));
    println!("  hit : insert {:.2}", ratio("contains, hit", "insert, a fill"));
    println!(
        "  time of insert_if_absent, there : time of contains, hit {:.2}",
        ratio("contains, hit", "insert_if_absent, there")
    );
    println!(
        "  insert, the last 5 % : a fill {:.2}",
        ratio("insert, the last 5 %", "insert, a fill")
    );
    println!("  miss : hit {:.2}", ratio("contains, miss", "contains, hit"));
}
