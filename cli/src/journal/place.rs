//! What the output of a killed run has of its batches.

use crate::journal::record::{Batch, Output};
use crate::lines::output::Identity;
use crate::lines::rules::{Field, LONGEST, Rules};
use crate::state::comparison::{LineHash, Scratch};
use koel::Prehashed;
use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use xxhash_rust::xxh3::Xxh3Default;

/// How much is read at once.
const PIECE: u64 = 1 << 20;

/// What is there of the batches of a killed run.
pub struct There {
    /// So many of them, the first ones, were written.
    pub whole: usize,
    /// The output, if it is a file that is still there, so that it can be synced.
    pub file: Option<File>,
    /// What it has of the next batch, at its end, and where that begins.
    pub part: Option<Part>,
}

/// A part of a batch, at the end of a file.
pub struct Part {
    pub path: PathBuf,
    pub start: u64,
    end: u64,
}

/// A batch, and whether a record says that its lines are written.
pub type Noted = (Batch, bool);

/// Finds out which batches the output has.
pub fn look(output: &Output, batches: &[Noted], hasher: &LineHash) -> io::Result<There> {
    let Some(Identity { number, created, path, .. }) = &output.file else {
        // Their records came after their lines.
        return Ok(There { whole: batches.len(), file: None, part: None });
    };
    // Devices may have other numbers when the machine starts again, and with some file systems, files may, too.
    let is_it = |file: &File| {
        let Ok(about) = file.metadata() else { return false };
        let first = batches.iter().find(|(batch, _)| batch.bytes > 0);
        let has_first = || first.map(|(batch, _)| has(file, about.len(), batch));
        let now = Identity::of(&about, PathBuf::new());
        let is_same = now.number == *number && (*created == 0 || now.created == *created);
        about.is_file() && (is_same || matches!(has_first(), Some(Ok(true))))
    };
    let opened = match path.metadata() {
        Ok(about) if !about.is_file() => None,
        Ok(_) => Some(File::open(path)?),
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            None
        }
        Err(error) => return Err(error),
    };
    let Some(file) = opened.filter(is_it) else {
        // The file was moved or removed, and with it the lines that were written: all but, perhaps, the last ones.
        let is_open = batches.last().is_some_and(|(batch, is_out)| batch.bytes > 0 && !is_out);
        let whole = batches.len() - usize::from(is_open);
        return Ok(There { whole, file: None, part: None });
    };
    let length = file.metadata()?.len();
    let mut whole = 0;
    // A later batch that begins before the end of this one: somebody has taken away what was there.
    let mut lowest = u64::MAX;
    let mut is_taken: Vec<bool> = Vec::with_capacity(batches.len());
    for (batch, _) in batches.iter().rev() {
        is_taken.push(lowest < batch.end());
        lowest = lowest.min(batch.start);
    }
    is_taken.reverse();
    for ((batch, _), is_taken) in batches.iter().zip(is_taken) {
        if !is_taken && !has(&file, length, batch)? {
            break;
        }
        whole += 1;
    }
    let part = match batches.get(whole) {
        Some((batch, _)) if batch.start < length && length < batch.end() => {
            let of_batch = is_part(&file, (batch.start, length), batch, output, hasher)?;
            of_batch.then(|| Part { path: path.clone(), start: batch.start, end: length })
        }
        _ => None,
    };
    Ok(There { whole, file: Some(file), part })
}

/// Whether a file of this length has the lines of a batch.
fn has(file: &File, length: u64, batch: &Batch) -> io::Result<bool> {
    if batch.bytes == 0 {
        return Ok(true);
    }
    if batch.end() > length {
        return Ok(false);
    }
    let (mut at, mut sum) = (batch.start, Xxh3Default::new());
    let mut piece = vec![0; batch.bytes.min(PIECE) as usize];
    while at < batch.end() {
        let most = piece.len().min((batch.end() - at) as usize);
        match file.read_at(&mut piece[..most], at) {
            Ok(0) => return Ok(false),
            Ok(read) => {
                sum.update(&piece[..read]);
                at += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sum.digest() == batch.sum)
}

/// Whether the end of a file is the beginning of a batch, and not what another process has appended.
fn is_part(
    mut file: &File,
    (start, end): (u64, u64),
    batch: &Batch,
    output: &Output,
    hasher: &LineHash,
) -> io::Result<bool> {
    file.seek(SeekFrom::Start(start))?;
    let (mut head, length) = (Vec::new(), (end - start).min(batch.head.len() as u64));
    file.take(length).read_to_end(&mut head)?;
    if !batch.head.starts_with(&head) {
        return Ok(false);
    }
    let rules = Rules {
        terminator: output.terminator,
        folds_cr: output.folds_cr,
        field: output.field.map(|(number, delimiter)| Field { number: number as usize, delimiter }),
        longest: LONGEST,
    };
    let added: HashSet<u64> = batch.added.iter().map(|hash| hash.0).collect();
    let mut scratch = Scratch::default();
    let mut is_of_batch = |line: &[u8]| {
        let (key, _) = hasher.comparison().key(rules.compared(line).0, &mut scratch);
        let Prehashed(hash) = hasher.of_key(key);
        added.contains(&hash)
    };
    file.seek(SeekFrom::Start(start))?;
    let (mut rest, mut line) = (BufReader::new(file.take(end - start)), Vec::new());
    while rest.read_until(output.terminator, &mut line)? > 0 {
        if line.ends_with(&[output.terminator]) && !is_of_batch(&line) {
            return Ok(false);
        }
        line.clear();
    }
    Ok(true)
}

impl Part {
    /// Cuts it off, unless another run writes to the file, or it has changed meanwhile.
    pub fn cut_off(&self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(&self.path)?;
        // A run has a shared lock on its output. Not all file systems have locks.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(io::Error::other(
                "another koel is writing to it, so the journal beside the state is of a run that was not killed; \
                 wait for it to end, or use another state",
            ));
        }
        if file.metadata()?.len() != self.end {
            return Err(io::Error::other("another process writes to it; wait for it to end"));
        }
        file.set_len(self.start)
    }
}
