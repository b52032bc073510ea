//! Lookups in a file that is not loaded.
//!
//! The file is mapped into memory, so that its words are in the system's cache, once for all processes. Before a lookup
//! reads the mapping, its shard has been read as a whole and validated. That is done once for each shard, when a lookup
//! first leads there: a bit says so from then on. A block is read with a system call, not through the mapping: one call
//! reads all of it from the disk, and an error of the disk is an error here. (If the system drops such words from its
//! cache, the mapping reads them from the disk again. An error of the disk then kills the process.)
//!
//! Without a mapping, each lookup in a shard that was validated reads its two buckets with two calls.

use crate::backend::growing::sharded::bytes_when_restored;
use crate::error::{NoMemory, reserve, zeros};
use crate::hash::{Key, PersistentHasher};
use crate::layout::bucket::{Fingerprint, LaneSet, Words};
use crate::layout::geometry::{Bucket, Mixed, Place};
use crate::layout::roots::{Position, Roots};
use crate::layout::shrinking::{GROWING_BUCKETS, Shrinking};
use crate::layout::sizing::{Layout, rate_of_a_lane};
use crate::layout::stamps::AgeShift;
use crate::snapshot::block::{BlockReader, Totals, UNITS, age_shift};
use crate::snapshot::error::SnapshotError;
use crate::snapshot::format::TIME_WORDS;
use crate::snapshot::format::{BLOCK_HEAD, End, buckets_in};
use crate::snapshot::header::{Header, read_header};
use crate::snapshot::load::{Outline, SnapshotInfo, read_at};
use crate::snapshot::mapping::Mapping;
use crate::sync::{AtomicU64, Ordering::Relaxed};
use crate::table::Table;
use crate::table::memory::prefetch;
use crate::table::ticking::{Ticking, Time};
use arrayvec::ArrayVec;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic;
use std::time::{Duration, Instant};

/// A filter in its file, to be read without loading it. Many processes share one copy: the system's cache of the file.
///
/// Opening a file reads some bytes of each shard, so a file of a gigabyte is open within some milliseconds. It takes
/// some 40 bytes of memory for each shard, which has 64 KiB or more. The first lookup that leads to a shard reads and
/// checks all of it. Later ones read two words, which are mapped into memory. All threads may use it at once, and the
/// filter may be of either kind.
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
/// let file = SnapshotFile::<StableHash>::open(&path)?;
/// assert!(file.contains("an item")? && !file.contains("another")?);
/// assert_eq!(file.len(), 1);
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
/// your hands, use [`open_unmapped`](Self::open_unmapped), which turns the first of these into an error.
pub struct SnapshotFile<S> {
    path: PathBuf,
    file: File,
    mapping: Option<Mapping>,
    header: Header<S>,
    info: SnapshotInfo,
    index: BlockIndex,
    reader: BlockReader,
    matcher: Matcher,
    /// A bit for each block that has been read and validated.
    ///
    /// `Relaxed`: the bit publishes nothing that a thread has written, only what it has seen of the file.
    checked: Box<[AtomicU64]>,
}

/// The number of shards from which the present rate is estimated.
const SAMPLE: u64 = 32;

/// The number of lookups of a batch whose memory is fetched at the same time.
const AHEAD: usize = 32;

/// The number of words of a block, not mapped, that are read and validated in the time of one lookup there.
const WORDS_OF_A_LOOKUP: usize = 512;

/// How items find their places, and how a lane is compared with an item.
enum Matcher {
    Fixed,
    Narrow(Shrinking, Roots),
    Wide(Shrinking, Roots),
}

