//! The description of a filter in its file.

use crate::backend::exchange::Plan;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::file::load::{check_whole, end_of, header_words, read_at};
use crate::snapshot::part::format::{END_WORDS, End, HEADER_WORDS, MAGIC, block_bytes};
use crate::snapshot::part::header::{Header, read_anonymous};
use crate::snapshot::part::time::{TIME_WORDS, time_in};
use std::fs::File;
use std::path::Path;

/// The description of a filter, read from the first and the last bytes of its file, without loading it.
///
/// The filter may be of any kind and have any hasher. The length of the file shows whether it is complete; only loading
/// it shows whether its shards are undamaged.
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
/// assert_eq!((info.items, info.capacity, info.grows), (1, 1_000, true));
/// assert_eq!((&*info.hasher, info.max_bytes), ("XXH3-64", Some(1 << 30)));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// Whether the filter [grows](crate::ConcurrentCuckooFilter::grows).
    pub grows: bool,
    /// The number of copies of items. (In a filter that forgets, some may have expired while it was saved.)
    pub items: usize,
    /// The capacity that the filter was built for, or began with if it grows.
    pub capacity: usize,
    /// The [name](crate::PersistentHasher::NAME) of the filter's hasher.
    pub hasher: String,
    /// The length of the file in bytes, which is about the memory that the filter takes.
    pub bytes: u64,
    /// The number of fingerprints that the table would hold if every slot were taken.
    pub slots: usize,
    /// The number of bits in a fingerprint.
    pub fingerprint_bits: u32,
    /// The number of shards.
    pub shards: usize,
    /// The false-positive rate of the filter at its capacity, or after its expected growth.
    pub false_positive_rate_at_capacity: f64,
    /// The limit of the filter's memory, if it grows and has one.
    pub max_bytes: Option<usize>,
    /// The number of shard splits, which is 0 for a fixed filter.
    pub splits: usize,
    /// The size of the filter relative to its first size, which is 1 for a fixed filter.
    pub growth: f64,
    /// The growth that the filter was built for, which is 1 for a fixed filter.
    pub expected_growth: f64,
    /// The number of ticks for which the filter [remembers](crate::Builder::remembers) items. `None` if for ever.
    pub remembers: Option<u32>,
    /// The number of the [tick](crate::ConcurrentCuckooFilter::tick_to) in which the filter was saved, if it forgets
    /// and ticks have numbers.
    pub present_tick: Option<u64>,
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
    /// unknown version of the format; or if its beginning or its end is damaged.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(SnapshotError::opening);
        let info = file.and_then(|file| Self::of(&file).map(|(info, _)| info));
        info.map_err(|error| error.of_file(path))
    }

    /// What identifies the file as the state of a journal.
    #[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
    pub(crate) fn end(path: &Path) -> Result<End, SnapshotError> {
        let file = File::open(path).map_err(SnapshotError::opening);
        let end = file.and_then(|file| Self::of(&file).map(|(_, end)| end));
        end.map_err(|error| error.of_file(path))
    }

    /// Reads the description in an open file. Also returns the file's end.
    pub(super) fn of(file: &File) -> Result<(Self, End), SnapshotError> {
        let about = file.metadata().map_err(SnapshotError::io("cannot read"))?;
        if !about.is_file() {
            return Err(SnapshotError::not_a_file());
        }
        let length = about.len();
        let (header, _) = read_anonymous(&mut header_words(file, length)?, 0)?;
        let (end, at) = end_of(file, length, header.plan.grows())?;
        check_whole(&header, end)?;
        let Header { plan, capacity, hasher, .. } = header;
        let roots = plan.geometry().shards() as u64;
        let has_blocks = match plan {
            Plan::Growing(_) => end.blocks >= roots,
            Plan::Fixed(_) => end.blocks == roots,
        };
        if !has_blocks {
            let what = "no such filter has so many blocks";
            return Err(SnapshotError::damaged(at + 8, what));
        }
        let around = 8 * (HEADER_WORDS + END_WORDS) as u64;
        let wanted = end.blocks.saturating_mul(block_bytes(&plan)).saturating_add(around);
        if wanted != length {
            return Err(SnapshotError::wrong_length(length, wanted));
        }
        let (geometry, shards) = (plan.geometry(), end.blocks as usize);
        let (lanes, roots) = (geometry.lanes(), geometry.shards());
        let info = SnapshotInfo {
            grows: plan.grows(),
            items: end.all_items(),
            capacity,
            hasher,
            bytes: length,
            slots: shards * geometry.buckets() as usize * lanes.slots(),
            fingerprint_bits: lanes.fingerprint_bits(),
            shards,
            false_positive_rate_at_capacity: plan.rate_at_capacity(capacity),
            max_bytes: plan.max_bytes(),
            splits: shards - roots,
            growth: shards as f64 / roots as f64,
            expected_growth: plan.expected_growth(),
            remembers: lanes.forgets().then(|| lanes.remembers().into()),
            present_tick: number_in(file, &plan, length)?,
        };
        Ok((info, end))
    }
}

/// Returns the number of the last block's tick, in a file of this length.
fn number_in(file: &File, plan: &Plan, length: u64) -> Result<Option<u64>, SnapshotError> {
    let lanes = plan.geometry().lanes();
    if !lanes.forgets() {
        return Ok(None);
    }
    let mut words = [0; TIME_WORDS];
    let at = length - 8 * (TIME_WORDS + 1 + END_WORDS) as u64;
    read_at(file, &mut words, at)?;
    let time = time_in(lanes, words.map(u64::from_le));
    let time = time.map_err(|_| SnapshotError::damaged(at, "the block cannot be of this time"))?;
    Ok(time.number)
}
