//! Loads a file into a filter, on all cores, straight into the table where the buckets stay.
//!
//! The end of the file gives the number of blocks, and the system gives the file's length. The two
//! have to agree before memory for the table is allocated, so a damaged or hostile file cannot
//! claim more than it has. If the system refuses that memory, the load fails before it reads a block. (Where a system
//! promises more than it has, it may kill the process instead, as blocks are read.)

use crate::backend::Backend;
use crate::disk::DiskError;
use crate::error::{NoMemory, reserve, zeros};
use crate::hash::PersistentHasher;
use crate::shard::raw::RawShard;
use crate::snapshot::block::{Block, BlockReader, Totals, UNITS};
use crate::snapshot::error::SnapshotError;
use crate::snapshot::format::{
    END_WORDS, End, HEADER_WORDS, MAGIC, block_bytes, buckets_in, bytes_of,
};
use crate::snapshot::header::{Header, is_snapshot};
use crate::snapshot::journals::Unread;
use crate::snapshot::read::{Gathered, read, table_of};
use crate::stats::Stats;
use crate::sync::Mutex;
use crate::table::ticking::Time;
use std::fs::File;
use std::io::ErrorKind;
#[cfg(not(unix))]
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::thread;

/// The maximum number of words that a thread reads at once, unless a block has more.
const TURN: usize = (1 << 20) / size_of::<u64>();

/// All threads together read at most this fraction of the file at once, or one block each if that is more. Their
/// buffers take as much memory, besides the filter.
const PARTS: usize = 16;

/// The number of bytes of a file that justify another thread.
const BYTES_FOR_A_THREAD: u64 = 4 << 20;

/// The header and the end of a file, which fit each other and the length of the file.
pub(crate) struct Outline {
    pub header: Header,
    pub end: End,
    /// The byte at which the end begins.
    pub end_at: u64,
    pub length: u64,
}

impl Outline {
    /// Reads the outline of a file. Returns `None` if this is not a regular file.
    pub(crate) fn read(file: &File) -> Result<Option<Self>, SnapshotError> {
        let about = file.metadata().map_err(SnapshotError::io("cannot read"))?;
        if !about.is_file() {
            return Ok(None);
        }
        let length = about.len();
        let mut words = [0; HEADER_WORDS];
        let part = (length / 8).min(HEADER_WORDS as u64) as usize;
        read_at(file, &mut words[..part], 0)?;
        if part < HEADER_WORDS && is_snapshot(&words) {
            return Err(SnapshotError::cut_off(length));
        }
        let header = Header::read(words)?;

        let (grows, roots) = (header.layout.grows, header.layout.geometry.shards() as u64);
        let end_at = length.saturating_sub(8 * END_WORDS as u64);
        let mut words = [0; END_WORDS];
        read_at(file, &mut words, end_at)?;
        let end = End::read(&mut words, end_at)?;
        let damaged = |what: &str| SnapshotError::damaged(end_at + 8, what);
        let wanted = end.blocks.checked_mul(block_bytes(&header.layout));
        let wanted =
            wanted.and_then(|bytes| bytes.checked_add(8 * (HEADER_WORDS + END_WORDS) as u64));
        let wanted = wanted.ok_or_else(|| damaged("the number of blocks is too large"))?;
        if wanted != length {
            return Err(SnapshotError::wrong_length(length, wanted));
        }
        // A piece that is read as a file has to hold all of its filter. (A file that does not is damaged.)
        let is_whole = header.start() == 0 && end.place == roots.saturating_mul(UNITS);
        if !header.is_file() && !is_whole {
            return Err(SnapshotError::only_a_piece());
        }
        if end.blocks < roots || (!grows && end.blocks > roots) {
            return Err(damaged(
                "the number of its blocks is none that a filter of this kind can have",
            ));
        }
        Ok(Some(Outline { header, end, end_at, length }))
    }
}

/// Loads a file.
pub(crate) fn load<S: PersistentHasher>(file: File) -> Result<(Backend, S), SnapshotError> {
    let Some(mut outline) = Outline::read(&file)? else { return read(&mut &file) };
    let hasher = outline.header.hasher()?;
    Ok((load_all(&file, outline)?, hasher))
}

/// Loads the blocks of a file with this outline.
fn load_all(file: &File, outline: Outline) -> Result<Backend, SnapshotError> {
    let Outline { header, end, end_at, length } = outline;
    let layout = &header.layout;
    let reader = BlockReader::new(layout);
    let count = usize::try_from(end.blocks).map_err(|_| NoMemory(usize::MAX))?;
    let table = table_of(layout, count)?;
    let blocks = in_turns(file, length, count, &reader, |number, words| {
        let block = reader.read(number as u64, words)?;
        RawShard::new(&table, number).fill(&words[buckets_in(layout)], block.items);
        Ok(block)
    })?;
    let mut totals = Totals::new(&layout.geometry, 0);
    totals.begin_part(header.sum(), true);
    blocks.iter().try_for_each(|block| totals.add_read(&reader, block))?;
    totals.finish(end, end_at)?;
    let shards = Gathered::in_table(layout, table, blocks)?;
    Ok(shards.finish(header.layout, &reader, totals.time)?)
}

