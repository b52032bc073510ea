//! The second pass of `--lossless`: lines that seem to be repeated are set aside, and verified at
//! the end of the input.
//!
//! A line was dropped by mistake if it equals neither a line that was written nor an earlier line
//! that was set aside. Both sets of lines may be larger than memory. They are therefore partitioned
//! by hash into parts that fit, and the parts are processed one after the other.

use crate::failure::{End, Failure, locked};
use crate::lines::chunk::{BUFFER, Chunk};
use crate::lines::cutter::{Cut, Cutter};
use crate::lines::input::OpenInput;
use crate::lines::rules::{Keys, Rules};
use crate::state::comparison::LineHash;
use hashbrown::HashTable;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread;

/// The number of bytes of lines that each of two threads compares at once.
pub const AT_ONCE: u64 = 16 << 20;

/// The highest number of parts, which is the number of temporary files open at once for each set.
const MAX_PARTS: u64 = 256;

/// Lines in temporary files.
pub struct Aside {
    /// The new lines.
    written: BufWriter<File>,
    /// The lines that seem to be repeated.
    repeated: BufWriter<File>,
    bytes: u64,
}

/// The result of the second pass.
pub struct Settled {
    repeated: File,
    /// The numbers of the lines dropped by mistake, among those that were set aside, in ascending
    /// order.
    pub mistaken: Vec<u64>,
}

/// Creates a temporary file without a name.
fn buffered() -> Result<BufWriter<File>, Failure> {
    let file = tempfile::tempfile().map_err(|error| cannot(&error))?;
    Ok(BufWriter::with_capacity(BUFFER, file))
}

/// Returns the failure of making or using a temporary file.
fn cannot(error: &io::Error) -> Failure {
    let folder = std::env::temp_dir();
    let what =
        format!("a temporary file in {} (set TMPDIR to use another folder)", folder.display());
    Failure::of(what, error)
}

/// Returns the file of a writer, for reading from its beginning.
fn rewound(writer: BufWriter<File>) -> Result<File, Failure> {
    let mut file = writer.into_inner().map_err(|error| cannot(error.error()))?;
    file.rewind().map_err(|error| cannot(&error))?;
    Ok(file)
}

impl Aside {
    /// Creates the temporary files.
    pub fn new() -> Result<Aside, Failure> {
        Ok(Aside { written: buffered()?, repeated: buffered()?, bytes: 0 })
    }

    /// Adds new lines and repeated lines.
    pub fn put(&mut self, new: &[u8], repeated: &[u8]) -> Result<(), Failure> {
        self.bytes += repeated.len() as u64;
        let put = self.written.write_all(new).and_then(|()| self.repeated.write_all(repeated));
        put.map_err(|error| cannot(&error))
    }

    /// Compares the lines that were set aside with the lines written, `at_once` bytes at a time on each of two threads.
    pub fn settle(self, at_once: u64, rules: Rules, hash: LineHash) -> Result<Settled, Failure> {
        let parts = self.bytes.div_ceil(at_once).clamp(1, MAX_PARTS).next_power_of_two() as usize;
        let mut repeated = rewound(self.repeated)?;
        let again = repeated.try_clone().map_err(|error| cannot(&error))?;
        let divide = |file| divide(file, parts, rules, hash);
        let written = rewound(self.written)?;
        let (written, again) = both(|| divide(written), || divide(again))?;
        let pairs = Mutex::new(again?.into_iter().zip(written?));
        let next = || locked(&pairs).next();
        let compare = || {
            let mut mistaken = Vec::new();
            while let Some((repeated, written)) = next() {
                mistaken.extend(mistaken_in(repeated, written)?);
            }
            Ok::<_, Failure>(mistaken)
        };
        let (some, others) = both(compare, compare)?;
        let mut mistaken = some?;
        mistaken.extend(others?);
        mistaken.sort_unstable();
        repeated.rewind().map_err(|error| cannot(&error))?;
        Ok(Settled { repeated, mistaken })
    }
}

impl Settled {
    /// Passes chunks of the lines dropped by mistake to `act`, or else of those that are repeated.
    pub fn for_each(
        self,
        mistaken: bool,
        rules: Rules,
        mut act: impl FnMut(&[u8]) -> Result<(), End>,
    ) -> Result<(), End> {
        let mut numbers = self.mistaken.into_iter().peekable();
        if mistaken && numbers.peek().is_none() {
            return Ok(());
        }
        for_each_chunk(self.repeated, rules, |first, chunk| {
            let is_mistaken = |number| numbers.next_if_eq(&number).is_some();
            let numbers = first..first + chunk.lines() as u64;
            chunk.answers.clear();
            chunk.answers.extend(numbers.map(is_mistaken));
            chunk.sort_out(mistaken, false);
            if chunk.selected.is_empty() { Ok(()) } else { act(&chunk.selected) }
        })
    }
}

/// Runs two closures at the same time.
fn both<A: Send, B>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B,
) -> Result<(A, B), Failure> {
    thread::scope(|scope| {
        let one = thread::Builder::new().spawn_scoped(scope, one);
        let one = one.map_err(|error| Failure::of("cannot start a thread", &error))?;
        let other = other();
        Ok((one.join().unwrap_or_else(|panic| resume_unwind(panic)), other))
    })
}

