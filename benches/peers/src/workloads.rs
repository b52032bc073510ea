//! The workloads. Each checks the answers that it gets.
//!
//! A run of all workloads on one peer uses four filters. The first is filled and searched, its items
//! give way to others, and it is emptied. The second is filled and searched with the batch methods. The third is filled by half,
//! and then gets a mix of lookups and inserts, and keys that threads race for. The fourth is filled
//! by half, and then used as crawlers would use it.

mod crawl;
mod winners;

use crate::memory;
use crate::peer::{Peer, hash_of};
use crate::plan::{Checks, Plan, Sample, Spread};
use crate::timing::{share, timed};
pub use crawl::Streams;
use std::ops::Range;

pub const CRAWL: &str = "crawl";

pub const WORKLOADS: [&str; 12] = [
    "fill",
    "last 5 %",
    "hit",
    "miss",
    "mix",
    CRAWL,
    "churn",
    "delete",
    "check-and-insert (lockstep)",
    "bulk fill",
    "bulk hit",
    "bulk miss",
];

/// Keys from here on are in no filter.
const ABSENT: u64 = 1 << 40;
/// Keys from here on come in place of others.
const CHURNED: u64 = 1 << 42;
/// Keys from here on are those of the crawl. They are in no other workload.
const CRAWLED: u64 = 1 << 44;
/// The number of keys in a batch of lookups.
const CHUNK: usize = 65_536;

pub struct Run {
    pub samples: Vec<Sample>,
    pub bytes: usize,
}

/// Returns the streams of the crawl: as many new keys as fit a filter that is half full, or half
/// of the largest number of keys that the plan allows.
pub fn streams(plan: &Plan) -> Streams {
    let room = plan.items - plan.items / 2;
    Streams::of(room.min(plan.crawled / 2), plan.threads, plan.first + CRAWLED)
}

/// Runs the crawl once, on a filter of its own.
pub fn only_crawl<P: Peer>(plan: &Plan, streams: &Streams) -> Run {
    let peer = half_full::<P>(plan);
    let samples = vec![crawl(&peer, plan, streams)];
    Run { samples, bytes: held_by(peer) }
}

/// Runs each workload once, except those that the peer does not support.
pub fn run<P: Peer>(plan: &Plan, streams: &Streams) -> Run {
    let mut samples = Vec::new();
    let bytes = fill_look_delete::<P>(plan, &mut samples);
    if P::MANY {
        in_bulk::<P>(plan, &mut samples);
    } else {
        let loops = [("fill", "bulk fill"), ("hit", "bulk hit"), ("miss", "bulk miss")];
        for (one, workload) in loops {
            let of_loop: Vec<Sample> =
                samples.iter().filter(|sample| sample.workload == one).copied().collect();
            samples.extend(of_loop.iter().map(|sample| Sample { workload, ..*sample }));
        }
    }
    mix_and_race::<P>(plan, &mut samples);
    samples.extend(only_crawl::<P>(plan, streams).samples);
    Run { samples, bytes }
}

/// Measures the bytes that a filter for this many items holds when it contains them all.
pub fn held<P: Peer>(items: u64) -> usize {
    let peer = P::build(items);
    (0..items).for_each(|key| drop(peer.insert(key)));
    held_by(peer)
}

fn held_by<P: Peer>(peer: P) -> usize {
    let said = peer.says_it_holds();
    memory::touched(memory::held(peer), said)
}

fn fill_look_delete<P: Peer>(plan: &Plan, samples: &mut Vec<Sample>) -> usize {
    let peer = P::build_tight(plan.items);
    // Tried while the filter is empty: later, it could remove another key's fingerprint.
    let removes = peer.remove(plan.first).is_some();
    let fill = |workload, keys: Range<u64>| {
        plan.measure(workload, keys.end - keys.start, |thread| Checks {
            refused: insert(&peer, plan.share_of(&keys, thread)),
            ..Checks::default()
        })
    };
    let most = plan.items * 95 / 100;
    let (first, last) = (fill("fill", 0..most), fill("last 5 %", most..plan.items));
    samples.extend([first.and(&last), last]);
    let refused = first.checks.refused + last.checks.refused;

    let spread = Spread::of(plan.items, plan.lookups);
    for _ in 0..plan.looks {
        let hit = plan.measure("hit", spread.rounds * spread.keys, |thread| {
            let mut lost = 0;
            for _ in 0..spread.rounds {
                let keys = spread.share(plan, thread);
                lost += keys.filter(|&key| !peer.contains(key)).count() as u64;
            }
            Checks { lost, ..Checks::default() }
        });
        samples.push(hit.but_for(spread.rounds * refused));
        samples.push(plan.measure("miss", spread.rounds * spread.keys, |thread| {
            let mut checks = Checks::default();
            for _ in 0..spread.rounds {
                let keys = spread.share(plan, thread).map(|key| key + ABSENT);
                checks.absent += keys.clone().count() as u64;
                checks.false_positives += keys.filter(|&key| peer.contains(key)).count() as u64;
            }
            checks
        }));
    }

    if removes {
        let spread = Spread::of(plan.items, plan.changes.min(plan.items));
        let churn = plan.measure("churn", 2 * spread.keys, |thread| {
            let mut checks = Checks::default();
            for key in spread.share(plan, thread) {
                checks.lost += u64::from(peer.remove(key) != Some(true));
                checks.refused += u64::from(peer.insert(key + CHURNED).is_err());
            }
            checks
        });
        let refused = refused + churn.checks.refused;
        samples.push(churn.but_for(refused));
        let delete = plan.measure("delete", spread.keys, |thread| {
            let keys = spread.share(plan, thread).map(|key| key + CHURNED);
            let lost = keys.filter(|&key| peer.remove(key) != Some(true)).count() as u64;
            Checks { lost, ..Checks::default() }
        });
        samples.push(delete.but_for(refused));
    }
    held_by(peer)
}

