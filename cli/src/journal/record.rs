//! The records of a journal, and how they are written and read.
//!
//! All numbers are little-endian words of eight bytes. A record is a multiple of that. It begins with:
//!
//! | word | what it is |
//! |---|---|
//! | 0 | the kind of the record, and above the lowest byte, its length in words |
//! | 1 | the XXH3 of the rest of the record and of word 0, with the key of the journal |
//!
//! The first record of a journal is of the *output*. *Batches* follow, each of them followed by *written* if the
//! output is a regular file. A record that is damaged or incomplete ends the journal.

use crate::lines::chunk::Lines;
use crate::lines::long::LongLine;
use crate::lines::output::Identity;
use koel::Prehashed;
use std::io::{self, Read};
use std::path::PathBuf;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const WORD: usize = 8;
const OUTPUT: u64 = 1;
const BATCH: u64 = 2;
const WRITTEN: u64 = 3;

/// The words of a batch before its hashes.
const BATCH_HEAD: usize = 10;

/// So much of the first line of a batch is in its record.
const MOST_OF_LINE: usize = 4096;

/// Where the lines of a run go, and how they are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The regular file that they go to, and where it was.
    pub file: Option<Identity>,
    pub terminator: u8,
    pub folds_cr: bool,
    /// The number of the field that is compared, and the byte between fields.
    pub field: Option<(u64, u8)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub number: u64,
    /// Where its lines begin in the output.
    pub start: u64,
    pub bytes: u64,
    /// The XXH3 of the lines.
    pub sum: u64,
    /// The number of the tick in which they were added, in a filter that forgets.
    pub tick: u64,
    pub added: Vec<Prehashed>,
    pub refreshed: Vec<Prehashed>,
    /// The beginning of the first line.
    pub head: Vec<u8>,
}

impl Batch {
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Record {
    Output(Output),
    Batch(Batch),
    /// All of the lines of a batch are in the output, and begin there.
    Written {
        number: u64,
        start: u64,
    },
}

fn put(into: &mut Vec<u8>, word: u64) {
    into.extend_from_slice(&word.to_le_bytes());
}

fn put_hashes(into: &mut Vec<u8>, hashes: &[Prehashed]) {
    let start = into.len();
    into.resize(start + WORD * hashes.len(), 0);
    for (word, hash) in into[start..].as_chunks_mut().0.iter_mut().zip(hashes) {
        *word = hash.0.to_le_bytes();
    }
}

fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend_from_slice(bytes);
    into.resize(into.len().next_multiple_of(WORD), 0);
}

fn set(record: &mut [u8], word: usize, value: u64) {
    record[WORD * word..WORD * (word + 1)].copy_from_slice(&value.to_le_bytes());
}

fn check(record: &[u8], key: u64) -> u64 {
    let kind = u64::from_le_bytes(record[..WORD].try_into().unwrap_or_default());
    xxh3_64_with_seed(&record[2 * WORD..], key ^ kind.rotate_left(32))
}

/// Fills in the beginning of a record.
fn seal(record: &mut [u8], kind: u64, key: u64) {
    let words = (record.len() / WORD) as u64;
    set(record, 0, kind | words << 8);
    let check = check(record, key);
    set(record, 1, check);
}

/// Lines of a batch, as its record describes them.
pub struct Drafted<'a> {
    bytes: u64,
    sum: u64,
    /// The beginning of the first line.
    head: &'a [u8],
}

impl<'a> Drafted<'a> {
    pub fn of(lines: Lines<'a>, terminator: u8) -> Self {
        match lines {
            Lines::Text(lines) => {
                let line = memchr::memchr(terminator, lines).map_or(lines.len(), |end| end + 1);
                let head = &lines[..line.min(MOST_OF_LINE)];
                Drafted { bytes: lines.len() as u64, sum: xxh3_64(lines), head }
            }
            Lines::Long(LongLine { bytes, sum, head, .. }) => {
                Drafted { bytes: *bytes, sum: *sum, head: &head[..head.len().min(MOST_OF_LINE)] }
            }
        }
    }
}

