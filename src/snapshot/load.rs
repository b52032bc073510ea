//! Loads a file into a filter, on all cores, straight into the table where the buckets stay.
//!
//! The length of the file tells how many shards it has, so a damaged or hostile file cannot claim more than that. If the
//! system refuses the memory for the table, the load fails before it reads a shard. Where a system promises more than it
//! has, it may kill the process as shards are read.

use crate::backend::Backend;
use crate::disk::DiskError;
use crate::error::{NoMemory, zeros};
use crate::hash::PersistentHasher;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::format::{END_WORDS, ENTRY_WORDS, End, HEADER_WORDS, MAGIC, bytes_of};
use crate::snapshot::header::{Header, is_snapshot};
use crate::snapshot::index::{Entry, ShardReader, Totals};
use crate::snapshot::journals::UnreadChanges;
use crate::snapshot::read::{Gathered, read, table_of};
use crate::stats::Stats;
use crate::sync::Mutex;
use std::fs::{self, File};
use std::io::ErrorKind;
#[cfg(not(unix))]
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::thread;

/// The maximum number of words that a thread reads at once, unless a shard has more.
const TURN: usize = (1 << 20) / size_of::<u64>();

/// All threads together read a file in at least this many rounds, unless a round has only a shard for each thread.
const MIN_ROUNDS: usize = 16;

/// The number of bytes of a file that justify another thread.
const BYTES_FOR_A_THREAD: u64 = 4 << 20;

/// All of a file but its shards.
pub(crate) struct Outline {
    pub header: Header,
    pub entries: Vec<Entry>,
    pub totals: Totals,
    pub length: u64,
    /// The checksum of the index, and so of the whole.
    #[cfg(all(unix, feature = "durable"))]
    pub sum: u64,
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
        if header.start() != 0 {
            return Err(SnapshotError::only_a_piece());
        }
        let mut end = [0; END_WORDS];
        let at = length.checked_sub(8 * END_WORDS as u64);
        let at = at.ok_or_else(|| SnapshotError::cut_off(length))?;
        read_at(file, &mut end, at)?;
        End::check(&end, length)?;
        // The words of the shards and of the index, of which each shard has as many.
        let words = Totals::room(&header, 0)?.len() as u64 - 1;
        let words = (length / 8).checked_sub(header.first() / 8 + words);
        let each = (header.layout.geometry.words() + ENTRY_WORDS) as u64;
        let shards = words.filter(|words| words.is_multiple_of(each)).map(|words| words / each);
        let shards = shards
            .filter(|_| length.is_multiple_of(8))
            .ok_or_else(|| SnapshotError::damaged(at, "no number of its shards has this length"))?;
        let shards = usize::try_from(shards).map_err(|_| NoMemory(usize::MAX))?;
        let at = header.offset(shards);
        let mut words = Totals::room(&header, shards)?;
        read_at(file, &mut words[1..], at)?;
        let mut totals = Totals::new(&header.layout.geometry, 0);
        let entries = totals.read(&header, &mut words, at)?;
        // A piece that is read as a file has to hold all of its filter. A file that does not is damaged.
        if !totals.is_complete() {
            return Err(SnapshotError::only_a_piece());
        }
        Ok(Some(Outline {
            header,
            entries,
            totals,
            length,
            #[cfg(all(unix, feature = "durable"))]
            sum: words.last().copied().unwrap_or(0),
        }))
    }
}

pub(crate) fn load<S: PersistentHasher>(file: File) -> Result<(Backend, S), SnapshotError> {
    // A model has no table that bytes can be read into.
    let outline = Outline::read(&file)?.filter(|_| !cfg!(any(loom, shuttle)));
    let Some(mut outline) = outline else { return read(&mut &file) };
    let hasher = outline.header.hasher()?;
    Ok((load_all(&file, outline)?, hasher))
}

