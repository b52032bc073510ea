//! Writes a part of a filter. A [`Saving`] gives the bytes of a part, one after the other, and its caller writes them:
//! the header; of each shard, its words, as soon as it was copied; the index and the end. So only one shard is in
//! memory twice.
//!
//! In a growing filter, shards may be split meanwhile. Those in the file still make up every root, because the backend
//! copies the shards in the order of the hashes that lead to them. Between two parts, shards may also be joined. If the
//! next part would then begin inside a shard, there is no such part, and the dump has to begin again.

use crate::backend::Backend;
use crate::error::{reserve, zeros};
use crate::hash::HashedBy;
use crate::layout::geometry::Mixed;
use crate::layout::roots::Position;
use crate::layout::sizing::Layout;
use crate::snapshot::error::{SnapshotError, SnapshotErrorKind};
use crate::snapshot::format::{
    END_WORDS, ENTRY_WORDS, End, HEADER_WORDS, PIECE_MAGIC, first_byte, mark, seal, to_file,
};
use crate::snapshot::header::{Part, header};
use crate::snapshot::index::{Entry, Totals, UNITS};
use crate::sync::RwLockReadGuard;
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

impl fmt::Display for SaveReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} items in {} bytes", self.items, self.bytes)
    }
}

/// A part of a filter that is being written.
pub(crate) struct Saving<'a> {
    backend: &'a Backend,
    layout: Layout,
    part: Part,
    totals: Totals,
    /// The backend's cursor of the next shard.
    next: Option<u64>,
    most: u64,
    /// The shard that was copied last, and its figures.
    words: Vec<u64>,
    copied: Option<Entry>,
    header: Vec<u64>,
    /// The checksum of the header, and the index.
    index: Vec<u64>,
    _no_joins: Option<RwLockReadGuard<'a>>,
}

impl<'a> Saving<'a> {
    pub(crate) fn begin(
        backend: &'a Backend,
        hasher: &HashedBy,
        part: Part,
    ) -> Result<Self, SnapshotError> {
        let no_joins = backend.keep_shards();
        let layout = backend.layout();
        let next = shard_at(&layout, part.start).ok_or_else(|| no_such(part))?;
        let first = first_byte(&layout, if part.is_file { backend.shards() } else { 0 });
        let most = most_shards(&layout, part.most_bytes);
        let shards = most.min((layout.geometry.shards() as u64).saturating_sub(part.start / UNITS));
        let mut header = header(&layout, hasher, part, (first, shards))?;
        let (_, sum) = seal(&mut header[..HEADER_WORDS]);
        Ok(Saving {
            backend,
            part,
            totals: Totals::new(&layout.geometry, part.start),
            next: Some(next),
            most,
            words: zeros(layout.geometry.words())?,
            copied: None,
            header,
            index: [vec![sum], mark(&layout)].concat(),
            layout,
            _no_joins: no_joins,
        })
    }

    pub(crate) fn header(&self) -> &[u8] {
        bytemuck::cast_slice(&self.header)
    }

    /// Returns the first hash of the shard that is copied next, and an upper bound of its end (`None` for the last
    /// hash), as long as there is a next shard.
    pub(crate) fn next_range(&self) -> Option<(Mixed, Option<Mixed>)> {
        let first = self.next.filter(|_| self.totals.shards < self.most)?;
        let hash_in = |next| self.backend.hash_in(next);
        Some((hash_in(first), self.backend.after(first).map(hash_in)))
    }

    /// Copies the next shard. Returns where it ended, or `None` for the last hash.
    pub(crate) fn copy(&mut self) -> Option<Mixed> {
        let copied = self.backend.copy_shard(&mut self.next, &mut self.words);
        self.copied = copied.map(|(depth, copied)| Entry::new(depth, copied));
        self.next.map(|next| self.backend.hash_in(next))
    }

    /// Returns the words of the shard that was copied.
    pub(crate) fn shard(&mut self) -> Result<&[u8], SnapshotError> {
        let Some(copied) = self.copied.take() else { return Ok(&[]) };
        let entry = Entry { sum: to_file(&mut self.words), ..copied };
        // An error means that the part would begin inside a shard.
        self.totals.add(&entry).ok_or_else(|| no_such(self.part))?;
        reserve(&mut self.index, ENTRY_WORDS)?;
        self.index.extend(entry.words(self.layout.lanes()));
        Ok(bytemuck::cast_slice(&self.words))
    }

