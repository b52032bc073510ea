//! Filters in pieces. The work is done in [`snapshot`](crate::snapshot).

use crate::filter::ConcurrentCuckooFilter;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::read::Loading;
use crate::snapshot::read::Source;
use crate::snapshot::write::{Piece, piece_of};
use crate::stable_hash::PersistentHasher;
use std::fmt;
use std::io::Read;
use std::iter::FusedIterator;

/// # Pieces
///
/// A server sends a filter in pieces: each is made when it is asked for by a *cursor*, checked when it
/// arrives, and of a size that the caller chooses. Nothing is kept between two pieces, except for
/// the cursor, and the filter can be changed and grow meanwhile. [`format`](mod@crate::format)
/// describes the pieces: a file is the one that has all of a filter.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, StableHash};
///
/// let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
/// let filter = builder.capacity(100_000).growing().build()?;
/// filter.insert("an item").expect("memory");
///
/// let mut loader = ConcurrentCuckooFilter::<StableHash>::loader();
/// let mut cursor = Some(0);
/// while let Some(place) = cursor {
///     let piece = filter.piece_at(place, 1 << 20)?; // one machine
///     loader.push(piece.as_bytes())?; // another one
///     cursor = piece.next();
/// }
/// let again = loader.finish()?;
/// assert!(again.contains("an item"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<S: PersistentHasher> ConcurrentCuckooFilter<S> {
    /// Makes the piece that begins at this cursor: 0 for the first piece, and then the
    /// [`next`](Piece::next) of the piece before.
    ///
    /// A piece takes at most `most_bytes`, or one shard if that is more: up to 2 MiB, or 128 KiB if
    /// the filter grows. The shards are copied one after the other, as by [`save`](Self::save).
    ///
    /// All pieces from 0 to the one without a next, pushed to a [`loader`](Self::loader) in this
    /// order, are the filter with everything that was inserted before the first piece was asked for,
    /// and not removed since. What other threads insert and remove meanwhile may be in or not. Shards
    /// may be split, and the filter may be cleared. If the filter [shrinks](Self::shrink) (as it may when a whole tick
    /// begins), the next piece may be refused: then begin again at 0, with a new loader.
    ///
    /// A cursor is good until the shards at it are joined. It can be used again, for example if a
    /// piece was lost. Any other filter, and this one after it was loaded again, has to be begun at 0.
    /// A cursor is less than 2^63, so it also fits a signed integer.
    ///
    /// # Errors
    ///
    /// Returns an error if this is no cursor of this filter
    /// ([`NoSuchPiece`](crate::SnapshotErrorKind::NoSuchPiece)), and if there is no memory for the piece.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(100);
    /// let filter = builder.hasher(StableHash::random()).build()?;
    /// assert!(filter.piece_at(0, 1 << 20).is_ok());
    /// let error = filter.piece_at(12_345, 1 << 20).unwrap_err();
    /// assert_eq!(error.kind(), SnapshotErrorKind::NoSuchPiece);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn piece_at(&self, cursor: u64, most_bytes: usize) -> Result<Piece, SnapshotError> {
        let about = (self.capacity(), self.hasher());
        piece_of(self.backend(), about, cursor, most_bytes)
    }

    /// Makes all pieces, one after the other, as [`piece_at`](Self::piece_at) does.
    ///
    /// After an error, there are no more.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000_000);
    /// let filter = builder.hasher(StableHash::random()).build()?;
    /// filter.insert("an item").expect("room for a million");
    /// let mut loader = ConcurrentCuckooFilter::<StableHash>::loader();
    /// for piece in filter.pieces(1 << 20) {
    ///     loader.push(piece?.as_bytes())?;
    /// }
    /// assert!(loader.finish()?.contains("an item"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pieces(
        &self,
        most_bytes: usize,
    ) -> impl FusedIterator<Item = Result<Piece, SnapshotError>> + use<'_, S> {
        let mut next = Some(0);
        let piece = move || {
            let piece = self.piece_at(next?, most_bytes);
            next = piece.as_ref().ok().and_then(Piece::next);
            Some(piece)
        };
        std::iter::from_fn(piece).fuse()
    }

    /// Returns a loader for the pieces of a filter with such a hasher.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
    ///
    /// let mut loader = ConcurrentCuckooFilter::<StableHash>::loader();
    /// let error = loader.push(b"GIF89a").unwrap_err();
    /// assert_eq!(error.kind(), SnapshotErrorKind::NotASnapshot);
    /// ```
    #[must_use]
    pub fn loader() -> PieceLoader<S> {
        PieceLoader { loading: Loading::new(Self::OWN_BYTES) }
    }
}

/// Makes a filter from its [pieces](ConcurrentCuckooFilter::piece_at), which are pushed in their
/// order.
///
/// A push takes time and memory in proportion to the piece. The shards of a growing filter go where they stay. Those of
/// a fixed filter wait until half of them have come, and are then copied into the table, two for each that comes. So
/// [`finish`](Self::finish) has little left to do. The loader of a growing filter takes a 32nd more memory than the
/// filter (up to 2 MiB more if it has 16 MiB or more), and that of a fixed one up to half more. Neither ever asks for
/// more than three times what was pushed, and some megabytes: no piece is believed about those that follow.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
///
/// let builder = ConcurrentCuckooFilter::builder().capacity(1_000_000); // three shards
/// let filter = builder.hasher(StableHash::random()).build()?;
/// let pieces: Vec<_> = filter.pieces(1 << 20).collect::<Result<_, _>>()?;
///
/// let mut loader = ConcurrentCuckooFilter::<StableHash>::loader();
/// loader.push(pieces[0].as_bytes())?;
/// let error = loader.push(pieces[2].as_bytes()).unwrap_err();
/// assert_eq!(error.kind(), SnapshotErrorKind::OutOfOrder);
/// loader.push(pieces[1].as_bytes())?; // the next piece can still be pushed
/// loader.push(pieces[2].as_bytes())?;
/// let again = loader.finish()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PieceLoader<S> {
    loading: Loading<S>,
}