/// Where the words of a block's buckets are.
#[derive(Clone, Copy)]
enum Buckets<'a> {
    /// In the mapping, in the byte order of the file.
    Mapped(&'a [atomic::AtomicU64]),
    /// In memory, in the machine's byte order.
    Read(&'a [u64]),
    /// In the file, from this byte on.
    InFile(&'a File, u64),
}

impl Buckets<'_> {
    /// Returns the words of a bucket that has `each` of them.
    #[inline(always)]
    fn words(self, Bucket(bucket): Bucket, each: usize) -> Result<Words, SnapshotError> {
        let first = bucket as usize * each;
        match self {
            Buckets::Mapped(words) => {
                let load =
                    |word: &atomic::AtomicU64| u64::from_le(word.load(atomic::Ordering::Relaxed));
                let tails = if each > 1 { load(&words[first + 1]) } else { 0 };
                Ok(Words { heads: load(&words[first]), tails })
            }
            Buckets::Read(words) => Ok(Words {
                heads: words[first],
                tails: if each > 1 { words[first + 1] } else { 0 },
            }),
            Buckets::InFile(file, at) => {
                let mut words = [0; 2];
                read_at(file, &mut words[..each], at + 8 * first as u64)?;
                let [heads, tails] = words.map(u64::from_le);
                Ok(Words { heads, tails })
            }
        }
    }
}

impl<S: PersistentHasher> SnapshotFile<S> {
    /// Opens a file that was [saved](crate::ConcurrentCuckooFilter::save).
    ///
    /// Checks everything about the file except the contents of its shards. Each shard is checked when a lookup first
    /// leads to it, or by [`check`](Self::check): no lookup answers from a damaged one. If the system cannot map the
    /// file, it is read as by [`open_unmapped`](Self::open_unmapped), and so it is on other systems than Unix of 64
    /// bits.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or is not a regular file; if it has another
    /// hasher or another version; or if it is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        Self::opened(path, true).map_err(|error| error.of_file(path))
    }

    /// Opens a file like [`open`](Self::open), and does not map it: each lookup reads its words by two system calls,
    /// which takes about a microsecond.
    ///
    /// If the file is [truncated](Self#a-file-that-is-changed-in-place) meanwhile, a lookup returns an error.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`open`](Self::open).
    pub fn open_unmapped(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        Self::opened(path, false).map_err(|error| error.of_file(path))
    }

    fn opened(path: &Path, maps: bool) -> Result<Self, SnapshotError> {
        // To open a pipe would wait for its other end.
        if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            return Err(SnapshotError::no_file_to_look_up());
        }
        let file = File::open(path).map_err(SnapshotError::opening)?;
        let outline = Outline::read(&file, read_header::<S>)?;
        let outline = outline.ok_or_else(SnapshotError::no_file_to_look_up)?;
        let info = SnapshotInfo::describe(&file, &outline, S::NAME.into())?;
        let Outline { header, sum, end, length, .. } = outline;
        let mapping = if maps { Mapping::new(&file, length) } else { None };
        let reader = BlockReader::new(&header.layout);
        let index = BlockIndex::read(&file, mapping.as_ref(), &header.layout, &reader, sum, end)?;
        let matcher = Matcher::new(&header.layout);
        let checked = (0..info.stats.shards.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let path = path.to_path_buf();
        Ok(SnapshotFile { path, file, mapping, header, info, index, reader, matcher, checked })
    }

    /// Looks up an item, like [`contains`](crate::ConcurrentCuckooFilter::contains).
    ///
    /// # Errors
    ///
    /// Returns an error if the item's shard cannot be read, or is damaged.
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, item: &K) -> Result<bool, SnapshotError> {
        let (block, place) = self.located(item);
        let found = self.buckets(block).and_then(|buckets| self.holds(block, buckets, place));
        found.map_err(|error| error.of_file(&self.path))
    }

    /// Looks up an item if that takes no system call: returns `None` if its shard has to be read first, and if the file
    /// is not mapped.
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
    /// let file = SnapshotFile::<StableHash>::open(&path)?;
    /// assert_eq!(file.contains_at_once("an item"), None);
    /// assert!(!file.contains("an item")?);
    /// # if cfg!(all(unix, target_pointer_width = "64")) {
    /// assert_eq!(file.contains_at_once("an item"), Some(false));
    /// # }
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn contains_at_once<K: Key + ?Sized>(&self, item: &K) -> Option<bool> {
        let (block, place) = self.located(item);
        let buckets = self.is_checked(block).then(|| self.mapped(block)).flatten()?;
        self.holds(block, buckets, place).ok()
    }

    /// Returns the number of copies of the item, like [`count`](crate::ConcurrentCuckooFilter::count).
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`contains`](Self::contains).
    pub fn count<K: Key + ?Sized>(&self, item: &K) -> Result<usize, SnapshotError> {
        let (block, place) = self.located(item);
        let count = self.buckets(block).and_then(|buckets| self.copies(block, buckets, place));
        count.map_err(|error| error.of_file(&self.path))
    }

    /// Looks up each item. This takes less time than a loop, because the memory of many is fetched at once.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`contains`](Self::contains).
    pub fn contains_many<K: Key>(&self, items: &[K]) -> Result<Vec<bool>, SnapshotError> {
        let answers = match &self.mapping {
            Some(mapping) => self.look_up_mapped(mapping, items),
            None => self.look_up_unmapped(items),
        };
        answers.map_err(|error| error.of_file(&self.path))
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
        let mut words = Vec::new();
        let blocks = (0..self.info.stats.shards).filter(|block| !self.is_checked(*block));
        let checked = blocks.map(|block| self.read_checked(block, &mut words));
        checked.collect::<Result<(), _>>().map_err(|error| error.of_file(&self.path))
    }

    fn look_up_mapped<K: Key>(
        &self,
        mapping: &Mapping,
        items: &[K],
    ) -> Result<Vec<bool>, SnapshotError> {
        let mut answers = Vec::with_capacity(items.len());
        let mut words = Vec::new();
        let block_bytes = 8 * self.reader.block_words();
        for items in items.chunks(AHEAD) {
            let places = items.iter().map(|item| {
                let (block, place) = self.located(item);
                match self.is_checked(block) {
                    true => self.prefetch(mapping, block, place),
                    // The disk reads several of them at once.
                    false => mapping.will_need(self.reader.offset(block as u64), block_bytes),
                }
                (block, place)
            });
            let places: ArrayVec<(usize, Place), AHEAD> = places.collect();
            for (block, place) in places {
                if !self.is_checked(block) {
                    self.read_checked(block, &mut words)?;
                }
                answers.push(self.holds(block, self.mapped_in(mapping, block), place)?);
            }
        }
        Ok(answers)
    }

    /// Looks items up in the order of their blocks, and reads a block as a whole if it has many of them.
    fn look_up_unmapped<K: Key>(&self, items: &[K]) -> Result<Vec<bool>, SnapshotError> {
        let mut asked: Vec<_> = items.iter().map(|item| self.located(item)).enumerate().collect();
        asked.sort_unstable_by_key(|(_, (block, _))| *block);
        let mut answers = vec![false; items.len()];
        let mut words = Vec::new();
        let many = self.reader.block_words() / WORDS_OF_A_LOOKUP;
        for of_block in asked.chunk_by(|(_, (one, _)), (_, (other, _))| one == other) {
            let block = of_block[0].1.0;
            let buckets = match self.is_checked(block) && of_block.len() <= many {
                true => self.in_file(block),
                false => {
                    self.read_checked(block, &mut words)?;
                    Buckets::Read(&words[buckets_in(&self.header.layout)])
                }
            };
            for &(number, (_, place)) in of_block {
                answers[number] = self.holds(block, buckets, place)?;
            }
        }
        Ok(answers)
    }

    /// Returns the number of the item's block, and the item's place there.
    #[inline]
    fn located<K: Key + ?Sized>(&self, item: &K) -> (usize, Place) {
        let hash = item.hash_with(&self.header.hasher);
        let mixed = Mixed::of(hash);
        match &self.matcher {
            Matcher::Fixed => self.header.layout.geometry.locate(hash),
            Matcher::Narrow(shrinking, roots) => self.index.located(mixed, shrinking, roots, false),
            Matcher::Wide(shrinking, roots) => self.index.located(mixed, shrinking, roots, true),
        }
    }
}

