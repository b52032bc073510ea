//! Saving and loading filters. The work is done in [`snapshot`](crate::snapshot).

use crate::filter::ConcurrentCuckooFilter;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::header::Part;
use crate::snapshot::load::load;
use crate::snapshot::lookup::SnapshotFile;
use crate::snapshot::read::{ReadFilter, read};
use crate::snapshot::replace::replace;
use crate::snapshot::write::{SaveReport, write};
use crate::stable_hash::PersistentHasher;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// # Files
///
/// A filter can be saved and loaded if its hasher is a [`PersistentHasher`]. Build it with a
/// [`StableHash`](crate::StableHash), because the default hasher has random keys, which are lost
/// when the process ends. [`format`](mod@crate::format) describes the files.
///
/// ```compile_fail,E0277
/// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
/// filter.save("seen.koel"); // its hasher is `RandomState`
/// ```
impl<S> ConcurrentCuckooFilter<S> {
    /// Saves the filter to a file, while other threads continue to use it.
    ///
    /// The file contains every insert and removal that had returned before the call, and any of
    /// those that run during it. The shards are copied one after the other (at most 2 MiB each, or
    /// 128 KiB if the filter grows). Writers to the shard that is being copied wait for some hundred
    /// microseconds. Lookups do not wait.
    ///
    /// A save takes effect as a whole or not at all. The new file is written beside the old one, as
    /// `.NAME.koel-saving`, synced, and renamed, and then the folder is synced. Whatever happens,
    /// the old file stays until the new one is in place. So the folder needs room for both files,
    /// and only users you trust should be able to write to it. If the process is killed, the
    /// unfinished file stays behind, and the next save to the same path removes it. A symbolic link
    /// is followed. The new file gets the permissions of the old one, and its owner and group as
    /// far as that is allowed.
    ///
    /// Let only one process load and save a file. If two do, the last one to save wins, and what
    /// only the other one has seen is lost. Only one save to a path runs at a time, across all
    /// processes. A second one is refused as [`Busy`](crate::SnapshotErrorKind::Busy). (This takes
    /// file locks. Without them, as on Windows and on some file systems, both saves proceed, the
    /// last one to finish wins, and the unfinished files of killed processes are not removed.)
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses any step. The unfinished file is then removed, and
    /// the old one is unchanged. Only if the very last step fails is the new file already in place,
    /// and [`SnapshotError::is_in_place`] returns `true`.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// # let folder = std::env::temp_dir().join(format!("koel-save-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("seen.koel");
    /// let seen = ConcurrentCuckooFilter::builder()
    ///     .capacity(1_000_000)
    ///     .hasher(StableHash::random())
    ///     .build()?;
    /// seen.insert("https://a.example/").expect("room for a million");
    /// let report = seen.save(&path)?;
    /// assert_eq!(report.items, 1);
    /// assert_eq!(report.bytes, std::fs::metadata(&path)?.len());
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<SaveReport, SnapshotError>
    where
        S: PersistentHasher,
    {
        let path = path.as_ref();
        replace(path, |file| self.write_parts(file)).map_err(|error| error.of_file(path))
    }

    /// Writes the filter to any writer, such as a socket or an archive, in the format of
    /// [`save`](Self::save).
    ///
    /// It writes whole shards at a time, so there is no need for a `BufWriter`.
    ///
    /// # Errors
    ///
    /// Returns an error if the writer fails. What was written up to then is of no use.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(100);
    /// let filter = builder.hasher(StableHash::random()).build()?;
    /// let mut bytes = Vec::new();
    /// let report = filter.write_to(&mut bytes)?;
    /// assert_eq!(report.bytes, bytes.len() as u64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to(&self, mut writer: impl Write) -> Result<SaveReport, SnapshotError>
    where
        S: PersistentHasher,
    {
        let report = self.write_parts(&mut writer)?;
        writer.flush().map_err(SnapshotError::io("cannot write"))?;
        Ok(report)
    }

    fn write_parts(&self, writer: &mut impl Write) -> Result<SaveReport, SnapshotError>
    where
        S: PersistentHasher,
    {
        let write_all =
            |bytes: &[u8]| writer.write_all(bytes).map_err(SnapshotError::io("cannot write"));
        let about = (self.capacity(), self.hasher());
        write(self.backend(), about, Part::FILE, &(), write_all).map(|(end, _)| end.into())
    }

