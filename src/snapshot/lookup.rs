//! Lookups in a file that is not loaded.
//!
//! The file is mapped into memory, so that its words are in the system's cache, once for all processes. Before a lookup
//! reads the mapping, its shard has been read as a whole and validated. That is done once for each shard, when a lookup
//! first leads there: a bit says so from then on. A block is read with a system call, not through the mapping: one call
//! reads all of it from the disk, and an error of the disk is an error here.

#[cfg(all(unix, not(any(loom, shuttle))))]
use crate::disk::mapping::Mapping;
use crate::error::{NoMemory, reserve, zeros};
use crate::hash::{Key, PersistentHasher, StableHash};
use crate::layout::bucket::{Fingerprint, LaneSet, Words};
use crate::layout::geometry::{Bucket, Mixed, Place};
use crate::layout::roots::{Position, Roots};
use crate::layout::shrinking::Shrinking;
use crate::layout::sizing::Layout;
use crate::layout::stamps::AgeShift;
use crate::snapshot::block::{Block, BlockReader, Totals, UNITS, age_shift};
use crate::snapshot::error::SnapshotError;
use crate::snapshot::format::{BLOCK_HEAD, End, TIME_WORDS};
use crate::snapshot::header::Header;
use crate::snapshot::journals::Unread;
use crate::snapshot::load::{Outline, SnapshotInfo, read_at};
use crate::sync::{AtomicU64, Ordering::Relaxed};
use crate::table::memory::prefetch;
use crate::table::ticking::Time;
use arrayvec::ArrayVec;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic;
use std::time::{Duration, Instant};

/// A filter in its file, to be read without loading it. Many processes share one copy: the system's cache of the file.
///
/// Opening a file reads some bytes of each shard, so a file of a gigabyte is open within some milliseconds. It takes
/// some 40 bytes of memory for each shard (70 if the filter forgets), which has 64 KiB or more. The first lookup that
/// leads to a shard reads and checks all of it. Later ones read two words, which are mapped into memory. All threads
/// may use it at once, and the filter may be of either kind. (Where the system does not map a file, as on other systems
/// than Unix of 64 bits, opening it reads all of it into memory.)
///
/// To change the filter, or where lookups of several times the speed are worth the time and the memory,
/// [load](Self::load) it.
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
/// let file = SnapshotFile::open(&path)?;
/// assert!(file.contains("an item")? && !file.contains("another")?);
/// assert_eq!(file.info().stats.items, 1);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What it shows
///
/// The filter as it was saved, for as long as this value lives. A later [save](crate::ConcurrentCuckooFilter::save), or
/// a checkpoint of a `DurableFilter`, puts a new file in the place of the old one: open it again to see that. Nothing
/// else becomes visible: not the changes that only the journal of a `DurableFilter` has, and no passing of time. In a
/// filter that [forgets](crate::ConcurrentCuckooFilter#forgetting), items that had expired when it was saved are gone,
/// and no other item expires.
///
/// # A file that is changed in place
///
/// koel replaces files and never changes one. So do `mv` and `rsync`. But `cp`, `scp` and a shell's `>` write into the
/// file that is there, and nothing protects a process that reads it then. If the file gets shorter, a lookup may touch
/// a page that is gone, and the system kills the process with SIGBUS. If other bytes come into a shard that was
/// checked, lookups answer by those bytes. So copy a new state beside the old one, and rename it. Where that is not in
/// your hands, [load](crate::ConcurrentCuckooFilter::load) the file.
///
/// Likewise, if the system has dropped a part of the file from its cache, and the disk fails when that part is read
/// again, the process is killed.
pub struct SnapshotFile<S = StableHash> {
    pub(crate) mapped: Mapped,
    hasher: S,
}

/// A file whose items have been hashed.
pub(crate) struct Mapped {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    mapping: Mapping,
    layout: Layout,
    info: SnapshotInfo,
    index: BlockIndex,
    reader: BlockReader,
    /// A bit for each block that has been read and validated.
    ///
    /// `Relaxed`: the bit publishes nothing that a thread has written, only what it has seen of the file.
    checked: Box<[AtomicU64]>,
}

/// The number of lookups of a batch whose memory is fetched at the same time.
const AHEAD: usize = 32;

