//! Threads, each on a processor of its own, that start together.

use crate::machine::Machine;
use std::process::exit;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::Builder;
use std::time::Instant;

/// How long threads were at work, in nanoseconds.
#[derive(Default)]
pub struct Time {
    /// From the first start to the last end.
    pub wall: f64,
    /// The longest time for which one of them had no processor.
    pub waited: f64,
}

impl Time {
    /// Whether each of them had its processor nearly all of the time.
    pub fn had_processors(&self) -> bool {
        self.waited < 0.05 * self.wall
    }
}

/// Runs `work(thread)` on a thread for each of these processors.
pub fn timed(machine: &Machine, processors: &[usize], work: impl Fn(u64) + Sync) -> Time {
    let (barrier, ready) = (Barrier::new(processors.len()), AtomicUsize::new(0));
    let run = |thread: usize, processor: usize| {
        machine.pin(processor);
        barrier.wait();
        let before = Waited::now();
        // A thread that slept here would begin later than others, by as long as some of the work takes.
        ready.fetch_add(1, Relaxed);
        while ready.load(Relaxed) < processors.len() {
            std::thread::yield_now();
        }
        let start = Instant::now();
        work(thread as u64);
        let end = Instant::now();
        (start, end, before.until_now((end - start).as_nanos() as f64))
    };
    let runs: Vec<(Instant, Instant, f64)> = std::thread::scope(|scope| {
        let spawned: Vec<_> = processors
            .iter()
            .enumerate()
            .map(|(thread, &processor)| {
                let started = Builder::new().spawn_scoped(scope, move || run(thread, processor));
                started.unwrap_or_else(|error| {
                    // The others wait for it, so the program cannot go on.
                    eprintln!("koel-cores: no thread for processor {processor}: {error}");
                    exit(1)
                })
            })
            .collect();
        spawned.into_iter().map(|thread| thread.join().expect("no work panics")).collect()
    });
    let start = runs.iter().map(|run| run.0).min().expect("a thread");
    let end = runs.iter().map(|run| run.1).max().expect("a thread");
    let waited = runs.iter().map(|run| run.2).fold(0.0, f64::max);
    Time { wall: (end - start).as_nanos() as f64, waited }
}

/// What the system has counted of the calling thread so far, in nanoseconds.
struct Waited {
    /// How long it ran and how long it could have run and had no processor, if the system tells.
    told: Option<[f64; 2]>,
    ran: f64,
}

impl Waited {
    fn now() -> Self {
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let mut told = told.split_whitespace().map_while(|figure| figure.parse().ok());
        let told = told.next().zip(told.next()).map(|(ran, waited)| [ran, waited]);
        Waited { told, ran: nanoseconds_on_a_processor() }
    }

    /// Returns for how long it had no processor since then, of `wall` in all. If the system does not tell, it is the
    /// time in which it did not run, also because it waited for another thread.
    fn until_now(self, wall: f64) -> f64 {
        let now = Self::now();
        match (self.told, now.told) {
            // A kernel that does not count tells zeros.
            (Some([_, before]), Some([ran, waited])) if ran > 0.0 => waited - before,
            _ => wall - (now.ran - self.ran),
        }
    }
}

/// How long the calling thread has had a processor.
fn nanoseconds_on_a_processor() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on every Unix, and the pointer is that of a live value.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Returns the share of one thread in `0..n`.
pub fn share(n: u64, threads: u64, thread: u64) -> std::ops::Range<u64> {
    n * thread / threads..n * (thread + 1) / threads
}

/// Returns the median of the values, or NaN if there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
