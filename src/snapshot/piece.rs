//! Makes one piece of a filter.

use crate::backend::Backend;
use crate::error::reserve;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::part::format::{END_WORDS, HEADER_WORDS, PIECE_MAGIC, block_bytes};
use crate::snapshot::write::{Part, write};
use crate::stable_hash::PersistentHasher;
use std::fmt;

/// The number of bytes before and after the blocks.
const AROUND: usize = 8 * (HEADER_WORDS + END_WORDS);

/// A piece of a filter, which was made by [`piece_at`](crate::ConcurrentCuckooFilter::piece_at).
///
/// ```
/// use koel::{ConcurrentCuckooFilter, StableHash};
///
/// let builder = ConcurrentCuckooFilter::builder().capacity(100);
/// let filter = builder.hasher(StableHash::random()).build()?;
/// let piece = filter.piece_at(0, 1 << 20)?;
/// assert_eq!(piece.next(), None); // a small filter is one piece
/// assert!(piece.as_bytes().starts_with(b"\x89koelp"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Piece {
    bytes: Vec<u8>,
    next: Option<u64>,
}

impl Piece {
    /// The first bytes of every piece, and of nothing else that koel writes.
    ///
    /// ```
    /// # use koel::{ConcurrentCuckooFilter, Piece, StableHash};
    /// # let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let filter = builder.capacity(100).build()?;
    /// assert!(filter.piece_at(0, 0)?.as_bytes().starts_with(&Piece::MAGIC));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const MAGIC: [u8; 8] = PIECE_MAGIC;

    /// Returns the bytes of the piece, which are sent or stored as they are, and later
    /// [pushed](crate::PieceLoader::push). Filters that were built alike and have the same contents have the same pieces.
    ///
    /// ```
    /// # use koel::{ConcurrentCuckooFilter, StableHash};
    /// # let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let filter = builder.capacity(100_000).build()?;
    /// let bytes = filter.piece_at(0, 0)?.as_bytes().to_vec();
    /// assert!(bytes.len() < filter.size_in_bytes() + 500);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the cursor of the next piece, or `None` if this is the last one.
    ///
    /// It is never 0, which is the cursor of the first piece.
    ///
    /// ```
    /// # use koel::{ConcurrentCuckooFilter, StableHash};
    /// # let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let filter = builder.capacity(1_000_000).build()?; // three shards
    /// let cursor = filter.piece_at(0, 1 << 20)?.next().expect("more pieces");
    /// assert!(filter.piece_at(cursor, usize::MAX)?.next().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.next
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut piece = f.debug_struct("Piece");
        piece.field("bytes", &self.as_bytes().len()).field("next", &self.next).finish()
    }
}

/// Makes the piece that begins at this cursor. It has at least one shard, and more if they fit into
/// this number of bytes.
pub fn piece_of<S: PersistentHasher>(
    backend: &Backend,
    about: (usize, &S),
    cursor: u64,
    most_bytes: usize,
) -> Result<Piece, SnapshotError> {
    let part = Part { start: cursor, is_file: false, state: 0, most_bytes };
    let mut bytes = Vec::new();
    let plan = backend.plan();
    // There may be more shards by the time they are copied.
    let blocks = part.most_blocks(&plan).min(backend.shards() as u64);
    reserve(&mut bytes, AROUND + (blocks * block_bytes(&plan)) as usize)?;
    let (_, next) = write(backend, about, part, &(), |words| {
        reserve(&mut bytes, words.len())?;
        bytes.extend_from_slice(words);
        Ok(())
    })?;
    Ok(Piece { bytes, next })
}
