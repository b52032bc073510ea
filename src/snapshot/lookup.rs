//! Lookups in a file, which read only the shards that the items lead to.

use crate::backend::growing::sharded::bytes_when_restored;
use crate::error::{NoMemory, zeros};
use crate::key::{Key, Prehashed};
use crate::layout::either;
use crate::layout::geometry::{Mixed, Place};
use crate::layout::roots::Position;
use crate::layout::shrinking::GROWING_BUCKETS;
use crate::layout::sizing::{Layout, rate_of_a_lane};
use crate::snapshot::block::{BlockReader, Totals, UNITS, age_shift};
use crate::snapshot::error::SnapshotError;
use crate::snapshot::format::TIME_WORDS;
use crate::snapshot::format::{BLOCK_HEAD, End, buckets_in};
use crate::snapshot::header::{Header, read_header};
use crate::snapshot::load::{Outline, SnapshotInfo, read_at};
use crate::stable_hash::PersistentHasher;
use crate::sync::Mutex;
use crate::table::Table;
use crate::table::ticking::{Ticking, Time};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A filter in its file: it looks up single items without loading the whole filter.
///
/// Opening a file reads some bytes of each shard, and a lookup reads one shard, some tens of KiB. So
/// ten lookups in a file of a gigabyte take milliseconds, where loading it takes a second and a
/// gigabyte of memory. For more than a few items a shard, [load](Self::load) the filter.
///
/// The filter may be of either kind. If a later [save](crate::ConcurrentCuckooFilter::save) replaces the file while it
/// is open, lookups still see the old file.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, SnapshotFile, StableHash};
///
/// # let folder = std::env::temp_dir().join(format!("koel-lookup-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("seen.koel");
/// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).hasher(StableHash::random());
/// let seen = builder.growing().build()?;
/// seen.insert("an item").expect("memory");
/// seen.save(&path)?;
/// let file = SnapshotFile::<StableHash>::open(&path)?;
/// assert!(file.contains("an item")? && !file.contains("another")?);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SnapshotFile<S> {
    path: PathBuf,
    file: Mutex<File>,
    header: Header<S>,
    info: SnapshotInfo,
    /// The index of all blocks.
    index: BlockIndex,
    reader: BlockReader,
}

/// The number of shards from which the present rate is estimated.
const SAMPLE: u64 = 32;