impl SnapshotFile {
    /// Opens a file that was [saved](crate::ConcurrentCuckooFilter::save), of a filter with a [`StableHash`].
    ///
    /// Checks everything about the file except the contents of its shards. Each shard is checked when a lookup first
    /// leads to it, or by [`check`](Self::check): no lookup answers from a damaged one.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or mapped, or is not a regular file; if it has another
    /// hasher or another version; or if it is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        Self::open_hashed_by(path)
    }
}

impl<S: PersistentHasher> SnapshotFile<S> {
    /// Opens a file of a filter with another hasher, as [`open`](SnapshotFile::open) does:
    /// `SnapshotFile::<MyHasher>::open_hashed_by(path)`.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`open`](SnapshotFile::open).
    pub fn open_hashed_by(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let opened = || {
            let (file, mut outline, unread) = Mapped::outlined(path)?;
            let hasher = outline.header.hasher()?;
            Ok(SnapshotFile { mapped: Mapped::open(path, file, outline, unread)?, hasher })
        };
        opened().map_err(|error: SnapshotError| error.of_file(path))
    }

    /// Looks up an item, like [`contains`](crate::ConcurrentCuckooFilter::contains).
    ///
    /// # Errors
    ///
    /// Returns an error if the item's shard cannot be read, or is damaged.
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, item: &K) -> Result<bool, SnapshotError> {
        let (block, place) = self.located(item);
        self.mapped.check_once(block)?;
        Ok(self.mapped.has(block, place))
    }

    /// Looks up an item if that takes no system call: returns `None` if its shard has to be read first.
    ///
    /// An event loop answers such an item in another thread, by [`contains`](Self::contains).
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, SnapshotFile, StableHash};
    ///
    /// # let folder = std::env::temp_dir().join(format!("koel-soon-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("seen.koel");
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).hasher(StableHash::random());
    /// builder.build()?.save(&path)?;
    /// let file = SnapshotFile::open(&path)?;
    /// assert_eq!(file.contains_at_once("an item"), None);
    /// assert!(!file.contains("an item")?);
    /// assert_eq!(file.contains_at_once("an item"), Some(false));
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn contains_at_once<K: Key + ?Sized>(&self, item: &K) -> Option<bool> {
        let (block, place) = self.located(item);
        self.mapped.is_checked(block).then(|| self.mapped.has(block, place))
    }

    /// Returns the number of copies of the item, like [`count`](crate::ConcurrentCuckooFilter::count).
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`contains`](Self::contains).
    #[inline]
    pub fn count<K: Key + ?Sized>(&self, item: &K) -> Result<usize, SnapshotError> {
        let (block, place) = self.located(item);
        self.mapped.check_once(block)?;
        Ok(self.mapped.copies(block, place))
    }

    /// Looks up each item. This takes less time than a loop, because the memory of many is fetched at once.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`contains`](Self::contains).
    pub fn contains_many<K: Key>(&self, items: &[K]) -> Result<Vec<bool>, SnapshotError> {
        let mut answers = Vec::with_capacity(items.len());
        let mut words = Vec::new();
        for items in items.chunks(AHEAD) {
            let places = items.iter().map(|item| {
                let (block, place) = self.located(item);
                self.mapped.request(block, place);
                (block, place)
            });
            let places: ArrayVec<(usize, Place), AHEAD> = places.collect();
            for (block, place) in places {
                if !self.mapped.is_checked(block) {
                    self.mapped.check_block(block, &mut words)?;
                }
                answers.push(self.mapped.has(block, place));
            }
        }
        Ok(answers)
    }

    /// Checks all shards that no lookup has led to yet. From then on, no lookup fails, unless the file is changed in
    /// place, or the system cannot read it.
    ///
    /// This takes about as long as to [load](crate::ConcurrentCuckooFilter::load) the filter on one core.
    ///
    /// # Errors
    ///
    /// Returns an error if a shard cannot be read, or is damaged.
    pub fn check(&self) -> Result<(), SnapshotError> {
        self.mapped.check_all()
    }

    /// Returns the number of the item's block, and the item's place there.
    #[inline]
    fn located<K: Key + ?Sized>(&self, item: &K) -> (usize, Place) {
        self.mapped.located(item.hash_with(&self.hasher))
    }
}

