//! How a set gets somewhere else: in chunks, as a copy, as a digest.
//!
//! Nothing here changes a set, but that a tick that is passing comes to its end: see [`time`](crate::set::time).

use crate::set::assembly::{Assembly, ChunkError, Part};
use crate::set::items::{limited, of_body};
use crate::set::spec::{Filter, FilterSpec};
use crate::set::{Body, Set, chunk, filter_of};
use koel::{SnapshotError, SnapshotErrorKind};
use std::sync::Arc;

/// The bytes in a piece, unless a shard has more.
const PIECE_BYTES: usize = 1 << 20;

/// Where a dump goes on. These are larger than any cursor of a filter, and numbers that every client can hold.
const AT_SPEC: u64 = (1 << 53) - 2;
const AT_END: u64 = (1 << 53) - 1;

impl Set {
    /// The part of a dump at this cursor, and the cursor of the next one. `None` at the end.
    pub fn part_at(&self, cursor: u64) -> Result<Option<(u64, Vec<u8>)>, ChunkError> {
        match cursor {
            _ if self.is_half() => return Err(ChunkError::NoSuchCursor),
            AT_END => return Ok(None),
            AT_SPEC => return Ok(Some((AT_END, chunk::of_spec(&self.spec)))),
            _ => {}
        }
        let filter = self.as_filter().ok_or(ChunkError::NoSuchCursor)?;
        let piece = filter.piece_at(cursor, PIECE_BYTES).map_err(|error| match error.kind() {
            SnapshotErrorKind::NoSuchPiece => ChunkError::NoSuchCursor,
            _ => ChunkError::Koel(error),
        })?;
        Ok(Some((piece.next().unwrap_or(AT_SPEC), piece.as_bytes().to_vec())))
    }

    /// Visits all chunks that a file needs.
    pub fn each_chunk(&self, mut visit: impl FnMut(&[u8])) -> Result<(), SnapshotError> {
        match &self.body {
            Body::Few(few) => visit(&chunk::of_few(&self.spec, few)),
            Body::Half(_) => visit(&chunk::half()),
            Body::Filter(filter) => {
                for piece in filter.pieces(PIECE_BYTES) {
                    visit(piece?.as_bytes());
                }
                visit(&chunk::of_spec(&self.spec));
            }
        }
        Ok(())
    }

    /// Visits bytes that are equal in sets with equal tables, and in no others.
    pub fn each_digested(&self, mut visit: impl FnMut(&[u8])) {
        if self.is_half() {
            return visit(&chunk::half());
        }
        visit(&chunk::of_spec(&self.spec));
        // Without memory for a piece, there is no digest.
        let Some(filter) = self.as_filter() else { return };
        for piece in filter.pieces(PIECE_BYTES).map_while(Result::ok) {
            visit(piece.as_bytes());
        }
    }

    /// Returns its filter, or the one that a few items would become, if there is memory for it.
    fn as_filter(&self) -> Option<Arc<Filter>> {
        match &self.body {
            Body::Filter(filter) => Some(filter.clone()),
            Body::Few(few) => filter_of(&self.spec, few).map(Arc::new),
            Body::Half(_) => None,
        }
    }

    /// Returns a copy, if there is memory for it.
    pub fn try_clone(&self) -> Option<Self> {
        self.try_clone_within(usize::MAX)
    }

    /// Returns a copy that takes no more than `most` bytes if the set does not, if there is memory for it.
    pub(super) fn try_clone_within(&self, most: usize) -> Option<Self> {
        let body = match &self.body {
            Body::Few(few) => Body::Few(few.clone()),
            // Its chunks have to be loaded there, too.
            Body::Half(_) => Body::Half(Box::default()),
            Body::Filter(filter) => {
                Body::of(limited(filter, of_body(most), Filter::try_clone).ok()?)
            }
        };
        Some(Set { spec: self.spec, body })
    }

    /// Allocates anew what is small, so that the allocator can put it where there is less waste.
    pub fn renew_what_is_small(&mut self) {
        if let Body::Few(few) = &mut self.body {
            *few = few.clone();
        }
    }

    /// Makes a set of its chunks.
    pub fn of_chunks(chunks: Assembly) -> Result<Self, ChunkError> {
        let (part, spec) = chunks.finish();
        let filter = match part {
            Part::Nothing => return Err(ChunkError::Misplaced),
            Part::Half => return Ok(Set::half()),
            Part::Few(few) => {
                let spec = spec.ok_or(ChunkError::Misplaced)?;
                return Ok(Set { spec, body: Body::Few(few) });
            }
            Part::Pieces(loader) => loader.finish()?,
            Part::File(file, _) => Filter::read_from(file.as_slice())?,
        };
        let mut set = Set { spec: FilterSpec::of(&filter), body: Body::of(filter) };
        match spec {
            Some(spec) if !set.describe(spec) => Err(ChunkError::Misplaced),
            _ => Ok(set),
        }
    }

    /// Takes [a chunk](Assembly::push_or_begin) of half a set, which is whole then if that was the last one. After an
    /// error, nothing has changed unless it [spoilt](ChunkError::Spoilt) the chunks before.
    pub fn push(&mut self, number: i64, chunk: &[u8]) -> Result<(), ChunkError> {
        let Body::Half(assembly) = &mut self.body else { return Err(ChunkError::Misplaced) };
        match assembly.push_or_begin(number, chunk) {
            Err(why) if assembly.is_spoilt() => {
                **assembly = Assembly::default();
                return Err(ChunkError::Spoilt(Box::new(why)));
            }
            Err(why) => return Err(why),
            Ok(()) if !assembly.is_complete() => return Ok(()),
            Ok(()) => {}
        }
        let whole = Set::of_chunks(std::mem::take(&mut **assembly));
        *self = whole.map_err(|why| ChunkError::Spoilt(Box::new(why)))?;
        Ok(())
    }
}
