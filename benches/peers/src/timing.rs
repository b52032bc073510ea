//! Runs work on threads that start together, and checks whether the machine really runs them in
//! parallel.
//!
//! `benches/durable` and `benches/windows` include this file, so it must not use `crate` paths.

use std::hint::black_box;
use std::io;
use std::ops::Range;
use std::sync::{Barrier, Mutex, OnceLock};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// What each thread does before it starts: the benches bind it to a processor.
pub static AT_START: OnceLock<fn(u64)> = OnceLock::new();

/// Runs `work(thread)` on each of `threads` threads at the same time. Returns the time from the
/// first start to the last end, and the results.
pub fn timed<T: Send>(threads: u64, work: impl Fn(u64) -> T + Sync) -> (Duration, Vec<T>) {
    let barrier = Barrier::new(threads as usize);
    let run = |thread| {
        if let Some(at_start) = AT_START.get() {
            at_start(thread);
        }
        barrier.wait();
        let start = Instant::now();
        let result = work(thread);
        (start, Instant::now(), result)
    };
    let runs: Vec<(Instant, Instant, T)> = std::thread::scope(|scope| {
        let spawned: Vec<_> = (1..threads)
            .map(|thread| {
                let run = &run;
                scope.spawn(move || run(thread))
            })
            .collect();
        let own = run(0);
        let others = spawned.into_iter().map(|thread| thread.join().expect("no work panics"));
        [own].into_iter().chain(others).collect()
    });
    let first_start = runs.iter().map(|run| run.0).min().expect("a thread");
    let last_end = runs.iter().map(|run| run.1).max().expect("a thread");
    (last_end - first_start, runs.into_iter().map(|run| run.2).collect())
}

/// Checks that this many threads can be started. [`timed`] would wait for ever if they could not.
pub fn can_run(threads: u64) -> io::Result<()> {
    let gate = Mutex::new(());
    let closed = gate.lock();
    std::thread::scope(|scope| {
        let wait = || drop(gate.lock());
        let mut others = 1..threads;
        let started = others.try_for_each(|_| Builder::new().spawn_scoped(scope, wait).map(drop));
        drop(closed);
        started
    })
}

/// Describes the machine.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1));
    format!("{cores} cores, {}", model.unwrap_or("of an unknown model").trim())
}

/// Returns the share of one thread in `0..n`.
pub fn share(n: u64, threads: u64, thread: u64) -> Range<u64> {
    n * thread / threads..n * (thread + 1) / threads
}

/// Waits until the machine has a free core for each of `threads` threads: until an empty loop takes
/// hardly longer on all of them than on one. Returns `false` if that does not happen within `tries`
/// attempts.
pub fn all_cores(threads: u64, tries: u32) -> bool {
    let spin = |threads| {
        let rounds = 1_500_000_u64;
        timed(threads, |_| black_box((0..rounds).fold(1, |x, i| black_box(x) ^ i))).0
    };
    (0..tries).any(|tried| {
        if tried > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        spin(1).as_secs_f64() >= 0.9 * spin(threads).as_secs_f64()
    })
}

/// Returns the median of the values, or NaN if there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n => (values[(n - 1) / 2] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_lies_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
    }

    #[test]
    fn shares_are_the_whole() {
        let shares: Vec<u64> = (0..7).flat_map(|thread| share(100, 7, thread)).collect();
        assert_eq!(shares, (0..100).collect::<Vec<u64>>());
    }
}
