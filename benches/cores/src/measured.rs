//! What the operations take on the cores that there are.

use crate::crew::{Time, share, timed};
use crate::machine::Machine;
use koel::{ConcurrentCuckooFilter, Prehashed};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

pub type Filter = ConcurrentCuckooFilter;

/// The first absent key: the keys `0..n` are inserted, keys from here on are not. The filter mixes the hashes that it is
/// given, so consecutive numbers go to unrelated buckets.
const ABSENT: u64 = 1 << 40;

pub struct Size {
    pub bytes: usize,
    pub reps: usize,
    /// The least number of inserts that each thread does in a measurement.
    pub least: u64,
}

#[derive(Default)]
pub struct Measured {
    /// Nanoseconds of an operation by all threads together, by workload and number of threads.
    times: BTreeMap<(&'static str, usize), Vec<f64>>,
    /// Splits per operation.
    splits: BTreeMap<&'static str, f64>,
    /// The nanoseconds of a split, or zero.
    pub split: f64,
}

/// A filter that grows from the smallest.
pub fn smallest() -> Filter {
    let builder = Filter::builder().capacity(1).growing();
    builder.false_positive_rate(0.001_4).build().expect("memory")
}

impl Measured {
    /// Nanoseconds of an operation of one thread: the least of the repetitions, since other programs only ever add to
    /// them. `None` if none had all its processors.
    pub fn nanoseconds(&self, workload: &'static str, threads: usize) -> Option<f64> {
        let least = self.times.get(&(workload, threads))?.iter().copied().min_by(f64::total_cmp)?;
        Some(least * threads as f64)
    }

    /// Million operations a second.
    pub fn throughput(&self, workload: &'static str, threads: usize) -> Option<f64> {
        Some(threads as f64 * 1e3 / self.nanoseconds(workload, threads)?)
    }

    pub fn splits(&self, workload: &'static str) -> f64 {
        self.splits.get(workload).copied().unwrap_or(0.0)
    }
}

/// Threads at work on a filter.
struct Work<'a> {
    machine: &'a Machine,
    threads: usize,
    measured: &'a mut Measured,
    /// The time and the operations of this repetition, by workload.
    done: BTreeMap<&'static str, (Time, u64)>,
}

impl Work<'_> {
    fn note(
        &mut self,
        workload: &'static str,
        operations: u64,
        filter: &Filter,
        work: impl Fn(u64) + Sync,
    ) {
        let splits = || filter.stats().splits as f64;
        let before = splits();
        let processors: Vec<usize> = (0..self.threads).collect();
        let time = timed(self.machine, &processors, work);
        let (all_time, all_operations) = self.done.entry(workload).or_default();
        all_time.wall += time.wall;
        all_time.waited += time.waited;
        *all_operations += operations;
        self.measured.splits.insert(workload, (splits() - before) / operations as f64);
    }
}

impl Size {
    /// Measures all workloads on these numbers of threads, in new filters for a number of items.
    pub fn measure(
        &self,
        machine: &Machine,
        counts: &[usize],
        new: impl Fn(usize) -> Filter,
    ) -> Measured {
        let slots = Filter::with_capacity((self.bytes as f64 / 2.0 * 0.93) as usize).stats().slots;
        let keys = (slots as f64 * 0.93) as u64;
        let mut measured = Measured::default();
        for _ in 0..self.reps {
            for &threads in counts {
                let done = BTreeMap::new();
                let mut work = Work { machine, threads, measured: &mut measured, done };
                // A small filter is soon full, so many threads fill several, one after the other.
                for pass in 0..(threads as u64 * self.least / keys).max(1) {
                    let lookups = (pass == 0).then(|| keys.max(4 * threads as u64 * self.least));
                    one_pass(&mut work, keys, lookups, || new(keys as usize));
                }
                let done = work.done.into_iter().filter(|(_, (time, _))| time.had_processors());
                for (workload, (time, operations)) in done {
                    let times = measured.times.entry((workload, threads)).or_default();
                    times.push(time.wall / operations as f64);
                }
            }
        }
        measured.split = split(keys, &new(keys as usize));
        measured
    }
}

fn one_pass(work: &mut Work<'_>, keys: u64, lookups: Option<u64>, new: impl Fn() -> Filter) {
    let threads = work.threads as u64;
    let own = |thread| share(keys, threads, thread);
    let filter = new();
    work.note("insert, new", keys, &filter, |thread| {
        own(thread).for_each(|key| filter.insert(&Prehashed(key)).expect("room"));
    });
    let filter = new();
    work.note("insert_if_absent, new", keys, &filter, |thread| {
        own(thread).for_each(|key| _ = black_box(filter.insert_if_absent(&Prehashed(key))));
    });
    if let Some(lookups) = lookups {
        work.note("lookup, hit", lookups, &filter, |thread| {
            let mut numbers = share(lookups, threads, thread);
            assert!(numbers.all(|number| filter.contains(&Prehashed(number % keys))));
        });
        work.note("lookup, miss", lookups, &filter, |thread| {
            let absent = share(lookups, threads, thread).map(|key| ABSENT + key);
            black_box(absent.filter(|key| filter.contains(&Prehashed(*key))).count());
        });
    }
    // Nine lookups, half of them hits, to one insert.
    let kept = keys / 8 * 7;
    (kept..keys).for_each(|key| _ = filter.remove(&Prehashed(key)));
    work.note("mix 9 : 1", 10 * (keys - kept), &filter, |thread| {
        for number in share(10 * (keys - kept), threads, thread) {
            let random = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            match number % 10 {
                0 => _ = black_box(filter.insert_if_absent(&Prehashed(keys + number))),
                1..=5 => _ = black_box(filter.contains(&Prehashed((random * kept) >> 32))),
                _ => _ = black_box(filter.contains(&Prehashed(ABSENT + random))),
            }
        }
    });
}

/// The mean time of an insert that splits a shard: as many of the longest inserts as there are splits.
fn split(keys: u64, filter: &Filter) -> f64 {
    let keys = keys.min(4_000_000);
    let insert = |key| {
        let start = Instant::now();
        filter.insert(&Prehashed(key)).expect("room");
        start.elapsed().as_nanos() as u64
    };
    let mut times: Vec<u64> = (0..keys).map(insert).collect();
    let splits = filter.stats().splits;
    if splits == 0 {
        return 0.0;
    }
    times.sort_unstable_by(|a, b| b.cmp(a));
    // The median of them: a few also waited for memory, or for the processor.
    times.get(splits / 2).copied().unwrap_or(0) as f64
}