/// Makes the record of a batch with these lines, except for what only the writer knows.
pub fn draft(
    record: &mut Vec<u8>,
    added: &[Prehashed],
    refreshed: &[Prehashed],
    tick: u64,
    lines: Drafted<'_>,
) {
    record.clear();
    if added.is_empty() && refreshed.is_empty() {
        return;
    }
    let Drafted { bytes, sum, head } = lines;
    let counts = [added.len(), refreshed.len(), head.len()].map(|count| count as u64);
    record.reserve(WORD * (BATCH_HEAD + added.len() + refreshed.len() + 1) + head.len());
    [0; 4].into_iter().chain([bytes, sum, tick]).chain(counts).for_each(|word| put(record, word));
    put_hashes(record, added);
    put_hashes(record, refreshed);
    put_bytes(record, head);
}

/// Completes the record of a batch.
pub fn complete(draft: &mut [u8], number: u64, start: u64, key: u64) {
    set(draft, 2, number);
    set(draft, 3, start);
    seal(draft, BATCH, key);
}

pub fn written(number: u64, start: u64, key: u64) -> Vec<u8> {
    let mut record = Vec::new();
    [0, 0, number, start].into_iter().for_each(|word| put(&mut record, word));
    seal(&mut record, WRITTEN, key);
    record
}

impl Output {
    pub fn record(&self, key: u64) -> Vec<u8> {
        let mut record = Vec::new();
        let Identity { device, number, created, path } = self.file.clone().unwrap_or_default();
        let path = path.into_os_string().into_encoded_bytes();
        let (field, delimiter) = self.field.unwrap_or_default();
        let bytes = [self.terminator, u8::from(self.folds_cr), delimiter];
        let flags = bytes.into_iter().rev().fold(0, |flags, byte| flags << 8 | u64::from(byte));
        let is_file = u64::from(self.file.is_some());
        let words = [0, 0, is_file, device, number, created, flags, field, path.len() as u64];
        words.into_iter().for_each(|word| put(&mut record, word));
        put_bytes(&mut record, &path);
        seal(&mut record, OUTPUT, key);
        record
    }
}

/// The words of a record, from the first to the last.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn hashes(&mut self, count: u64) -> Option<Vec<Prehashed>> {
        let bytes = usize::try_from(count).ok()?.checked_mul(WORD)?;
        let (hashes, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        let words = hashes.as_chunks().0.iter();
        Some(words.map(|word| Prehashed(u64::from_le_bytes(*word))).collect())
    }

    /// What is left, but for the bytes that make it whole words.
    fn bytes(self, count: u64) -> Option<&'a [u8]> {
        let count = usize::try_from(count).ok()?;
        let is_all = count.checked_next_multiple_of(WORD)? == self.0.len();
        is_all.then(|| &self.0[..count])
    }
}

/// Reads the first record. Returns it, and what follows. `None` if there is no other.
pub fn next(bytes: &[u8], key: u64) -> Option<(Record, &[u8])> {
    let first = Words(bytes).next()?;
    let length = usize::try_from(first >> 8).ok()?.checked_mul(WORD)?;
    let (record, rest) = bytes.split_at_checked(length)?;
    let mut words = Words(record);
    let (kind, own) = (words.next()? as u8, words.next()?);
    if own != check(record, key) {
        return None;
    }
    let record = match u64::from(kind) {
        OUTPUT => {
            let [is_file, device, number, created] =
                [words.next()?, words.next()?, words.next()?, words.next()?];
            let [flags, field, length] = [words.next()?, words.next()?, words.next()?];
            let path = path_of(words.bytes(length)?);
            let [terminator, folds_cr, delimiter, ..] = flags.to_le_bytes();
            Record::Output(Output {
                file: (is_file == 1).then_some(Identity { device, number, created, path }),
                terminator,
                folds_cr: folds_cr == 1,
                field: (field > 0).then_some((field, delimiter)),
            })
        }
        BATCH => {
            let [number, start, bytes, sum] =
                [words.next()?, words.next()?, words.next()?, words.next()?];
            let [tick, added, refreshed, head] =
                [words.next()?, words.next()?, words.next()?, words.next()?];
            let (added, refreshed) = (words.hashes(added)?, words.hashes(refreshed)?);
            let head = words.bytes(head)?.to_vec();
            Record::Batch(Batch { number, start, bytes, sum, tick, added, refreshed, head })
        }
        WRITTEN => Record::Written { number: words.next()?, start: words.next()? },
        _ => return None,
    };
    Some((record, rest))
}

