//! From a filter to one piece of it.

use crate::layout::roots::Position;
use crate::room::parts::Plan;
use crate::room::shards::Shards;
use crate::room::{Room, Stage};
use crate::snapshot::allocate::zeros;
use crate::snapshot::blocks::Sums;
use crate::snapshot::coverage::{UNITS, part_of};
use crate::snapshot::error::Reason;
use crate::snapshot::format::{HEADER_WORDS, Words, block_words, seal};
use crate::snapshot::header::header;
use crate::snapshot::list::{Listing, words_for, write_block};
use crate::snapshot::pieces::format::{FRONT_BYTES, FRONT_WORDS, Front, HEADER_BYTES, MAGIC};
use crate::snapshot::pieces::origin::Stamp;
use crate::snapshot::write::Copying;
use crate::stable_hash::PersistentHasher;
use std::fmt;
use std::io::{self, Read};

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
    words: Vec<u64>,
    next: Option<u64>,
}

impl Piece {
    /// What every piece begins with, and nothing else does that koel writes.
    ///
    /// ```
    /// # use koel::{ConcurrentCuckooFilter, Piece, StableHash};
    /// # let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let filter = builder.capacity(100).build()?;
    /// assert!(filter.piece_at(0, 0)?.as_bytes().starts_with(&Piece::MAGIC));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const MAGIC: [u8; 8] = MAGIC;

    /// Reads the bytes of the next piece from a stream in which pieces follow one another.
    ///
    /// They are not validated: [push](crate::PieceLoader::push) them. They are less than a piece if the stream
    /// ends too soon, or if what comes next does not begin like one; and none at the end of the stream.
    ///
    /// ```
    /// # use koel::{ConcurrentCuckooFilter, Piece, StableHash};
    /// # let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let filter = builder.capacity(1_000_000).build()?; // three shards
    /// let mut stream = Vec::new();
    /// for piece in filter.pieces(1 << 20) {
    ///     stream.extend(piece?.as_bytes());
    /// }
    /// let (mut stream, mut loader) = (&stream[..], ConcurrentCuckooFilter::<StableHash>::loader());
    /// while loader.next().is_some() {
    ///     loader.push(&Piece::read_bytes(&mut stream)?)?;
    /// }
    /// assert!(loader.finish().is_ok() && stream.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the stream cannot be read.
    pub fn read_bytes(stream: &mut impl Read) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        stream.take(FRONT_BYTES as u64).read_to_end(&mut bytes)?;
        if let Ok(front) = Front::begin(&bytes) {
            // However long it says that it is, no more is read than is there.
            let rest = front.bytes.saturating_sub(FRONT_BYTES as u64);
            stream.take(rest).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// Returns the bytes, which are to be sent or stored as they are, and to be
    /// [pushed](crate::PieceLoader::push).
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
        bytemuck::cast_slice(&self.words)
    }

    /// Returns the header that a file of the filter would have: how the filter was built, and its hasher.
    ///
    /// With the [blocks](Self::blocks), it is all that a piece has of the filter's contents. What else is in a piece
    /// tells it from others.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.as_bytes()[HEADER_BYTES]
    }

    /// Returns the blocks: one for each shard, or one with a list of items.
    ///
    /// ```
    /// # use koel::{ConcurrentCuckooFilter, StableHash};
    /// # let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let filter = builder.capacity(100).build()?;
    /// let (one, other) = (filter.piece_at(0, 0)?, filter.try_clone()?.piece_at(0, 0)?);
    /// assert!(one.as_bytes() != other.as_bytes()); // they are of two filters
    /// assert!((one.header(), one.blocks()) == (other.header(), other.blocks()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn blocks(&self) -> &[u8] {
        &self.as_bytes()[FRONT_BYTES..]
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

/// What a piece says of the filter, whatever its blocks.
struct About {
    plan: Plan,
    stamp: Stamp,
    cursor: u64,
    /// As in a file.
    header: Words<HEADER_WORDS>,
}

