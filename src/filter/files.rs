//! Filters in files and in pieces, and the union of two filters. [`snapshot`](crate::snapshot) and [`union`] do the
//! work.

use crate::disk::replace::Replacement;
use crate::error::{UnionError, UnionErrorKind};
use crate::filter::ConcurrentCuckooFilter;
use crate::hash::{HashedBy, PersistentHasher, hashers_agree};
use crate::snapshot::error::SnapshotError;
use crate::snapshot::header::Part;
use crate::snapshot::journals::UnreadChanges;
use crate::snapshot::load::load;
use crate::snapshot::mapped::{Mapped, SnapshotFile};
use crate::snapshot::read::{PieceLoader, read};
use crate::snapshot::write::{Piece, SaveReport, piece_of, write};
use crate::union;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{Read, Write};
use std::iter::FusedIterator;
use std::path::Path;

/// # Files
///
/// A filter can be [saved and loaded](crate::guide::files) if its hasher is a [`PersistentHasher`], such as
/// [`StableHash`](crate::StableHash). The default hasher has random keys, which are lost when the process ends:
///
/// ```compile_fail,E0277
/// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
/// filter.save("seen.koel"); // its hasher is `RandomState`
/// ```
impl<S> ConcurrentCuckooFilter<S> {
    /// Saves the filter to a file, while other threads continue to use it.
    ///
    /// The file contains every insert and removal that had returned before the call, and any of those that run during it.
    /// [Writers](crate::guide::progress) wait for the copy of one shard at a time, and lookups do not wait.
    ///
    /// A save takes effect as a whole or not at all. The new file is written beside the old one, as
    /// `.NAME.koel-saving`, synced, and renamed, and then the folder is synced. So the folder needs room for both
    /// files, and only users you trust should be able to write to it. If the process is killed, the next save to the
    /// same path removes the unfinished file. A symbolic link is followed. The new file gets the permissions of the old
    /// one, and its owner and group as far as that is allowed.
    ///
    /// Only one save to a path runs at a time, across all processes. A second one is refused as
    /// [`Busy`](crate::SnapshotErrorKind::Busy). This takes file locks: on a file system without them, a save fails
    /// before it writes anything. [Let only one process load and save a
    /// file](crate::guide::files#one-process-per-file).
    ///
    /// A file whose [journal](crate::guide::durable) has changes is not replaced
    /// ([`HasJournal`](crate::SnapshotErrorKind::HasJournal)). Do not save to the path of a `DurableFilter` that is
    /// open: before its first change, there is no journal that tells.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses any step, or if a journal has changes. The unfinished file is then
    /// removed, and the old one is unchanged. If only the last step fails, the new file is already in place, and
    /// [`SnapshotError::is_in_place`] returns `true`.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// # let path = std::env::temp_dir().join(format!("koel-save-{}", std::process::id()));
    /// let seen = ConcurrentCuckooFilter::builder()
    ///     .capacity(1_000_000)
    ///     .hasher(StableHash::random())
    ///     .build()?;
    /// seen.insert("https://a.example/").expect("room for a million");
    /// let report = seen.save(&path)?;
    /// assert_eq!(report.items, 1);
    /// assert_eq!(report.bytes, std::fs::metadata(&path)?.len());
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> Result<SaveReport, SnapshotError>
    where
        S: PersistentHasher,
    {
        let path = path.as_ref();
        let save = || {
            let mut new = Replacement::begin(path)?;
            UnreadChanges::beside(path)?.refuse(ORPHANED)?;
            let mut put = |bytes: &[u8]| Ok(new.write_all(bytes)?);
            let (report, _) = write(self.backend(), &self.hashed_by(), Part::FILE, &mut put)?;
            // Another process may have opened the file meanwhile.
            UnreadChanges::beside(path)?.refuse(ORPHANED)?;
            new.finish()?;
            Ok(report)
        };
        save().map_err(|error: SnapshotError| error.of_file(path))
    }

