//! Check-and-insert in lockstep: each key is inserted twice, and the threads of a pair go through
//! the same keys at the same time. The thread ahead inserts, which takes longer than finding the
//! key, so the thread behind catches up and they meet all the time.
//!
//! A thread without a partner inserts each key a second time after a few blocks.

use crate::peer::Peer;
use crate::plan::Checks;
use crate::timing::share;

/// The number of keys in a block: their winners fit a word.
pub const BLOCK: u64 = 64;
/// The number of blocks after which a thread without a partner goes through them again.
const AGAIN: u64 = 16;

/// The keys that one thread won, with a bit for each key.
pub struct Claims {
    won: Vec<u64>,
    /// The keys won in the second pass of a thread without a partner.
    won_again: Vec<u64>,
    refused: u64,
}

/// Checks and inserts the thread's share of `blocks` blocks of keys, and its partner's.
pub fn claim<P: Peer>(peer: &P, first: u64, blocks: u64, threads: u64, thread: u64) -> Claims {
    let mut refused = 0;
    let mut claim = |block| {
        let start = first + block * BLOCK;
        wins(peer, start..start + BLOCK, &mut refused)
    };
    let (own, partner) = (share(blocks, threads, thread), thread ^ 1);
    let (mut won, mut won_again) = (Vec::new(), Vec::new());
    if partner < threads {
        let other = share(blocks, threads, partner);
        let both = own.start.min(other.start)..own.end.max(other.end);
        won.extend(both.map(claim));
    } else {
        for some in own.clone().step_by(AGAIN as usize) {
            let some = some..own.end.min(some + AGAIN);
            won.extend(some.clone().map(&mut claim));
            won_again.extend(some.map(&mut claim));
        }
    }
    Claims { won, won_again, refused }
}

/// Checks and inserts a block of keys, and returns a bit for each: whether it was new.
#[inline]
pub fn wins<P: Peer>(peer: &P, keys: impl Iterator<Item = u64>, refused: &mut u64) -> u64 {
    keys.enumerate().fold(0, |word, (at, key)| {
        let won = peer.insert_if_absent(key).unwrap_or_else(|_| {
            *refused += 1;
            false
        });
        word | u64::from(won) << at
    })
}

/// Counts the keys with two winners and those with none. The claims are in the order of threads.
pub fn compare(claims: &[Claims]) -> Checks {
    let of_pair = |pair: &[Claims]| {
        let second = if let [_, partner] = pair { &partner.won } else { &pair[0].won_again };
        let words = || pair[0].won.iter().zip(second);
        let count = |bits: fn(u64, u64) -> u64| -> u64 {
            words().map(|(&a, &b)| u64::from(bits(a, b).count_ones())).sum()
        };
        Checks {
            refused: pair.iter().map(|claims| claims.refused).sum(),
            keys: words().count() as u64 * BLOCK,
            two_winners: count(|a, b| a & b),
            no_winner: count(|a, b| !(a | b)),
            ..Checks::default()
        }
    };
    claims.chunks(2).map(of_pair).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(won: u64, won_again: Vec<u64>) -> Claims {
        Claims { won: vec![won], won_again, refused: 0 }
    }

    #[test]
    fn winners_of_a_pair_are_compared() {
        let pair = [claims(0b1100, vec![]), claims(!0b1000, vec![])];
        let checks = compare(&pair);
        assert_eq!((checks.keys, checks.two_winners, checks.no_winner), (64, 1, 0));
    }

    #[test]
    fn a_thread_alone_is_compared_with_itself() {
        let three = [claims(!0, vec![]), claims(0, vec![]), claims(!1, vec![0])];
        let checks = compare(&three);
        assert_eq!((checks.keys, checks.two_winners, checks.no_winner), (128, 0, 1));
    }
}
