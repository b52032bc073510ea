//! Lookups in a file that is not loaded.
//!
//! Before a lookup reads the mapping, its shard has been read as a whole and compared with the index: a bit for each shard
//! says so. A shard is read with a system call, not through the mapping: one call reads all of it from the disk, and an
//! error of the disk is an error here.

#[cfg(all(unix, not(any(loom, shuttle))))]
use crate::disk::mapping::Mapping;
use crate::error::{NoMemory, reserve, zeros};
use crate::hash::{Key, PersistentHasher, StableHash};
use crate::layout::bucket::{Fingerprint, Words};
use crate::layout::geometry::{Bucket, Mixed, Place};
use crate::layout::roots::Roots;
use crate::layout::shrinking::Shrinking;
use crate::layout::sizing::Layout;
use crate::layout::stamps::AgeShift;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::header::Header;
use crate::snapshot::index::{Entry, ShardReader, Totals, age_shift};
use crate::snapshot::journals::UnreadChanges;
use crate::snapshot::load::{Outline, SnapshotInfo, outlined, read_at};
use crate::sync::{AtomicU64, Ordering::Relaxed};
use crate::table::memory::prefetch;
use crate::table::ticking::Time;
use arrayvec::ArrayVec;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic;

/// A filter in its file, to be read without loading it. Many processes share one copy: the system's cache of the file.
///
/// Opening a file reads its beginning, its index and its end. It takes some 100 bytes of memory for each shard, which
/// has 64 KiB or more. The first lookup that leads to a shard reads and checks all of it. Later lookups read two words,
/// which are mapped into memory. All threads may use it at once, and the filter may be of either kind. Other systems
/// than Unix of 64 bits map no file: there, opening it reads all of it. To change the filter, or for faster lookups,
/// [load](Self::load) it.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, SnapshotFile, StableHash};
///
/// # let path = std::env::temp_dir().join(format!("koel-lookup-{}", std::process::id()));
/// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).hasher(StableHash::random());
/// let seen = builder.growing().build()?;
/// seen.insert("an item").expect("memory");
/// seen.save(&path)?;
/// let file = SnapshotFile::open(&path)?;
/// assert!(file.contains("an item")? && !file.contains("another")?);
/// assert_eq!(file.info().stats.items, 1);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # What it shows
///
/// The filter as it was saved, for as long as this value lives. A later [save](crate::ConcurrentCuckooFilter::save), or
/// a checkpoint of a `DurableFilter`, puts a new file in the place of the old one: open it again to see that. Nothing
/// else becomes visible: not the [unread changes](crate::UnreadChanges) in a journal, and no passing of time. In a
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
    header: Header,
    info: SnapshotInfo,
    index: Index,
    reader: ShardReader,
    /// A bit for each shard that has been read and validated.
    ///
    /// `Relaxed`: the bit publishes nothing that a thread has written, only what it has seen of the file.
    checked: Box<[AtomicU64]>,
}

/// The number of lookups of a batch whose memory is fetched at the same time.
const AHEAD: usize = 32;

impl SnapshotFile {
    /// Opens a file that was [saved](crate::ConcurrentCuckooFilter::save), of a filter with a [`StableHash`]. Checks
    /// everything about the file except the contents of its shards: no lookup answers from a damaged shard, since each
    /// is checked when a lookup first leads to it, or by [`check`](Self::check).
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or mapped, or is not a regular file; if it has another hasher or
    /// another version; or if it is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        Self::open_hashed_by(path)
    }
}