    /// Loads a filter that was [saved](Self::save).
    ///
    /// The type of the hasher has to be named: `load` does not detect which one the filter had.
    /// ([`SnapshotInfo`](crate::SnapshotInfo) tells what a file has.) The loaded filter is identical to the saved one
    /// in its size, rate, hasher and contents, and one that [grows](Self::grows) continues to grow. (Only memory that
    /// it had allocated in advance is not restored, and one that is more than three fifths empty
    /// [shrinks](Self::shrink).) The file is read on all cores, with or without the feature
    /// `rayon`, directly into the memory of the filter. Beyond the filter, all threads together take a sixteenth of the
    /// file, and no more than 1 MiB each; or, if that is more, a shard each, which has 64 KiB to 2 MiB if there are
    /// several.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read; if the filter has another hasher, or the format another version; or
    /// if it is damaged, or only a piece of a filter. Every field is validated before it is used: no file causes a
    /// panic, or takes more memory than its own length, a thirtieth of that, what the threads take, and ten megabytes
    /// if it claims that its shards were split very often. (This does not protect against forgery: the author of a
    /// forged file decides what the filter contains.)
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
    ///
    /// # let folder = std::env::temp_dir().join(format!("koel-load-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("seen.koel");
    /// // The beginning of a program that goes on where it was.
    /// let seen = match ConcurrentCuckooFilter::<StableHash>::load(&path) {
    ///     Ok(seen) => seen,
    ///     Err(error) if error.kind() == SnapshotErrorKind::NotFound => {
    ///         println!("{error}: beginning from nothing");
    ///         let builder = ConcurrentCuckooFilter::builder().capacity(100_000);
    ///         builder.hasher(StableHash::random()).growing().build()?
    ///     }
    ///     Err(error) => return Err(error.into()), // do not forget what was seen because of it
    /// };
    /// assert!(seen.is_empty());
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load(path: impl AsRef<Path>) -> Result<Self, SnapshotError>
    where
        S: PersistentHasher,
    {
        let path = path.as_ref();
        let file = File::open(path).map_err(SnapshotError::opening);
        let filter = file.and_then(Self::of_file);
        filter.map_err(|error| error.of_file(path))
    }

    /// Reads a filter that [`write_to`](Self::write_to) or [`save`](Self::save) has written, and
    /// nothing after it.
    ///
    /// The length of a stream is not known in advance. So the shards of a growing filter go into tables that grow with
    /// it, and those of a fixed one wait until half of them have come. This takes up to 2.5 times as long as
    /// [`load`](Self::load), on one core. Beyond the filter, it allocates a shard, and a 32nd of a growing filter (up
    /// to 2 MiB more if it has 16 MiB or more); or two shards and half of a fixed one.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`load`](Self::load).
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(100);
    /// let filter = builder.hasher(StableHash::random()).build()?;
    /// filter.insert("an item").expect("room for a hundred");
    /// let mut archive = Vec::new();
    /// filter.write_to(&mut archive)?;
    /// archive.extend(b"and more");
    ///
    /// let mut reader = &archive[..];
    /// let again = ConcurrentCuckooFilter::<StableHash>::read_from(&mut reader)?;
    /// assert!(again.contains("an item"));
    /// assert_eq!(reader, b"and more");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_from(reader: impl Read) -> Result<Self, SnapshotError>
    where
        S: PersistentHasher,
    {
        let filter = read(reader, Self::OWN_BYTES).and_then(Self::of_read);
        filter.map(Self::shrunk)
    }

    /// What a filter takes without its heap.
    pub(crate) const OWN_BYTES: usize = size_of::<Self>();

    pub(crate) fn of_read(read: ReadFilter<S>) -> Result<Self, SnapshotError> {
        let (capacity, backend, hasher) = read.into_backend()?;
        Ok(Self::from_parts(capacity, backend, hasher))
    }

    fn of_file(file: File) -> Result<Self, SnapshotError>
    where
        S: PersistentHasher,
    {
        load(file, Self::OWN_BYTES).and_then(Self::of_read).map(Self::shrunk)
    }

    /// Gives memory back if the filter has less in it than after any split. No other thread has it, so nobody waits.
    fn shrunk(self) -> Self {
        if 5 * (self.len() as u64) < 2 * self.backend().slots() as u64 {
            self.shrink();
        }
        self
    }
}

impl<S: PersistentHasher> SnapshotFile<S> {
    /// Loads the filter of this file, as it was when the file was opened.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`ConcurrentCuckooFilter::load`].
    pub fn load(&self) -> Result<ConcurrentCuckooFilter<S>, SnapshotError> {
        let loaded = self.reopened().and_then(ConcurrentCuckooFilter::of_file);
        loaded.map_err(|error| error.of_file(self.path()))
    }
}
