//! From chunks to a set: those of a file, or those that a client loads one by one.

use crate::set::about::{About, Filter};
use crate::set::chunk::{self, Chunk};
use crate::set::errors;
use crate::set::few::Few;
use koel::{PieceLoader, SnapshotError, SnapshotInfo, StableHash};
use std::fmt;
use std::io::Read;

/// A set of which some chunks have come.
pub struct Assembly {
    /// The chunks, if all are kept until the set is complete: so half a set can be saved, too.
    kept: Option<Vec<Vec<u8>>>,
    bytes_kept: usize,
    marks: usize,
    part: Part,
    about: Option<About>,
}

/// What the chunks are of.
enum Part {
    Nothing,
    Pieces(Box<PieceLoader<StableHash>>),
    Few(Few),
    /// A file of koel, whose bytes are kept.
    File {
        complete: bool,
    },
}

/// What chunks are of, once they have come.
pub enum Whole {
    /// A set of which some have not come.
    Half(Assembly),
    Few(About, Few),
    /// With what it was made of, if the chunks tell that.
    Filter(Filter, Option<About>),
}

/// Why a chunk was refused.
#[derive(Debug)]
pub enum Trouble {
    /// It is no chunk.
    Foreign,
    /// It does not follow the one before.
    Misplaced,
    /// koel says why.
    Koel(SnapshotError),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Foreign => f.write_str("this is not a chunk of a filter"),
            Trouble::Misplaced => f.write_str("this chunk does not follow the one before"),
            Trouble::Koel(error) => f.write_str(&errors::of_snapshot(error)),
        }
    }
}

impl From<SnapshotError> for Trouble {
    fn from(error: SnapshotError) -> Self {
        Trouble::Koel(error)
    }
}

impl Assembly {
    /// For the chunks of a file, of which the last one tells that it is.
    pub fn new() -> Self {
        Assembly { kept: None, bytes_kept: 0, marks: 0, part: Part::Nothing, about: None }
    }

    /// For the chunks that a client loads. They are kept, since the set may have to be saved before all
    /// have come.
    pub fn keeping() -> Self {
        Assembly { kept: Some(Vec::new()), ..Self::new() }
    }

    /// Takes the next chunk, after checking it.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        let in_a_file = matches!(self.part, Part::File { complete: false });
        // A file may be cut anywhere. Only one that was saved half has marks around it.
        let is_mark = || self.marks > 0 && matches!(Chunk::parse(bytes), Some(Chunk::Mark));
        if in_a_file && !is_mark() {
            self.keep(bytes);
            self.part = Part::File { complete: self.ends_a_file() };
            return Ok(());
        }
        match (Chunk::parse(bytes).ok_or(Trouble::Foreign)?, &mut self.part) {
            (Chunk::Mark, _) => {
                self.marks += 1;
                self.kept.get_or_insert_default();
                return Ok(());
            }
            (Chunk::Piece(piece), Part::Nothing) => {
                let mut loader = Box::new(Filter::loader());
                loader.push(piece)?;
                self.part = Part::Pieces(loader);
            }
            (Chunk::Piece(piece), Part::Pieces(loader)) => loader.push(piece)?,
            (Chunk::About(about), Part::Pieces(loader)) if loader.next().is_none() => {
                self.about = Some(about);
            }
            (Chunk::Few(about, few), Part::Nothing) => {
                (self.about, self.part) = (Some(about), Part::Few(few));
            }
            // Only a client loads a file, and its chunks are kept.
            (Chunk::File, Part::Nothing) if self.kept.is_some() => {
                self.keep(bytes);
                self.part = Part::File { complete: self.ends_a_file() };
                return Ok(());
            }
            _ => return Err(Trouble::Misplaced),
        }
        self.keep(bytes);
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) {
        if let Some(kept) = &mut self.kept {
            kept.push(bytes.to_vec());
            self.bytes_kept += bytes.len();
        }
    }

    /// Whether what was kept ends as a file of its length does.
    fn ends_a_file(&self) -> bool {
        let from_end = self.kept.iter().flatten().rev().flat_map(|chunk| chunk.iter().rev());
        let mut end: Vec<u8> = from_end.take(SnapshotInfo::END_BYTES).copied().collect();
        end.reverse();
        SnapshotInfo::length_in_end(&end) == Some(self.bytes_kept as u64)
    }

    /// Whether the chunk that came is the last one of a file.
    pub fn has_last(&self) -> bool {
        match self.marks {
            0 => self.about.is_some(),
            marks => marks > 1,
        }
    }

    /// Whether a damaged chunk has spoilt those before it.
    pub fn is_spoilt(&self) -> bool {
        matches!(&self.part, Part::Pieces(loader) if loader.next() == Some(0))
    }

    /// Whether the set is there. What may follow only tells more about it.
    pub fn is_complete(&self) -> bool {
        match &self.part {
            Part::Nothing => false,
            Part::Pieces(loader) => loader.next().is_none(),
            Part::Few(_) => true,
            Part::File { complete } => *complete,
        }
    }

    /// Returns what the chunks are of.
    pub fn finish(self) -> Result<Whole, Trouble> {
        if self.marks > 0 && !self.is_complete() {
            return Ok(Whole::Half(self));
        }
        let filter = match self.part {
            Part::Nothing => return Err(Trouble::Misplaced),
            Part::Few(few) => {
                let about = self.about.ok_or(Trouble::Misplaced)?;
                return Ok(Whole::Few(about, few));
            }
            Part::Pieces(loader) => loader.finish()?,
            Part::File { .. } => {
                let chunks = self.kept.unwrap_or_default();
                Filter::read_from(Chunks { chunks: chunks.into_iter(), chunk: Vec::new(), at: 0 })?
            }
        };
        Ok(Whole::Filter(filter, self.about))
    }

    pub fn bytes(&self) -> usize {
        // What the loader took is about as much again.
        let chunks = self.kept.as_ref().map_or(0, Vec::capacity);
        size_of::<Self>() + 2 * self.bytes_kept + 2 * chunks * size_of::<Vec<u8>>()
    }

    /// Visits all chunks that have come, between two marks.
    pub fn each_chunk(&self, mut visit: impl FnMut(&[u8])) {
        visit(&chunk::mark());
        self.kept.iter().flatten().for_each(|chunk| visit(chunk));
        visit(&chunk::mark());
    }

    /// The same half once more.
    pub fn again(&self) -> Result<Self, Trouble> {
        let mut again = Self::keeping();
        self.kept.iter().flatten().try_for_each(|chunk| again.push(chunk))?;
        again.marks = self.marks.max(1);
        Ok(again)
    }
}

/// Reads chunks one after the other, and frees each that is done.
struct Chunks {
    chunks: std::vec::IntoIter<Vec<u8>>,
    chunk: Vec<u8>,
    at: usize,
}

impl Read for Chunks {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        while self.at == self.chunk.len() {
            let Some(next) = self.chunks.next() else { return Ok(0) };
            (self.chunk, self.at) = (next, 0);
        }
        let bytes = (&self.chunk[self.at..]).read(into)?;
        self.at += bytes;
        Ok(bytes)
    }
}
