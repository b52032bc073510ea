//! The workloads, which are measured once per round and number of threads.
//!
//! A run uses three new filters: one is filled and then used item by item, one is filled and
//! searched in batches, and one grows from 64 KiB to the same number of items. Keys are integers
//! that are computed when they are needed. Hashing is part of the measured time. Hashes are random,
//! so consecutive keys are not neighbours in the table.

use super::answers::{Answers, Expected};
use super::timing::{all_cores, share, timed};
use crate::random::{mix, scaled};
use koel::{Builder, ConcurrentCuckooFilter};
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    Insert,
    InsertKnown,
    Hit,
    Miss,
    Remove,
    Mix,
    InsertMany,
    HitMany,
    InsertGrowing,
    HitGrowing,
    MissGrowing,
}

/// The groups of workloads, in display order.
pub const GROUPS: [(&str, &[Workload]); 3] = {
    use Workload::*;
    [
        ("One by one", &[Insert, InsertKnown, Hit, Miss, Remove, Mix]),
        ("In batches", &[InsertMany, HitMany]),
        ("Growing", &[InsertGrowing, HitGrowing, MissGrowing]),
    ]
};

/// The number of workloads.
pub const COUNT: usize = GROUPS[0].1.len() + GROUPS[1].1.len() + GROUPS[2].1.len();

impl Workload {
    /// Returns the name of the workload within its group.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Insert | Workload::InsertMany | Workload::InsertGrowing => "insert, new",
            Workload::InsertKnown => "insert, known",
            Workload::Hit | Workload::HitMany | Workload::HitGrowing => "lookup, hit",
            Workload::Miss | Workload::MissGrowing => "lookup, miss",
            Workload::Remove => "remove",
            Workload::Mix => "mix 9 : 1",
        }
    }
}

/// The measurements so far.
#[derive(Default)]
pub struct Samples {
    /// Million operations a second, by workload and number of threads.
    pub rates: BTreeMap<(Workload, u64), Vec<f64>>,
    /// The number of measurements on several cores, and how many of those lacked free cores.
    pub of_several: u64,
    pub short_of_cores: u64,
}

/// The number of keys in a batch.
pub const BATCH: u64 = 1 << 16;
/// In the mix, one operation in ten is an insert.
const TEN: u64 = 10;
/// The number of attempts to get all cores.
const TRIES: u32 = 3;
/// Keys from here on are never inserted.
const ABSENT: u64 = 1 << 48;
/// The rate of 16-bit fingerprints in a filter that grows by a factor of 1,024.
const GROWING_RATE: f64 = 0.001_4;

/// Builds a fixed filter for a number of items, with 16-bit fingerprints.
pub fn fixed(items: u64) -> Result<ConcurrentCuckooFilter, String> {
    let items = usize::try_from(items).unwrap_or(usize::MAX);
    built(ConcurrentCuckooFilter::builder().capacity(items))
}

/// Builds the smallest growing filter, with 16-bit fingerprints.
fn smallest() -> Result<ConcurrentCuckooFilter, String> {
    let builder = ConcurrentCuckooFilter::builder().capacity(1).growing();
    built(builder.false_positive_rate(GROWING_RATE))
}

/// Builds a filter. An error, which can only be a lack of memory, is replaced by one about `--size`.
fn built(builder: Builder) -> Result<ConcurrentCuckooFilter, String> {
    builder
        .build()
        .map_err(|_| String::from("not enough memory for the table; use a smaller --size"))
}

/// One run on one number of threads.
pub struct Run<'a> {
    /// The number of items that fill a filter.
    pub items: u64,
    pub threads: u64,
    /// The number of cores.
    pub cores: u64,
    pub samples: &'a mut Samples,
    /// Called after each workload.
    pub done: &'a dyn Fn(),
}

