//! How long an add takes while a checkpoint is made.

use crate::set::{Result, item};
use koel::{ConcurrentCuckooFilter, DurableFilter, StableHash, SyncPolicy};
use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const THREADS: u64 = 2;

/// How often something took so long: eight steps for each doubling of nanoseconds.
struct Histogram([u64; 512]);

impl Histogram {
    fn new() -> Self {
        Histogram([0; 512])
    }

    fn note(&mut self, took: Duration) {
        let nanos = (took.as_nanos() as u64).max(8);
        let power = nanos.ilog2();
        let step = (nanos >> (power - 3)) & 7;
        self.0[(power as usize * 8 + step as usize).min(511)] += 1;
    }

    fn add(&mut self, other: &Histogram) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own += other);
    }

    fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// A time that this share of them did not exceed.
    fn within(&self, share: f64) -> Duration {
        let wanted = (self.count() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (at, count) in self.0.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                let (power, step) = (at as u32 / 8, at as u64 % 8);
                return Duration::from_nanos((9 + step) << power.saturating_sub(3));
            }
        }
        Duration::MAX
    }
}

pub fn waits(folder: &Path, test: bool) -> Result<String> {
    let scratch = tempfile::tempdir_in(folder)?;
    let path = scratch.path().join("seen.koel");
    let (items, checkpoints) = if test { (100_000, 1) } else { (233_000_000, 5) };
    let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    let builder = builder.false_positive_rate(1e-6).capacity(items as usize).growing();

    // In memory, and while it is saved, which copies its shards, too.
    let memory = builder.clone().build()?;
    let half = items / 2;
    for start in (0..half).step_by(1 << 20) {
        let hashes: Vec<u64> = (start..half.min(start + (1 << 20))).map(item).collect();
        memory.par_insert_many(&hashes).into_iter().try_for_each(|added| added)?;
    }
    let size = memory.size_in_bytes();
    let mut text = format!(
        "{} MiB, {half} items to begin with, {THREADS} threads that add new items one by one, {} cores\n  {:40}{:>12}{:>11}{:>11}{:>11}{:>11}{:>11}\n",
        size >> 20,
        std::thread::available_parallelism()?,
        "",
        "adds",
        "50 %",
        "99 %",
        "99.99 %",
        "99.9999 %",
        "longest"
    );
    let pause = Duration::from_millis(if test { 20 } else { 2_000 });
    let mut next = half;
    let mut row = |name: &str, adds: &(dyn Fn(u64) + Sync), meanwhile: &dyn Fn() -> Result<()>| {
        eprintln!("{name}");
        let (histogram, longest, took) = latencies(&mut next, adds, meanwhile)?;
        let _ = write!(text, "  {name:40}{:12}", histogram.count());
        for share in [0.5, 0.99, 0.9999, 0.999_999] {
            let _ = write!(text, "{:>11}", micros(histogram.within(share).min(longest)));
        }
        let _ = writeln!(text, "{:>11}   in {:.1} s", micros(longest), took.as_secs_f64());
        Result::Ok(())
    };
    let rest = || {
        std::thread::sleep(pause);
        Ok(())
    };
    let add = |number| {
        black_box(memory.insert_if_absent(&item(number))).expect("room");
    };
    row("in memory", &add, &rest)?;
    let other = scratch.path().join("other.koel");
    let save = || (0..checkpoints).try_for_each(|_| Ok(memory.save(&other).map(|_| ())?));
    row(&format!("in memory, during {checkpoints} saves"), &add, &save)?;

    std::fs::rename(&other, &path)?;
    drop(memory);
    let durable = DurableFilter::open_with(&path, SyncPolicy::default(), || builder.build())?;
    let add = |number| {
        black_box(durable.insert_if_absent(&item(number))).expect("room and disk");
    };
    row("durable, synced every second", &add, &rest)?;
    let checkpoint = || (0..checkpoints).try_for_each(|_| Ok(durable.checkpoint()?));
    row(&format!("the same, during {checkpoints} checkpoints"), &add, &checkpoint)?;
    Ok(text)
}

fn micros(took: Duration) -> String {
    let micros = took.as_secs_f64() * 1e6;
    if micros < 1e3 { format!("{micros:.2} µs") } else { format!("{:.2} ms", micros / 1e3) }
}

/// Adds new items on all threads until something else is done.
fn latencies(
    next: &mut u64,
    add: &(dyn Fn(u64) + Sync),
    meanwhile: &dyn Fn() -> Result<()>,
) -> Result<(Histogram, Duration, Duration)> {
    let is_over = AtomicBool::new(false);
    let first = *next;
    let start = Instant::now();
    let done: Result<Vec<(Histogram, Duration, u64)>> = std::thread::scope(|scope| {
        let is_over = &is_over;
        let run = move |thread| {
            let (mut histogram, mut longest, mut number) =
                (Histogram::new(), Duration::ZERO, first + thread);
            while !is_over.load(Relaxed) {
                let start = Instant::now();
                add(number);
                let took = start.elapsed();
                histogram.note(took);
                longest = longest.max(took);
                number += THREADS;
            }
            (histogram, longest, number)
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
        let done = meanwhile();
        is_over.store(true, Relaxed);
        let runs =
            threads.into_iter().map(|thread| thread.join().expect("no add panics")).collect();
        done.map(|()| runs)
    });
    let mut all = Histogram::new();
    let mut longest = Duration::ZERO;
    for (histogram, most, number) in done? {
        all.add(&histogram);
        longest = longest.max(most);
        *next = (*next).max(number);
    }
    Ok((all, longest, start.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_knows_its_shares() {
        let mut histogram = Histogram::new();
        (0..99).for_each(|_| histogram.note(Duration::from_nanos(100)));
        histogram.note(Duration::from_millis(3));
        let near = |took: Duration, nanos: f64| {
            let ratio = took.as_nanos() as f64 / nanos;
            assert!((1.0..=1.13).contains(&ratio), "{took:?} for {nanos} ns");
        };
        near(histogram.within(0.5), 100.0);
        near(histogram.within(0.99), 100.0);
        near(histogram.within(1.0), 3e6);
    }
}
