//! What it costs to move a cache line from one core to another.

use crate::common::{median, timed};
use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// In nanoseconds, by repetition.
#[derive(Default)]
pub struct Costs {
    /// One thread swaps a word of one line.
    pub swap: Vec<f64>,
    /// Two threads take turns with one line: each waits for the other's store.
    pub alone: Vec<f64>,
    /// Two threads load and then swap words of random lines, each of which is the other's in half of
    /// all cases, in the repetitions that had both cores. The load fetches the line, and the swap takes it away from the other.
    pub in_a_stream: Vec<f64>,
}

#[repr(align(64))]
struct Line(AtomicU64);

/// The lines of 2 MiB.
const LINES: usize = 1 << 15;

pub fn measure(reps: usize, test: bool) -> Costs {
    let rounds = if test { 10_000 } else { 1_000_000 };
    let lines: Vec<Line> = (0..LINES).map(|_| Line(AtomicU64::new(0))).collect();
    let each =
        |time: std::time::Duration, operations: u64| time.as_secs_f64() * 1e9 / operations as f64;
    let mut costs = Costs::default();
    for _ in 0..reps {
        let line = Line(AtomicU64::new(0));
        let swaps = timed(1, |_| (0..rounds).for_each(|_| _ = black_box(line.0.swap(1, Acquire))));
        costs.swap.push(each(swaps, rounds));

        let turns = Line(AtomicU64::new(0));
        let rounds_alone = rounds / 50;
        let time = timed(2, |thread| {
            for turn in (thread..rounds_alone).step_by(2) {
                let mut tries = 0;
                while turns.0.load(Acquire) != turn {
                    std::hint::spin_loop();
                    tries += 1;
                    // The other thread may wait for this one's core.
                    if tries % 1_000 == 0 {
                        std::thread::yield_now();
                    }
                }
                turns.0.store(turn + 1, Release);
            }
        });
        costs.alone.push(each(time, rounds_alone));

        let [(one, _), (two, had_cores)] = [1, 2].map(|threads| {
            on_cores(threads, |thread| {
                for number in 0..rounds {
                    let random = (number * 2 + thread).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    let word = &lines[(random >> 49) as usize].0;
                    let before = word.load(Relaxed);
                    black_box(word.compare_exchange(before, number, Acquire, Relaxed)).ok();
                }
            })
        });
        // Half of the loads wait for a transfer, and half of the swaps.
        if test || had_cores {
            costs.in_a_stream.push((two - one) / rounds as f64);
        }
    }
    costs
}

/// Runs `work` on some threads. Returns the nanoseconds that one of them had a core, the one that had
/// it longest, and whether all of them had one all the time.
pub fn on_cores(threads: u64, work: impl Fn(u64) + Sync) -> (f64, bool) {
    let times: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
    let wall = timed(threads, |thread| {
        let before = nanoseconds_on_a_core();
        work(thread);
        times[thread as usize].store(nanoseconds_on_a_core() - before, Relaxed);
    });
    let times = times.iter().map(|time| time.load(Relaxed) as f64);
    let (least, most) = times.fold((f64::MAX, 0.0_f64), |(a, b), time| (a.min(time), b.max(time)));
    (most, least > 0.95 * wall.as_nanos() as f64)
}

/// How long the calling thread has had a core.
fn nanoseconds_on_a_core() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on every Unix, and the pointer is that of a live value.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub fn print(costs: &Costs) {
    println!("{:46} {:>8} {:>8} {:>6}", "nanoseconds", "median", "least", "times");
    for (name, times) in [
        ("a swap of a word that the core has", &costs.swap),
        ("a transfer alone: two threads take turns", &costs.alone),
        ("a transfer in a stream, of random lines", &costs.in_a_stream),
    ] {
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let count = times.len();
        println!("  {name:44} {:8.1} {least:8.1} {count:6}", median(times.iter().copied()));
    }
}