/// Passes a file to `act` in chunks, each with the number of its first line.
fn for_each_chunk<E: From<Failure>>(
    file: File,
    rules: Rules,
    mut act: impl FnMut(u64, &mut Chunk) -> Result<(), E>,
) -> Result<(), E> {
    let input = OpenInput { reader: Box::new(file), is_live: false, form: None };
    let mut cutter = Cutter::new(input, rules.terminator);
    let (mut chunk, mut lines) = (Chunk::default(), 0);
    while cutter.fill(&mut chunk).map_err(|error| cannot(&error))? == Cut::Lines {
        act(lines, &mut chunk)?;
        lines += chunk.lines() as u64;
    }
    Ok(())
}

/// A line that may have been dropped by mistake. It is distinct from all others.
struct Suspect {
    number: u64,
    hash: u64,
    /// Where its key is among the keys of all.
    key: Range<usize>,
}

/// Returns the numbers of the lines of one part that were set aside by mistake.
fn mistaken_in(repeated: Part, written: Part) -> Result<Vec<u64>, Failure> {
    let (mut suspects, mut keys) = (HashTable::<Suspect>::new(), Vec::new());
    for_each_record(repeated, |number, hash, key| {
        // Only the first of equal lines can be a mistake.
        if suspects.find(hash, |it| keys[it.key.clone()] == *key).is_none() {
            let suspect = Suspect { number, hash, key: keys.len()..keys.len() + key.len() };
            suspects.insert_unique(hash, suspect, |it| it.hash);
            keys.extend_from_slice(key);
        }
    })?;
    for_each_record(written, |_, hash, key| {
        if let Ok(it) = suspects.find_entry(hash, |it| keys[it.key.clone()] == *key) {
            it.remove();
        }
    })?;
    Ok(suspects.into_iter().map(|suspect| suspect.number).collect())
}

/// The records of one part: the number of each line, the hash and the length of its key, and the key.
type Part = BufReader<File>;

fn for_each_record(mut part: Part, mut act: impl FnMut(u64, u64, &[u8])) -> Result<(), Failure> {
    let (mut head, mut key) = ([[0; 8]; 3], Vec::new());
    loop {
        match part.read_exact(head.as_flattened_mut()) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(cannot(&error)),
        }
        let [number, hash, length] = head.map(u64::from_le_bytes);
        key.resize(length as usize, 0);
        part.read_exact(&mut key).map_err(|error| cannot(&error))?;
        act(number, hash, &key);
    }
}

/// Partitions the lines of a file by hash.
fn divide(file: File, parts: usize, rules: Rules, hash: LineHash) -> Result<Vec<Part>, Failure> {
    let writers: Result<Vec<_>, _> = (0..parts).map(|_| buffered()).collect();
    let (mut writers, mut keys) = (writers?, Keys::new(rules, hash));
    for_each_chunk(file, rules, |first, chunk| {
        for (line, number) in chunk.iter().zip(first..) {
            let key = keys.key(line);
            // The hash table of a part uses the lowest and the highest bits.
            let writer = &mut writers[(key.hash.0 >> 40) as usize % parts];
            let head = [number, key.hash.0, key.bytes.len() as u64].map(u64::to_le_bytes);
            let put = writer.write_all(head.as_flattened());
            put.and_then(|()| writer.write_all(key.bytes)).map_err(|error| cannot(&error))?;
        }
        Ok::<_, Failure>(())
    })?;
    let part = |writer| Ok(BufReader::with_capacity(BUFFER, rewound(writer)?));
    writers.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::comparison::Comparison;
    use std::collections::HashSet;

    const RULES: Rules = Rules { terminator: b'\n', folds_cr: true, field: None };

    fn settled(new: &[u8], repeated: &[u8], at_once: u64) -> Settled {
        let mut aside = Aside::new().unwrap();
        // In pieces, as the chunks of a run do.
        aside.put(new, b"").unwrap();
        for line in repeated.split_inclusive(|byte| *byte == b'\n') {
            aside.put(b"", line).unwrap();
        }
        let hash = LineHash::random(Comparison::Bytes);
        aside.settle(at_once, RULES, hash).unwrap()
    }

    fn lines_of(settled: Settled, mistaken: bool) -> Vec<u8> {
        let mut lines = Vec::new();
        let all = settled.for_each(mistaken, RULES, |chunk| {
            lines.extend_from_slice(chunk);
            Ok(())
        });
        all.unwrap();
        lines
    }

    #[test]
    fn lines_that_were_not_written_are_found_in_however_many_parts() {
        // Every third line was written. All others only seem to be repeated, some of them twice.
        let line = |number: u32| {
            let long = if number.is_multiple_of(10) { "x".repeat(150) } else { String::new() };
            format!("line {long}{number}\n").into_bytes()
        };
        let new: Vec<u8> = (0..3_000).step_by(3).flat_map(line).collect();
        let numbers: Vec<u32> = (0..3_000).chain((0..3_000).step_by(7)).collect();
        let repeated: Vec<u8> = numbers.iter().copied().flat_map(line).collect();
        let mut known: HashSet<u32> = (0..3_000).step_by(3).collect();
        let (mistaken, others): (Vec<u32>, Vec<u32>) =
            numbers.into_iter().partition(|number| known.insert(*number));
        for at_once in [1, 100, 10_000, 1 << 20] {
            let found = settled(&new, &repeated, at_once);
            assert_eq!(found.mistaken.len(), mistaken.len());
            let expected: Vec<u8> = mistaken.iter().copied().flat_map(line).collect();
            assert_eq!(lines_of(found, true), expected);
            let expected: Vec<u8> = others.iter().copied().flat_map(line).collect();
            assert_eq!(lines_of(settled(&new, &repeated, at_once), false), expected);
        }
    }
}
