//! Lines that may have been dropped by mistake, until they are found among the lines written.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A line's number and key.
pub struct Record<'a> {
    pub number: u64,
    pub hash: u64,
    pub key: &'a [u8],
}

/// Distinct lines that may have been dropped by mistake.
#[derive(Default)]
pub struct Suspects {
    /// The index of the first suspect with each hash.
    first: HashMap<u64, u32, BuildHasherDefault<Ready>>,
    all: Vec<Suspect>,
    /// The keys of all suspects, concatenated.
    keys: Vec<u8>,
}

struct Suspect {
    number: u64,
    start: u64,
    length: u32,
    /// Another suspect with the same hash.
    next: Option<u32>,
    cleared: bool,
}

impl Suspects {
    fn find(&mut self, record: &Record<'_>) -> Option<&mut Suspect> {
        let mut at = self.first.get(&record.hash).copied();
        while let Some(index) = at {
            let Suspect { start, length, next, .. } = self.all[index as usize];
            if &self.keys[start as usize..start as usize + length as usize] == record.key {
                return Some(&mut self.all[index as usize]);
            }
            at = next;
        }
        None
    }

    /// Adds a line, unless it equals an earlier one: only the first of equal lines can be a
    /// mistake.
    pub fn add(&mut self, record: Record<'_>) {
        if self.find(&record).is_some() {
            return;
        }
        let next = self.first.insert(record.hash, self.all.len() as u32);
        self.all.push(Suspect {
            number: record.number,
            start: self.keys.len() as u64,
            length: record.key.len() as u32,
            next,
            cleared: false,
        });
        self.keys.extend_from_slice(record.key);
    }

    /// Clears the suspect that equals a line that was written.
    pub fn clear(&mut self, record: Record<'_>) {
        if let Some(suspect) = self.find(&record) {
            suspect.cleared = true;
        }
    }

    /// Returns the numbers of the lines dropped by mistake.
    pub fn left(&self) -> impl Iterator<Item = u64> {
        self.all.iter().filter(|suspect| !suspect.cleared).map(|suspect| suspect.number)
    }
}

/// A hasher for keys that are hashes already.
#[derive(Default)]
struct Ready(u64);

impl Hasher for Ready {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only whole hashes are hashed");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_one_hash_are_distinguished() {
        let mut suspects = Suspects::default();
        let record = |number, key| Record { number, hash: 7, key };
        for (number, key) in [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"b")] {
            suspects.add(record(number, key));
        }
        suspects.clear(record(9, b"b"));
        suspects.clear(record(9, b"d"));
        assert!(suspects.left().eq([0, 2]));
    }
}