impl<S: PersistentHasher> SnapshotFile<S> {
    /// Opens a file that was [saved](crate::ConcurrentCuckooFilter::save).
    ///
    /// Checks everything about the file except the contents of its shards. Each shard is checked when it is read: no
    /// lookup answers from a damaged one.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or is not a regular file; if it has another
    /// hasher or another version; or if it is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        Self::of(path).map_err(|error| error.of_file(path))
    }

    fn of(path: &Path) -> Result<Self, SnapshotError> {
        let file = File::open(path).map_err(SnapshotError::opening)?;
        let outline = Outline::read(&file, read_header::<S>)?;
        let outline = outline.ok_or_else(SnapshotError::not_a_file)?;
        let info = SnapshotInfo::of(&file, &outline, S::NAME.into())?;
        let Outline { header, sum, end, .. } = outline;
        let reader = BlockReader::new(&header.layout);
        let index = BlockIndex::read(&file, &header.layout, &reader, sum, end)?;
        let (path, file) = (path.to_path_buf(), Mutex::new(file));
        Ok(SnapshotFile { path, file, header, info, index, reader })
    }

    /// Looks up an item, like [`contains`](crate::ConcurrentCuckooFilter::contains).
    ///
    /// # Errors
    ///
    /// Returns an error if the item's shard cannot be read, or is damaged.
    pub fn contains<K: Key + ?Sized>(&self, item: &K) -> Result<bool, SnapshotError> {
        let hash = Prehashed(item.hash_with(&self.header.hasher));
        self.contains_many(&[hash]).map(|found| found[0])
    }

    /// Looks up each item, and reads each shard that they lead to once.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`contains`](Self::contains).
    pub fn contains_many<K: Key>(&self, items: &[K]) -> Result<Vec<bool>, SnapshotError> {
        self.look_up(items).map_err(|error| error.of_file(&self.path))
    }

    fn look_up<K: Key>(&self, items: &[K]) -> Result<Vec<bool>, SnapshotError> {
        let hashes = items.iter().map(|item| item.hash_with(&self.header.hasher));
        let places = hashes.map(|hash| self.located(hash));
        let mut asked: Vec<_> = places.enumerate().collect();
        asked.sort_unstable_by_key(|(_, (block, _))| *block);
        let mut answers = vec![false; items.len()];
        let mut words = zeros(self.reader.block_words())?;
        for of_block in asked.chunk_by(|(_, (one, _)), (_, (other, _))| one == other) {
            let buckets = self.buckets(of_block[0].1.0, &mut words)?;
            for &(number, (_, place)) in of_block {
                answers[number] = self.is_in(buckets, place);
            }
        }
        Ok(answers)
    }

    /// Returns the number of the item's block, and the item's place there.
    fn located(&self, hash: u64) -> (u64, Place) {
        let layout = &self.header.layout;
        if !layout.grows {
            let (shard, place) = layout.geometry.locate(hash);
            return (shard as u64, place);
        }
        let hash = Mixed::of(hash);
        let position = layout.roots().position(hash);
        let (block, depth) = self.index.find(position);
        let place = either!(layout.lanes().is_wide(), WIDE => {
            layout.shrinking::<WIDE>().place(hash, position.in_root, depth)
        });
        (block, place)
    }

    fn is_in(&self, buckets: &[u64], place: Place) -> bool {
        let (layout, lanes) = (&self.header.layout, self.header.layout.lanes());
        [place.first, place.second].into_iter().any(|bucket| {
            let words = &buckets[bucket.0 as usize * lanes.words()..][..lanes.words()];
            let heads = match layout.grows {
                false => either!(lanes.is_wide(), WIDE => {
                    lanes.matching::<WIDE>(words[0], place.fp)
                }),
                true => either!(lanes.is_wide(), WIDE => {
                    layout.shrinking::<WIDE>().matching(words[0], place.fp)
                }),
            };
            let Some(tails) = words.get(1) else { return !heads.is_empty() };
            let tails = match layout.grows {
                false => lanes.matching_tail(*tails, place.fp),
                true => layout.shrinking::<true>().matching_tail(*tails, place.fp),
            };
            !heads.and(tails).is_empty()
        })
    }

    /// Reads the buckets of a block.
    fn buckets<'a>(&self, block: u64, words: &'a mut [u64]) -> Result<&'a [u64], SnapshotError> {
        let at = self.reader.at(block);
        read_at(&self.file.lock(), words, at)?;
        let read = self.reader.read(block, words)?;
        // An undamaged block may belong to another file.
        if read.sum != self.index.sum(block) {
            return Err(SnapshotError::damaged(at, format!("block {block} has changed")));
        }
        let buckets = &mut words[buckets_in(&self.header.layout)];
        if let Some(shift) = age_shift(read.time, self.index.time()) {
            self.reader.older(buckets, shift);
        }
        Ok(buckets)
    }
}

impl<S> SnapshotFile<S> {
    /// Returns the hasher of the filter.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.header.hasher
    }

    /// Returns the description of the filter in the file.
    #[must_use]
    pub fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    /// Returns the number of bytes that the filter takes once it is [loaded](Self::load), besides the value itself.
    #[must_use]
    pub fn heap_bytes_when_loaded(&self) -> usize {
        let layout = &self.header.layout;
        if layout.grows {
            return bytes_when_restored(layout, self.info.stats.shards, self.index.deepest());
        }
        let ticking = if layout.lanes().forgets() { size_of::<Ticking>() } else { 0 };
        ticking + Table::bytes(&layout.geometry)
    }

    /// Returns the number of bytes that this value takes, without the shard that a lookup reads.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of_val(self) + self.index.heap_bytes()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns another handle of the open file.
    pub(crate) fn reopened(&self) -> Result<File, SnapshotError> {
        self.file.lock().try_clone().map_err(SnapshotError::io("cannot read"))
    }
}

impl<S: PersistentHasher> SnapshotFile<S> {
    /// Returns the present false-positive rate. For a filter that grows, it is estimated from 32 of its shards, within
    /// some percent.
    ///
    /// # Errors
    ///
    /// Returns an error if these shards cannot be read, or are damaged.
    pub fn false_positive_rate(&self) -> Result<f64, SnapshotError> {
        self.rate().map_err(|error| error.of_file(&self.path))
    }