/// Fills `words` with the bytes from byte `at` on.
pub(crate) fn read_at(file: &File, words: &mut [u64], at: u64) -> Result<(), SnapshotError> {
    let bytes = bytes_of(words);
    #[cfg(unix)]
    let read = std::os::unix::fs::FileExt::read_exact_at(file, bytes, at);
    #[cfg(not(unix))]
    let read = {
        // Threads share the place in the file.
        static SEEKING: Mutex<()> = Mutex::new(());
        let _alone = SEEKING.lock();
        let mut file = file;
        file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(bytes))
    };
    read.map_err(|error| match error.kind() {
        // The file was truncated after its length was read.
        ErrorKind::UnexpectedEof => SnapshotError::cut_off(at),
        _ => SnapshotError::io("cannot read")(error),
    })
}

/// Reads `count` blocks and passes each to `work`, on up to as many threads as there are cores.
///
/// The threads take turns to read, in the order of the file. While one thread reads, the others work on their blocks.
/// Returns the results in the order of the blocks. If any block fails, returns the error of the failed block with the
/// lowest number.
fn in_turns(
    file: &File,
    length: u64,
    count: usize,
    reader: &BlockReader,
    work: impl Fn(usize, &mut [u64]) -> Result<Block, SnapshotError> + Sync,
) -> Result<Vec<Block>, SnapshotError> {
    let block_words = reader.block_words();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let others = (length / BYTES_FOR_A_THREAD).min(cores as u64 - 1);
    let in_a_turn = (TURN / block_words).min(count / PARTS / (others as usize + 1)).max(1);
    let mut all = Vec::new();
    reserve(&mut all, count)?;
    all.resize(count, Block::EMPTY);
    // The blocks that no thread has taken yet, and where their results go.
    let turns = Mutex::new((0..count).step_by(in_a_turn).zip(all.chunks_mut(in_a_turn)));
    // The first block of the first turn that failed, and its error.
    let failed: Mutex<Option<(usize, SnapshotError)>> = Mutex::new(None);
    let run = &|mut buffer: Vec<u64>| loop {
        let mut turn = turns.lock();
        let next = turn.next().filter(|_| failed.lock().is_none());
        let Some((first, blocks)) = next else { return };
        let words = &mut buffer[..blocks.len() * block_words];
        let read = read_at(file, words, reader.offset(first as u64));
        drop(turn);
        let mut rest = (first..).zip(blocks).zip(words.chunks_exact_mut(block_words));
        let done = read.and_then(|()| {
            rest.try_for_each(|((number, block), words)| work(number, words).map(|it| *block = it))
        });
        if let Err(error) = done {
            let mut failed = failed.lock();
            if failed.as_ref().is_none_or(|(other, _)| first < *other) {
                *failed = Some((first, error));
            }
            return;
        }
    };
    let buffer = || zeros(in_a_turn * block_words);
    let own = buffer()?;
    thread::scope(|scope| {
        for _ in 0..others {
            // If the system refuses another thread or its buffer, fewer threads do the work.
            let Ok(buffer) = buffer() else { break };
            if thread::Builder::new().spawn_scoped(scope, move || run(buffer)).is_err() {
                break;
            }
        }
        run(own);
    });
    let failed = failed.lock().take();
    failed.map_or(Ok(all), |(_, error)| Err(error))
}

