//! How long single operations take, while something else is done.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// How often something took so many nanoseconds: 16 steps for each power of two.
pub struct Waits {
    counts: Box<[u64; 1_024]>,
    longest: u64,
}

impl Waits {
    pub fn new() -> Self {
        Waits { counts: Box::new([0; 1_024]), longest: 0 }
    }

    /// Notes the time since `last`, and returns the time now.
    #[inline]
    pub fn since(&mut self, last: Instant) -> Instant {
        let now = Instant::now();
        self.note(now.duration_since(last).as_nanos() as u64);
        now
    }

    #[inline]
    fn note(&mut self, nanos: u64) {
        // The place is the highest bit, and the four bits after it.
        let power = nanos.max(1).ilog2();
        let sixteenth = if power < 4 { nanos << (4 - power) } else { nanos >> (power - 4) };
        self.counts[(power * 16) as usize | (sixteenth & 15) as usize] += 1;
        self.longest = self.longest.max(nanos);
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the time that this part of all operations did not exceed.
    pub fn within(&self, part: f64) -> u64 {
        let enough = (self.count() as f64 * part).ceil() as u64;
        let mut so_far = 0;
        let place = self.counts.iter().position(|count| {
            so_far += count;
            so_far >= enough
        });
        // The beginning of the next step.
        let (power, sixteenth) = place.map_or((0, 0), |at| (at / 16, at as u64 % 16 + 17));
        self.longest.min(((u128::from(sixteenth) << power) / 16) as u64)
    }

    /// Adds up what several threads have noted.
    pub fn sum(all: impl IntoIterator<Item = Waits>) -> Waits {
        all.into_iter().fold(Waits::new(), |mut sum, one| {
            sum.counts.iter_mut().zip(&*one.counts).for_each(|(sum, one)| *sum += one);
            sum.longest = sum.longest.max(one.longest);
            sum
        })
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
        let (waits, numbers): (Vec<Waits>, Vec<u64>) = runs.unzip();
        (Waits::sum(waits), numbers.into_iter().max().unwrap_or(first), done)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_know_their_shares() {
        let mut waits = Waits::new();
        (0..99).for_each(|_| waits.note(100));
        waits.note(3_000_000);
        for (part, nanos) in [(0.5, 100.0), (0.99, 100.0), (1.0, 3e6)] {
            let ratio = waits.within(part) as f64 / nanos;
            assert!((1.0..=1.07).contains(&ratio), "{part}: {ratio}");
        }
    }
}
