//! From a filter to the words of its file.
//!
//! The shards are copied and written one by one, so only one of them is in memory twice. In a
//! growing filter, shards may be split meanwhile. The blocks still make up every root, because the
//! room copies the shards in the order of the hashes that lead to them.

use crate::layout::stamps::Moment;
use crate::room::parts::{Copied, Plan};
use crate::room::shards::Shards;
use crate::room::{Room, Stage};
use crate::rule::rule;
use crate::snapshot::allocate::zeros;
use crate::snapshot::blocks::Tally;
use crate::snapshot::error::Reason;
use crate::snapshot::format::{
    BLOCK_HEAD, End, block_bytes, block_words, buckets_in, bytes_of, seal,
};
use crate::snapshot::header::header;
use crate::snapshot::list::{Listing, list_file};
use crate::snapshot::time::words_of;
use crate::stable_hash::PersistentHasher;
use crate::table::ticking::Time;
use std::fmt;
use std::io::Write;

/// What a save has written: the numbers of items, bytes and shards.
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
pub struct SaveReport {
    items: usize,
    bytes: u64,
    shards: usize,
}

impl SaveReport {
    /// Returns the number of items in the file. An item that was inserted several times counts as
    /// often.
    ///
    /// ```
    /// # use koel::{ConcurrentCuckooFilter, StableHash};
    /// # let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let filter = builder.capacity(1_000).build()?;
    /// filter.insert("an item").expect("room for a thousand");
    /// assert_eq!(filter.write_to(std::io::sink())?.items(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn items(&self) -> usize {
        self.items
    }

    /// Returns the length of the file in bytes.
    ///
    /// ```
    /// # use koel::{ConcurrentCuckooFilter, StableHash};
    /// # let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let filter = builder.capacity(1_000_000).build()?;
    /// let (file, memory) = (filter.write_to(std::io::sink())?.bytes(), filter.size_in_bytes());
    /// assert!(file.abs_diff(memory as u64) < memory as u64 / 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of shards in the file. Each of them has a checksum.
    ///
    /// ```
    /// # use koel::{ConcurrentCuckooFilter, StableHash};
    /// # let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    /// let filter = builder.capacity(1_000).build()?;
    /// assert_eq!(filter.write_to(std::io::sink())?.shards(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards
    }
}

impl fmt::Display for SaveReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} items in {} bytes", self.items, self.bytes)
    }
}

/// Writes the whole file of a filter, from its header to its end.
pub fn write<S: PersistentHasher>(
    room: &impl Room,
    capacity: usize,
    hasher: &S,
    writer: &mut impl Write,
) -> Result<SaveReport, Reason> {
    let shards = match room.stage() {
        Stage::Shards(shards) => Some(shards),
        Stage::List(stages) => {
            if let Some(list) = Listing::of(room, stages)? {
                let plan = Plan::Growing(stages.plan());
                let mut words = list_file(&plan, header(&plan, capacity, true, hasher), &list)?;
                writer.write_all(bytes_of(&mut words)).map_err(Reason::io("cannot write"))?;
                let bytes = size_of_val(&*words) as u64;
                return Ok(SaveReport { items: list.hashes.len(), bytes, shards: 1 });
            }
            None
        }
    };
    match (shards, room.stage()) {
        (Some(shards), _) | (None, Stage::Shards(shards)) => {
            write_shards(room, shards, capacity, hasher, writer)
        }
        // A list that has ended left shards.
        (None, Stage::List(_)) => Err(Reason::Outgrown),
    }
}

fn write_shards<S: PersistentHasher, R: Room>(
    room: &R,
    shards: &R::Shards,
    capacity: usize,
    hasher: &S,
    writer: &mut impl Write,
) -> Result<SaveReport, Reason> {
    let plan = shards.plan();
    let words = block_words(&plan);
    let mut block = zeros(words)?;
    let mut write = |words: &mut [u64]| -> Result<u64, Reason> {
        let (bytes, sum) = seal(words);
        writer.write_all(bytes).map_err(Reason::io("cannot write"))?;
        Ok(sum)
    };
    let roots = plan.geometry().shards();
    let mut tally = Tally::new(roots, write(&mut header(&plan, capacity, false, hasher))?);
    let mut copying = Copying { room, shards, plan: &plan, next: Some(0) };
    while let Some((depth, items)) = copying.copy(tally.coverage().blocks(), &mut block) {
        let sum = write(&mut block)?;
        tally.add(depth, items, sum).map_err(|_| Reason::Outgrown)?;
    }
    if !(tally.coverage().is_complete() && tally.coverage().is_balanced()) {
        return Err(Reason::Outgrown);
    }
    let told = tally.end(block_bytes(&plan));
    let end = rule!("a_save_counts_the_items_of_the_filter", told, {
        End { items: room.items() as i64, ..told }
    });
    write(&mut end.words())?;
    let End { blocks, items, bytes, .. } = end;
    Ok(SaveReport { items: items.try_into().unwrap_or(0), bytes, shards: blocks as usize })
}

/// Copies the next shard of a filter. Returns what there is to know of it, and the time if the filter forgets.
///
/// A filter that forgets lets no tick pass meanwhile, so the copy is of one moment.
pub fn copy_next<R: Room>(
    room: &R,
    shards: &R::Shards,
    next: &mut Option<u64>,
    buckets: &mut [u64],
) -> Option<(Copied, Option<Time>)> {
    let held = room.time().map(|(ticking, _)| ticking.hold_in_a_tick());
    let copied = shards.copy_shard(next, buckets)?;
    Some((copied, held.map(|held| held.time())))
}

/// Copies the shards of a filter into blocks, one by one.
pub struct Copying<'a, R: Room> {
    pub room: &'a R,
    pub shards: &'a R::Shards,
    pub plan: &'a Plan,
    /// What the room calls the next shard.
    pub next: Option<u64>,
}

impl<R: Room> Copying<'_, R> {
    /// Copies the next shard into a block with this number, which has all but its checksum then. Returns
    /// its depth and its items, or `None` if there are no more shards.
    pub fn copy(&mut self, number: u64, block: &mut [u64]) -> Option<(u32, i64)> {
        let buckets = buckets_in(self.plan);
        let ages = buckets.end..block.len() - 1;
        let (copied, time) =
            copy_next(self.room, self.shards, &mut self.next, &mut block[buckets])?;
        let Copied { depth, items, used_up } = copied;
        block[..BLOCK_HEAD].copy_from_slice(&[number, depth.into(), items.cast_unsigned()]);
        if let Some(time) = time {
            let lanes = self.plan.geometry().lanes();
            let (of_ages, of_time) = block[ages].split_last_chunk_mut()?;
            let now = Moment::of_tick(time.tick);
            for (age, word) in (0..).zip(of_ages) {
                *word = used_up.figures()[lanes.stamp_of_age(age, now)].cast_unsigned();
            }
            *of_time = words_of(lanes, time);
        }
        Some((depth, items))
    }
}