/// The description of a filter, read from the first and the last bytes of its file, without loading it.
///
/// The filter may be of any kind and have any hasher. The length of the file shows whether it is complete; only loading
/// it shows whether its shards are undamaged. If the filter forgets, its last shard, which has the present tick, is
/// read and checked, too.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, SnapshotInfo, StableHash};
///
/// # let folder = std::env::temp_dir().join(format!("koel-info-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("seen.koel");
/// let builder = ConcurrentCuckooFilter::builder().capacity(1_000);
/// let seen = builder.hasher(StableHash::random()).growing().max_bytes(1 << 30).build()?;
/// seen.insert("an item").expect("memory");
/// seen.save(&path)?;
/// let info = SnapshotInfo::read(&path)?;
/// assert_eq!((info.stats.items, info.stats.capacity, info.stats.grows), (1, 1_000, true));
/// assert_eq!((&*info.hasher, info.stats.max_bytes), ("XXH3-64", Some(1 << 30)));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// The figures of the filter. Its size is the length of the file, which is about the memory that the filter takes.
    /// (In a filter that forgets, some items may have expired while it was saved.) If it grows, its present
    /// false-positive rate is an estimate by its size, which may be a third off while it has few shards, and the depth
    /// of its directory is not known: it is 0.
    pub stats: Stats,
    /// The [name](crate::PersistentHasher::NAME) of the filter's hasher.
    pub hasher: String,
    /// The number of ticks for which the filter [remembers](crate::Builder::remembers) items. `None` if for ever.
    pub remembers: Option<u32>,
    /// The number of the [tick](crate::ConcurrentCuckooFilter::tick_to) in which the filter was saved, if it forgets
    /// and ticks have numbers.
    pub present_tick: Option<u64>,
    /// The number of bytes of changes that the file may lack, because they are in journals beside it. It is more than 0
    /// if a `DurableFilter` of this file is open, or was not closed.
    ///
    /// `DurableFilter::open` takes them in. The journals of a folder that this process may not list are not counted.
    pub journal_bytes: u64,
}

impl SnapshotInfo {
    /// The first bytes of every file, and of nothing else that koel writes.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, SnapshotInfo, StableHash};
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000);
    /// let mut file = Vec::new();
    /// builder.hasher(StableHash::random()).build()?.write_to(&mut file)?;
    /// assert!(file.starts_with(&SnapshotInfo::MAGIC));
    /// let end = &file[file.len() - SnapshotInfo::END_BYTES..];
    /// assert_eq!(SnapshotInfo::length_in_end(end), Some(file.len() as u64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const MAGIC: [u8; 8] = MAGIC;

    /// The number of bytes in the end of a file.
    pub const END_BYTES: usize = 8 * END_WORDS;

    /// Returns the length of the file that ends with these bytes, or `None` if no file does.
    ///
    /// A program that receives a file in parts can thus tell when it is complete. Only loading it shows whether it is
    /// undamaged.
    #[must_use]
    pub fn length_in_end(bytes: &[u8]) -> Option<u64> {
        End::length_in(bytes)
    }

    /// Reads the description in the file at this path.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or is not a regular file; if koel has not written it, or in an
    /// unknown version of the format; or if its beginning or its end is damaged, or the last shard of a filter that
    /// forgets.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let unread = Unread::to_read(path);
        let info = outlined(path).and_then(|(file, outline)| {
            Ok(Self::describe(&outline, last_time(&file, &outline)?, unread?))
        });
        info.map_err(|error| error.of_file(path))
    }

    /// Returns the number of the state at this path, by which its journal names it. A file that was only saved has
    /// none: then it is the checksum of the whole.
    #[cfg(all(unix, feature = "durable"))]
    pub(crate) fn state_at(path: &Path) -> Result<u64, SnapshotError> {
        let (_, outline) = outlined(path).map_err(|error| error.of_file(path))?;
        let state = outline.header.state();
        Ok(if state == 0 { outline.end.sums } else { state })
    }

    /// Describes the filter in a file with this outline, whose last block is of this time, and with these journals
    /// beside it.
    pub(super) fn describe(outline: &Outline, time: Option<Time>, unread: Unread) -> Self {
        let Outline { header, end, length, .. } = outline;
        let (layout, lanes) = (&header.layout, header.layout.lanes());
        let stats = layout.stats(end.blocks as usize, end.all_items());
        let remembers = lanes.forgets().then(|| lanes.remembers().into());
        let present_tick = time.and_then(|time| time.number);
        let stats =
            Stats { size_in_bytes: usize::try_from(*length).unwrap_or(usize::MAX), ..stats };
        let (hasher, journal_bytes) = (header.hasher_name(), unread.bytes);
        SnapshotInfo { stats, hasher, remembers, present_tick, journal_bytes }
    }
}

/// Opens a file, and reads its outline.
fn outlined(path: &Path) -> Result<(File, Outline), SnapshotError> {
    let file = File::open(path).map_err(SnapshotError::opening)?;
    let outline = Outline::read(&file)?;
    Ok((file, outline.ok_or_else(DiskError::not_a_file)?))
}

/// Returns the time of the last block, after checking the block as a whole. `None` if the filter does not forget.
fn last_time(file: &File, outline: &Outline) -> Result<Option<Time>, SnapshotError> {
    let Outline { header, end, .. } = outline;
    if !header.layout.lanes().forgets() {
        return Ok(None);
    }
    let (reader, last) = (BlockReader::new(&header.layout), end.blocks - 1);
    let mut words = zeros(reader.block_words())?;
    read_at(file, &mut words, reader.offset(last))?;
    Ok(reader.read(last, &mut words)?.time)
}