impl<S: PersistentHasher> SnapshotFile<S> {
    /// Opens a file of a filter with another hasher, as [`open`](SnapshotFile::open) does:
    /// `SnapshotFile::<MyHasher>::open_hashed_by(path)`.
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
        let (shard, place) = self.located(item);
        self.mapped.check_once(shard)?;
        Ok(self.mapped.has(shard, place))
    }

    /// Looks up an item if that takes no system call: returns `None` if its shard has to be read first. An event loop
    /// answers such an item in another thread, by [`contains`](Self::contains).
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, SnapshotFile, StableHash};
    ///
    /// # let path = std::env::temp_dir().join(format!("koel-soon-{}", std::process::id()));
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).hasher(StableHash::random());
    /// builder.build()?.save(&path)?;
    /// let file = SnapshotFile::open(&path)?;
    /// assert_eq!(file.contains_at_once("an item"), None);
    /// assert!(!file.contains("an item")?);
    /// assert_eq!(file.contains_at_once("an item"), Some(false));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn contains_at_once<K: Key + ?Sized>(&self, item: &K) -> Option<bool> {
        let (shard, place) = self.located(item);
        self.mapped.is_checked(shard).then(|| self.mapped.has(shard, place))
    }

    /// Returns the number of copies of the item, like [`count`](crate::ConcurrentCuckooFilter::count). Fails as
    /// [`contains`](Self::contains).
    #[inline]
    pub fn count<K: Key + ?Sized>(&self, item: &K) -> Result<usize, SnapshotError> {
        let (shard, place) = self.located(item);
        self.mapped.check_once(shard)?;
        Ok(self.mapped.copies(shard, place))
    }

    /// Looks up each item, as [`contains`](Self::contains) does, but faster: the memory of many is fetched at once.
    pub fn contains_many<K: Key>(&self, items: &[K]) -> Result<Vec<bool>, SnapshotError> {
        let mut answers = Vec::with_capacity(items.len());
        let mut words = Vec::new();
        for items in items.chunks(AHEAD) {
            let places = items.iter().map(|item| {
                let (shard, place) = self.located(item);
                self.mapped.request(shard, place);
                (shard, place)
            });
            let places: ArrayVec<(usize, Place), AHEAD> = places.collect();
            for (shard, place) in places {
                if !self.mapped.is_checked(shard) {
                    self.mapped.check_shard(shard, &mut words)?;
                }
                answers.push(self.mapped.has(shard, place));
            }
        }
        Ok(answers)
    }

    /// Checks all shards that no lookup has led to yet, which takes about as long as to
    /// [load](crate::ConcurrentCuckooFilter::load) the filter on one core. From then on, no lookup fails, unless the
    /// file is changed in place, or the system cannot read it.
    ///
    /// # Errors
    ///
    /// Returns an error if a shard cannot be read, or is damaged.
    pub fn check(&self) -> Result<(), SnapshotError> {
        self.mapped.check_all()
    }

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
    fn outlined(path: &Path) -> Result<(File, Outline, UnreadChanges), SnapshotError> {
        let unread = UnreadChanges::to_read(path);
        let (file, outline) = outlined(path)?.ok_or_else(SnapshotError::no_file_to_look_up)?;
        Ok((file, outline, unread?))
    }

    /// Maps the file with this outline.
    fn open(
        path: &Path,
        file: File,
        outline: Outline,
        unread: UnreadChanges,
    ) -> Result<Self, SnapshotError> {
        let mapping = Mapping::of_file(&file, outline.length);
        let mapping =
            mapping.map_err(SnapshotError::io("cannot map it into memory, or read it"))?;
        let info = SnapshotInfo::describe(&outline, unread);
        let Outline { header, entries, totals, .. } = outline;
        let index = Index::new(&header.layout, entries, &totals)?;
        let reader = ShardReader::new(&header.layout);
        let checked = (0..info.stats.shards.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let path = path.to_path_buf();
        Ok(Mapped { path, file, mapping, header, info, index, reader, checked })
    }

    #[inline]
    fn located(&self, hash: u64) -> (usize, Place) {
        let Some((shrinking, roots)) = &self.index.growth else {
            return self.header.layout.geometry.locate(hash);
        };
        let hash = Mixed::of(hash);
        let position = roots.position(hash);
        let (shard, depth) = self.index.directory[position.range(self.index.deepest)];
        let place = |is_wide| shrinking.place(hash, position.in_root, depth, is_wide);
        // Two calls, each with a constant.
        (
            shard as usize,
            if self.header.layout.lanes().is_wide() { place(true) } else { place(false) },
        )
    }

    #[inline]
    fn check_once(&self, shard: usize) -> Result<(), SnapshotError> {
        if self.is_checked(shard) { Ok(()) } else { self.check_shard(shard, &mut Vec::new()) }
    }

    fn check_all(&self) -> Result<(), SnapshotError> {
        let mut words = Vec::new();
        let mut unchecked = (0..self.info.stats.shards).filter(|shard| !self.is_checked(*shard));
        unchecked.try_for_each(|shard| self.check_shard(shard, &mut words))
    }

    #[inline]
    fn is_checked(&self, shard: usize) -> bool {
        self.checked[shard / 64].load(Relaxed) >> (shard % 64) & 1 == 1
    }

    /// Reads a shard and validates it. `words` are room for it.
    #[cold]
    fn check_shard(&self, shard: usize, words: &mut Vec<u64>) -> Result<(), SnapshotError> {
        let at = self.header.offset(shard);
        let mut check = || {
            if words.is_empty() {
                *words = zeros(self.header.layout.geometry.words())?;
            }
            read_at(&self.file, words, at)?;
            self.reader.read(words, &self.index.entries[shard], at)
        };
        check().map_err(|error: SnapshotError| error.of_file(&self.path))?;
        self.checked[shard / 64].fetch_or(1 << (shard % 64), Relaxed);
        Ok(())
    }

    #[inline(always)]
    fn buckets(&self, shard: usize, place: Place) -> [usize; 2] {
        let first = self.header.offset(shard) as usize / size_of::<u64>();
        let each = self.header.layout.lanes().words();
        [place.first, place.second].map(|Bucket(bucket)| first + bucket as usize * each)
    }

    /// Requests the memory of an item's buckets, or its shard from the disk, which reads several at once.
    #[inline]
    fn request(&self, shard: usize, place: Place) {
        if self.is_checked(shard) {
            for word in self.buckets(shard, place) {
                prefetch(&self.mapping.words()[word]);
            }
        } else {
            let words = self.header.layout.geometry.words();
            self.mapping.will_need(self.header.offset(shard), words * size_of::<u64>());
        }
    }

    /// Returns the words of the item's two buckets.
    #[inline(always)]
    fn both(&self, shard: usize, place: Place) -> [Words; 2] {
        let (words, is_wide) = (self.mapping.words(), self.header.layout.lanes().is_wide());
        let load = |word: usize| u64::from_le(words[word].load(atomic::Ordering::Relaxed));
        self.buckets(shard, place).map(|word| Words {
            heads: load(word),
            tails: if is_wide { load(word + 1) } else { 0 },
        })
    }

    /// Whether [`copies`](Self::copies) is more than zero, in fewer instructions if no item of the shard is older now.
    #[inline(always)]
    fn has(&self, shard: usize, place: Place) -> bool {
        if self.index.shift(shard).is_some() {
            return self.copies(shard, place) > 0;
        }
        self.matches(self.both(shard, place), place.fp)
    }

    /// Whether a lane of two buckets matches an item.
    #[inline(always)]
    fn matches(&self, both: [Words; 2], fp: Fingerprint) -> bool {
        let lanes = self.header.layout.lanes();
        let (heads, tails) = (both.map(|words| words.heads), both.map(|words| words.tails));
        match &self.index.growth {
            None if lanes.is_wide() => lanes.either_matches_whole(heads, tails, fp),
            None => lanes.either_matches(heads, fp),
            Some((shrinking, _)) if lanes.is_wide() => {
                shrinking.either_matches_whole(heads, tails, fp)
            }
            Some((shrinking, _)) => shrinking.either_matches(heads, fp),
        }
    }

    /// Counts the lanes of the item's two buckets that match it, and had not expired when the last shard was copied.
    fn copies(&self, shard: usize, place: Place) -> usize {
        let (lanes, shift) = (self.header.layout.lanes(), self.index.shift(shard));
        let in_bucket = |words: Words| {
            let taken = lanes.taken(words.heads);
            let is_copy = |lane: &_| {
                let alone = lanes.only(words, taken.only(*lane));
                self.matches([alone, Words::default()], place.fp)
                    && shift.is_none_or(|shift| shift.aged(lanes, words, *lane).is_some())
            };
            taken.filter(is_copy).count()
        };
        self.both(shard, place).map(in_bucket).iter().sum()
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

/// What is known of all shards since the file was opened.
struct Index {
    /// If the filter grows, how its items find their places, and how its lanes are compared with an item.
    growth: Option<(Shrinking, Roots)>,
    entries: Vec<Entry>,
    /// If the filter grows, the shard of each range of [positions](crate::layout::roots::Position) at the depth of the
    /// deepest shard, and the depth of that range's shard.
    directory: Vec<(u32, u32)>,
    deepest: u32,
    /// The time of the last shard, if the filter forgets.
    time: Option<Time>,
}

impl Index {
    fn new(layout: &Layout, entries: Vec<Entry>, totals: &Totals) -> Result<Self, NoMemory> {
        let &Totals { deepest, time, .. } = totals;
        let growth = layout.grows.then(|| (layout.shrinking(), layout.roots()));
        let mut directory = Vec::new();
        if layout.grows {
            // The shards are balanced, so these are not many more.
            reserve(&mut directory, layout.geometry.shards() << deepest)?;
            for (shard, &Entry { depth, .. }) in (0..).zip(&entries) {
                directory.extend(std::iter::repeat_n((shard, depth), 1 << (deepest - depth)));
            }
        }
        Ok(Index { growth, entries, directory, deepest, time })
    }

    /// Returns how much older the items of a shard have become by the time of the last shard.
    #[inline(always)]
    fn shift(&self, shard: usize) -> Option<AgeShift> {
        self.time.and_then(|time| age_shift(self.entries[shard].time, Some(time)))
    }

    fn heap_bytes(&self) -> usize {
        size_of_val(&*self.entries) + size_of_val(&*self.directory)
    }
}
