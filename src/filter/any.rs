//! Loading a filter of either kind.

use crate::filter::ConcurrentCuckooFilter;
use crate::filter::growing::GrowingCuckooFilter;
use crate::room::parts::Plan;
use crate::snapshot::error::{Reason, SnapshotError};
use crate::snapshot::file::load::load;
use crate::snapshot::file::lookup::SnapshotFile;
use crate::snapshot::read::{ReadFilter, Wanted, read};
use crate::stable_hash::PersistentHasher;
use ahash::RandomState;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A loaded filter that may be of either kind.
///
/// ```
/// use koel::{AnyCuckooFilter, ConcurrentCuckooFilter, StableHash};
///
/// let builder = ConcurrentCuckooFilter::builder().capacity(100).hasher(StableHash::random());
/// let mut file = Vec::new();
/// builder.growing().build()?.write_to(&mut file)?;
/// match AnyCuckooFilter::<StableHash>::read_from(file.as_slice())? {
///     AnyCuckooFilter::Fixed(_) => unreachable!("the filter in the file grows"),
///     AnyCuckooFilter::Growing(seen) => seen.insert("an item").expect("memory"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "the locks of checkers are large")]
pub enum AnyCuckooFilter<S = RandomState> {
    /// A filter of fixed size.
    Fixed(ConcurrentCuckooFilter<S>),
    /// A filter that grows.
    Growing(GrowingCuckooFilter<S>),
}

impl<S: PersistentHasher> AnyCuckooFilter<S> {
    /// Loads a filter of either kind, as [`ConcurrentCuckooFilter::load`] loads one.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases, except that the kind is always right.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(Reason::opening);
        file.and_then(Self::of_file).map_err(|reason| reason.of(Some(path)))
    }

    /// Reads a filter of either kind, as [`ConcurrentCuckooFilter::read_from`] reads one.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases, except that the kind is always right.
    pub fn read_from(reader: impl Read) -> Result<Self, SnapshotError> {
        let filter = read(reader, Self::WANTED).and_then(Self::of_read);
        filter.map_err(|reason| reason.of(None))
    }

    pub(crate) const WANTED: Wanted =
        Wanted { grows: None, own_bytes: size_of::<GrowingCuckooFilter<S>>() };

    pub(crate) fn of_read(read: ReadFilter<S>) -> Result<Self, Reason> {
        match read.header.plan {
            Plan::Fixed(_) => ConcurrentCuckooFilter::of_read(read).map(Self::Fixed),
            Plan::Growing(_) => GrowingCuckooFilter::of_read(read).map(Self::Growing),
        }
    }

    fn of_file(file: File) -> Result<Self, Reason> {
        load(file, Self::WANTED).and_then(Self::of_read)
    }
}

impl<S: PersistentHasher> SnapshotFile<S> {
    /// Loads the filter of this file, as it was when the file was opened.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`AnyCuckooFilter::load`].
    pub fn load(&self) -> Result<AnyCuckooFilter<S>, SnapshotError> {
        let loaded = self.reopened().and_then(AnyCuckooFilter::of_file);
        loaded.map_err(|reason| reason.of(Some(self.path())))
    }
}