impl Run<'_> {
    /// Runs all workloads once. Fails on wrong answers, or if there is not enough memory.
    pub fn measure(&mut self) -> Result<(), String> {
        self.one_by_one(&fixed(self.items)?)?;
        self.in_batches(&fixed(self.items)?)?;
        let growing = smallest()?;
        self.fill(Workload::InsertGrowing, &growing)?;
        self.look(Workload::HitGrowing, &growing)?;
        self.look_for_absent(Workload::MissGrowing, &growing)
    }

    fn one_by_one(&mut self, filter: &ConcurrentCuckooFilter) -> Result<(), String> {
        self.fill(Workload::Insert, filter)?;
        let items = self.items;
        let known = self.time(Workload::InsertKnown, self.lookups(), 1, |part, answers| {
            part.for_each(|n| answers.inserted(filter.insert_if_absent(&nth(n, items))));
        });
        self.check(Workload::InsertKnown, filter, known, Expected::lookups(0.0, held(filter)))?;
        self.look(Workload::Hit, filter)?;
        self.look_for_absent(Workload::Miss, filter)?;

        // Some items are removed here, and the same number of others is inserted by the mix.
        let changes = (items / 8).min(1 << 19);
        let (kept, before, rate) = (items - changes, held(filter), rate_of(filter));
        let removed = self.time(Workload::Remove, changes, 1, |part, answers| {
            part.for_each(|n| answers.changed += u64::from(filter.remove(&(kept + n))));
        });
        let left = before.saturating_sub(removed.changed);
        let expected = Expected { changes, shared: 0, rate, held: left };
        self.check(Workload::Remove, filter, removed, expected)?;

        let mixed = self.time(Workload::Mix, changes, TEN, |part, answers| {
            for ten in part {
                let random = mix(ten);
                let insert = scaled(random, TEN);
                for at in 0..TEN {
                    let key = scaled(random.rotate_left(6 * at as u32 + 6), kept);
                    if at == insert {
                        answers.inserted(filter.insert_if_absent(&(items + ten)));
                    } else if random >> at & 1 == 0 {
                        answers.lost += u64::from(!filter.contains(&key));
                    } else {
                        answers.absent += 1;
                        answers.mistaken += u64::from(filter.contains(&(key + ABSENT)));
                    }
                }
            }
        });
        // Two items with the same fingerprint are stored once. Removing one removes the other.
        let shared = (TEN - 1) * changes;
        let expected = Expected { changes, shared, rate, held: left + mixed.changed };
        self.check(Workload::Mix, filter, mixed, expected)
    }

    fn in_batches(&mut self, filter: &ConcurrentCuckooFilter) -> Result<(), String> {
        let (items, lookups) = (self.items, self.lookups());
        let inserted = self.time(Workload::InsertMany, items, 1, |part, answers| {
            batches(
                part,
                |n| n,
                |keys| {
                    let outcomes = filter.insert_if_absent_many(keys);
                    outcomes.into_iter().for_each(|outcome| answers.inserted(outcome));
                },
            );
        });
        self.check_fill(Workload::InsertMany, filter, inserted)?;
        let found = self.time(Workload::HitMany, lookups, 1, |part, answers| {
            batches(
                part,
                |n| nth(n, items),
                |keys| {
                    let lost =
                        filter.contains_many(keys).into_iter().filter(|found| !found).count();
                    answers.lost += lost as u64;
                },
            );
        });
        self.check(Workload::HitMany, filter, found, Expected::lookups(0.0, held(filter)))
    }

    fn fill(&mut self, workload: Workload, filter: &ConcurrentCuckooFilter) -> Result<(), String> {
        let inserted = self.time(workload, self.items, 1, |part, answers| {
            part.for_each(|n| answers.inserted(filter.insert_if_absent(&n)));
        });
        self.check_fill(workload, filter, inserted)
    }

    /// Looks up inserted items.
    fn look(&mut self, workload: Workload, filter: &ConcurrentCuckooFilter) -> Result<(), String> {
        let (items, lookups) = (self.items, self.lookups());
        let looked = self.time(workload, lookups, 1, |part, answers| {
            let keys = part.map(|n| nth(n, items));
            answers.lost += keys.filter(|key| !filter.contains(key)).count() as u64;
        });
        self.check(workload, filter, looked, Expected::lookups(0.0, held(filter)))
    }

    /// Looks up absent items. Each of them once: one that is found would be found again, and the
    /// check of the answers takes them for independent.
    fn look_for_absent(
        &mut self,
        workload: Workload,
        filter: &ConcurrentCuckooFilter,
    ) -> Result<(), String> {
        let looked = self.time(workload, self.lookups(), 1, |part, answers| {
            answers.absent += part.end - part.start;
            let keys = part.map(|n| ABSENT + n);
            answers.mistaken += keys.filter(|key| filter.contains(key)).count() as u64;
        });
        self.check(workload, filter, looked, Expected::lookups(rate_of(filter), held(filter)))
    }

    /// The number of lookups: enough for some milliseconds, and less than a second for large
    /// tables.
    fn lookups(&self) -> u64 {
        (8 * self.items).clamp(1 << 18, 1 << 21)
    }

    /// Times `work` on each thread's share of `0..parts`. A part is `operations` operations.
    fn time(
        &mut self,
        workload: Workload,
        parts: u64,
        operations: u64,
        work: impl Fn(Range<u64>, &mut Answers) + Sync,
    ) -> Answers {
        let threads = self.threads;
        if threads > 1 && threads <= self.cores {
            self.samples.of_several += 1;
            self.samples.short_of_cores += u64::from(!all_cores(threads, TRIES));
        }
        let (time, answers) = timed(threads, |thread| {
            let mut answers = Answers::default();
            work(share(parts, threads, thread), &mut answers);
            answers
        });
        // The clock may not advance. The minimum avoids a division by zero.
        let seconds = time.as_secs_f64().max(1e-9);
        let rate = (parts * operations) as f64 / seconds / 1e6;
        self.samples.rates.entry((workload, threads)).or_default().push(rate);
        (self.done)();
        answers.into_iter().fold(Answers::default(), |all, one| all + one)
    }

    fn check_fill(
        &self,
        workload: Workload,
        filter: &ConcurrentCuckooFilter,
        answers: Answers,
    ) -> Result<(), String> {
        let (changes, rate) = (self.items, rate_of(filter));
        let expected = Expected { changes, shared: 0, rate, held: answers.changed };
        self.check(workload, filter, answers, expected)
    }

    fn check(
        &self,
        workload: Workload,
        filter: &ConcurrentCuckooFilter,
        answers: Answers,
        expected: Expected,
    ) -> Result<(), String> {
        expected.check(answers, held(filter)).map_err(|what| {
            format!(
                "wrong answers in {workload:?} with {} threads: {what}; please report this as a bug \
                 in koel, unless this machine's memory is faulty",
                self.threads
            )
        })
    }
}

