//! Saving and loading: the face.

use crate::filter::ConcurrentCuckooFilter;
use crate::room::Room;
use crate::snapshot::error::{Reason, SnapshotError};
use crate::snapshot::read::Contents;
use crate::snapshot::write::SaveReport;
use crate::snapshot::{load, read, replace, write};
use crate::stable_hash::PersistentHasher;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

/// # Files
///
/// A filter whose hasher is a [`PersistentHasher`] can be saved and loaded: build it with a
/// [`StableHash`](crate::StableHash). (The default hasher has random keys, which are gone with the
/// process.) What a file holds is told in [`format`](mod@crate::format).
///
/// ```compile_fail,E0277
/// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
/// filter.save("seen.koel"); // its hasher is `RandomState`
/// ```
impl<S, R: Room> ConcurrentCuckooFilter<S, R> {
    /// Saves the filter to a file, while other threads go on.
    ///
    /// Every insert and removal that had returned before is in the file; of those that run meanwhile, any may be. The
    /// shards are copied one after the other (at most 1 MiB each, 64 KiB if the filter grows), and
    /// whoever wants to write to that one waits for some hundred microseconds. Lookups wait for nothing.
    ///
    /// The file is there as a whole or not at all. It is written beside its place, as
    /// `.NAME.koel-saving`, synced, and renamed, and then the folder is synced. Whatever happens, the old
    /// file is there until the new one is. So the folder has to have room for both, and it has to be one that only
    /// those may write to whom you trust. If the process is killed, the unfinished file stays, and the next save to the
    /// same path removes it. A symbolic link is followed. The new file gets the permissions of the old one, and
    /// its owner and group as far as that is allowed.
    ///
    /// One process should load and save a file: of two, the last one to save wins, and what only the other has seen is
    /// forgotten. One save to a path at a time, in all processes together: another one is refused as
    /// [`Busy`](crate::SnapshotErrorKind::Busy). (That takes file locks. Without them, as on Windows and on some file
    /// systems, both go on, and the last one to end wins; and what killed ones leave is not removed.)
    ///
    /// # Errors
    ///
    /// If the system refuses anything; then the unfinished file is removed, and the old one is
    /// what it was. Only if the very last step fails, the new file is there already:
    /// [`SnapshotError::is_in_place`] says so.
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
    /// assert_eq!(report.items(), 1);
    /// assert_eq!(report.bytes(), std::fs::metadata(&path)?.len());
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<SaveReport, SnapshotError>
    where
        S: PersistentHasher,
    {
        let path = path.as_ref();
        replace::replace(path, |file| self.write_parts(file))
            .map_err(|reason| reason.of(Some(path)))
    }

    /// Writes what [`save`](Self::save) would write to a file, to a socket or into an archive.
    ///
    /// It writes whole shards at a time, so there is no need for a `BufWriter`.
    ///
    /// # Errors
    ///
    /// If the writer fails. What it has got by then is of no use.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let filter = ConcurrentCuckooFilter::builder().capacity(100).hasher(StableHash::random()).build()?;
    /// let mut bytes = Vec::new();
    /// let report = filter.write_to(&mut bytes)?;
    /// assert_eq!(report.bytes(), bytes.len() as u64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to(&self, mut writer: impl Write) -> Result<SaveReport, SnapshotError>
    where
        S: PersistentHasher,
    {
        let report = self.write_parts(&mut writer).map_err(|reason| reason.of(None))?;
        writer.flush().map_err(|error| Reason::io("cannot write")(error).of(None))?;
        Ok(report)
    }

    fn write_parts(&self, writer: &mut impl Write) -> Result<SaveReport, Reason>
    where
        S: PersistentHasher,
    {
        write::write(self.room(), self.capacity(), self.hasher(), writer)
    }

    /// Loads a filter that was [saved](Self::save), of the type that is named: `load` does not find out by itself
    /// which hasher it had, and whether it grows.
    ///
    /// It is what it was: its size, its rate, its hasher and all that was in it; one that grows goes on
    /// growing. (Only memory that it had bought ahead is not there.) The file is read on all cores (with or
    /// without the feature `rayon`), straight to where the filter keeps it.
    ///
    /// # Errors
    ///
    /// If the file cannot be read; if it is of another kind, hasher or version; or if it is not as it was
    /// written. Nothing is believed before it was checked: no file makes this panic, or take more memory
    /// than a thirtieth more than the file is long, and some megabytes. (That is no proof
    /// against forgery: who makes a file up decides what is in it.)
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, GrowingCuckooFilter, SnapshotErrorKind, StableHash};
    ///
    /// # let folder = std::env::temp_dir().join(format!("koel-load-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("seen.koel");
    /// // The beginning of a program that goes on where it was.
    /// let seen = match GrowingCuckooFilter::<StableHash>::load(&path) {
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
        let file = File::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Reason::NotFound { error },
            _ => Reason::io("cannot open it")(error),
        });
        let contents = file.and_then(|file| load::load(file, size_of::<Self>()));
        contents.map(Self::from_contents).map_err(|reason| reason.of(Some(path)))
    }

    /// Reads what [`write_to`](Self::write_to) or [`save`](Self::save) has written, and nothing after it.
    ///
    /// How long it is is not known before, so it is collected as it comes, in pieces of up to 64 MiB, and put
    /// together when all is there, giving back each piece. That takes about twice as
    /// long as [`load`](Self::load), on one core.
    ///
    /// # Errors
    ///
    /// As with [`load`](Self::load).
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let filter = ConcurrentCuckooFilter::builder().capacity(100).hasher(StableHash::random()).build()?;
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
    pub fn read_from(mut reader: impl Read) -> Result<Self, SnapshotError>
    where
        S: PersistentHasher,
    {
        let contents = read::read(&mut reader, size_of::<Self>());
        contents.map(Self::from_contents).map_err(|reason| reason.of(None))
    }

    fn from_contents(Contents { capacity, room, hasher }: Contents<S, R>) -> Self {
        Self::from_parts(capacity, room, hasher)
    }
}