    /// Returns what the part contains, and the index and the end, which come last.
    pub(crate) fn end(&mut self) -> Result<(SaveReport, &[u8]), SnapshotError> {
        if self.part.is_file && !(self.totals.is_complete() && self.totals.is_balanced()) {
            return Err(SnapshotError::outgrown());
        }
        let (items, shards) = (self.totals.all_items(), self.totals.shards as usize);
        let words = self.header.len() + shards * self.words.len() + self.index.len() - 1;
        let bytes = 8 * (words + END_WORDS) as u64;
        self.index.extend(End::words(bytes));
        Ok((SaveReport { items, bytes, shards }, &seal(&mut self.index).0[8..]))
    }

    fn next_part(&self) -> Option<u64> {
        self.totals.next()
    }
}

/// The error of a part that would begin inside a shard.
fn no_such(Part { start, is_file, .. }: Part) -> SnapshotError {
    if is_file {
        return SnapshotError::outgrown();
    }
    let text = format!(
        "no piece of this filter begins at cursor {start}: begin at 0, and go on with the cursor that came with \
         the last piece"
    );
    SnapshotError::new(SnapshotErrorKind::NoSuchPiece, text)
}

/// Passes a part of a filter to `to`, from the header to the end. Returns what it contains, and the place where the
/// next part begins, if there is another one.
pub(crate) fn write(
    backend: &Backend,
    hasher: &HashedBy,
    part: Part,
    to: &mut dyn FnMut(&[u8]) -> Result<(), SnapshotError>,
) -> Result<(SaveReport, Option<u64>), SnapshotError> {
    let mut saving = Saving::begin(backend, hasher, part)?;
    to(saving.header())?;
    while saving.next_range().is_some() {
        saving.copy();
        to(saving.shard()?)?;
    }
    let (report, bytes) = saving.end()?;
    to(bytes)?;
    Ok((report, saving.next_part()))
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

/// Returns the number of bytes of a file of this filter, if no shard is split until it is written.
#[cfg(all(unix, feature = "durable"))]
pub(crate) fn file_bytes(backend: &Backend) -> u64 {
    file_bytes_with(&backend.layout(), backend.shards())
}

pub(crate) fn file_bytes_with(layout: &Layout, shards: usize) -> u64 {
    first_byte(layout, shards) + bytes_after(layout) + shards as u64 * shard_bytes(layout)
}

/// Returns the number of bytes after the shards, but for those of the index that each shard has.
fn bytes_after(layout: &Layout) -> u64 {
    8 * (mark(layout).len() + END_WORDS) as u64
}

fn shard_bytes(layout: &Layout) -> u64 {
    8 * (layout.geometry.words() + ENTRY_WORDS) as u64
}

/// Returns the maximum number of shards in a piece of this number of bytes: at least one.
fn most_shards(layout: &Layout, bytes: usize) -> u64 {
    let others = first_byte(layout, 0) + bytes_after(layout);
    ((bytes as u64).saturating_sub(others) / shard_bytes(layout)).max(1)
}

/// A piece of a filter, which was made by [`piece_at`](crate::ConcurrentCuckooFilter::piece_at).
#[derive(Clone)]
pub struct Piece {
    bytes: Vec<u8>,
    next: Option<u64>,
}

impl Piece {
    /// The first bytes of every piece, and of nothing else that koel writes.
    pub const MAGIC: [u8; 8] = PIECE_MAGIC;

    /// Returns the bytes of the piece, which are sent or stored as they are, and later
    /// [pushed](crate::PieceLoader::push). Filters that were built alike and have the same contents have the same
    /// pieces.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the cursor of the next piece, or `None` if this is the last one. It is never 0, the cursor of the first
    /// piece.
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

pub(crate) fn piece_of(
    backend: &Backend,
    hasher: &HashedBy,
    cursor: u64,
    most_bytes: usize,
) -> Result<Piece, SnapshotError> {
    let part = Part { start: cursor, is_file: false, state: 0, most_bytes };
    let mut bytes = Vec::new();
    let layout = backend.layout();
    // There may be more shards by the time they are copied.
    let shards = most_shards(&layout, most_bytes).min(backend.shards() as u64);
    reserve(&mut bytes, file_bytes_with(&layout, shards as usize) as usize)?;
    let (_, next) = write(backend, hasher, part, &mut |words| {
        reserve(&mut bytes, words.len())?;
        bytes.extend_from_slice(words);
        Ok(())
    })?;
    Ok(Piece { bytes, next })
}