impl<S> SnapshotFile<S> {
    /// Returns the hasher of the filter.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Returns the description of the filter in the file.
    #[must_use]
    pub fn info(&self) -> &SnapshotInfo {
        &self.mapped.info
    }

    /// Returns the number of bytes of memory that are this value's own. The file is in the system's cache.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        let Mapped { index, checked, .. } = &self.mapped;
        size_of_val(self) + index.heap_bytes() + size_of_val(&**checked)
    }
}

impl<S> fmt::Debug for SnapshotFile<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mapped { path, info, .. } = &self.mapped;
        f.debug_struct("SnapshotFile")
            .field("path", path)
            .field("info", info)
            .finish_non_exhaustive()
    }
}

impl Mapped {
    /// Opens a file, and reads its outline.
    fn outlined(path: &Path) -> Result<(File, Outline, Unread), SnapshotError> {
        // To open a pipe would wait for its other end.
        if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            return Err(SnapshotError::no_file_to_look_up());
        }
        let unread = Unread::to_read(path);
        let file = File::open(path).map_err(SnapshotError::opening)?;
        let outline = Outline::read(&file)?;
        Ok((file, outline.ok_or_else(SnapshotError::no_file_to_look_up)?, unread?))
    }

    /// Maps the file with this outline.
    fn open(
        path: &Path,
        file: File,
        outline: Outline,
        unread: Unread,
    ) -> Result<Self, SnapshotError> {
        let Outline { header, end, length, .. } = &outline;
        let mapping = Mapping::of_file(&file, *length);
        let mapping =
            mapping.map_err(SnapshotError::io("cannot map it into memory, or read it"))?;
        let reader = BlockReader::new(&header.layout);
        let (index, time) = BlockIndex::read(&file, &mapping, header, &reader, *end)?;
        let info = SnapshotInfo::describe(&outline, time, unread);
        let layout = outline.header.layout;
        let checked = (0..info.stats.shards.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let path = path.to_path_buf();
        Ok(Mapped { path, file, mapping, layout, info, index, reader, checked })
    }

    /// Returns the number of the block of the item with this hash, and the item's place there.
    #[inline]
    fn located(&self, hash: u64) -> (usize, Place) {
        let Some((shrinking, roots)) = &self.index.growth else {
            return self.layout.geometry.locate(hash);
        };
        let hash = Mixed::of(hash);
        let position = roots.position(hash);
        let (block, depth) = self.index.find(position);
        let place = |is_wide| shrinking.place(hash, position.in_root, depth, is_wide);
        // Two calls, each with a constant.
        (block, if self.layout.lanes().is_wide() { place(true) } else { place(false) })
    }

    /// Checks a block unless it has been checked.
    #[inline]
    fn check_once(&self, block: usize) -> Result<(), SnapshotError> {
        if self.is_checked(block) { Ok(()) } else { self.check_block(block, &mut Vec::new()) }
    }

    /// Checks all blocks that have not been checked.
    fn check_all(&self) -> Result<(), SnapshotError> {
        let mut words = Vec::new();
        let mut unchecked = (0..self.info.stats.shards).filter(|block| !self.is_checked(*block));
        unchecked.try_for_each(|block| self.check_block(block, &mut words))
    }

    #[inline]
    fn is_checked(&self, block: usize) -> bool {
        self.checked[block / 64].load(Relaxed) >> (block % 64) & 1 == 1
    }

    /// Reads a block and validates it. `words` are room for it.
    #[cold]
    fn check_block(&self, block: usize, words: &mut Vec<u64>) -> Result<(), SnapshotError> {
        let (number, at) = (block as u64, self.reader.offset(block as u64));
        let mut check = || {
            if words.is_empty() {
                *words = zeros(self.reader.block_words())?;
            }
            read_at(&self.file, words, at)?;
            // An undamaged block may belong to another file.
            let Block { sum, depth, .. } = self.reader.read(number, words)?;
            match (sum, depth) == (self.index.sums[block], self.index.depths[block].into()) {
                true => Ok(()),
                false => Err(SnapshotError::damaged(at, format!("block {block} has changed"))),
            }
        };
        check().map_err(|error: SnapshotError| error.of_file(&self.path))?;
        self.checked[block / 64].fetch_or(1 << (block % 64), Relaxed);
        Ok(())
    }

    /// Returns the words of a block's buckets, in the byte order of the file.
    #[inline(always)]
    fn words(&self, block: usize) -> &[atomic::AtomicU64] {
        let first = self.reader.offset(block as u64) as usize / size_of::<u64>() + BLOCK_HEAD;
        &self.mapping.words()[first..][..self.layout.geometry.words()]
    }

    /// Requests the memory of an item's buckets, or its block from the disk, which reads several at once.
    #[inline]
    fn request(&self, block: usize, place: Place) {
        if self.is_checked(block) {
            let (words, each) = (self.words(block), self.layout.lanes().words());
            for Bucket(bucket) in [place.first, place.second] {
                prefetch(&words[bucket as usize * each]);
            }
        } else {
            let (at, words) = (self.reader.offset(block as u64), self.reader.block_words());
            self.mapping.will_need(at, words * size_of::<u64>());
        }
    }

    /// Returns the words of the item's two buckets.
    #[inline(always)]
    fn both(&self, block: usize, place: Place) -> [Words; 2] {
        let (words, each) = (self.words(block), self.layout.lanes().words());
        let load = |word: usize| u64::from_le(words[word].load(atomic::Ordering::Relaxed));
        [place.first, place.second].map(|Bucket(bucket)| {
            let first = bucket as usize * each;
            Words { heads: load(first), tails: if each > 1 { load(first + 1) } else { 0 } }
        })
    }

    /// Whether [`copies`](Self::copies) is more than zero: in fewer instructions if no item of the block is older now.
    #[inline(always)]
    fn has(&self, block: usize, place: Place) -> bool {
        if self.index.shift(block).is_some() {
            return self.copies(block, place) > 0;
        }
        let (lanes, both) = (self.layout.lanes(), self.both(block, place));
        let (heads, tails) = (both.map(|words| words.heads), both.map(|words| words.tails));
        match &self.index.growth {
            None if lanes.is_wide() => lanes.either_matches_whole(heads, tails, place.fp),
            None => lanes.either_matches(heads, place.fp),
            Some((shrinking, _)) if lanes.is_wide() => {
                shrinking.either_matches_whole(heads, tails, place.fp)
            }
            Some((shrinking, _)) => shrinking.either_matches(heads, place.fp),
        }
    }

    /// Counts the lanes of the item's two buckets that match it, and had not expired when the last block was copied.
    fn copies(&self, block: usize, place: Place) -> usize {
        let (lanes, shift) = (self.layout.lanes(), self.index.shift(block));
        let in_bucket = |words: Words| {
            let is_there =
                |lane: &_| shift.is_none_or(|shift| shift.aged(lanes, words, *lane).is_some());
            self.matching(words, place.fp).filter(is_there).count()
        };
        self.both(block, place).map(in_bucket).iter().sum()
    }

    /// Returns the lanes of a bucket that match an item.
    fn matching(&self, Words { heads, tails }: Words, fp: Fingerprint) -> LaneSet {
        let lanes = self.layout.lanes();
        match &self.index.growth {
            None if lanes.is_wide() => {
                lanes.matching(heads, fp).and(lanes.matching_tail(tails, fp))
            }
            None => lanes.matching(heads, fp),
            Some((shrinking, _)) if lanes.is_wide() => {
                lanes.matching(heads, fp).and(shrinking.matching_tail(tails, fp))
            }
            Some((shrinking, _)) => shrinking.matching(heads, fp),
        }
    }
}

