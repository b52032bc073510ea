//! How long single operations take, while something else is done.

use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// How often something took so many nanoseconds, up to a minute, to two digits.
pub struct Waits(Histogram<u64>);

impl Waits {
    pub fn new() -> Self {
        Waits(Histogram::new_with_max(60_000_000_000, 2).expect("valid bounds"))
    }

    /// Notes the time since `last`, and returns the time now.
    #[inline]
    pub fn since(&mut self, last: Instant) -> Instant {
        let now = Instant::now();
        self.0.saturating_record(now.duration_since(last).as_nanos() as u64);
        now
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the time that this part of all operations did not exceed.
    pub fn within(&self, part: f64) -> u64 {
        self.0.value_at_quantile(part)
    }
}

/// Times `operation(number)` on `threads` threads until `meanwhile` ends. Thread `t` takes the numbers `first + t`,
/// `first + t + threads`, and so on. Returns a number beyond all that were used as well.
pub fn watch<T>(
    (threads, first): (u64, u64),
    operation: impl Fn(u64) + Sync,
    meanwhile: impl FnOnce() -> T,
) -> (Waits, u64, T) {
    let is_over = AtomicBool::new(false);
    let run = |thread| {
        let (mut waits, mut number, mut last) = (Waits::new(), first + thread, Instant::now());
        while !is_over.load(Relaxed) {
            operation(number);
            last = waits.since(last);
            number += threads;
        }
        (waits, number)
    };
    std::thread::scope(|scope| {
        let run = &run;
        let spawned: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        let done = meanwhile();
        is_over.store(true, Relaxed);
        let runs = spawned.into_iter().map(|it| it.join().expect("no operation panics"));
        let (mut all, mut beyond) = (Waits::new(), first);
        for (waits, number) in runs {
            all.0.add(&waits.0).expect("the same bounds");
            beyond = beyond.max(number);
        }
        (all, beyond, done)
    })
}
