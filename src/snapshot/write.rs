//! Writes a part of a filter.
//!
//! The shards are copied and written one by one, so only one of them is in memory twice. In a growing filter, shards
//! may be split meanwhile. The blocks still make up every root, because the backend copies the shards in the order of
//! the hashes that lead to them.
//!
//! Between two parts, shards may also be joined. If the next part would then begin inside a shard, there is no such
//! part, and the dump has to begin again.

use crate::backend::Backend;
use crate::backend::shards::Block;
use crate::error::{reserve, zeros};
use crate::hash::PersistentHasher;
use crate::layout::geometry::Mixed;
use crate::layout::roots::Position;
use crate::layout::sizing::Layout;
use crate::snapshot::block::{BlockReader, Totals, UNITS, words_of};
use crate::snapshot::error::{SnapshotError, SnapshotErrorKind};
use crate::snapshot::format::{
    BLOCK_HEAD, END_WORDS, End, HEADER_WORDS, PIECE_MAGIC, block_bytes, buckets_in, seal,
};
use crate::snapshot::header::{Part, header};
use std::fmt;

/// The report of a save: the numbers of items, bytes and shards that it has written.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, StableHash};
///
/// let filter = ConcurrentCuckooFilter::builder()
///     .capacity(1_000)
///     .hasher(StableHash::random())
///     .build()?;
/// let report = filter.write_to(std::io::sink())?;
/// assert!(report.to_string().starts_with("0 items in 2"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaveReport {
    /// The number of items in the file. An item that was inserted several times counts several times.
    pub items: usize,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The number of shards in the file. Each of them has a checksum.
    pub shards: usize,
}

impl From<End> for SaveReport {
    fn from(end: End) -> Self {
        SaveReport { items: end.all_items(), bytes: end.bytes, shards: end.blocks as usize }
    }
}

impl fmt::Display for SaveReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} items in {} bytes", self.items, self.bytes)
    }
}

/// A function that is called around the copy of a shard: with the shard's first hash, an upper bound of its end (`None`
/// for the last hash), and the copy, which returns the end.
pub(crate) type Cut<'a> = &'a dyn Fn(Mixed, Option<Mixed>, &mut dyn FnMut() -> Option<Mixed>);

/// Only copies.
pub(crate) const UNCUT: Cut<'static> = &|_, _, copy| {
    copy();
};

/// Writes a part of a filter, from its header to its end, in several calls of `write`. Returns the end, and the place
/// where the next part begins, if there is another one.
pub(crate) fn write<S: PersistentHasher>(
    backend: &Backend,
    hasher: &S,
    part: Part,
    cut: Cut<'_>,
    mut write: impl FnMut(&[u8]) -> Result<(), SnapshotError>,
) -> Result<(End, Option<u64>), SnapshotError> {
    let Part { start, is_file, .. } = part;
    // Returns the checksum of the words.
    let mut write_sealed = |words: &mut [u64]| {
        let (bytes, sum) = seal(words);
        write(bytes).map(|()| sum)
    };
    let no_such_piece = || match is_file {
        true => SnapshotError::outgrown(),
        false => {
            let text = format!(
                "no piece of this filter begins at cursor {start}: begin at 0, and go on with the cursor \
                 that came with the last piece"
            );
            SnapshotError::new(SnapshotErrorKind::NoSuchPiece, text)
        }
    };
    let _no_joins = backend.keep_shards();
    let layout = backend.layout();
    let first = shard_at(&layout, start).ok_or_else(no_such_piece)?;
    let reader = BlockReader::new(&layout);
    let mut block = zeros(reader.block_words())?;
    let mut totals = Totals::new(&layout.geometry, start);
    totals.begin_part(write_sealed(&mut header(&layout, hasher, part))?, is_file);
    let mut next = Some(first);
    let most = most_blocks(&layout, part.most_bytes);
    while totals.blocks < most
        && let Some(copied) =
            copy_block((backend, &layout), &mut next, totals.blocks, cut, &mut block)
    {
        let sum = write_sealed(&mut block)?;
        // An error means that the part would begin inside a shard.
        totals.add(&Block { sum, ..copied }).ok_or_else(no_such_piece)?;
    }
    let end = totals.end(backend.void_items(), reader.offset(totals.blocks));
    if is_file && !(totals.is_complete() && totals.is_balanced()) {
        return Err(SnapshotError::outgrown());
    }
    write_sealed(&mut end.words())?;
    Ok((end, totals.next()))
}