/// The words of a file, which are read into memory on systems where files are not mapped.
#[cfg(not(all(unix, not(any(loom, shuttle)))))]
struct Mapping(Box<[atomic::AtomicU64]>);

#[cfg(not(all(unix, not(any(loom, shuttle)))))]
impl Mapping {
    fn of_file(file: &File, length: u64) -> std::io::Result<Self> {
        let no_memory = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let mut words = zeros((length / 8) as usize).map_err(|_: NoMemory| no_memory())?;
        read_at(file, &mut words, 0)?;
        Ok(Mapping(words.into_iter().map(atomic::AtomicU64::new).collect()))
    }

    fn will_need(&self, _: u64, _: usize) {}

    fn words(&self) -> &[atomic::AtomicU64] {
        &self.0
    }
}

/// The checksums, places and ages of all blocks, read when the file is opened.
struct BlockIndex {
    /// If the filter grows, how its items find their places, and how its lanes are compared with an item.
    growth: Option<(Shrinking, Roots)>,
    sums: Vec<u64>,
    /// If the filter grows, the place where each block begins, and the one where the last block ends.
    starts: Vec<u64>,
    depths: Vec<u8>,
    /// All places in equal parts: for each part, the block in which it begins.
    parts: Vec<u32>,
    /// The binary logarithm of the number of places in a part.
    part: u32,
    /// If the filter forgets, how much older the items of each block have become by the time of the last one.
    shifts: Vec<Option<AgeShift>>,
}