    fn rate(&self) -> Result<f64, SnapshotError> {
        let (layout, lanes) = (&self.header.layout, self.header.layout.lanes());
        if !layout.grows {
            return Ok(self.info.stats.false_positive_rate);
        }
        let mut words = zeros(self.reader.block_words())?;
        let mut match_weight = 0;
        // Samples the shard of the middle hash in each of `SAMPLE` equal parts of all hashes.
        for part in 0..SAMPLE {
            let middle = Mixed((2 * part + 1) << (u64::BITS - SAMPLE.ilog2() - 1));
            let (block, _) = self.index.find(layout.roots().position(middle));
            let buckets = self.buckets(block, &mut words)?;
            match_weight += either!(lanes.is_wide(), WIDE => {
                let shrinking = layout.shrinking::<WIDE>();
                let of = |bucket| shrinking.match_weight(bucket);
                lanes.fold(buckets, of, u64::wrapping_add)
            });
        }
        let lanes_of_a_bucket = match_weight as f64 / SAMPLE as f64 / f64::from(GROWING_BUCKETS);
        Ok(lanes_of_a_bucket * rate_of_a_lane(lanes))
    }
}

impl<S> fmt::Debug for SnapshotFile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SnapshotFile { path, info, .. } = self;
        f.debug_struct("SnapshotFile")
            .field("path", path)
            .field("info", info)
            .finish_non_exhaustive()
    }
}

pub struct BlockIndex {
    /// The place where each block begins.
    starts: Vec<u64>,
    sums: Vec<u64>,
    deepest: u32,
    /// The time at which the last block was copied, if the filter forgets.
    time: Option<Time>,
}

/// The number of words around the beginning of a block: the time and the checksum of the block before it, and its head.
const AROUND: usize = TIME_WORDS + 1 + BLOCK_HEAD;

impl BlockIndex {
    /// Reads the heads and checksums of all blocks, and checks that together they match the header and the `end`.
    pub fn read(
        file: &File,
        layout: &Layout,
        reader: &BlockReader,
        header_sum: u64,
        end: End,
    ) -> Result<Self, SnapshotError> {
        let roots = layout.geometry.shards();
        let too_many = |_| NoMemory(usize::MAX);
        let count = usize::try_from(end.blocks).map_err(too_many)?;
        let mut index = BlockIndex { starts: Vec::new(), sums: Vec::new(), deepest: 0, time: None };
        for list in [&mut index.starts, &mut index.sums] {
            let bytes = count.saturating_mul(size_of::<u64>());
            list.try_reserve_exact(count).map_err(|_| NoMemory(bytes))?;
        }
        let mut totals = Totals::of_file(header_sum, roots);
        let mut around = Neighbours::read(file, reader, 0)?;
        for number in 0..end.blocks {
            let next = Neighbours::read(file, reader, number + 1)?;
            let (depth, items) = reader.head(number, around.head)?;
            let time = reader.time_before(number + 1, next.time_before)?;
            index.starts.push(totals.coverage.place);
            totals.add_read(reader, (depth, items, next.sum_before), time)?;
            index.sums.push(next.sum_before);
            around = next;
        }
        let coverage = totals.finish(end, reader.at(end.blocks))?;
        (index.deepest, index.time) = (coverage.deepest, coverage.time);
        Ok(index)
    }

    /// Finds the block that covers this position. Returns its number and depth.
    pub fn find(&self, Position { root, in_root }: Position) -> (u64, u32) {
        let place = root as u64 * UNITS + in_root / (u64::MAX / UNITS + 1);
        let after = self.starts.partition_point(|start| *start <= place);
        let block = after.saturating_sub(1);
        let next = self.starts.get(after).copied();
        let part = next.unwrap_or((root as u64 + 1) * UNITS) - self.starts[block];
        (block as u64, UNITS.ilog2() - part.ilog2())
    }

    pub fn sum(&self, block: u64) -> u64 {
        self.sums[block as usize]
    }

    pub fn heap_bytes(&self) -> usize {
        size_of::<u64>() * (self.starts.capacity() + self.sums.capacity())
    }

    /// The time at which the last block was copied.
    pub fn time(&self) -> Option<Time> {
        self.time
    }

    pub fn deepest(&self) -> u32 {
        self.deepest
    }
}

/// The words around the beginning of a block, or of the end of the file.
struct Neighbours {
    time_before: [u64; TIME_WORDS],
    sum_before: u64,
    head: [u64; BLOCK_HEAD],
}

impl Neighbours {
    fn read(file: &File, reader: &BlockReader, number: u64) -> Result<Self, SnapshotError> {
        let mut words = [0; AROUND];
        read_at(file, &mut words, reader.at(number) - 8 * (TIME_WORDS as u64 + 1))?;
        let [a, b, c, sum_before, head @ ..] = words.map(u64::from_le);
        Ok(Neighbours { time_before: [a, b, c], sum_before, head })
    }
}
