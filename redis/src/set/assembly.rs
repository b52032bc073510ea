//! From chunks to a set: those of a file, or those that a client loads one by one.

use crate::set::chunk::Chunk;
use crate::set::errors;
use crate::set::few::Few;
use crate::set::spec::{Filter, FilterSpec};
use koel::{PieceLoader, SnapshotError, SnapshotErrorKind, SnapshotInfo, StableHash};
use std::fmt;

/// A set of which some chunks have come.
#[derive(Default)]
pub struct Assembly {
    part: Part,
    spec: Option<FilterSpec>,
    /// The bytes that have come.
    bytes: usize,
}

/// What the chunks are of.
#[derive(Default)]
pub enum Part {
    #[default]
    Nothing,
    /// A set that was saved before all of its chunks had come.
    Half,
    Pieces(Box<PieceLoader<StableHash>>),
    Few(Few),
    /// The bytes of a file of koel, which only clients load, and the number of its last chunk.
    File(Vec<u8>, i64),
}

/// Why a chunk was refused, or why there is none.
#[derive(Debug)]
pub enum ChunkError {
    /// No chunk of this set begins there.
    NoSuchCursor,
    /// It is no chunk.
    Foreign,
    /// It does not follow the one before.
    Misplaced,
    /// koel says why.
    Koel(SnapshotError),
    /// It is damaged, or it was the last one and all together are no set: those before it are gone, too.
    Spoilt(Box<ChunkError>),
}

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChunkError::NoSuchCursor => f.write_str("this is not a cursor of the filter"),
            ChunkError::Foreign => f.write_str("this is not a chunk of a filter"),
            ChunkError::Misplaced => f.write_str("this chunk does not follow the one before"),
            ChunkError::Koel(error) => f.write_str(&errors::of_snapshot(error)),
            ChunkError::Spoilt(why) => write!(f, "{why}; begin again with the first"),
        }
    }
}

impl ChunkError {
    /// Whether it is only not the chunk that comes next.
    fn is_of_order(&self) -> bool {
        match self {
            ChunkError::Misplaced => true,
            ChunkError::Koel(error) => error.kind() == SnapshotErrorKind::OutOfOrder,
            _ => false,
        }
    }
}

impl From<SnapshotError> for ChunkError {
    fn from(error: SnapshotError) -> Self {
        ChunkError::Koel(error)
    }
}

impl Assembly {
    /// Takes the next chunk, or the first one of any set, which begins anew.
    pub fn push_or_begin(&mut self, number: i64, bytes: &[u8]) -> Result<(), ChunkError> {
        match self.push(number, bytes) {
            Err(why) if why.is_of_order() => {
                let mut again = Assembly::default();
                again.push(number, bytes).map_err(|_| why)?;
                *self = again;
                Ok(())
            }
            pushed => pushed,
        }
    }

    /// Takes the next chunk, after checking it. Chunks of a file are known by their numbers, from 1: it may be cut
    /// anywhere, so they may look like anything.
    pub fn push(&mut self, number: i64, bytes: &[u8]) -> Result<(), ChunkError> {
        match &mut self.part {
            Part::File(file, last) if number == *last + 1 => {
                file.extend_from_slice(bytes);
                *last = number;
            }
            Part::File(..) => return Err(ChunkError::Misplaced),
            part => match (Chunk::parse(bytes).ok_or(ChunkError::Foreign)?, part) {
                (Chunk::Piece(piece), part @ Part::Nothing) => {
                    let mut loader = Box::new(Filter::loader());
                    loader.push(piece)?;
                    *part = Part::Pieces(loader);
                }
                (Chunk::Piece(piece), Part::Pieces(loader)) => loader.push(piece)?,
                (Chunk::Spec(spec), Part::Pieces(loader)) if loader.next().is_none() => {
                    self.spec = Some(spec);
                }
                (Chunk::Few(spec, few), part @ Part::Nothing) => {
                    (self.spec, *part) = (Some(spec), Part::Few(few));
                }
                (Chunk::Half, part @ Part::Nothing) => *part = Part::Half,
                (Chunk::File, part @ Part::Nothing) if number == 1 => {
                    *part = Part::File(bytes.to_vec(), number);
                }
                _ => return Err(ChunkError::Misplaced),
            },
        }
        self.bytes += bytes.len();
        Ok(())
    }

    /// Whether the chunk that came is the last one of a saved set.
    pub fn has_last(&self) -> bool {
        self.spec.is_some() || matches!(self.part, Part::Half)
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
            Part::Few(_) | Part::Half => true,
            Part::File(file, _) => {
                let end = &file[file.len().saturating_sub(SnapshotInfo::END_BYTES)..];
                SnapshotInfo::length_in_end(end) == Some(file.len() as u64)
            }
        }
    }

    /// Returns the contents, and the description of the set if the chunks contain it.
    pub fn finish(self) -> (Part, Option<FilterSpec>) {
        (self.part, self.spec)
    }

    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
