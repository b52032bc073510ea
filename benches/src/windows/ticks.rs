//! How fast a tick goes through a large filter, beside a plain pass that reads and writes every word.

use super::sets::WINDOW;
use crate::kit::figures::median;
use koel::ConcurrentCuckooFilter;
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

const REPETITIONS: usize = 9;

/// A filter of this many bytes, of which a part of the items goes with each tick.
pub fn ticks(test: bool) -> String {
    let bytes: usize = if test { 1 << 20 } else { 1 << 30 };
    let mut text = format!(
        "Filters of {} MiB, filled to their capacity in {} ticks; GiB a second, medians of {REPETITIONS}.\n\n\
         fingerprint bits   plain pass   tick   of the plain pass   tick, all cores\n",
        bytes >> 20,
        WINDOW + 1
    );
    for rate in [1e-2, 1e-5] {
        // Of these bits, some are a stamp.
        let builder = |capacity| {
            let builder = ConcurrentCuckooFilter::builder().capacity(capacity);
            builder.false_positive_rate(rate).remembers(WINDOW as u32)
        };
        let some = builder(1 << 20).build().expect("memory").size_in_bytes();
        let capacity = (bytes as f64 / some as f64 * f64::from(1 << 20)) as usize;
        let filter = builder(capacity).build().expect("memory");
        let mut plain = vec![1_u64; filter.size_in_bytes() / 8];
        let each = capacity as u64 / (WINDOW + 1);
        let mut next = 0;
        let mut fill = || {
            let items: Vec<u64> = (next..next + each).collect();
            next += each;
            filter.par_insert_many(&items).into_iter().for_each(|one| one.expect("room"));
        };
        for _ in 0..WINDOW {
            fill();
            filter.tick();
        }
        fill();
        let (mut of_plain, mut of_tick, mut of_all) = (Vec::new(), Vec::new(), Vec::new());
        let seconds = |act: &mut dyn FnMut()| {
            let start = Instant::now();
            act();
            start.elapsed().as_secs_f64()
        };
        for _ in 0..REPETITIONS {
            of_plain.push(seconds(&mut || {
                black_box(&mut plain).iter_mut().for_each(|word| *word = word.wrapping_mul(3) ^ 1);
            }));
            of_tick.push(seconds(&mut || filter.tick()));
            fill();
            of_all.push(seconds(&mut || tick_on_all_cores(&filter)));
            fill();
        }
        let gib = filter.size_in_bytes() as f64 / f64::from(1 << 30);
        let [plain, tick, all] = [of_plain, of_tick, of_all].map(|times| gib / median(times));
        let bits = filter.stats().fingerprint_bits;
        let _ = writeln!(text, "{bits:16}{plain:13.1}{tick:7.1}{:20.2}{all:18.1}", tick / plain);
    }
    text
}

/// Lets a tick pass, with one thread a core.
fn tick_on_all_cores(filter: &ConcurrentCuckooFilter) {
    assert!(filter.begin_tick());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 1..cores {
            scope.spawn(|| filter.tick_in_parts(usize::MAX));
        }
        assert!(filter.tick_in_parts(usize::MAX), "the tick has passed");
    });
}
