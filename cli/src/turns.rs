//! The order in which chunks of lines come to the filter, kept while several threads bring them.
//!
//! Of two lines that are the same, the one that came first has to be the one that is new. Lines that are the same have the same
//! hash. So the hashes are divided into parts, and each part is visited by one chunk after the other, in
//! their order: while one chunk is at the second part, the next one can be at the first.
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
    /// The part that a hash belongs to.
    pub fn part_of(hash: u64) -> usize {
        (hash >> (64 - PARTS.ilog2())) as usize
    }

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