    /// Writes the filter to any writer, such as a socket or an archive, in the format of [`save`](Self::save). Whole
    /// shards are written at a time, so there is no need for a `BufWriter`.
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
        let cannot_write = SnapshotError::io("cannot write");
        let (report, _) = write(self.backend(), &self.hashed_by(), Part::FILE, &mut |bytes| {
            writer.write_all(bytes).map_err(&cannot_write)
        })?;
        writer.flush().map_err(&cannot_write)?;
        Ok(report)
    }

    pub(crate) fn hashed_by(&self) -> HashedBy
    where
        S: PersistentHasher,
    {
        HashedBy::new(self.hasher())
    }

    /// Loads a filter that was [saved](Self::save).
    ///
    /// Name the type of the hasher: [`SnapshotInfo`](crate::SnapshotInfo) tells which hasher the filter had. The loaded
    /// filter is identical to the saved one in its size, rate, hasher and contents, and continues to grow if it
    /// [grows](Self::grows). Memory that it had allocated in advance is not restored, and a growing filter that is more
    /// than three fifths empty [shrinks](Self::shrink).
    ///
    /// All cores read the file, with or without the feature `rayon`, into the memory of the filter. Beyond that, all
    /// threads together take a sixteenth of the file, and no more than 1 MiB each; or, if that is more, a shard each,
    /// which has 64 KiB to 2 MiB if there are several.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read; if the filter has another hasher, or the format another version; if
    /// it is damaged, or only a piece of a filter; or if a [journal](crate::guide::durable) beside it has changes
    /// ([`HasJournal`](crate::SnapshotErrorKind::HasJournal)). `DurableFilter::open` takes such changes in, and
    /// [`SnapshotFile`] reads the file alone. In a folder that this process may not list, no journal is found.
    ///
    /// Every field is validated before it is used, so no file causes a panic. The memory for a file is at most the sum
    /// of its length, a thirtieth of its length, the memory of the threads, and, if the file claims that its shards
    /// were split very often, ten megabytes. The author of a forged file decides what the filter contains.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
    ///
    /// # let path = std::env::temp_dir().join(format!("koel-load-{}", std::process::id()));
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
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load(path: impl AsRef<Path>) -> Result<Self, SnapshotError>
    where
        S: PersistentHasher,
    {
        let path = path.as_ref();
        let unread = UnreadChanges::to_read(path);
        let file = File::open(path).map_err(SnapshotError::opening);
        let whole = file.and_then(|file| unread?.refuse(LEFT_OUT).map(|()| file));
        whole.and_then(Self::of_file).map_err(|error| error.of_file(path))
    }

    /// Loads the file of a durable filter, without the changes in its journals.
    #[cfg(all(unix, feature = "durable"))]
    pub(crate) fn load_state(path: &Path) -> Result<Self, SnapshotError>
    where
        S: PersistentHasher,
    {
        let file = File::open(path).map_err(SnapshotError::opening);
        file.and_then(Self::of_file).map_err(|error| error.of_file(path))
    }

    /// Reads a filter that [`write_to`](Self::write_to) or [`save`](Self::save) has written, and nothing after it.
    ///
    /// The length of a stream is not known in advance, so this takes up to 2.5 times as long as [`load`](Self::load),
    /// on one core. It takes as much memory beside the filter as a [`PieceLoader`], and the room of a shard or two.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
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
    pub fn read_from(mut reader: impl Read) -> Result<Self, SnapshotError>
    where
        S: PersistentHasher,
    {
        let (backend, hasher) = read(&mut reader)?;
        Ok(Self::from_parts(backend, hasher).shrunk())
    }

    fn of_file(file: File) -> Result<Self, SnapshotError>
    where
        S: PersistentHasher,
    {
        let (backend, hasher) = load(file)?;
        Ok(Self::from_parts(backend, hasher).shrunk())
    }

    fn shrunk(self) -> Self {
        if 5 * (self.len() as u64) < 2 * self.backend().slots() as u64 {
            self.shrink();
        }
        self
    }
}

const LEFT_OUT: &str = ", and a load would leave them out: open it with `DurableFilter::open`, which takes them in, or \
                        read it without them, with `SnapshotFile`";
const ORPHANED: &str = ", and could not be read any more if another filter took its place: open it with \
                        `DurableFilter::open`, and close it, or save to another path";

impl<S: PersistentHasher> SnapshotFile<S> {
    /// Loads the filter of this file, as it was when the file was opened. Changes in a
    /// [journal](crate::SnapshotInfo::journal_bytes) are left out.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or is damaged, or if there is no memory for the filter.
    pub fn load(&self) -> Result<ConcurrentCuckooFilter<S>, SnapshotError> {
        let Mapped { file, path, .. } = &self.mapped;
        let file = file.try_clone().map_err(SnapshotError::io("cannot read"));
        let loaded = file.and_then(ConcurrentCuckooFilter::of_file);
        loaded.map_err(|error| error.of_file(path))
    }
}

