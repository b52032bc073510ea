//! The size of a run, the measurement of its parts, and the check of their answers.

use crate::timing::{all_cores, share, timed};
use std::iter::Sum;
use std::ops::Range;

/// The size of a run.
pub struct Plan {
    pub items: u64,
    pub threads: u64,
    /// The first key. Each repetition has its own keys.
    pub first: u64,
    /// The approximate number of lookups in a workload.
    pub lookups: u64,
    /// The largest number of new keys in a check-and-insert, and of removals.
    pub changes: u64,
    /// The approximate largest number of keys in the streams of the crawl.
    pub crawled: u64,
    /// The number of times that each lookup workload is measured on one filter.
    pub looks: u32,
    /// The number of times to test whether all cores are available.
    pub tries: u32,
}

/// The counts of wrong answers, and of operations that could have given them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Checks {
    /// Inserts that found no room.
    pub refused: u64,
    /// Keys that were inserted, and then not found or not removed.
    pub lost: u64,
    /// Lookups of keys that were never inserted. `false_positives` of them were found.
    pub absent: u64,
    pub false_positives: u64,
    /// Keys that were checked and inserted, most of them several times. `no_winner` of them were
    /// never new. `two_winners` counts the times that one was new again.
    pub keys: u64,
    pub two_winners: u64,
    pub no_winner: u64,
}

impl Checks {
    /// Returns the number of answers that a filter of this rate must not give.
    pub fn wrong(&self, rate: f64) -> u64 {
        let slack = if rate > 0.0 { 10.0 } else { 0.0 };
        let beyond =
            |found: u64, of: u64| found.saturating_sub((2.0 * rate * of as f64 + slack) as u64);
        self.lost
            + self.two_winners
            + beyond(self.false_positives, self.absent)
            + beyond(self.no_winner, self.keys)
    }
}

impl Sum for Checks {
    fn sum<I: Iterator<Item = Checks>>(all: I) -> Checks {
        all.fold(Checks::default(), |a, b| Checks {
            refused: a.refused + b.refused,
            lost: a.lost + b.lost,
            absent: a.absent + b.absent,
            false_positives: a.false_positives + b.false_positives,
            keys: a.keys + b.keys,
            two_winners: a.two_winners + b.two_winners,
            no_winner: a.no_winner + b.no_winner,
        })
    }
}

/// One measurement.
#[derive(Clone, Copy)]
pub struct Sample {
    pub workload: &'static str,
    pub operations: u64,
    pub seconds: f64,
    pub checks: Checks,
    /// Whether all cores were available right before the measurement.
    pub all_cores: bool,
}

impl Plan {
    /// Times `work(thread)` on all threads at once, and adds up the checks that they return.
    pub fn measure(
        &self,
        workload: &'static str,
        operations: u64,
        work: impl Fn(u64) -> Checks + Sync,
    ) -> Sample {
        let (mut sample, checks) = self.measure_all(workload, operations, work);
        sample.checks = checks.into_iter().sum();
        sample
    }

    /// Does the same for work that returns other results, and returns these.
    pub fn measure_all<T: Send>(
        &self,
        workload: &'static str,
        operations: u64,
        work: impl Fn(u64) -> T + Sync,
    ) -> (Sample, Vec<T>) {
        let all_cores = self.threads == 1 || all_cores(self.threads, self.tries);
        let (time, results) = timed(self.threads, work);
        let (seconds, checks) = (time.as_secs_f64(), Checks::default());
        (Sample { workload, operations, seconds, checks, all_cores }, results)
    }

    /// Returns the thread's share of these keys.
    pub fn share_of(&self, keys: &Range<u64>, thread: u64) -> Range<u64> {
        let share = share(keys.end - keys.start, self.threads, thread);
        let start = self.first + keys.start;
        start + share.start..start + share.end
    }
}

impl Sample {
    /// Subtracts refused keys from the lost ones: they cannot be found later.
    pub fn but_for(mut self, refused: u64) -> Self {
        self.checks.lost = self.checks.lost.saturating_sub(refused);
        self
    }

    /// Combines two consecutive measurements into one.
    pub fn and(&self, other: &Sample) -> Sample {
        Sample {
            operations: self.operations + other.operations,
            seconds: self.seconds + other.seconds,
            checks: [self.checks, other.checks].into_iter().sum(),
            all_cores: self.all_cores && other.all_cores,
            ..*self
        }
    }
}

/// The choice of keys for lookups: a sample of the keys of a large table, spread over it, or all
/// keys of a small table, several times over, so that starting the threads takes a negligible part
/// of the time.
pub struct Spread {
    pub keys: u64,
    stride: u64,
    pub rounds: u64,
}

impl Spread {
    pub fn of(items: u64, lookups: u64) -> Spread {
        let stride = (items / lookups).max(1);
        Spread { keys: items / stride, stride, rounds: (lookups / items).max(1) }
    }

    pub fn share(&self, plan: &Plan, thread: u64) -> impl Iterator<Item = u64> + Clone + use<> {
        let (first, stride) = (plan.first, self.stride);
        share(self.keys, plan.threads, thread).map(move |key| first + key * stride)
    }
}