/// Makes the piece that begins at this cursor. It has at least one shard, and more if they fit into
/// this number of bytes.
pub fn piece_of<S: PersistentHasher>(
    room: &impl Room,
    (capacity, hasher): (usize, &S),
    stamp: Stamp,
    cursor: u64,
    most_bytes: usize,
) -> Result<Piece, Reason> {
    let about = |plan: Plan, is_list| {
        let mut header = header(&plan, capacity, is_list, hasher);
        seal(&mut header);
        About { plan, stamp, cursor, header }
    };
    if let Stage::List(stages) = room.stage()
        && let Some(list) = Listing::of(room, stages)?
    {
        return piece_of_list(about(Plan::Growing(stages.plan()), true), &list);
    }
    match room.stage() {
        Stage::Shards(shards) => {
            piece_of_shards(room, shards, about(shards.plan(), false), most_bytes)
        }
        // A list that has ended left shards.
        Stage::List(_) => Err(Reason::Outgrown),
    }
}

fn piece_of_list(about: About, list: &Listing) -> Result<Piece, Reason> {
    // A filter that has a list never had anything else, so no other cursor came from it.
    if about.cursor != 0 {
        return Err(Reason::NoSuchPiece { cursor: about.cursor });
    }
    let plan = &about.plan;
    let mut words = zeros(FRONT_WORDS + words_for(plan, list.hashes.len()))?;
    let mut sums = Sums::new();
    sums.add(write_block(plan, &mut words[FRONT_WORDS..], list));
    Ok(about.complete(words, UNITS, 1, &sums))
}

fn piece_of_shards<R: Room>(
    room: &R,
    shards: &R::Shards,
    about: About,
    most_bytes: usize,
) -> Result<Piece, Reason> {
    let (plan, cursor) = (&about.plan, about.cursor);
    let no_such_piece = Reason::NoSuchPiece { cursor };
    let Some(first) = shard_at(plan, cursor) else { return Err(no_such_piece) };
    let in_a_block = block_words(plan);
    let most = (most_bytes.saturating_sub(FRONT_BYTES) / (8 * in_a_block)).max(1) as u64;
    // There may be more shards when they are copied.
    let now = (shards.buckets() / plan.geometry().buckets() as usize) as u64;
    let mut words = Vec::new();
    reserve(&mut words, FRONT_WORDS + most.min(now) as usize * in_a_block)?;
    words.resize(FRONT_WORDS, 0);
    let (mut place, mut blocks, mut sums) = (cursor, 0, Sums::new());
    let mut copying = Copying { room, shards, plan, next: Some(first) };
    while blocks < most && copying.next.is_some() {
        let at = words.len();
        reserve(&mut words, in_a_block)?;
        words.resize(at + in_a_block, 0);
        let block = &mut words[at..];
        let Some((depth, _)) = copying.copy(blocks, block) else { break };
        let part = part_of(depth);
        // This place is inside of the shard.
        if !place.is_multiple_of(part) {
            return Err(no_such_piece);
        }
        sums.add(seal(block).1);
        (place, blocks) = (place + part, blocks + 1);
    }
    Ok(about.complete(words, place, blocks, &sums))
}

/// Returns what the room calls the shard that begins at this place, or the one that has this place.
fn shard_at(plan: &Plan, place: u64) -> Option<u64> {
    let (root, in_root) = (usize::try_from(place / UNITS).ok()?, place % UNITS);
    match plan {
        Plan::Fixed(geometry) => (root < geometry.shards() && in_root == 0).then_some(root as u64),
        Plan::Growing(plan) => {
            let in_root = in_root * (u64::MAX / UNITS + 1);
            plan.roots().first_from(Position { root, in_root }).map(|hash| hash.0)
        }
    }
}

fn reserve(words: &mut Vec<u64>, more: usize) -> Result<(), Reason> {
    words.try_reserve(more).map_err(|_| Reason::OutOfMemory { bytes: more.saturating_mul(8) })
}

impl About {
    /// Completes a piece that has everything but its front.
    fn complete(self, mut words: Vec<u64>, end: u64, blocks: u64, sums: &Sums) -> Piece {
        let About { plan, stamp, cursor: start, header } = self;
        let bytes = size_of_val(&*words) as u64;
        let front = Front { bytes, stamp, start, end, blocks, sums: sums.total(), header };
        words[..FRONT_WORDS].copy_from_slice(&front.words());
        let last = (plan.geometry().shards() as u64).saturating_mul(UNITS);
        Piece { words, next: Some(end).filter(|end| *end < last) }
    }
}