/// # Pieces
///
/// A server that answers requests cannot keep a stream open for each dump, so it sends a filter in pieces. Each is made
/// when it is asked for by a *cursor*, checked when it arrives, and of a size that the caller chooses. Nothing but the
/// cursor is kept between two pieces, and the filter can be changed and grow meanwhile.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, StableHash};
///
/// let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
/// let filter = builder.capacity(100_000).growing().build()?;
/// filter.insert("an item").expect("memory");
///
/// let mut loader = ConcurrentCuckooFilter::<StableHash>::loader();
/// let mut cursor = Some(0);
/// while let Some(place) = cursor {
///     let piece = filter.piece_at(place, 1 << 20)?; // one machine
///     loader.push(piece.as_bytes())?; // another one
///     cursor = piece.next();
/// }
/// let again = loader.finish()?;
/// assert!(again.contains("an item"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<S: PersistentHasher> ConcurrentCuckooFilter<S> {
    /// Makes the piece that begins at this cursor: 0 for the first piece, and then the [`next`](Piece::next) of the
    /// piece before.
    ///
    /// A piece takes at most `most_bytes`, or one shard if that is more: up to 2 MiB, or 128 KiB if the filter grows.
    /// The shards are copied one after the other, as by [`save`](Self::save).
    ///
    /// All pieces from 0 to the one without a next, pushed to a [`loader`](Self::loader) in this order, are the filter
    /// with everything that was inserted before the first piece was asked for, and not removed since. What other
    /// threads insert and remove meanwhile may be in or not.
    ///
    /// A cursor is good until the shards at it are joined, when the filter [shrinks](Self::shrink), as when a whole
    /// tick begins. Then begin again at 0, with a new loader. Until then it can be used again, for example if a piece
    /// was lost. Any other filter, and this one after it was loaded again, has to be begun at 0. A cursor is less than
    /// 2^63, so it also fits a signed integer.
    ///
    /// # Errors
    ///
    /// Returns an error if this is no cursor of this filter ([`NoSuchPiece`](crate::SnapshotErrorKind::NoSuchPiece)),
    /// and if there is no memory for the piece.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, SnapshotErrorKind, StableHash};
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(100);
    /// let filter = builder.hasher(StableHash::random()).build()?;
    /// assert!(filter.piece_at(0, 1 << 20).is_ok());
    /// let error = filter.piece_at(12_345, 1 << 20).unwrap_err();
    /// assert_eq!(error.kind(), SnapshotErrorKind::NoSuchPiece);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn piece_at(&self, cursor: u64, most_bytes: usize) -> Result<Piece, SnapshotError> {
        piece_of(self.backend(), &self.hashed_by(), cursor, most_bytes)
    }

    /// Makes all pieces, one after the other, as [`piece_at`](Self::piece_at) does. After an error, there are no more.
    pub fn pieces(
        &self,
        most_bytes: usize,
    ) -> impl FusedIterator<Item = Result<Piece, SnapshotError>> + use<'_, S> {
        let mut next = Some(0);
        let piece = move || {
            let piece = self.piece_at(next?, most_bytes);
            next = piece.as_ref().ok().and_then(Piece::next);
            Some(piece)
        };
        std::iter::from_fn(piece).fuse()
    }

    /// Returns a loader for the pieces of a filter with such a hasher.
    #[must_use]
    pub fn loader() -> PieceLoader<S> {
        PieceLoader::new()
    }
}

impl<S: PersistentHasher> PieceLoader<S> {
    /// Makes the filter of all pieces. It is identical to the filter that the pieces are from. Unlike
    /// [`load`](ConcurrentCuckooFilter::load), this does not shrink a filter that is mostly empty.
    ///
    /// # Errors
    ///
    /// Returns an error if not all pieces have been pushed ([`Incomplete`](crate::SnapshotErrorKind::Incomplete)), or
    /// if there is no memory for the filter.
    pub fn finish(self) -> Result<ConcurrentCuckooFilter<S>, SnapshotError> {
        let (backend, hasher) = self.restored()?;
        Ok(ConcurrentCuckooFilter::from_parts(backend, hasher))
    }
}