/// The records of a journal that is read from a file, one after the other.
pub struct Records<R> {
    from: R,
    /// The number of bytes that are not read yet.
    left: u64,
    key: u64,
    record: Vec<u8>,
}

impl<R: Read> Records<R> {
    /// Those of the next `left` bytes.
    pub fn new(from: R, left: u64, key: u64) -> Self {
        Records { from, left, key, record: Vec::new() }
    }

    /// Reads the next one. `None` if it is damaged or incomplete, or if there is none.
    pub fn next(&mut self) -> io::Result<Option<Record>> {
        self.record.clear();
        if !self.read_up_to(WORD as u64)? {
            return Ok(None);
        }
        let first = Words(&self.record).next().unwrap_or_default();
        let bytes = (first >> 8).saturating_mul(WORD as u64);
        // An incomplete one is not read at all.
        if bytes < 2 * WORD as u64 || bytes - WORD as u64 > self.left || !self.read_up_to(bytes)? {
            return Ok(None);
        }
        Ok(next(&self.record, self.key).map(|(record, _)| record))
    }

    /// Reads the record up to a length. Returns `false` if there is not so much.
    fn read_up_to(&mut self, length: u64) -> io::Result<bool> {
        let more = length - self.record.len() as u64;
        let read = (&mut self.from).take(more.min(self.left)).read_to_end(&mut self.record)?;
        self.left -= read as u64;
        Ok(read as u64 == more)
    }

    /// After the last record that can be read: whether it is known to be followed by more than the part of one, or the
    /// zeros, that a kill or a power failure leaves at the end.
    pub fn end_in_damage(mut self) -> io::Result<bool> {
        let first = Words(&self.record).next().unwrap_or_default();
        let is_part = (first >> 8).saturating_mul(WORD as u64) > self.record.len() as u64;
        if is_part {
            return Ok(false);
        }
        // What follows one that is complete is of others.
        let mut piece = [0; 4096];
        loop {
            match self.from.read(&mut piece) {
                Ok(0) => return Ok(false),
                Ok(read) if piece[..read].iter().any(|byte| *byte != 0) => return Ok(true),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> (Vec<u8>, Batch) {
        let (added, refreshed) = ([1, 2, 3].map(Prehashed), [u64::MAX].map(Prehashed));
        let mut record = Vec::new();
        let lines = Drafted::of(Lines::Text(b"a line\nanother\n"), b'\n');
        draft(&mut record, &added, &refreshed, 8, lines);
        complete(&mut record, 5, 1 << 40, 99);
        let batch = Batch {
            number: 5,
            start: 1 << 40,
            bytes: 15,
            sum: xxh3_64(b"a line\nanother\n"),
            tick: 8,
            added: added.to_vec(),
            refreshed: refreshed.to_vec(),
            head: b"a line\n".to_vec(),
        };
        (record, batch)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let (record, batch) = batch();
        let path = PathBuf::from("/a/path");
        let file = Some(Identity { device: 3, number: 4, created: 5, path });
        for output in [
            Output::default(),
            Output { file, terminator: 0, folds_cr: true, field: Some((2, b',')) },
        ] {
            let all = [output.record(99), record.clone(), written(5, 17, 99)].concat();
            let (first, rest) = next(&all, 99).unwrap();
            assert_eq!(first, Record::Output(output));
            let (second, rest) = next(rest, 99).unwrap();
            assert_eq!(second, Record::Batch(batch.clone()));
            let (third, rest) = next(rest, 99).unwrap();
            assert_eq!(third, Record::Written { number: 5, start: 17 });
            assert_eq!(next(rest, 99), None);
        }
    }

    #[test]
    fn a_record_that_is_damaged_or_cut_off_or_of_another_journal_is_none() {
        let (mut record, _) = batch();
        assert_eq!(next(&record, 98), None);
        for length in 0..record.len() {
            assert_eq!(next(&record[..length], 99), None);
        }
        for bit in 0..8 * record.len() {
            record[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(next(&record, 99), None, "{bit}");
            record[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_batch_that_changes_nothing_has_no_record() {
        let mut record = vec![1];
        draft(&mut record, &[], &[], 0, Drafted::of(Lines::Text(b""), b'\n'));
        assert!(record.is_empty());
    }
}
