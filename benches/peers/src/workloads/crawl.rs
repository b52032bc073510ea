//! The crawl: each thread checks and inserts its own stream of keys, as crawlers do with the links
//! that they find. A few keys come again and again, most come once, and half of all keys in the
//! streams have been in one of them before.
//!
//! The streams are made before the measurement, once for all peers. They promise their number of
//! distinct keys, so that every peer ends with the same number of items, and so that the answers
//! can be checked: each distinct key has to be new exactly once.

use super::winners::{BLOCK, wins};
use crate::peer::{Peer, hash_of};
use crate::plan::Checks;
use foldhash::{HashSet, HashSetExt};

/// The keys that each thread goes through.
pub struct Streams {
    pub of_threads: Vec<Vec<u64>>,
    distinct: u64,
}

impl Streams {
    /// Deals random keys to the threads in turn until there are `distinct` distinct ones. The keys
    /// are `first` and above. Key number k comes in proportion to ln((k + 1) / k), which is Zipf's
    /// law with an exponent of 1: nearly 1 / k.
    pub fn of(distinct: u64, threads: u64, first: u64) -> Streams {
        let spread = spread_for_half(2.0 * distinct as f64);
        let mut seen = HashSet::with_capacity(distinct as usize);
        let share = (2 * distinct / threads) as usize;
        let mut of_threads = vec![Vec::with_capacity(share + share / 10); threads as usize];
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

    /// Returns the number of keys in all streams.
    pub fn keys(&self) -> u64 {
        self.of_threads.iter().map(|stream| stream.len() as u64).sum()
    }
}

/// Returns the logarithm of the number of keys to draw from, such that half of the draws find
/// their key drawn before.
///
/// Of n draws from e^L keys, a share of (L - ln(n / L) + 1 - γ) / L is expected to be new. With a
/// share of 1/2, this is solved for L by repeated insertion.
fn spread_for_half(draws: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_9;
    let better = |spread: f64| 2.0 * (draws.ln() - spread.ln() - (1.0 - EULER));
    (0..40).fold(draws.ln(), |spread, _| better(spread))
}

/// Which keys of its stream a thread won, with a bit for each.
pub struct Claims {
    won: Vec<u64>,
    refused: u64,
}

/// Checks and inserts the keys of a stream.
pub fn claim<P: Peer>(peer: &P, stream: &[u64]) -> Claims {
    let mut refused = 0;
    let blocks = stream.chunks(BLOCK as usize);
    let mut won = Vec::with_capacity(blocks.len());
    won.extend(blocks.map(|block| wins(peer, block.iter().copied(), &mut refused)));
    Claims { won, refused }
}

/// Counts the keys without a winner, and the winners of each key beyond the first. The claims are
/// in the order of threads.
pub fn compare(streams: &Streams, claims: &[Claims]) -> Checks {
    let mut winners = Vec::with_capacity(streams.distinct as usize);
    for (stream, claims) in streams.of_threads.iter().zip(claims) {
        for (block, won) in stream.chunks(BLOCK as usize).zip(&claims.won) {
            let keys = block.iter().enumerate();
            winners.extend(keys.filter(|(at, _)| won >> at & 1 == 1).map(|(_, &key)| key));
        }
    }
    let all = winners.len() as u64;
    winners.sort_unstable();
    winners.dedup();
    let with_winner = winners.len() as u64;
    Checks {
        refused: claims.iter().map(|claims| claims.refused).sum(),
        keys: streams.distinct,
        two_winners: all - with_winner,
        no_winner: streams.distinct - with_winner,
        ..Checks::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_keys_were_seen_before() {
        for (distinct, threads) in [(10_000, 1), (100_000, 2), (1_000_000, 3)] {
            let streams = Streams::of(distinct, threads, 1 << 50);
            let all: HashSet<u64> = streams.of_threads.iter().flatten().copied().collect();
            assert_eq!(all.len() as u64, distinct);
            let new = distinct as f64 / streams.keys() as f64;
            assert!((0.48..0.52).contains(&new), "{new} of {distinct} for {threads} threads");
        }
    }

    #[test]
    fn few_keys_come_often() {
        let streams = Streams::of(100_000, 2, 0);
        let [one, other] = &streams.of_threads[..] else { panic!("two streams") };
        let often = |stream: &[u64]| stream.iter().filter(|&&key| key <= 10).count();
        for stream in [one, other] {
            let share = often(stream) as f64 / stream.len() as f64;
            assert!((0.08..0.25).contains(&share), "{share}");
        }
        assert_ne!(one, other);
    }

    #[test]
    fn each_distinct_key_has_one_winner() {
        let streams = Streams { of_threads: vec![vec![5, 6, 5], vec![6, 7, 8]], distinct: 4 };
        let count = |won: [u64; 2]| {
            let claims = won.map(|won| Claims { won: vec![won], refused: 1 });
            let checks = compare(&streams, &claims);
            assert_eq!((checks.refused, checks.keys), (2, 4));
            (checks.two_winners, checks.no_winner)
        };
        assert_eq!(count([0b011, 0b110]), (0, 0));
        assert_eq!(count([0b011, 0b111]), (1, 0));
        assert_eq!(count([0b101, 0b110]), (1, 1));
        assert_eq!(count([0b001, 0b010]), (0, 2));
    }
}
