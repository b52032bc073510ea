//! What the operations take on the cores that there are.

use crate::common::{ABSENT, Filter, filter_of, keys_at, share};
use crate::transfer::on_cores;
use koel::Prehashed;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

pub struct Size {
    pub bytes: usize,
    pub reps: usize,
}

#[derive(Default)]
pub struct Measured {
    /// Nanoseconds of one thread, and splits per operation, by workload and number of threads.
    times: BTreeMap<(&'static str, u64), Vec<f64>>,
    splits: BTreeMap<&'static str, f64>,
    /// The nanoseconds of a split, or zero.
    pub split: f64,
}

pub fn smallest() -> Filter {
    let builder = Filter::builder().capacity(1).growing();
    builder.false_positive_rate(0.001_4).build().expect("memory")
}

impl Measured {
    /// The least of the repetitions: other programs only ever add to them.
    pub fn nanoseconds(&self, workload: &'static str, threads: u64) -> f64 {
        self.times[&(workload, threads)].iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn splits(&self, workload: &'static str) -> f64 {
        self.splits.get(workload).copied().unwrap_or(0.0)
    }

    fn note(
        &mut self,
        workload: &'static str,
        threads: u64,
        operations: u64,
        filter: &Filter,
        work: impl Fn(u64) + Sync,
    ) {
        let splits = || filter.stats().splits as f64;
        let before = splits();
        let (time, had_cores) = on_cores(threads, work);
        let times = self.times.entry((workload, threads)).or_default();
        if threads == 1 || had_cores {
            times.push(time * threads as f64 / operations as f64);
        }
        self.splits.insert(workload, (splits() - before) / operations as f64);
    }
}

impl Size {
    /// Measures all workloads on one and on two threads, in new filters for a number of items.
    pub fn measure(&self, new: impl Fn(usize) -> Filter) -> Measured {
        let keys = keys_at(&filter_of(self.bytes), 0.93);
        let mut measured = Measured::default();
        for _ in 0..self.reps {
            for threads in [1, 2] {
                one_repetition(&mut measured, threads, keys, || new(keys as usize));
            }
        }
        measured.split = split(keys, &new(keys as usize));
        measured
    }
}

fn one_repetition(measured: &mut Measured, threads: u64, keys: u64, new: impl Fn() -> Filter) {
    let own = |thread| share(keys, threads, thread);
    let filter = new();
    measured.note("insert, new", threads, keys, &filter, |thread| {
        own(thread).for_each(|key| filter.insert(&Prehashed(key)).expect("room"));
    });
    let filter = new();
    measured.note("insert_if_absent, new", threads, keys, &filter, |thread| {
        own(thread).for_each(|key| _ = black_box(filter.insert_if_absent(&Prehashed(key))));
    });
    let looked_up = keys.min(1 << 24);
    measured.note("lookup, hit", threads, looked_up, &filter, |thread| {
        assert!(share(looked_up, threads, thread).all(|key| filter.contains(&Prehashed(key))));
    });
    measured.note("lookup, miss", threads, looked_up, &filter, |thread| {
        let absent = share(looked_up, threads, thread).map(|key| ABSENT + key);
        black_box(absent.filter(|key| filter.contains(&Prehashed(*key))).count());
    });
    // As `koel bench` has it: nine lookups, half of them hits, to one insert.
    let kept = keys / 8 * 7;
    (kept..keys).for_each(|key| _ = filter.remove(&Prehashed(key)));
    measured.note("mix 9 : 1", threads, 10 * (keys - kept), &filter, |thread| {
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