/// The number of words around the beginning of a block: the time and the checksum of the block before it, and its head.
const AROUND: usize = TIME_WORDS + 1 + BLOCK_HEAD;

/// A read of some words that takes longer comes from a disk, which is then asked for the next ones as well, so that it
/// reads several at once.
const FROM_DISK: Duration = Duration::from_micros(40);

/// The number of blocks for whose heads the disk is asked at once.
const ASKED: u64 = 1_024;

impl BlockIndex {
    /// Reads the heads, times and checksums of all blocks, and checks that together they match the header and the
    /// `end`, which has a checksum of them. Also returns the time of the last block.
    fn read(
        file: &File,
        mapping: &Mapping,
        header: &Header,
        reader: &BlockReader,
        end: End,
    ) -> Result<(Self, Option<Time>), SnapshotError> {
        let (layout, geometry) = (&header.layout, &header.layout.geometry);
        // No file system has room for more.
        let count = u32::try_from(end.blocks).map_err(|_| NoMemory(usize::MAX))? as usize;
        let (mut sums, mut depths) = (room_for(count)?, room_for(count)?);
        let mut starts = room_for(if layout.grows { count + 1 } else { 0 })?;
        let mut times = room_for(if geometry.lanes().forgets() { count } else { 0 })?;
        let mut totals = Totals::new(geometry, 0);
        totals.begin_part(header.sum(), true);
        let mut around = read_around(file, reader, 0)?;
        // The first block for whose head the disk has not been asked.
        let mut asked = 0;
        for number in 0..end.blocks {
            let began = Instant::now();
            let next = read_around(file, reader, number + 1)?;
            if number >= asked && began.elapsed() > FROM_DISK {
                asked = (number + ASKED).min(end.blocks);
                let ahead = number + 2..=asked;
                ahead.for_each(|number| mapping.will_need(around_at(reader, number), 8 * AROUND));
            }
            let ([.., found, depth, items], [a, b, c, sum, ..]) = (around, next);
            let (depth, items) = reader.head(number, [found, depth, items])?;
            let time = reader.time_of(number, [a, b, c])?;
            if layout.grows {
                starts.push(totals.place);
            }
            totals.add_read(reader, &Block { depth, items, sum, time, ..Block::EMPTY })?;
            sums.push(sum);
            depths.push(depth as u8);
            times.extend(time);
            around = next;
        }
        totals.finish(end, reader.offset(end.blocks))?;
        if layout.grows {
            starts.push(totals.place);
        }
        let (part, parts) = parts_of(&starts, totals.deepest)?;
        let shifts = times.into_iter().map(|time| age_shift(Some(time), totals.time)).collect();
        let growth = layout.grows.then(|| (layout.shrinking(), layout.roots()));
        let index = BlockIndex { growth, sums, starts, depths, parts, part, shifts };
        Ok((index, totals.time))
    }

    /// Finds the block that covers this position. Returns its number and depth.
    #[inline]
    fn find(&self, Position { root, in_root }: Position) -> (usize, u32) {
        let place = root as u64 * UNITS + in_root / (u64::MAX / UNITS + 1);
        let mut block = self.parts[(place >> self.part) as usize] as usize;
        // Rarely: most parts are in one block. At most some hundred times, because the blocks are balanced.
        while self.starts[block + 1] <= place {
            block += 1;
        }
        (block, self.depths[block].into())
    }

