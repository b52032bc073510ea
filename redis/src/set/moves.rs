//! How a set gets somewhere else: in chunks, as a copy, as a digest.
//!
//! Nothing here changes a set, but that a tick that is passing comes to its end: see [`time`](crate::set::time).

use crate::set::about::{About, Filter};
use crate::set::assembly::{Assembly, Part, Trouble};
use crate::set::items::{limited, of_body};
use crate::set::{Body, Set, chunk, filter_of};
use koel::SnapshotError;
use std::sync::Arc;

/// The bytes in a piece, unless a shard has more.
const PIECE_BYTES: usize = 1 << 20;

/// Where a dump goes on. These are larger than any cursor of a filter, and numbers that every client can hold.
const AT_ABOUT: u64 = (1 << 53) - 2;
const AT_END: u64 = (1 << 53) - 1;

/// Why there is no such part of a dump.
pub enum NoPart {
    /// The cursor is not one of this set.
    NoSuchCursor,
    Koel(SnapshotError),
}

/// What became of a chunk.
pub enum Pushed {
    /// Others have to follow.
    Taken,
    /// It was the last one: the set is whole.
    Completed,
}

impl Set {
    /// The part of a dump at this cursor, and the cursor of the next one. `None` at the end.
    pub fn part_at(&self, cursor: u64) -> Result<Option<(u64, Vec<u8>)>, NoPart> {
        match cursor {
            _ if self.is_half() => return Err(NoPart::NoSuchCursor),
            AT_END => return Ok(None),
            AT_ABOUT => return Ok(Some((AT_END, chunk::of_about(&self.about)))),
            _ => {}
        }
        let filter = self.as_filter().ok_or(NoPart::NoSuchCursor)?;
        let piece = filter.piece_at(cursor, PIECE_BYTES).map_err(|error| match error.kind() {
            koel::SnapshotErrorKind::NoSuchPiece => NoPart::NoSuchCursor,
            _ => NoPart::Koel(error),
        })?;
        Ok(Some((piece.next().unwrap_or(AT_ABOUT), piece.as_bytes().to_vec())))
    }

    /// Visits all chunks that a file needs.
    pub fn each_chunk(&self, mut visit: impl FnMut(&[u8])) -> Result<(), SnapshotError> {
        match &self.body {
            Body::Few(few) => visit(&chunk::of_few(&self.about, few)),
            Body::Half(_) => visit(&chunk::half()),
            Body::Filter(filter) => {
                for piece in filter.pieces(PIECE_BYTES) {
                    visit(piece?.as_bytes());
                }
                visit(&chunk::of_about(&self.about));
            }
        }
        Ok(())
    }

    /// Visits bytes that are equal in sets with equal tables, and in no others.
    pub fn each_digested(&self, mut visit: impl FnMut(&[u8])) {
        if self.is_half() {
            return visit(&chunk::half());
        }
        visit(&chunk::of_about(&self.about));
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
            Body::Few(few) => filter_of(&self.about, few).map(Arc::new),
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
        Some(Set { about: self.about, body })
    }

    /// Allocates anew what is small, so that the allocator can put it where there is less waste.
    pub fn renew_what_is_small(&mut self) {
        if let Body::Few(few) = &mut self.body {
            *few = few.clone();
        }
    }

    /// Makes a set of its chunks.
    pub fn of_chunks(chunks: Assembly) -> Result<Self, Trouble> {
        let (part, about) = chunks.finish();
        let filter = match part {
            Part::Nothing => return Err(Trouble::Misplaced),
            Part::Half => return Ok(Set::half()),
            Part::Few(few) => {
                let about = about.ok_or(Trouble::Misplaced)?;
                return Ok(Set { about, body: Body::Few(few) });
            }
            Part::Pieces(loader) => loader.finish()?,
            Part::File(file) => Filter::read_from(file.as_slice())?,
        };
        let mut set = Set { about: About::of(&filter), body: Body::of(filter) };
        match about {
            Some(about) if !set.describe(about) => Err(Trouble::Misplaced),
            _ => Ok(set),
        }
    }

    /// Takes a chunk of half a set, and makes it whole if that was the last one. After an error, nothing has changed
    /// unless it [spoilt](Trouble::Spoilt) the chunks before.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Pushed, Trouble> {
        let Body::Half(assembly) = &mut self.body else { return Err(Trouble::Misplaced) };
        match assembly.push(chunk) {
            Err(why) if assembly.is_spoilt() => {
                **assembly = Assembly::default();
                return Err(Trouble::Spoilt(Box::new(why)));
            }
            Err(why) => return Err(why),
            Ok(()) if !assembly.is_complete() => return Ok(Pushed::Taken),
            Ok(()) => {}
        }
        let whole = Set::of_chunks(std::mem::take(&mut **assembly));
        *self = whole.map_err(|why| Trouble::Spoilt(Box::new(why)))?;
        Ok(Pushed::Completed)
    }
}
