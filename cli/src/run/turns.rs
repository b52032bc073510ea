//! The order in which chunks of lines come to the filter, kept while several threads bring them.
//!
//! Of two lines that are the same, the one that came first has to be the one that is new. Lines that are the same have the same
//! hash. So the hashes are divided into parts, and each part is visited by one chunk after the other, in
//! their order: while one chunk is at the second part, the next one can be at the first. The parts are those of the
//! filter's table, so the two do not get into each other's way there.
//!
//! What a chunk has added is noted in the *ledger* before it leaves a part, and crossed out when the chunk has been
//! written. So the filter without what is in the ledger is what may be saved at any moment when nobody is at
//! any part.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Enough for the threads of a large machine to be at one each, and few enough for each to get some
/// hundred lines of a chunk.
pub const PARTS: usize = 8;

#[derive(Default)]
pub struct Turns {
    parts: [Part; PARTS],
    ledger: Mutex<VecDeque<Note>>,
}

#[derive(Default)]
struct Part {
    /// The chunk that comes next.
    next: Mutex<u64>,
    changed: Condvar,
}

struct Note {
    chunk: u64,
    added: Vec<u64>,
}

/// Nobody comes to any part while this is there.
pub struct Halt<'a> {
    _parts: [MutexGuard<'a, u64>; PARTS],
    turns: &'a Turns,
}

const PANICKED: &str = "a thread that panicked ends the run";

impl Turns {
    /// Waits for the turn of a chunk at a part, and has it visited. Of what the visit returns, a note is made.
    pub fn visit(&self, part: usize, chunk: u64, visit: impl FnOnce() -> Vec<u64>) {
        let Part { next, changed } = &self.parts[part];
        let turn = changed.wait_while(next.lock().expect(PANICKED), |next| *next != chunk);
        let mut next = turn.expect(PANICKED);
        let added = visit();
        if !added.is_empty() {
            self.ledger.lock().expect(PANICKED).push_back(Note { chunk, added });
        }
        *next += 1;
        drop(next);
        changed.notify_all();
    }

    /// What this chunk has added may stay.
    pub fn cross_out(&self, chunk: u64) {
        self.ledger.lock().expect(PANICKED).retain(|note| note.chunk != chunk);
    }

    /// Stops all chunks where they are, unless a thread has panicked in the middle of a visit.
    pub fn halt(&self) -> Option<Halt<'_>> {
        let mut parts = Vec::with_capacity(PARTS);
        for part in &self.parts {
            parts.push(part.next.lock().ok()?);
        }
        Some(Halt { _parts: parts.try_into().ok()?, turns: self })
    }
}

impl Halt<'_> {
    /// What was added and has not been crossed out.
    pub fn added(&self) -> Vec<u64> {
        let ledger = self.turns.ledger.lock().expect(PANICKED);
        ledger.iter().flat_map(|note| note.added.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn each_part_is_visited_in_the_order_of_the_chunks() {
        let turns = Turns::default();
        let visits: [Mutex<Vec<u64>>; PARTS] = Default::default();
        thread::scope(|scope| {
            for first in 0..4 {
                let (turns, visits) = (&turns, &visits);
                scope.spawn(move || {
                    for chunk in (first..400).step_by(4) {
                        for (part, visits) in visits.iter().enumerate() {
                            turns.visit(part, chunk, || {
                                visits.lock().unwrap().push(chunk);
                                Vec::new()
                            });
                        }
                    }
                });
            }
        });
        for visits in visits {
            assert!(visits.into_inner().unwrap().into_iter().eq(0..400));
        }
    }

    #[test]
    fn what_was_added_is_noted_until_it_is_crossed_out() {
        let turns = Turns::default();
        turns.visit(0, 0, || vec![1, 2]);
        turns.visit(1, 0, || vec![3]);
        turns.visit(0, 1, || vec![4]);
        let added = |turns: &Turns| turns.halt().unwrap().added();
        assert_eq!(added(&turns), [1, 2, 3, 4]);
        turns.cross_out(0);
        assert_eq!(added(&turns), [4]);
        turns.cross_out(1);
        assert!(added(&turns).is_empty());
    }

    #[test]
    fn after_a_panic_there_is_no_halt() {
        let turns = Turns::default();
        let visit = || turns.visit(3, 0, || panic!("as the test wants it"));
        thread::scope(|scope| assert!(scope.spawn(visit).join().is_err()));
        assert!(turns.halt().is_none());
    }
}