impl<S: PersistentHasher> PieceLoader<S> {
    /// Checks the next piece, and takes it over.
    ///
    /// # Errors
    ///
    /// Returns an error if this is not the piece that comes next, or if it is of a filter that was built otherwise
    /// ([`OutOfOrder`](crate::SnapshotErrorKind::OutOfOrder)), or of one with another hasher. The loader is then as it was
    /// before, and the right piece can be pushed.
    ///
    /// Also returns an error if the piece is damaged or cut off, or if there is no memory for it. If that is found out
    /// after its header, the loader has become empty, and [`next`](Self::next) is 0 again: begin the dump again.
    ///
    /// Pieces of two dumps, or of two filters that were built alike, cannot be told apart. If a piece is from an earlier
    /// dump than the one before it, items that were inserted between the two may be missing.
    ///
    /// (A checksum does not protect against forgery: the author of a forged piece decides what the
    /// filter contains. But none causes a panic.)
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(100);
    /// let filter = builder.hasher(StableHash::random()).build()?;
    /// let mut loader = ConcurrentCuckooFilter::<StableHash>::loader();
    /// loader.push(filter.piece_at(0, 0)?.as_bytes())?;
    /// assert_eq!(loader.next(), None);
    ///
    /// let twice = loader.push(filter.piece_at(0, 0)?.as_bytes());
    /// assert_eq!(twice.unwrap_err().kind(), SnapshotErrorKind::OutOfOrder);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn push(&mut self, piece: &[u8]) -> Result<(), SnapshotError> {
        self.loading.push(piece)
    }

    /// Reads the next piece from a stream in which pieces follow one another, and takes it over, as
    /// [`push`](Self::push) does. Nothing after it is read. Returns `false` if the stream has ended.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`push`](Self::push), and if the stream cannot be read. The stream is then
    /// somewhere in the piece.
    ///
    /// ```
    /// # use koel::{ConcurrentCuckooFilter, StableHash};
    /// # let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let filter = builder.capacity(1_000_000).build()?; // three shards
    /// let mut stream = Vec::new();
    /// for piece in filter.pieces(1 << 20) {
    ///     stream.extend(piece?.as_bytes());
    /// }
    /// let (mut stream, mut loader) = (&stream[..], ConcurrentCuckooFilter::<StableHash>::loader());
    /// while loader.read_from(&mut stream)? {}
    /// assert!(loader.finish().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_from(&mut self, stream: impl Read) -> Result<bool, SnapshotError> {
        self.loading.read(Source::stream(stream))
    }

    /// Returns the cursor of the piece that comes next, or `None` if all have been pushed.
    ///
    /// ```
    /// # use koel::{ConcurrentCuckooFilter, StableHash};
    /// # let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let filter = builder.capacity(1_000_000).build()?;
    /// let mut loader = ConcurrentCuckooFilter::<StableHash>::loader();
    /// while let Some(cursor) = loader.next() {
    ///     loader.push(filter.piece_at(cursor, 0)?.as_bytes())?;
    /// }
    /// assert!(loader.finish()?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.loading.next()
    }

    /// Returns whether the filter [grows](crate::Builder::growing), or `None` before the first piece has been pushed.
    ///
    /// ```
    /// # use koel::{ConcurrentCuckooFilter, StableHash};
    /// # let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let filter = builder.capacity(1_000_000).build()?;
    /// let mut loader = ConcurrentCuckooFilter::<StableHash>::loader();
    /// assert_eq!(loader.grows(), None);
    /// loader.push(filter.piece_at(0, 0)?.as_bytes())?;
    /// assert_eq!(loader.grows(), Some(false)); // no need to go on, where only a growing filter will do
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn grows(&self) -> Option<bool> {
        self.loading.grows()
    }

    /// Makes the filter of all pieces. It is identical to the one that the pieces are from. (Unlike
    /// [`load`](ConcurrentCuckooFilter::load), this does not shrink one that is mostly empty.)
    ///
    /// # Errors
    ///
    /// Returns an error if not all pieces have been pushed, or if there is no memory for the filter.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
    ///
    /// let loader = ConcurrentCuckooFilter::<StableHash>::loader();
    /// let error = loader.finish().unwrap_err();
    /// assert_eq!(error.kind(), SnapshotErrorKind::Incomplete);
    /// ```
    pub fn finish(self) -> Result<ConcurrentCuckooFilter<S>, SnapshotError> {
        self.loading.finish().and_then(ConcurrentCuckooFilter::of_read)
    }
}

impl<S: PersistentHasher> fmt::Debug for PieceLoader<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PieceLoader").field("next", &self.next()).finish_non_exhaustive()
    }
}