impl<S> SnapshotFile<S> {
    #[inline]
    fn is_checked(&self, block: usize) -> bool {
        self.checked[block / 64].load(Relaxed) >> (block % 64) & 1 == 1
    }

    /// Reads a block and validates it. `words` are room for it.
    #[cold]
    fn read_checked(&self, block: usize, words: &mut Vec<u64>) -> Result<(), SnapshotError> {
        if words.is_empty() {
            *words = zeros(self.reader.block_words())?;
        }
        let (number, at) = (block as u64, self.reader.offset(block as u64));
        read_at(&self.file, words, at)?;
        // An undamaged block may belong to another file.
        if self.reader.read(number, words)?.sum != self.index.sums[block] {
            return Err(SnapshotError::damaged(at, format!("block {block} has changed")));
        }
        self.checked[block / 64].fetch_or(1 << (block % 64), Relaxed);
        Ok(())
    }

    /// Returns the buckets of a block, after validating it unless that was done before.
    #[inline]
    fn buckets(&self, block: usize) -> Result<Buckets<'_>, SnapshotError> {
        if !self.is_checked(block) {
            self.read_checked(block, &mut Vec::new())?;
        }
        Ok(self.mapped(block).unwrap_or_else(|| self.in_file(block)))
    }

    #[inline]
    fn mapped(&self, block: usize) -> Option<Buckets<'_>> {
        self.mapping.as_ref().map(|mapping| self.mapped_in(mapping, block))
    }

    #[inline]
    fn mapped_in<'a>(&self, mapping: &'a Mapping, block: usize) -> Buckets<'a> {
        let first = self.reader.offset(block as u64) as usize / size_of::<u64>() + BLOCK_HEAD;
        Buckets::Mapped(&mapping.words()[first..][..self.header.layout.geometry.words()])
    }

    fn in_file(&self, block: usize) -> Buckets<'_> {
        let at = self.reader.offset(block as u64) + (BLOCK_HEAD * size_of::<u64>()) as u64;
        Buckets::InFile(&self.file, at)
    }

    fn prefetch(&self, mapping: &Mapping, block: usize, place: Place) {
        let Buckets::Mapped(words) = self.mapped_in(mapping, block) else { return };
        let each = self.header.layout.lanes().words();
        for Bucket(bucket) in [place.first, place.second] {
            prefetch(&words[bucket as usize * each]);
        }
    }

    /// Whether a lane of the item's two buckets matches it.
    #[inline(always)]
    fn holds(
        &self,
        block: usize,
        buckets: Buckets<'_>,
        place: Place,
    ) -> Result<bool, SnapshotError> {
        if self.index.shift(block).is_some() {
            return Ok(self.copies(block, buckets, place)? > 0);
        }
        let lanes = self.header.layout.lanes();
        let first = buckets.words(place.first, lanes.words())?;
        let second = buckets.words(place.second, lanes.words())?;
        let (heads, tails) = ([first.heads, second.heads], [first.tails, second.tails]);
        Ok(match &self.matcher {
            Matcher::Fixed if lanes.is_wide() => lanes.either_matches_whole(heads, tails, place.fp),
            Matcher::Fixed => lanes.either_matches(heads, place.fp),
            Matcher::Narrow(shrinking, _) => shrinking.either_matches(heads, place.fp),
            Matcher::Wide(shrinking, _) => shrinking.either_matches_whole(heads, tails, place.fp),
        })
    }

    /// Counts the lanes of the item's two buckets that match it, and had not expired when the last block was copied.
    fn copies(
        &self,
        block: usize,
        buckets: Buckets<'_>,
        place: Place,
    ) -> Result<usize, SnapshotError> {
        let lanes = self.header.layout.lanes();
        let shift = self.index.shift(block);
        let mut copies = 0;
        for bucket in [place.first, place.second] {
            let words = buckets.words(bucket, lanes.words())?;
            let is_there =
                |lane: &_| shift.is_none_or(|shift| shift.aged(lanes, words, *lane).is_some());
            copies += self.matching(words, place.fp).filter(is_there).count();
        }
        Ok(copies)
    }

    /// Returns the lanes of a bucket that match an item.
    fn matching(&self, Words { heads, tails }: Words, fp: Fingerprint) -> LaneSet {
        let lanes = self.header.layout.lanes();
        match &self.matcher {
            Matcher::Fixed if lanes.is_wide() => {
                lanes.matching(heads, fp).and(lanes.matching_tail(tails, fp))
            }
            Matcher::Fixed => lanes.matching(heads, fp),
            Matcher::Narrow(shrinking, _) => shrinking.matching(heads, fp),
            Matcher::Wide(shrinking, _) => {
                lanes.matching(heads, fp).and(shrinking.matching_tail(tails, fp))
            }
        }
    }

    /// Returns the hasher of the filter.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.header.hasher
    }

    /// Returns the number of copies of items in the filter. (In a filter that forgets, some may have expired while it
    /// was saved.)
    #[must_use]
    pub fn len(&self) -> usize {
        self.info.stats.items
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
            return bytes_when_restored(layout, self.info.stats.shards, self.index.deepest);
        }
        let ticking = if layout.lanes().forgets() { size_of::<Ticking>() } else { 0 };
        ticking + Table::bytes(&layout.geometry)
    }

    /// Returns the number of bytes of memory that are this value's own. The file is in the system's cache.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of_val(self) + self.index.heap_bytes() + size_of_val(&*self.checked)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns another handle of the open file.
    pub(crate) fn reopened(&self) -> Result<File, SnapshotError> {
        self.file.try_clone().map_err(SnapshotError::io("cannot read"))
    }

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
        let mut words = Vec::new();
        let mut match_weight = 0;
        // Samples the shard of the middle hash in each of `SAMPLE` equal parts of all hashes.
        for part in 0..SAMPLE {
            let middle = Mixed((2 * part + 1) << (u64::BITS - SAMPLE.ilog2() - 1));
            let (block, _) = self.index.find(layout.roots().position(middle));
            self.read_checked(block, &mut words)?;
            let buckets = &mut words[buckets_in(&self.header.layout)];
            if let Some(shift) = self.index.shift(block) {
                shift.make_older(lanes, buckets);
            }
            let shrinking = layout.shrinking();
            let of = |bucket| shrinking.match_weight(bucket);
            match_weight += lanes.fold(buckets, of, u64::wrapping_add);
        }
        let lanes_of_a_bucket = match_weight as f64 / SAMPLE as f64 / f64::from(GROWING_BUCKETS);
        Ok(lanes_of_a_bucket * rate_of_a_lane(lanes))
    }
}

