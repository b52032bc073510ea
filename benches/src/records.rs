//! What `benches/dedup/files` needs: records, a Bloom filter to compare with, and the exact answer.
//!
//! The Bloom filter is used as allenai's bff uses one: threads take one file each, look all bits of an item up, and then
//! set them. Beside bff, it has it easy: it is told the exact number of items, finds a field without parsing, and is
//! `fastbloom`.

use crate::durable::item as mixed;
use crate::kit::arguments::{Arguments, Result};
use crate::peers::sets::{AtomicBloom, hasher};
use std::collections::HashSet;
use std::fs::{File, create_dir_all, read_dir};
use std::hash::BuildHasher;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::scope;

pub fn run(arguments: Arguments) -> Result<()> {
    let words = arguments.rest();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", folder, files, records] => {
            make(Path::new(folder), files.parse()?, records.parse()?)
        }
        ["bloom", mode, from, to, bytes, items] => {
            let bits = 8 * bytes.parse::<usize>()?;
            let hashes = bits as f64 / items.parse::<f64>()? * 2_f64.ln();
            let bloom = fastbloom::AtomicBloomFilter::with_num_bits(bits).hasher(hasher());
            let bloom = bloom.hashes(hashes.round().clamp(1.0, 30.0) as u32);
            create_dir_all(to)?;
            let (files, next) = (inputs(from)?, AtomicUsize::new(0));
            let work = || -> Result<()> {
                while let Some(path) = files.get(next.fetch_add(1, Relaxed)) {
                    take_out(&bloom, mode, path, Path::new(to))?;
                }
                Ok(())
            };
            scope(|scope| {
                let threads = [scope.spawn(work), scope.spawn(work)];
                threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
            })
        }
        ["check", mode, from, to] => check(mode, from, to),
        _ => {
            Err("make FOLDER FILES RECORDS | bloom MODE FROM TO BYTES ITEMS | check MODE FROM TO")?
        }
    }
}

/// Writes files of so many records each. Of four records, one is in all files, at the same place, as in dumps of one day;
/// one was in the same file before; and two are in no other place. A record has four paragraphs, of which one is one of a
/// thousand that are everywhere.
fn make(folder: &Path, files: u64, records: u64) -> Result<()> {
    create_dir_all(folder)?;
    for file in 0..files {
        let path = folder.join(format!("shard-{file:02}.jsonl"));
        let mut output = BufWriter::with_capacity(1 << 20, File::create(path)?);
        for at in 0..records {
            let kind = |at: u64| mixed(at) % 4;
            let own = |at: u64| if kind(at) == 0 { at } else { (file + 1) << 40 | at };
            let number = if kind(at) == 1 { own(mixed(!at) % (at + 1)) } else { own(at) };
            write!(output, "{{\"id\":\"{:016x}\",\"text\":\"", mixed(number))?;
            write!(output, "Subscribe to our newsletter number {}", mixed(number) % 1_000)?;
            for paragraph in 0..3 {
                let random = mixed(number << 2 | paragraph);
                write!(
                    output,
                    "\\nOn day {random:x} the story went on: {:x}, and nobody knew why the river was {:x}.",
                    mixed(random),
                    mixed(!random)
                )?;
            }
            output.write_all(b"\"}\n")?;
        }
        output.flush()?;
    }
    Ok(())
}

fn inputs(folder: &str) -> Result<Vec<PathBuf>> {
    let mut files = read_dir(folder)?.map(|it| Ok(it?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// Passes all lines of a file to `act`.
fn for_each_line(path: &Path, mut act: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut input = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        act(&line)?;
        line.clear();
    }
    Ok(())
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

/// Writes what is new in a file to a file of its name. Another thread may find the same to be new.
fn take_out(bloom: &AtomicBloom, mode: &str, path: &Path, to: &Path) -> Result<()> {
    let output = File::create(to.join(path.file_name().ok_or("no name")?))?;
    let mut output = BufWriter::with_capacity(1 << 20, output);
    let is_new = |item: &[u8]| {
        let hash = hasher().hash_one(item);
        !bloom.contains_hash(hash) && {
            bloom.insert_hash(hash);
            true
        }
    };
    for_each_line(path, |line| {
        if mode == "records" {
            if is_new(&line[ID..ID + 16]) {
                output.write_all(line)?;
            }
            return Ok(());
        }
        let left: Vec<&[u8]> = paragraphs(line).filter(|paragraph| is_new(paragraph)).collect();
        if !left.is_empty() {
            output.write_all(&[&line[..TEXT], &left.join(&b"\\n"[..]), b"\"}\n"].concat())?;
        }
        Ok(())
    })?;
    Ok(output.flush()?)
}

/// Prints how many items are different in the inputs, and how many of them the outputs have twice or lack.
fn check(mode: &str, from: &str, to: &str) -> Result<()> {
    let items = |folder: &str| -> Result<_> {
        let (mut all, mut number) = (HashSet::new(), 0);
        let mut take = |item: &[u8]| {
            if !item.is_empty() {
                all.insert(hasher().hash_one(item));
                number += 1;
            }
        };
        for path in inputs(folder)? {
            for_each_line(&path, |line| {
                match mode {
                    "records" => take(&line[ID..ID + 16]),
                    _ => paragraphs(line).for_each(&mut take),
                }
                Ok(())
            })?;
        }
        Ok((all, number))
    };
    let ((different, _), (left, number)) = (items(from)?, items(to)?);
    if !left.is_subset(&different) {
        return Err("the output has what the input has not".into());
    }
    println!("{} {} {}", different.len(), number - left.len(), different.len() - left.len());
    Ok(())
}
