//! The workloads on sets that threads share. Each checks the answers that it gets.
//!
//! A run of all workloads on one peer uses two sets. The first is filled and searched, its items give way to others, and
//! these are removed. The second is filled by half, and then gets a mix of lookups and inserts, keys that threads race
//! for, and those of crawlers. Another koel is filled and searched with the batch methods. An item that was refused counts
//! as lost in what follows.

use super::sets::{Koel, Peer, hash_of};
use crate::kit::ABSENT;
use crate::kit::machine::{all_cores, share, timed};
use crate::kit::memory::{Watch, touched};
use std::collections::HashSet;
use std::ops::Range;

/// Keys from here on come in place of others.
const CHURNED: u64 = 1 << 42;
/// Keys from here on are those of the crawl. They are in no other workload.
const CRAWLED: u64 = 1 << 44;

/// The largest number of new keys in a check-and-insert in lockstep, and of removals.
const CHANGES: u64 = 1 << 21;

/// The number of keys in a batch of lookups.
const BATCH: usize = 1 << 16;

/// The size of a run.
pub struct Plan {
    /// The bytes of a table of 16-bit slots that the items fill to 94 %.
    pub size: u64,
    pub items: u64,
    pub threads: u64,
    /// The first key. Each repetition has its own keys.
    pub first: u64,
    /// The approximate number of lookups in a workload.
    pub lookups: u64,
    /// The approximate largest number of keys in the streams of the crawl.
    pub crawled: u64,
    /// The number of times that each lookup workload is measured on one set.
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
    /// Keys that were looked up, or checked and inserted, although they had never been inserted. `false_positives` of
    /// them were found, or never new.
    pub absent: u64,
    pub false_positives: u64,
    /// The times that a key was checked and inserted, and new again.
    pub two_winners: u64,
}

impl Checks {
    /// Returns the number of answers that a filter of this rate must not give.
    pub fn wrong(&self, rate: f64) -> u64 {
        let slack = if rate > 0.0 { 10.0 } else { 0.0 };
        let allowed = (2.0 * rate * self.absent as f64 + slack) as u64;
        self.lost + self.two_winners + self.false_positives.saturating_sub(allowed)
    }
}