fn in_bulk<P: Peer>(plan: &Plan, samples: &mut Vec<Sample>) {
    let peer = P::build_tight(plan.items);
    let slice = |keys: &[u64], thread| {
        let range = share(keys.len() as u64, plan.threads, thread);
        range.start as usize..range.end as usize
    };
    let keys: Vec<u64> = (plan.first..plan.first + plan.items).collect();
    let fill = plan.measure("bulk fill", plan.items, |thread| Checks {
        refused: peer.insert_many(&keys[slice(&keys, thread)]),
        ..Checks::default()
    });
    samples.push(fill);
    drop(keys);

    let spread = Spread::of(plan.items, plan.lookups);
    let look = |keys: &[u64], thread| -> u64 {
        let chunks = || keys[slice(keys, thread)].chunks(CHUNK);
        (0..spread.rounds).flat_map(|_| chunks()).map(|chunk| peer.contains_many(chunk)).sum()
    };
    let there: Vec<u64> = (0..plan.threads).flat_map(|t| spread.share(plan, t)).collect();
    let absent: Vec<u64> = there.iter().map(|key| key + ABSENT).collect();
    for _ in 0..plan.looks {
        let hit = plan.measure("bulk hit", spread.rounds * spread.keys, |thread| {
            let looked = spread.rounds * slice(&there, thread).len() as u64;
            let lost = looked - look(&there, thread);
            Checks { lost, ..Checks::default() }
        });
        samples.push(hit.but_for(spread.rounds * fill.checks.refused));
        samples.push(plan.measure("bulk miss", spread.rounds * spread.keys, |thread| Checks {
            absent: spread.rounds * slice(&absent, thread).len() as u64,
            false_positives: look(&absent, thread),
            ..Checks::default()
        }));
    }
}

/// Builds a filter that is half full.
fn half_full<P: Peer>(plan: &Plan) -> P {
    let peer = P::build_tight(plan.items);
    timed(plan.threads, |thread| insert(&peer, plan.share_of(&(0..plan.items / 2), thread)));
    peer
}

/// Runs the mix on a filter that is half full. Then comes check-and-insert, with up to as many keys
/// as still fit.
fn mix_and_race<P: Peer>(plan: &Plan, samples: &mut Vec<Sample>) {
    let peer = half_full::<P>(plan);
    let half = plan.items / 2;

    // Nine lookups, and one insert at a random place among them.
    let tens = plan.items.min(plan.lookups) / 10;
    let mix = plan.measure("mix", 10 * tens, |thread| {
        let mut checks = Checks::default();
        for ten in share(tens, plan.threads, thread) {
            let random = hash_of(ten);
            let place = below(10, random);
            for at in 0..10 {
                let other = random.rotate_left(6 * at as u32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let old = plan.first + below(half, other);
                if at == place {
                    let new = plan.first + half + ten;
                    checks.refused += u64::from(peer.insert(new).is_err());
                } else if random >> at & 1 == 1 {
                    checks.lost += u64::from(!peer.contains(old));
                } else {
                    checks.absent += 1;
                    checks.false_positives += u64::from(peer.contains(old + ABSENT));
                }
            }
        }
        checks
    });
    samples.push(mix);

    let first = half + tens;
    let blocks = plan.changes.min(plan.items - first) / winners::BLOCK;
    let new = plan.first + first;
    let (mut race, claims) =
        plan.measure_all("check-and-insert (lockstep)", 2 * blocks * winners::BLOCK, |thread| {
            winners::claim(&peer, new, blocks, plan.threads, thread)
        });
    race.checks = winners::compare(&claims);
    let keys = first..first + blocks * winners::BLOCK;
    let (_, missing) = timed(plan.threads, |thread| {
        plan.share_of(&keys, thread).filter(|&key| !peer.contains(key)).count() as u64
    });
    race.checks.lost = missing.iter().sum();
    samples.push(race.but_for(race.checks.refused));
}

/// Lets each thread check and insert its own stream.
fn crawl<P: Peer>(peer: &P, plan: &Plan, streams: &Streams) -> Sample {
    let (mut crawl, claims) = plan.measure_all(CRAWL, streams.keys(), |thread| {
        crawl::claim(peer, &streams.of_threads[thread as usize])
    });
    crawl.checks = crawl::compare(streams, &claims);
    crawl
}

/// Returns a number less than `n`, chosen by the upper half of the random bits.
fn below(n: u64, random: u64) -> u64 {
    ((random >> 32) * n) >> 32
}

/// Returns the number of refused keys.
fn insert<P: Peer>(peer: &P, keys: Range<u64>) -> u64 {
    keys.filter(|&key| peer.insert(key).is_err()).count() as u64
}