/// # Union
///
/// Workers that each filled a filter of their own can merge them. Both filters have to be made alike: both of a fixed
/// size or both growing, with hashers that agree ([`StableHash::with_seed`](crate::StableHash::with_seed), or copies of
/// one hasher), for the same rate, the same number of ticks that they remember, and the same capacity. Growing filters
/// may have different capacities as long as they [began with as many shards](crate::guide::growth#filters-that-meet),
/// and have grown differently since.
///
/// The hashers are compared by their hashes of some items of each kind: integers of each size, text and bytes of
/// several lengths, a slice of integers, and a tuple. This finds other seeds and other versions. If hashers agree on
/// these items and differ on others, the filters are merged, and items of the other filter may be missing from this
/// one.
///
/// An item of both filters is there once, as if each item of the other filter had been passed to
/// [`insert_if_absent`](Self::insert_if_absent). So a union may be repeated, and changes nothing the second time. For
/// the same reason, **remove with care** afterwards: if two items, one from each filter, have the same fingerprint and
/// buckets, only one entry is left, and removing either item removes both.
///
/// The false-positive rate is then about the sum of both rates, or less: each entry adds as much as it did in its
/// filter, or more if it goes to several shards. [`stats`](Self::stats) reports the rate.
impl<S: BuildHasher> ConcurrentCuckooFilter<S> {
    /// Adds the entries of the other filter that are not here, and returns how many were added.
    ///
    /// Everything that was in the other filter when the call began is in this one when it returns, except for items
    /// that other threads remove meanwhile. Both filters may be [in use](crate::guide::progress), and two threads may
    /// merge two filters into each other. A union takes the memory of one more shard; if the filters grow, that of
    /// three, and of one more for each doubling by which this filter has outgrown the other.
    ///
    /// If the filters [forget](Self#forgetting), an item is found here as long as it would be there, or here if that is
    /// longer. Where ticks have [numbers](Self::tick_to), this filter first advances to the present tick of the other
    /// one, and the numbers give the ages of the other filter's items: after the last number, all ages are the same.
    /// Without numbers, the ticks of both at the beginning are taken for the same. Both may tick meanwhile.
    ///
    /// # Errors
    ///
    /// Returns an error if the filters were not made alike; nothing has changed then. Or if there is no room for some
    /// entries: the others were added, unless a thousand were refused, with which the union ends. Nothing is lost in
    /// either filter, and the call may be repeated when there is room.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(1_000).hasher(StableHash::with_seed(7));
    /// let builder = builder.growing();
    /// let (monday, tuesday) = (builder.clone().build()?, builder.build()?);
    /// monday.insert("https://a.example/").expect("room");
    /// tuesday.insert("https://a.example/").expect("room");
    /// tuesday.insert("https://b.example/").expect("room");
    ///
    /// assert_eq!(monday.union(&tuesday), Ok(1));
    /// assert!(monday.contains("https://b.example/") && monday.len() == 2);
    /// assert_eq!(monday.union(&tuesday), Ok(0));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[doc(alias = "merge")]
    pub fn union(&self, other: &Self) -> Result<usize, UnionError> {
        self.check_union(other)?;
        // Otherwise an item that is removed meanwhile could come back.
        if std::ptr::eq(self, other) {
            return Ok(0);
        }
        union::union_with(self.backend(), other.backend())
    }

    /// Checks that the filters were made alike, so that [`union`](Self::union) fails only for room or memory. To merge
    /// all of several filters or none, check each before the first is merged.
    ///
    /// # Errors
    ///
    /// As `union`, if they were not made alike.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash, UnionErrorKind};
    ///
    /// let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7)).growing();
    /// let seen = builder.clone().capacity(1_000).build()?;
    /// let [alike, other] = [2_000, 1_000_000].map(|capacity| builder.clone().capacity(capacity).build());
    /// assert_eq!(seen.check_union(&alike?), Ok(()));
    /// assert_eq!(seen.check_union(&other?).unwrap_err().kind(), UnionErrorKind::DifferentSize);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn check_union(&self, other: &Self) -> Result<(), UnionError> {
        // Before anything is locked: a hasher may panic.
        if !hashers_agree(self.hasher(), other.hasher()) {
            let text = "the filters have different hashers (or different seeds), so neither can tell what \
                        the other knows: build both with one StableHash::with_seed";
            return Err(UnionError::new(UnionErrorKind::DifferentHasher, text));
        }
        union::check(self.backend(), other.backend())
    }
}