impl std::iter::Sum for Checks {
    fn sum<I: Iterator<Item = Checks>>(all: I) -> Checks {
        all.fold(Checks::default(), |a, b| Checks {
            refused: a.refused + b.refused,
            lost: a.lost + b.lost,
            absent: a.absent + b.absent,
            false_positives: a.false_positives + b.false_positives,
            two_winners: a.two_winners + b.two_winners,
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

/// Returns the number of items that fill a table of 16-bit slots of this size to 94 %.
pub fn items(size: u64) -> u64 {
    (size as f64 / 2.0 * 0.94) as u64
}

impl Plan {
    pub fn of(test: bool, size: u64, threads: u64, rep: u64) -> Plan {
        Plan {
            size,
            items: items(size),
            threads,
            first: rep << 48,
            lookups: if test { 20_000 } else { 1 << 21 },
            crawled: 1 << 24,
            // Large tables have few repetitions.
            looks: if size >= 8 << 20 { 3 } else { 1 },
            tries: if test { 1 } else { 100 },
        }
    }

    /// Returns the number of inserts of the mix, each among nine lookups.
    fn tens(&self) -> u64 {
        self.items.min(self.lookups) / 10
    }

    /// Returns the number of keys that threads race for in lockstep: at most half of the room that the mix leaves.
    fn raced(&self) -> u64 {
        CHANGES.min((self.items - self.items / 2 - self.tens()) / 2)
    }

    /// Times `work(thread)` on all threads at once, and checks what they return.
    fn sample<T: Send>(
        &self,
        workload: &'static str,
        operations: u64,
        work: impl Fn(u64) -> T + Sync,
        check: impl FnOnce(Vec<T>) -> Checks,
    ) -> Sample {
        let all_cores = all_cores(self.threads, self.tries);
        let (time, done) = timed(self.threads, work);
        let (seconds, checks) = (time.as_secs_f64(), check(done));
        Sample { workload, operations, seconds, checks, all_cores }
    }

    /// Times `work(thread)`, and adds up the checks that it returns.
    pub fn measure(
        &self,
        workload: &'static str,
        operations: u64,
        work: impl Fn(u64) -> Checks + Sync,
    ) -> Sample {
        self.sample(workload, operations, work, |checks| checks.into_iter().sum())
    }

    /// Lets each thread check and insert the keys of its stream.
    fn claims(
        &self,
        workload: &'static str,
        peer: &(impl Peer + Sync),
        streams: &Streams,
    ) -> Sample {
        let claim = |thread| {
            let keys = &streams.of_threads[thread as usize];
            keys.iter().map(|&key| peer.claim(key)).collect()
        };
        self.sample(workload, streams.keys(), claim, |claims| streams.compare(&claims))
    }

    /// Returns the thread's share of these keys.
    fn share_of(&self, keys: &Range<u64>, thread: u64) -> Range<u64> {
        let share = share(keys.end - keys.start, self.threads, thread);
        let start = self.first + keys.start;
        start + share.start..start + share.end
    }
}

/// The choice of keys for lookups: a sample of the keys of a large table, spread over it, or all keys of a small table,
/// several times over, so that starting the threads takes a negligible part of the time.
struct Spread {
    keys: u64,
    stride: u64,
    rounds: u64,
}

impl Spread {
    fn of(items: u64, lookups: u64) -> Spread {
        let stride = (items / lookups).max(1);
        Spread { keys: items / stride, stride, rounds: (lookups / items).max(1) }
    }

    fn share(&self, plan: &Plan, thread: u64) -> impl Iterator<Item = u64> + Clone + use<> {
        let (first, stride) = (plan.first, self.stride);
        share(self.keys, plan.threads, thread).map(move |key| first + key * stride)
    }
}

/// Runs each workload once, except those that the peer does not support. Returns the samples, and the bytes that the
/// set held at most.
pub fn run<P: Peer + Sync>(
    plan: &Plan,
    crawl: &Streams,
    build: impl Fn(u64) -> P,
) -> (Vec<Sample>, usize) {
    let mut samples = Vec::new();
    let build = || build(plan.items);
    let bytes = fill_look_delete(plan, build(), &mut samples);
    mix_race_crawl(plan, crawl, &build(), &mut samples);
    (samples, bytes)
}

fn fill_look_delete(plan: &Plan, peer: impl Peer + Sync, samples: &mut Vec<Sample>) -> usize {
    // Tried while the set is empty: later, it could remove another key's fingerprint.
    let removes = peer.remove(plan.first).is_some();
    let fill = |workload, keys: Range<u64>| {
        plan.measure(workload, keys.end - keys.start, |thread| Checks {
            refused: insert(&peer, plan.share_of(&keys, thread)),
            ..Checks::default()
        })
    };
    let most = plan.items * 95 / 100;
    let (first, last) = (fill("fill", 0..most), fill("last 5 %", most..plan.items));
    samples.push(Sample {
        operations: plan.items,
        seconds: first.seconds + last.seconds,
        checks: [first.checks, last.checks].into_iter().sum(),
        all_cores: first.all_cores && last.all_cores,
        ..first
    });
    samples.push(last);

    let spread = Spread::of(plan.items, plan.lookups);
    look(plan, samples, ["hit", "miss"], |thread, first| {
        let keys = spread.share(plan, thread).map(|key| key + first);
        keys.filter(|&key| peer.contains(key)).count() as u64
    });

    if removes {
        let spread = Spread::of(plan.items, CHANGES.min(plan.items));
        samples.push(plan.measure("churn", 2 * spread.keys, |thread| {
            let mut checks = Checks::default();
            for key in spread.share(plan, thread) {
                checks.lost += u64::from(peer.remove(key) != Some(true));
                checks.refused += u64::from(!peer.insert(key + CHURNED));
            }
            checks
        }));
        samples.push(plan.measure("delete", spread.keys, |thread| {
            let keys = spread.share(plan, thread).map(|key| key + CHURNED);
            let lost = keys.filter(|&key| peer.remove(key) != Some(true)).count() as u64;
            Checks { lost, ..Checks::default() }
        }));
    }
    let (said, watch) = (peer.says_it_holds(), Watch::start());
    let own = size_of_val(&peer);
    drop(peer);
    touched(own + (-watch.held()) as usize, said)
}

/// Fills a filter and looks its keys up with the batch methods, which only koel has.
pub fn in_bulk(plan: &Plan, Koel(filter): &Koel) -> Vec<Sample> {
    let slice = |keys: &[u64], thread| {
        let range = share(keys.len() as u64, plan.threads, thread);
        range.start as usize..range.end as usize
    };
    let keys: Vec<u64> = (plan.first..plan.first + plan.items).collect();
    let mut samples = vec![plan.measure("bulk fill", plan.items, |thread| {
        let added = filter.insert_many(&keys[slice(&keys, thread)]);
        let refused = added.iter().filter(|added| added.is_err()).count() as u64;
        Checks { refused, ..Checks::default() }
    })];
    drop(keys);

    let spread = Spread::of(plan.items, plan.lookups);
    let there: Vec<u64> = (0..plan.threads).flat_map(|t| spread.share(plan, t)).collect();
    let absent: Vec<u64> = there.iter().map(|key| key + ABSENT).collect();
    look(plan, &mut samples, ["bulk hit", "bulk miss"], |thread, first| {
        let keys = if first == ABSENT { &absent } else { &there };
        let batches = keys[slice(keys, thread)].chunks(BATCH);
        batches.flat_map(|batch| filter.contains_many(batch)).map(u64::from).sum()
    });
    samples
}

/// Measures lookups of keys that are there and of absent ones. `found(thread, first)` counts the keys that a thread
/// finds of its share, which begins with 0 or with [`ABSENT`].
fn look(
    plan: &Plan,
    samples: &mut Vec<Sample>,
    [hit, miss]: [&'static str; 2],
    found: impl Fn(u64, u64) -> u64 + Sync,
) {
    let Spread { keys, rounds, .. } = Spread::of(plan.items, plan.lookups);
    let looked = |thread| rounds * share(keys, plan.threads, thread).count() as u64;
    let found = |thread, first| (0..rounds).map(|_| found(thread, first)).sum::<u64>();
    for _ in 0..plan.looks {
        samples.push(plan.measure(hit, rounds * keys, |thread| Checks {
            lost: looked(thread) - found(thread, 0),
            ..Checks::default()
        }));
        samples.push(plan.measure(miss, rounds * keys, |thread| Checks {
            absent: looked(thread),
            false_positives: found(thread, ABSENT),
            ..Checks::default()
        }));
    }
}

/// Fills a set by half, and runs the mix on it. Then comes check-and-insert, in lockstep and as a crawl, until it is full
/// or enough has been measured.
fn mix_race_crawl(
    plan: &Plan,
    crawl: &Streams,
    peer: &(impl Peer + Sync),
    samples: &mut Vec<Sample>,
) {
    let (half, tens) = (plan.items / 2, plan.tens());
    timed(plan.threads, |thread| insert(peer, plan.share_of(&(0..half), thread)));

    // Nine lookups, and one insert at a random place among them.
    samples.push(plan.measure("mix", 10 * tens, |thread| {
        let mut checks = Checks::default();
        for ten in share(tens, plan.threads, thread) {
            let random = hash_of(ten);
            let place = below(10, random);
            for at in 0..10 {
                let other = random.rotate_left(6 * at as u32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let old = plan.first + below(half, other);
                if at == place {
                    checks.refused += u64::from(!peer.insert(plan.first + half + ten));
                } else if random >> at & 1 == 1 {
                    checks.lost += u64::from(!peer.contains(old));
                } else {
                    checks.absent += 1;
                    checks.false_positives += u64::from(peer.contains(old + ABSENT));
                }
            }
        }
        checks
    }));

    let keys = half + tens..half + tens + plan.raced();
    let streams = Streams::lockstep(plan, keys.clone());
    let mut race = plan.claims("check-and-insert (lockstep)", peer, &streams);
    race.checks.lost = keys.filter(|key| !peer.contains(plan.first + key)).count() as u64;
    samples.push(race);
    samples.push(plan.claims("crawl", peer, crawl));
}

/// Returns a number less than `n`, chosen by the upper half of the random bits.
fn below(n: u64, random: u64) -> u64 {
    ((random >> 32) * n) >> 32
}

/// Returns the number of keys without room.
fn insert(peer: &impl Peer, keys: Range<u64>) -> u64 {
    keys.filter(|&key| !peer.insert(key)).count() as u64
}

/// Streams of keys, one for each thread, that are checked and inserted. They promise their number of distinct keys, so
/// that every peer ends with the same number of items, and so that the answers can be checked: each distinct key has to
/// be new exactly once.
pub struct Streams {
    of_threads: Vec<Vec<u64>>,
    distinct: u64,
}

/// The number of keys after which a thread without a partner goes through them again.
const AGAIN: usize = 1_024;

impl Streams {
    /// Makes the streams of the crawl: as many new keys as still fit the set, or half of the largest number of keys that
    /// the plan allows. A few keys come again and again, most come once, and half of all keys in the streams have been in
    /// one of them before.
    ///
    /// Random keys are dealt to the threads in turn until there are enough distinct ones. Key number k comes in
    /// proportion to ln((k + 1) / k), which is Zipf's law with an exponent of 1: nearly 1 / k.
    pub fn crawl(plan: &Plan) -> Streams {
        let room = plan.items - plan.items / 2 - plan.tens() - plan.raced();
        let distinct = room.min(plan.crawled / 2);
        let (threads, first) = (plan.threads, plan.first + CRAWLED);
        let spread = spread_for_half(2.0 * distinct as f64);
        let mut seen = HashSet::with_capacity_and_hasher(distinct as usize, super::sets::hasher());
        let mut of_threads = vec![Vec::new(); threads as usize];
        for thread in (0..threads as usize).cycle() {
            if seen.len() as u64 == distinct {
                break;
            }
            let stream: &mut Vec<u64> = &mut of_threads[thread];
            let random = hash_of(first + stream.len() as u64 * threads + thread as u64);
            let uniform = (random >> 11) as f64 / (1_u64 << 53) as f64;
            let key = first + (uniform * spread).exp() as u64;
            seen.insert(key);
            stream.push(key);
        }
        Streams { of_threads, distinct }
    }

    /// Makes streams in which each key comes twice, and the threads of a pair go through the same keys at the same
    /// time. The thread ahead inserts, which takes longer than finding the key, so the thread behind catches up and
    /// they meet all the time. A thread without a partner goes through its keys twice, a part at a time.
    fn lockstep(plan: &Plan, keys: Range<u64>) -> Streams {
        let stream = |thread: u64| -> Vec<u64> {
            let own = plan.share_of(&keys, thread);
            if thread ^ 1 < plan.threads {
                let other = plan.share_of(&keys, thread ^ 1);
                return (own.start.min(other.start)..own.end.max(other.end)).collect();
            }
            let own: Vec<u64> = own.collect();
            own.chunks(AGAIN).flat_map(|part| [part, part]).flatten().copied().collect()
        };
        let of_threads = (0..plan.threads).map(stream).collect();
        Streams { of_threads, distinct: keys.end - keys.start }
    }

    /// Returns the number of keys in all streams.
    fn keys(&self) -> u64 {
        self.of_threads.iter().map(|stream| stream.len() as u64).sum()
    }

    /// Counts the keys without a winner, and the winners of each key beyond the first.
    fn compare(&self, claims: &[Vec<Option<bool>>]) -> Checks {
        let mut winners = Vec::with_capacity(self.distinct as usize);
        for (stream, claims) in self.of_threads.iter().zip(claims) {
            let won = stream.iter().zip(claims).filter(|(_, won)| **won == Some(true));
            winners.extend(won.map(|(key, _)| *key));
        }
        let all = winners.len() as u64;
        winners.sort_unstable();
        winners.dedup();
        Checks {
            refused: claims.iter().flatten().filter(|won| won.is_none()).count() as u64,
            absent: self.distinct,
            false_positives: self.distinct - winners.len() as u64,
            two_winners: all - winners.len() as u64,
            ..Checks::default()
        }
    }
}

/// Returns the logarithm of the number of keys to draw from, such that half of the draws find their key drawn before.
///
/// Of n draws from e^L keys, a share of (L - ln(n / L) + 1 - γ) / L is expected to be new. With a share of 1/2, this is
/// solved for L by repeated insertion.
fn spread_for_half(draws: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_9;
    let better = |spread: f64| 2.0 * (draws.ln() - spread.ln() - (1.0 - EULER));
    (0..40).fold(draws.ln(), |spread, _| better(spread))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_crawl_was_seen_before() {
        for (distinct, threads) in [(10_000, 1), (100_000, 2), (100_000, 3)] {
            let plan = Plan { threads, crawled: 2 * distinct, ..Plan::of(true, 64 << 20, 1, 0) };
            let streams = Streams::crawl(&plan);
            let all: HashSet<u64> = streams.of_threads.iter().flatten().copied().collect();
            assert_eq!(all.len() as u64, distinct);
            let new = distinct as f64 / streams.keys() as f64;
            assert!((0.48..0.52).contains(&new), "{new} of {distinct} for {threads} threads");
        }
    }

    #[test]
    fn each_distinct_key_has_one_winner() {
        let streams = Streams { of_threads: vec![vec![5, 6, 5], vec![6, 7, 8]], distinct: 4 };
        for (won, two_winners, false_positives) in [
            ([0b011, 0b110], 0, 0),
            ([0b011, 0b111], 1, 0),
            ([0b101, 0b110], 1, 1),
            ([0b001, 0b010], 0, 2),
        ] {
            let bits = |won: i32| (0..3).map(move |at| Some(won >> at & 1 == 1));
            // One more is refused.
            let claims = won.map(|won| bits(won).chain([None]).collect());
            let absent = 4;
            let checks = Checks { refused: 2, lost: 0, absent, false_positives, two_winners };
            assert_eq!(streams.compare(&claims), checks);
        }
    }

    #[test]
    fn in_lockstep_each_key_comes_twice() {
        for threads in 1..4 {
            let plan = Plan { threads, ..Plan::of(true, 64 << 10, threads, 0) };
            let streams = Streams::lockstep(&plan, 100..5_000);
            let mut keys: Vec<u64> = streams.of_threads.into_iter().flatten().collect();
            keys.sort_unstable();
            assert!(keys.chunks(2).zip(100..5_000).all(|(two, key)| two == [key, key]));
        }
    }
}
