//! The order in which chunks visit the filter, although several threads process them.
//!
//! The first of several equal lines has to be the one that is new. Equal lines have equal hashes.
//! The hashes are therefore divided into parts, and chunks visit each part one after the other, in
//! input order. While one chunk visits the second part, the next chunk can visit the first. The
//! parts are those of the filter's table, so two visits do not contend there.
//!
//! What a chunk adds is recorded in the *ledger* before it leaves a part, and removed from the
//! ledger once the chunk has been written. When no visit is under way, the filter without the
//! contents of the ledger is therefore exactly what may be saved.

use koel::Prehashed;
use std::sync::{Condvar, Mutex};

/// The number of parts: enough to keep the threads of a large machine busy, and few enough that a
/// chunk has hundreds of lines for each.
pub const PARTS: usize = 8;

#[derive(Default)]
pub struct Turns {
    parts: [Part; PARTS],
    ledger: Mutex<Vec<Note>>,
}

#[derive(Default)]
struct Part {
    /// The number of the chunk that visits next.
    next: Mutex<u64>,
    changed: Condvar,
}

struct Note {
    chunk: u64,
    added: Vec<Prehashed>,
}

const PANICKED: &str = "a panic ends the run";

impl Turns {
    /// Waits for the turn of a chunk at a part, then calls `visit`. The hashes that it returns are
    /// recorded in the ledger.
    pub fn visit(&self, part: usize, chunk: u64, visit: impl FnOnce() -> Vec<Prehashed>) {
        let Part { next, changed } = &self.parts[part];
        let turn = changed.wait_while(next.lock().expect(PANICKED), |next| *next != chunk);
        let mut next = turn.expect(PANICKED);
        let added = visit();
        if !added.is_empty() {
            self.ledger.lock().expect(PANICKED).push(Note { chunk, added });
        }
        *next += 1;
        drop(next);
        changed.notify_all();
    }

    /// Removes the chunks up to this one, which have been written, from the ledger.
    pub fn cross_out(&self, chunk: u64) {
        self.ledger.lock().expect(PANICKED).retain(|note| note.chunk > chunk);
    }

    /// The number of chunks that have started: only these can have added anything to the filter. `None` if a thread
    /// panicked during a visit.
    pub fn begun(&self) -> Option<u64> {
        let next = |part: &Part| part.next.lock().ok().map(|next| *next);
        self.parts.iter().map(next).try_fold(0, |most, next| Some(most.max(next?)))
    }

    /// Waits for the visits under way, and allows no more: the turn of no chunk comes. Returns `false` if a thread
    /// panicked during a visit.
    pub fn halt(&self) -> bool {
        self.parts.iter().all(|part| part.next.lock().map(|mut next| *next = u64::MAX).is_ok())
    }

    /// Returns the contents of the ledger: the hashes that were added and have not been written.
    pub fn added(&self) -> Vec<Prehashed> {
        let ledger = self.ledger.lock().expect(PANICKED);
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
    fn added_hashes_are_in_the_ledger_until_they_are_written() {
        let turns = Turns::default();
        let [one, two, three, four] = [1, 2, 3, 4].map(Prehashed);
        turns.visit(0, 0, || vec![one, two]);
        turns.visit(1, 0, || vec![three]);
        turns.visit(0, 1, || vec![four]);
        assert_eq!(turns.added(), [one, two, three, four]);
        turns.cross_out(0);
        assert!(turns.halt());
        assert_eq!(turns.added(), [four]);
        turns.cross_out(1);
        assert!(turns.added().is_empty());
    }

    #[test]
    fn a_chunk_has_begun_once_it_has_visited_any_part() {
        let turns = Turns::default();
        assert_eq!(turns.begun(), Some(0));
        turns.visit(0, 0, Vec::new);
        turns.visit(0, 1, Vec::new);
        turns.visit(1, 0, Vec::new);
        assert_eq!(turns.begun(), Some(2));
    }

    #[test]
    fn after_a_panic_there_is_no_halt() {
        let turns = Turns::default();
        let visit = || turns.visit(3, 0, || panic!("as the test wants it"));
        thread::scope(|scope| assert!(scope.spawn(visit).join().is_err()));
        assert!(!turns.halt() && turns.begun().is_none());
    }
}
