//! Writes a part of a filter.
//!
//! The shards are copied and written one by one, so only one of them is in memory twice. In a growing filter, shards
//! may be split meanwhile. The blocks still make up every root, because the backend copies the shards in the order of
//! the hashes that lead to them.
//!
//! Between two parts, shards may also be joined. If the next part would then begin inside a shard, there is no such part,
//! and the dump has to begin again.

use crate::backend::exchange::{Copied, Plan};
use crate::backend::shards::Shards;
use crate::backend::{Backend, on_shards};
use crate::error::zeros;
use crate::layout::geometry::Mixed;
use crate::layout::roots::Position;
use crate::snapshot::error::{SnapshotError, SnapshotErrorKind};
use crate::snapshot::part::blocks::Totals;
use crate::snapshot::part::coverage::{Coverage, UNITS};
use crate::snapshot::part::format::{
    BLOCK_HEAD, END_WORDS, End, HEADER_WORDS, block_bytes, block_words, buckets_in, seal,
};
use crate::snapshot::part::header::header;
use crate::snapshot::part::time::{Times, words_of};
use crate::stable_hash::PersistentHasher;
use crate::table::ticking::{Ticking, Time};
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

/// The part of a filter to write.
#[derive(Clone, Copy)]
pub struct Part {
    /// The place where it begins.
    pub start: u64,
    /// Whether the part is a file, which holds all of the filter.
    pub is_file: bool,
    /// The random number of a state, or 0.
    pub state: u64,
    /// The maximum number of bytes of the part, unless it has only one block.
    pub most_bytes: usize,
}

impl Part {
    /// The whole filter, as a file.
    pub const FILE: Part = Part { start: 0, is_file: true, state: 0, most_bytes: usize::MAX };

    /// The whole filter, as a file that differs from every other one, also from one with the same contents.
    #[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
    pub fn state() -> Part {
        Part { state: ahash::RandomState::new().hash_one("koel").max(1), ..Part::FILE }
    }

    /// The maximum number of blocks of the part.
    pub fn most_blocks(self, plan: &Plan) -> u64 {
        let for_blocks = self.most_bytes.saturating_sub(8 * (HEADER_WORDS + END_WORDS));
        (for_blocks as u64 / block_bytes(plan)).max(1)
    }
}

/// The output of a part.
struct Sink<W> {
    write: W,
    bytes: u64,
}

impl<W: FnMut(&[u8]) -> Result<(), SnapshotError>> Sink<W> {
    /// Seals words and writes them. Returns their checksum.
    fn write(&mut self, words: &mut [u64]) -> Result<u64, SnapshotError> {
        let (bytes, sum) = seal(words);
        (self.write)(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(sum)
    }
}

/// What happens around the copy of a shard.
pub trait Cut {
    /// Makes a copy of the items from a hash up to an end that is at most `most`, or to the last. The copy returns its end.
    fn copy<A>(
        &self,
        first: Mixed,
        most: Option<Mixed>,
        copy: impl FnOnce() -> (A, Option<Mixed>),
    ) -> A;
}

/// Nothing.
impl Cut for () {
    fn copy<A>(&self, _: Mixed, _: Option<Mixed>, copy: impl FnOnce() -> (A, Option<Mixed>)) -> A {
        copy().0
    }
}

/// Writes a part of a filter, from its header to its end, in several calls of `write`. Returns the end, and the place
/// where the next part begins, if there is another one.
pub fn write<S: PersistentHasher>(
    backend: &Backend,
    (capacity, hasher): (usize, &S),
    part: Part,
    cut: &impl Cut,
    write: impl FnMut(&[u8]) -> Result<(), SnapshotError>,
) -> Result<(End, Option<u64>), SnapshotError> {
    let Part { start, is_file, .. } = part;
    let mut sink = Sink { write, bytes: 0 };
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
    let plan = backend.plan();
    let first = shard_at(&plan, start).ok_or_else(no_such_piece)?;
    let mut block = zeros(block_words(&plan))?;
    let sum = sink.write(&mut header(&plan, capacity, hasher, part))?;
    let coverage = Coverage::from(plan.geometry().shards(), start);
    let mut totals = Totals::new(sum, coverage, Times::default(), is_file);
    let mut copying = Copying { backend, plan: &plan, next: Some(first) };
    while totals.blocks() < part.most_blocks(&plan)
        && let Some((depth, items)) = copying.copy(totals.blocks(), cut, &mut block)
    {
        let sum = sink.write(&mut block)?;
        // An error means that the part would begin inside a shard.
        totals.add(depth, items, sum).map_err(|_| no_such_piece())?;
    }
    let end = totals.end(backend.void_items(), sink.bytes);
    let coverage = totals.coverage();
    let is_whole = coverage.is_complete() && coverage.is_balanced();
    if is_file && !is_whole {
        return Err(SnapshotError::outgrown());
    }
    sink.write(&mut end.words())?;
    Ok((end, coverage.next()))
}

/// Returns the backend's cursor of the shard that begins at this place or contains it.
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

/// Copies the next shard of a filter. Returns its figures, and the time if the filter forgets.
///
/// In a filter that forgets, no tick begins meanwhile, so the copy is of one moment.
pub fn copy_next(
    backend: &Backend,
    next: &mut Option<u64>,
    buckets: &mut [u64],
) -> Option<(Copied, Option<Time>)> {
    let held = backend.ticking().map(Ticking::pause_in_a_tick);
    let copied = on_shards!(backend, shards => shards.copy_shard(next, buckets))?;
    Some((copied, held.map(|held| held.time())))
}

/// Copies the shards of a filter into blocks, one by one.
struct Copying<'a> {
    backend: &'a Backend,
    plan: &'a Plan,
    /// The backend's cursor of the next shard.
    next: Option<u64>,
}

impl Copying<'_> {
    /// Copies the next shard into a block with this number, and fills in everything but the checksum. Returns the depth
    /// and the items of the shard, or `None` if there are no more shards.
    fn copy(&mut self, number: u64, cut: &impl Cut, block: &mut [u64]) -> Option<(u32, i64)> {
        let buckets = buckets_in(self.plan);
        let of_time = buckets.end..block.len() - 1;
        let (backend, next) = (self.backend, &mut self.next);
        let place = |next: u64| on_shards!(backend, shards => shards.item_in(next));
        let after = |next: u64| on_shards!(backend, shards => shards.after(next));
        let first = (*next)?;
        let copied = cut.copy(place(first), after(first).map(place), || {
            let copied = copy_next(backend, next, &mut block[buckets]);
            (copied, next.map(place))
        });
        let (copied, time) = copied?;
        let Copied { depth, items } = copied;
        block[..BLOCK_HEAD].copy_from_slice(&[number, depth.into(), items.cast_unsigned()]);
        if let Some(time) = time {
            block[of_time].copy_from_slice(&words_of(self.plan.geometry().lanes(), time));
        }
        Some((depth, items))
    }
}
