//! From a filter to the words of its file.

use crate::room::Room;
use crate::snapshot::error::Reason;
use crate::snapshot::format::{
    BLOCK_HEAD, END_WORDS, End, HEADER_WORDS, Sums, block_bytes, block_words, header, seal,
};
use crate::stable_hash::PersistentHasher;
use std::fmt;
use std::io::Write;

/// What a save has written.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, StableHash};
///
/// let filter = ConcurrentCuckooFilter::builder().capacity(1_000).hasher(StableHash::random()).build()?;
/// let report = filter.write_to(std::io::sink())?;
/// assert_eq!(report.to_string(), "0 items in 2,312 bytes".replace("2,312", &report.bytes().to_string()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveReport {
    items: usize,
    bytes: u64,
    shards: usize,
}

impl SaveReport {
    /// How many copies of items are in the file.
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

    /// How long the file is.
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

    /// How many shards are in the file, each with a checksum.
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

pub fn write<S: PersistentHasher>(
    room: &impl Room,
    capacity: usize,
    hasher: &S,
    writer: &mut impl Write,
) -> Result<SaveReport, Reason> {
    let plan = room.plan();
    let words = block_words(&plan);
    let mut block = Vec::new();
    block.try_reserve_exact(words).map_err(|_| Reason::OutOfMemory { bytes: 8 * words })?;
    block.resize(words, 0);

    let mut write = |words: &mut [u64]| -> Result<u64, Reason> {
        let (bytes, sum) = seal(words);
        writer.write_all(bytes).map_err(Reason::io("cannot write"))?;
        Ok(sum)
    };
    let mut sums = Sums::new();
    sums.add(write(&mut header(&plan, capacity, hasher))?);
    let (mut blocks, mut items) = (0, 0);
    let mut next = Some(0);
    while let Some(copied) = room.copy_shard(&mut next, &mut block[BLOCK_HEAD..words - 1]) {
        block[..BLOCK_HEAD].copy_from_slice(&[
            blocks,
            copied.depth.into(),
            copied.items.cast_unsigned(),
        ]);
        sums.add(write(&mut block)?);
        blocks += 1;
        items += copied.items;
    }
    let bytes = 8 * (HEADER_WORDS + END_WORDS) as u64 + blocks * block_bytes(&plan);
    write(&mut End { blocks, items, bytes, sums: sums.total() }.words())?;
    Ok(SaveReport { items: items.try_into().unwrap_or(0), bytes, shards: blocks as usize })
}
