//! What `benches/dedup/files` needs: records, a Bloom filter to compare with, and the exact answer.
//!
//! The Bloom filter works like that of allenai's bff: threads take one file each, look all bits of an item up, and then set
//! them. Beside bff, it has it easy: it is told the exact number of items, finds a field without parsing, and computes two
//! hashes of an item for all of its bits.

use std::collections::HashSet;
use std::env::args;
use std::fs::{File, create_dir_all, read_dir};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::thread::scope;

fn main() {
    let words: Vec<String> = args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().expect("a number");
    match words[..] {
        ["make", folder, files, records] => make(Path::new(folder), number(files), number(records)),
        ["bloom", mode, from, to, bytes, items] => {
            bloom(mode, from, to, number(bytes), number(items))
        }
        ["check", mode, from, to] => check(mode, from, to),
        _ => panic!(
            "make FOLDER FILES RECORDS | bloom MODE FROM TO BYTES ITEMS | check MODE FROM TO"
        ),
    }
}

/// Mixes the bits of a number with the finalizer of SplitMix64.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Writes files of so many records each. Of four records, one is in all files, at the same place, as in dumps of one day;
/// one was in the same file before; and two are in no other place. A record has four paragraphs, of which one is one of a
/// thousand that are everywhere.
fn make(folder: &Path, files: u64, records: u64) {
    create_dir_all(folder).expect("a folder");
    for file in 0..files {
        let path = folder.join(format!("shard-{file:02}.jsonl"));
        let mut output = BufWriter::with_capacity(1 << 20, File::create(path).expect("a file"));
        for at in 0..records {
            let kind = |at: u64| mix(at) % 4;
            let own = |at: u64| if kind(at) == 0 { at } else { (file + 1) << 40 | at };
            let number = if kind(at) == 1 { own(mix(!at) % (at + 1)) } else { own(at) };
            write!(output, "{{\"id\":\"{:016x}\",\"text\":\"", mix(number)).expect("a disk");
            write!(output, "Subscribe to our newsletter number {}", mix(number) % 1_000)
                .expect("a disk");
            for paragraph in 0..3 {
                let random = mix(number << 2 | paragraph);
                write!(output, "\\nOn day {random:x} the story went on: {:x}, and nobody knew why the river was {:x}.",
                    mix(random), mix(!random)).expect("a disk");
            }
            output.write_all(b"\"}\n").expect("a disk");
        }
        output.flush().expect("a disk");
    }
}

fn inputs(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        read_dir(folder).expect("a folder").map(|it| it.expect("a file").path()).collect();
    files.sort();
    files
}

/// Passes all lines of a file to `act`.
fn for_each_line(path: &Path, mut act: impl FnMut(&[u8])) {
    let mut input = BufReader::with_capacity(1 << 20, File::open(path).expect("a file"));
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).expect("a file") > 0 {
        act(&line);
        line.clear();
    }
}

/// Where the identifier and the text of a record begin: they stand at the same place in each.
const ID: usize = "{\"id\":\"".len();
const TEXT: usize = "{\"id\":\"0123456789abcdef\",\"text\":\"".len();

/// Returns the paragraphs of a record, without the backslash and the n after them.
fn paragraphs(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = line.get(TEXT..line.len() - 3);
    std::iter::from_fn(move || {
        let text = rest?;
        // There are no other escapes.
        let end = text.iter().position(|byte| *byte == b'\\');
        rest = end.map(|end| &text[end + 2..]);
        Some(end.map_or(text, |end| &text[..end]))
    })
}

/// A hash of some bytes: multiplications of eight at a time, whose halves are folded.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let fold = |one: u64, other: u64| {
        let product = u128::from(one) * u128::from(other);
        product as u64 ^ (product >> 64) as u64
    };
    let mut hash = seed;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = fold(hash ^ u64::from_le_bytes(word), 0x9E37_79B9_7F4A_7C15);
    }
    mix(hash ^ bytes.len() as u64)
}

struct Bloom {
    words: Vec<AtomicU32>,
    hashes: u64,
}

impl Bloom {
    /// Calls `act` with each word and bit of an item, until it returns `false`.
    fn all(&self, item: &[u8], act: impl Fn(&AtomicU32, u32) -> bool) -> bool {
        let (one, other) = (hash(item, 1), hash(item, 2) | 1);
        (0..self.hashes).all(|number| {
            let bits = self.words.len() as u128 * 32;
            let bit =
                (u128::from(one.wrapping_add(number.wrapping_mul(other))) * bits >> 64) as usize;
            act(&self.words[bit / 32], 1 << (bit % 32))
        })
    }

    /// Adds an item. Returns whether it was new, as another thread may have found, too.
    fn add(&self, item: &[u8]) -> bool {
        let is_there = self.all(item, |word, bit| word.load(Relaxed) & bit != 0);
        if !is_there {
            self.all(item, |word, bit| {
                word.fetch_or(bit, Relaxed);
                true
            });
        }
        !is_there
    }
}

fn bloom(mode: &str, from: &str, to: &str, bytes: u64, items: u64) {
    create_dir_all(to).expect("a folder");
    let best = (bytes as f64 * 8.0 / items as f64 * 2_f64.ln()).round().clamp(1.0, 30.0);
    let words = (0..bytes / 4).map(|_| AtomicU32::new(0)).collect();
    let bloom = Bloom { words, hashes: best as u64 };
    let (files, next) = (inputs(from), AtomicUsize::new(0));
    let work = || {
        while let Some(path) = files.get(next.fetch_add(1, Relaxed)) {
            let output = Path::new(to).join(path.file_name().expect("a name"));
            let mut output =
                BufWriter::with_capacity(1 << 20, File::create(output).expect("a file"));
            let mut left = Vec::new();
            for_each_line(path, |line| {
                if mode == "records" {
                    if bloom.add(&line[ID..ID + 16]) {
                        output.write_all(line).expect("a disk");
                    }
                    return;
                }
                left.clear();
                for paragraph in paragraphs(line).filter(|paragraph| bloom.add(paragraph)) {
                    left.extend_from_slice(if left.is_empty() { b"" } else { b"\\n" });
                    left.extend_from_slice(paragraph);
                }
                if !left.is_empty() {
                    let parts = [&line[..TEXT], &left, b"\"}\n"];
                    parts.iter().for_each(|part| output.write_all(part).expect("a disk"));
                }
            });
            output.flush().expect("a disk");
        }
    };
    scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
}

/// Prints how many items are different in the inputs, and how many of them the outputs have twice or lack.
fn check(mode: &str, from: &str, to: &str) {
    let items = |folder: &str| {
        let (mut all, mut number) = (HashSet::new(), 0_u64);
        let mut take = |item: &[u8]| {
            if !item.is_empty() {
                all.insert((hash(item, 3), hash(item, 4) as u32));
                number += 1;
            }
        };
        for path in inputs(folder) {
            for_each_line(&path, |line| match mode {
                "records" => take(&line[ID..ID + 16]),
                _ => paragraphs(line).for_each(&mut take),
            });
        }
        (all, number)
    };
    let (different, _) = items(from);
    let (left, number) = items(to);
    assert!(left.is_subset(&different), "the output has what the input has not");
    println!("{} {} {}", different.len(), number - left.len() as u64, different.len() - left.len());
}