impl Matcher {
    fn new(layout: &Layout) -> Self {
        match (layout.grows, layout.lanes().is_wide()) {
            (false, _) => Matcher::Fixed,
            (true, false) => Matcher::Narrow(layout.shrinking(), layout.roots()),
            (true, true) => Matcher::Wide(layout.shrinking(), layout.roots()),
        }
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

/// What is known of all blocks from the time when the file was opened.
struct BlockIndex {
    sums: Vec<u64>,
    /// If the filter grows, the place where each block begins, and the one where the last block ends.
    starts: Vec<u64>,
    /// All places in equal parts: for each part, the [entry](PART_BLOCK) of the block in which it begins. After the
    /// last part, that of no block.
    parts: Vec<u64>,
    /// The binary logarithm of the number of places in a part.
    part: u32,
    /// If the filter forgets, the time of each block.
    times: Vec<Time>,
    deepest: u32,
    /// The time at which the last block was copied, if the filter forgets.
    time: Option<Time>,
}

/// An entry of a part of all places: the number of a block from this bit on, and the block's depth in the lower bits.
const PART_BLOCK: u32 = 6;

/// The bit of an entry whose block ends within the part.
const IS_DIVIDED: u64 = 1 << 5;

/// The number of words around the beginning of a block: the time and the checksum of the block before it, and its head.
const AROUND: usize = TIME_WORDS + 1 + BLOCK_HEAD;

/// A read of some words that takes longer comes from a disk, which is then asked for the next ones as well, so that it
/// reads several at once.
const FROM_DISK: Duration = Duration::from_micros(40);

/// The number of blocks for whose heads the disk is asked at once.
const ASKED: u64 = 1_024;

impl BlockIndex {
    /// Reads the heads and checksums of all blocks, and checks that together they match the header and the `end`.
    fn read(
        file: &File,
        mapping: Option<&Mapping>,
        layout: &Layout,
        reader: &BlockReader,
        header_sum: u64,
        end: End,
    ) -> Result<Self, SnapshotError> {
        let geometry = &layout.geometry;
        // No file system has room for more.
        let count = u32::try_from(end.blocks).map_err(|_| NoMemory(usize::MAX))? as usize;
        let mut sums = room_for(count)?;
        let mut starts = room_for(if layout.grows { count + 1 } else { 0 })?;
        let mut times = room_for(if geometry.lanes().forgets() { count } else { 0 })?;
        let mut totals = Totals::of_file(header_sum, geometry.shards());
        let mut around = Neighbours::read(file, reader, 0)?;
        // The first block for whose head the disk has not been asked.
        let mut asked = 0;
        for number in 0..end.blocks {
            let began = Instant::now();
            let next = Neighbours::read(file, reader, number + 1)?;
            if number >= asked && began.elapsed() > FROM_DISK {
                asked = (number + ASKED).min(end.blocks);
                let ahead = (number + 2..=asked).map(|number| Neighbours::at(reader, number));
                for at in ahead {
                    mapping.inspect(|mapping| mapping.will_need(at, 8 * AROUND));
                }
            }
            let (depth, items) = reader.head(number, around.head)?;
            let time = reader.time_before(number + 1, next.time_before)?;
            if layout.grows {
                starts.push(totals.coverage.place);
            }
            totals.add_read(reader, (depth, items, next.sum_before), time)?;
            sums.push(next.sum_before);
            times.extend(time);
            around = next;
        }
        let coverage = totals.finish(end, reader.offset(end.blocks))?;
        if layout.grows {
            starts.push(coverage.place);
        }
        let (deepest, time) = (coverage.deepest, coverage.time);
        let (part, parts) = parts_of(&starts, deepest)?;
        Ok(BlockIndex { sums, starts, parts, part, times, deepest, time })
    }

    /// Returns the number of a hash's block, and the place there.
    #[inline]
    fn located(
        &self,
        hash: Mixed,
        shrinking: &Shrinking,
        roots: &Roots,
        is_wide: bool,
    ) -> (usize, Place) {
        let position = roots.position(hash);
        let (block, depth) = self.find(position);
        (block, shrinking.place(hash, position.in_root, depth, is_wide))
    }

    /// Finds the block that covers this position. Returns its number and depth.
    #[inline]
    fn find(&self, Position { root, in_root }: Position) -> (usize, u32) {
        let place = root as u64 * UNITS + in_root / (u64::MAX / UNITS + 1);
        let part = (place >> self.part) as usize;
        let entry = self.parts[part];
        if entry & IS_DIVIDED != 0 {
            return self.search(part, place);
        }
        ((entry >> PART_BLOCK) as usize, (entry & (IS_DIVIDED - 1)) as u32)
    }

    /// Finds the block that covers this place among those of its part.
    #[cold]
    fn search(&self, part: usize, place: u64) -> (usize, u32) {
        let [first, last] = [part, part + 1].map(|part| (self.parts[part] >> PART_BLOCK) as usize);
        let after = self.starts[first..=last].partition_point(|start| *start <= place);
        let block = (first + after).saturating_sub(1);
        (block, depth_in(&self.starts, block))
    }

    /// Returns how much older the items of a block have become by the time of the last block, if they have.
    #[inline(always)]
    fn shift(&self, block: usize) -> Option<AgeShift> {
        if self.times.is_empty() {
            return None;
        }
        age_shift(Some(self.times[block]), self.time)
    }

    fn heap_bytes(&self) -> usize {
        let words = self.sums.len() + self.starts.len() + self.parts.len();
        size_of::<u64>() * words + size_of_val(&*self.times)
    }
}

fn room_for<T>(count: usize) -> Result<Vec<T>, NoMemory> {
    let mut list = Vec::new();
    reserve(&mut list, count)?;
    Ok(list)
}

/// Returns the depth of a block, given where each of them begins, and where the last one ends.
fn depth_in(starts: &[u64], block: usize) -> u32 {
    UNITS.ilog2() - (starts[block + 1] - starts[block]).ilog2()
}

/// Divides all places into parts that no block divides, or into four times as many parts as there are blocks if these
/// are fewer. Returns the binary logarithm of the number of places in a part, and the entries.
fn parts_of(starts: &[u64], deepest: u32) -> Result<(u32, Vec<u64>), NoMemory> {
    let Some((places, blocks)) = starts.split_last() else { return Ok((0, Vec::new())) };
    let most = 4 * blocks.len() as u64;
    let mut part = UNITS.ilog2() - deepest;
    while places >> part > most {
        part += 1;
    }
    let count = places.div_ceil(1 << part);
    let mut parts = room_for(count as usize + 1)?;
    let mut block = 0;
    for number in 0..count {
        let begin = number << part;
        while starts[block + 1] <= begin {
            block += 1;
        }
        let is_divided = starts[block + 1] < (begin + (1 << part)).min(*places);
        let bits = if is_divided { IS_DIVIDED } else { depth_in(starts, block).into() };
        parts.push((block as u64) << PART_BLOCK | bits);
    }
    parts.push((blocks.len() as u64) << PART_BLOCK);
    Ok((part, parts))
}

/// The words around the beginning of a block, or of the end of the file.
struct Neighbours {
    time_before: [u64; TIME_WORDS],
    sum_before: u64,
    head: [u64; BLOCK_HEAD],
}

impl Neighbours {
    /// The byte at which they begin.
    fn at(reader: &BlockReader, number: u64) -> u64 {
        reader.offset(number) - 8 * (TIME_WORDS as u64 + 1)
    }

    fn read(file: &File, reader: &BlockReader, number: u64) -> Result<Self, SnapshotError> {
        let mut words = [0; AROUND];
        read_at(file, &mut words, Self::at(reader, number))?;
        let [a, b, c, sum_before, head @ ..] = words.map(u64::from_le);
        Ok(Neighbours { time_before: [a, b, c], sum_before, head })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
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
            let (sums, times) = (Vec::new(), Vec::new());
            let index = BlockIndex { sums, starts, parts, part, times, deepest, time: None };
            for block in 0..blocks {
                let (start, end) = (index.starts[block], index.starts[block + 1]);
                for place in [start, start + (end - start) / 2, end - 1] {
                    let (root, first) = ((place / UNITS) as usize, (place % UNITS) << 33);
                    for in_root in [first, first | ((1 << 33) - 1)] {
                        let found = index.find(Position { root, in_root });
                        assert_eq!(found, (block, depth_in(&index.starts, block)), "{place}");
                    }
                }
            }
        }
    }
}