fn held(filter: &ConcurrentCuckooFilter) -> u64 {
    filter.len() as u64
}

fn rate_of(filter: &ConcurrentCuckooFilter) -> f64 {
    filter.stats().false_positive_rate
}

/// Passes the keys of a range of numbers to `work`, a batch at a time.
fn batches(numbers: Range<u64>, key: impl Fn(u64) -> u64, mut work: impl FnMut(&[u64])) {
    let mut keys = Vec::new();
    for first in numbers.clone().step_by(BATCH as usize) {
        keys.clear();
        keys.extend((first..numbers.end.min(first + BATCH)).map(&key));
        work(&keys);
    }
}

/// Visits all of `0..items` evenly, in strides of more than half of it.
#[inline]
fn nth(n: u64, items: u64) -> u64 {
    scaled(n.wrapping_mul(0x9E37_79B9_7F4A_7C15), items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn run(threads: u64, samples: &mut Samples) -> Result<(), String> {
        Run { items: 20_000, threads, cores: 1, samples, done: &|| {} }.measure()
    }

    #[test]
    fn each_workload_is_measured_on_any_number_of_threads() {
        let mut samples = Samples::default();
        for threads in [1, 3] {
            run(threads, &mut samples).unwrap();
        }
        let shown: usize = GROUPS.iter().map(|(_, workloads)| workloads.len()).sum();
        assert_eq!(shown, COUNT);
        for workload in GROUPS.iter().flat_map(|(_, workloads)| *workloads) {
            for threads in [1, 3] {
                let rates = &samples.rates[&(*workload, threads)];
                assert!(rates.len() == 1 && rates[0] > 0.0, "{workload:?}");
            }
        }
    }

    #[test]
    fn lookups_go_through_all_items() {
        let met: HashSet<u64> = (0..8_000).map(|n| nth(n, 1_000)).collect();
        assert_eq!(met.len(), 1_000);
    }

    #[test]
    fn batches_are_all_keys_in_order() {
        let mut keys = Vec::new();
        batches(5..2 * BATCH + 7, |n| n, |batch| keys.extend_from_slice(batch));
        assert!(keys.into_iter().eq(5..2 * BATCH + 7));
    }
}