    /// Returns how much older the items of a block have become by the time of the last block, if they have.
    #[inline(always)]
    fn shift(&self, block: usize) -> Option<AgeShift> {
        self.shifts.get(block).copied().flatten()
    }

    fn heap_bytes(&self) -> usize {
        let BlockIndex { sums, starts, depths, parts, shifts, .. } = self;
        let numbers = size_of_val(&**sums) + size_of_val(&**starts) + size_of_val(&**parts);
        numbers + size_of_val(&**depths) + size_of_val(&**shifts)
    }
}

fn room_for<T>(count: usize) -> Result<Vec<T>, NoMemory> {
    let mut list = Vec::new();
    reserve(&mut list, count)?;
    Ok(list)
}

/// Divides all places into parts that no block divides, or into four times as many parts as there are blocks if these
/// are fewer. Returns the binary logarithm of the number of places in a part, and the blocks in which they begin.
fn parts_of(starts: &[u64], deepest: u32) -> Result<(u32, Vec<u32>), NoMemory> {
    let Some((places, blocks)) = starts.split_last() else { return Ok((0, Vec::new())) };
    let most = 4 * blocks.len() as u64;
    let mut part = UNITS.ilog2() - deepest;
    while places >> part > most {
        part += 1;
    }
    let count = places.div_ceil(1 << part);
    let mut parts = room_for(count as usize)?;
    let mut block = 0;
    for number in 0..count {
        while starts[block + 1] <= number << part {
            block += 1;
        }
        parts.push(block as u32);
    }
    Ok((part, parts))
}

/// The byte at which the words around the beginning of a block begin, or around that of the end.
fn around_at(reader: &BlockReader, number: u64) -> u64 {
    reader.offset(number) - 8 * (TIME_WORDS as u64 + 1)
}

fn read_around(
    file: &File,
    reader: &BlockReader,
    number: u64,
) -> Result<[u64; AROUND], SnapshotError> {
    let mut words = [0; AROUND];
    read_at(file, &mut words, around_at(reader, number))?;
    Ok(words.map(u64::from_le))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns where blocks begin, and where the last one ends: each root is split `even` times, and the first block
    /// further, down to depth `deepest`.
    fn starts(roots: u64, even: u32, deepest: u32) -> Vec<u64> {
        let chain = (even < deepest).then(|| (even + 1..=deepest).rev()).into_iter().flatten();
        let others = std::iter::repeat_n(even, (roots << even) as usize - 1);
        let mut place = 0;
        let ends = [deepest].into_iter().chain(chain).chain(others).map(|depth| {
            place += UNITS >> depth;
            place
        });
        [0].into_iter().chain(ends.collect::<Vec<_>>()).collect()
    }

    #[test]
    fn every_place_leads_to_its_block() {
        let one = [(1, 0, 0), (1, 5, 5), (1, 9, 10), (1, 0, 31)];
        let several = [(3, 0, 0), (7, 4, 5), (2, 3, 31), (5, 6, 20)];
        for (roots, even, deepest) in one.into_iter().chain(several) {
            let starts = starts(roots, even, deepest);
            assert_eq!(starts.last(), Some(&(roots * UNITS)));
            let (part, parts) = parts_of(&starts, deepest).expect("memory");
            let blocks = starts.len() - 1;
            assert!(parts.len() <= 4 * blocks + 2, "{} parts of {blocks} blocks", parts.len());
            let (sums, shifts) = (Vec::new(), Vec::new());
            let depth = |it: &[u64]| (UNITS / (it[1] - it[0])).ilog2() as u8;
            let depths = starts.windows(2).map(depth).collect();
            let index = BlockIndex { growth: None, sums, starts, depths, parts, part, shifts };
            for block in 0..blocks {
                let (start, end) = (index.starts[block], index.starts[block + 1]);
                for place in [start, start + (end - start) / 2, end - 1] {
                    let (root, first) = ((place / UNITS) as usize, (place % UNITS) << 33);
                    for in_root in [first, first | ((1 << 33) - 1)] {
                        let found = index.find(Position { root, in_root });
                        assert_eq!((found.0, UNITS >> found.1), (block, end - start), "{place}");
                    }
                }
            }
        }
    }
}