/// Returns the backend's cursor of the shard that begins at this place or contains it.
fn shard_at(layout: &Layout, place: u64) -> Option<u64> {
    let (root, in_root) = (usize::try_from(place / UNITS).ok()?, place % UNITS);
    if !layout.grows {
        return (root < layout.geometry.shards() && in_root == 0).then_some(root as u64);
    }
    let in_root = in_root * (u64::MAX / UNITS + 1);
    layout.roots().first_from(Position { root, in_root }).map(|hash| hash.0)
}

/// Copies the next shard into a block with this number, and fills in everything but the checksum. Returns the figures
/// of the shard, or `None` if there are no more shards.
fn copy_block(
    (backend, layout): (&Backend, &Layout),
    next: &mut Option<u64>,
    number: u64,
    cut: Cut<'_>,
    block: &mut [u64],
) -> Option<Block> {
    let buckets = buckets_in(layout);
    let of_time = buckets.end..block.len() - 1;
    let hash_at = |next: u64| backend.hash_in(next);
    let first = (*next)?;
    let mut copied = None;
    cut(hash_at(first), backend.after(first).map(hash_at), &mut || {
        copied = backend.copy_shard(next, &mut block[buckets.clone()]);
        next.map(hash_at)
    });
    let copied = copied?;
    let Block { depth, items, time, .. } = copied;
    block[..BLOCK_HEAD].copy_from_slice(&[number, depth.into(), items.cast_unsigned()]);
    if let Some(time) = time {
        block[of_time].copy_from_slice(&words_of(layout.lanes(), time));
    }
    Some(copied)
}

/// Returns the number of bytes of a file of this filter, if no shard is split until it is written.
#[cfg(all(unix, feature = "durable"))]
pub(crate) fn file_bytes(backend: &Backend) -> u64 {
    file_bytes_with(&backend.layout(), backend.shards())
}

/// Returns the number of bytes of a file of this number of shards.
pub(crate) fn file_bytes_with(layout: &Layout, shards: usize) -> u64 {
    AROUND as u64 + shards as u64 * block_bytes(layout)
}

/// The number of bytes before and after the blocks.
const AROUND: usize = 8 * (HEADER_WORDS + END_WORDS);

/// Returns the maximum number of blocks in a part of this number of bytes: at least one.
fn most_blocks(layout: &Layout, bytes: usize) -> u64 {
    (bytes.saturating_sub(AROUND) as u64 / block_bytes(layout)).max(1)
}

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
    /// [pushed](crate::PieceLoader::push). Filters that were built alike and have the same contents have the same
    /// pieces.
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

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut piece = f.debug_struct("Piece");
        piece.field("bytes", &self.as_bytes().len()).field("next", &self.next).finish()
    }
}

/// Makes the piece that begins at this cursor. It has at least one shard, and more if they fit into
/// this number of bytes.
pub(crate) fn piece_of<S: PersistentHasher>(
    backend: &Backend,
    hasher: &S,
    cursor: u64,
    most_bytes: usize,
) -> Result<Piece, SnapshotError> {
    let part = Part { start: cursor, is_file: false, state: 0, most_bytes };
    let mut bytes = Vec::new();
    let layout = backend.layout();
    // There may be more shards by the time they are copied.
    let blocks = most_blocks(&layout, most_bytes).min(backend.shards() as u64);
    reserve(&mut bytes, AROUND + (blocks * block_bytes(&layout)) as usize)?;
    let (_, next) = write(backend, hasher, part, UNCUT, |words| {
        reserve(&mut bytes, words.len())?;
        bytes.extend_from_slice(words);
        Ok(())
    })?;
    Ok(Piece { bytes, next })
}