fn load_all(file: &File, outline: Outline) -> Result<Backend, SnapshotError> {
    let Outline { header, mut entries, totals, length, .. } = outline;
    let layout = &header.layout;
    let reader = ShardReader::new(layout);
    let mut between = zeros(header.first() as usize / 8 - HEADER_WORDS)?;
    read_at(file, &mut between, 8 * HEADER_WORDS as u64)?;
    header.check_zeros(&between)?;
    let mut table = table_of(layout, entries.len())?;
    in_turns(file, length, &header, &reader, table.words_mut(), &mut entries)?;
    let shards = Gathered::new(layout, Some(table), entries)?;
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

/// Reads all shards into the words of their table, on up to as many threads as there are cores. The threads take turns
/// to read, in the order of the file. While one thread reads, the others check their shards. If any shard is damaged,
/// returns the error of the first one.
fn in_turns(
    file: &File,
    length: u64,
    header: &Header,
    reader: &ShardReader,
    words: &mut [u64],
    entries: &mut [Entry],
) -> Result<(), SnapshotError> {
    let each = header.layout.geometry.words();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let others = (length / BYTES_FOR_A_THREAD).min(cores as u64 - 1);
    let in_a_turn = (TURN / each).min(entries.len() / MIN_ROUNDS / (others as usize + 1)).max(1);
    // Where shards are empty, the table is not written, so that it takes no memory.
    let empty = reader.convert(&mut zeros(each)?).sum;
    // The shards that no thread has taken yet.
    let turns = words.chunks_mut(in_a_turn * each).zip(entries.chunks_mut(in_a_turn));
    let turns = Mutex::new((0..).step_by(in_a_turn).zip(turns));
    // The first shard of the first turn that failed, and its error.
    let failed: Mutex<Option<(usize, SnapshotError)>> = Mutex::new(None);
    let run = &|| loop {
        let mut turn = turns.lock();
        let next = turn.next().filter(|_| failed.lock().is_none());
        let Some((first, (words, entries))) = next else { return };
        let done = || {
            let are_empty = entries.iter().all(|entry| entry.sum == empty);
            let mut apart = zeros(if are_empty { words.len() } else { 0 })?;
            let words = if are_empty { &mut apart } else { words };
            read_at(file, words, header.offset(first))?;
            drop(turn);
            let shards = (first..).zip(words.chunks_exact_mut(each)).zip(entries);
            for ((number, words), entry) in shards {
                reader.read(words, entry, header.offset(number))?;
            }
            Ok(())
        };
        if let Err(error) = done() {
            let mut failed = failed.lock();
            if failed.as_ref().is_none_or(|(other, _)| first < *other) {
                *failed = Some((first, error));
            }
            return;
        }
    };
    thread::scope(|scope| {
        for _ in 0..others {
            // If the system refuses another thread, fewer threads do the work.
            if thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    failed.lock().take().map_or(Ok(()), |(_, error)| Err(error))
}

/// The description of a filter of any kind and hasher, read from the first and the last bytes of its file, without
/// loading it. The length of the file shows whether it is complete; only loading it shows whether its shards are
/// undamaged.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, SnapshotInfo, StableHash};
///
/// # let path = std::env::temp_dir().join(format!("koel-info-{}", std::process::id()));
/// let builder = ConcurrentCuckooFilter::builder().capacity(1_000);
/// let seen = builder.hasher(StableHash::random()).growing().max_bytes(1 << 30).build()?;
/// seen.insert("an item").expect("memory");
/// seen.save(&path)?;
/// let info = SnapshotInfo::read(&path)?;
/// assert_eq!((info.stats.items, info.stats.capacity, info.stats.grows), (1, 1_000, true));
/// assert_eq!((&*info.hasher, info.stats.max_bytes), ("XXH3-64", Some(1 << 30)));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// The figures of the filter. Its size is the length of the file, which is about the memory that the filter takes. In a
    /// filter that forgets, some items may have expired while it was saved. In a filter that grows, the present
    /// false-positive rate is an estimate by the size, which may be a third off while there are few shards, and the depth
    /// of the directory is 0, as it is not known.
    pub stats: Stats,
    /// The [name](crate::PersistentHasher::NAME) of the filter's hasher.
    pub hasher: String,
    /// The number of ticks for which the filter [remembers](crate::Builder::remembers) items. `None` if for ever.
    pub remembers: Option<u32>,
    /// The number of the [tick](crate::ConcurrentCuckooFilter::tick_to) in which the filter was saved, if it forgets
    /// and ticks have numbers.
    pub present_tick: Option<u64>,
    /// The number of bytes of [unread changes](crate::UnreadChanges) in the journals beside the file. The journals of a
    /// folder that this process may not list are not counted.
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

    /// Returns the length of the file that ends with these bytes, or `None` if no file does. So a program that receives
    /// a file in parts can tell when it is complete.
    #[must_use]
    pub fn length_in_end(bytes: &[u8]) -> Option<u64> {
        End::length_in(bytes)
    }

    /// Reads the description in the file at this path.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or is not a regular file; if koel has not written it, or in an
    /// unknown version of the format; or if its beginning or its end is damaged.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let unread = UnreadChanges::to_read(path);
        let info = outline_of(path).and_then(|outline| Ok(Self::describe(&outline, unread?)));
        info.map_err(|error| error.of_file(path))
    }

    /// Returns the number of the state at this path, by which its journal names it. A file that was only saved has
    /// none: then it is the checksum of the whole.
    #[cfg(all(unix, feature = "durable"))]
    pub(crate) fn state_at(path: &Path) -> Result<u64, SnapshotError> {
        let outline = outline_of(path).map_err(|error| error.of_file(path))?;
        let state = outline.header.state();
        Ok(if state == 0 { outline.sum } else { state })
    }

    pub(super) fn describe(outline: &Outline, unread: UnreadChanges) -> Self {
        let Outline { header, entries, totals, length, .. } = outline;
        let (layout, lanes) = (&header.layout, header.layout.lanes());
        let stats = layout.stats(entries.len(), totals.all_items());
        let remembers = lanes.forgets().then(|| lanes.remembers().into());
        let present_tick = totals.time.and_then(|time| time.number);
        let stats =
            Stats { size_in_bytes: usize::try_from(*length).unwrap_or(usize::MAX), ..stats };
        let (hasher, journal_bytes) = (header.hasher_name(), unread.bytes);
        SnapshotInfo { stats, hasher, remembers, present_tick, journal_bytes }
    }
}

/// Opens a file and reads its outline. Returns `None` if this is not a regular file.
pub(super) fn outlined(path: &Path) -> Result<Option<(File, Outline)>, SnapshotError> {
    // To open a pipe would wait for its other end.
    if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return Ok(None);
    }
    let file = File::open(path).map_err(SnapshotError::opening)?;
    Ok(Outline::read(&file)?.map(|outline| (file, outline)))
}

fn outline_of(path: &Path) -> Result<Outline, SnapshotError> {
    let (_, outline) = outlined(path)?.ok_or_else(DiskError::not_a_file)?;
    Ok(outline)
}
