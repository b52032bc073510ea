//! Errors: that of running out of room, and the one that has a kind. The text of an error is written where it happens.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The error returned when there is no room for an item. Nothing was changed.
///
/// A filter holds its [`capacity`](crate::ConcurrentCuckooFilter::capacity) of distinct items, and usually a few
/// percent more. [`FullKind`] has its reasons to refuse an item. Other items may still fit.
///
/// A refusal takes some microseconds, much longer than an insert, because the filter first examines the items that it
/// could move, in some hundred buckets. While other threads write, an insert may be refused although there was room at
/// every moment, because the search for room examines one bucket after the other.
///
/// ```
/// let filter = koel::ConcurrentCuckooFilter::with_capacity(100);
/// let copies = (0..100).take_while(|_| filter.insert("again and again").is_ok()).count();
/// assert_eq!(copies, 8); // two buckets of four slots
/// assert_eq!(filter.len(), 8);
/// assert!(filter.insert("something else").is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Full(FullKind);

/// The reason for a [`Full`], which determines what can be done about it.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, FullKind};
///
/// let filter = ConcurrentCuckooFilter::builder().capacity(1_000).growing().build()?;
/// let full = (0..100).find_map(|_| filter.insert("again and again").err());
/// assert_eq!(full.map(|full| full.kind()), Some(FullKind::TooManyCopies));
///
/// filter.set_max_bytes(filter.size_in_bytes());
/// let full = (0..100_000).find_map(|item| filter.insert(&item).err());
/// assert_eq!(full.map(|full| full.kind()), Some(FullKind::LimitReached));
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FullKind {
    /// A growing filter would exceed its [limit](crate::Builder::max_bytes). Raise it with
    /// [`set_max_bytes`](crate::ConcurrentCuckooFilter::set_max_bytes), or remove items.
    LimitReached,
    /// The system has no memory for a growing filter to grow, or the shard has been split as often as one can be.
    NoMemory,
    /// The filter already has the maximum number of copies of the item: as many as its two buckets have slots, which is 4
    /// to 16, or about half as many in a filter that grows. An item that the filter cannot distinguish from this one counts
    /// as a copy. Other items fit. [`insert`](crate::ConcurrentCuckooFilter::insert) adds a copy each time: use
    /// [`insert_if_absent`](crate::ConcurrentCuckooFilter::insert_if_absent) where a `HashSet` would be used.
    TooManyCopies,
    /// There is no room near the item's buckets. A filter of fixed size is then practically full, or copies of a few
    /// items fill these buckets. In a filter that grows, it is [one of three
    /// exceptions](crate::ConcurrentCuckooFilter#when-it-returns-full).
    NoRoomNearby,
}

impl Full {
    pub(crate) fn new(kind: FullKind) -> Self {
        Full(kind)
    }

    /// Returns the reason why there was no room.
    #[must_use]
    pub fn kind(&self) -> FullKind {
        self.0
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no room for this item in the filter (nothing was changed): ")?;
        f.write_str(match self.0 {
            FullKind::LimitReached => {
                "it has reached its limit of bytes, so raise the limit, or remove items"
            }
            FullKind::NoMemory => "there is no memory for it to grow",
            FullKind::TooManyCopies => {
                return f.write_str(
                    "the filter has as many copies of it as it takes, and `insert` adds one each time; use \
                     `insert_if_absent`, or count such items elsewhere",
                );
            }
            FullKind::NoRoomNearby => {
                "there is none near its buckets, so remove items, or build a filter with a larger \
                 capacity, or one that grows"
            }
        })?;
        f.write_str(
            "; if items were inserted more than once, each time took room, which `insert_if_absent` avoids",
        )
    }
}

impl std::error::Error for Full {}

/// The error of building a filter, of a union, or of an operation on files: a kind, and a text that says what happened
/// and what to do. [`BuildError`], [`UnionError`], [`SnapshotError`](crate::SnapshotError) and `DurableError` are this
/// type, each with kinds of its own.
#[derive(Clone)]
pub struct Error<K>(Box<Details<K>>);

#[derive(Clone)]
struct Details<K> {
    kind: K,
    text: Cow<'static, str>,
    path: Option<PathBuf>,
    offset: Option<u64>,
    least_rate: Option<f64>,
    cause: Option<Arc<io::Error>>,
}

impl<K> Error<K> {
    pub(crate) fn new(kind: K, text: impl Into<Cow<'static, str>>) -> Self {
        let (path, offset, least_rate, cause) = (None, None, None, None);
        Error(Box::new(Details { kind, text: text.into(), path, offset, least_rate, cause }))
    }

    pub(crate) fn with_kind<L>(self, kind: L) -> Error<L> {
        let Details { text, path, offset, least_rate, cause, .. } = *self.0;
        Error(Box::new(Details { kind, text, path, offset, least_rate, cause }))
    }

    /// The same error, of the file at this path.
    pub(crate) fn of_file(mut self, path: &Path) -> Self {
        let no_path = if path.as_os_str().is_empty() { "\"\"" } else { "" };
        self.0.text = format!("{}{no_path}: {}", path.display(), self.0.text).into();
        self.0.path = Some(path.to_path_buf());
        self
    }

    /// The same error, at this byte of a file or piece.
    pub(crate) fn at_byte(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// The same error, with the lowest rate that can be had.
    pub(crate) fn with_least_rate(mut self, rate: f64) -> Self {
        self.0.least_rate = Some(rate);
        self
    }

    /// The same error, with the error of the system that is its cause.
    pub(crate) fn because_of(mut self, cause: io::Error) -> Self {
        self.0.cause = Some(Arc::new(cause));
        self
    }

    /// Returns the kind of this error.
    pub fn kind(&self) -> K
    where
        K: Copy,
    {
        self.0.kind
    }

    /// Returns the path of the file, as it was given to [`save`](crate::ConcurrentCuckooFilter::save) or
    /// [`load`](crate::ConcurrentCuckooFilter::load). Of two files, it is that of the first.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let error = ConcurrentCuckooFilter::<StableHash>::load("/no/such/file").unwrap_err();
    /// assert_eq!(error.path(), Some("/no/such/file".as_ref()));
    /// ```
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the byte of the file, or of the piece, at which something is wrong.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    ///
    /// let filter = ConcurrentCuckooFilter::builder()
    ///     .capacity(9)
    ///     .hasher(StableHash::with_seed(1))
    ///     .build()?;
    /// let mut file = Vec::new();
    /// filter.write_to(&mut file)?;
    /// file[300] ^= 1;
    /// let error = ConcurrentCuckooFilter::<StableHash>::read_from(&file[..]).unwrap_err();
    /// assert_eq!(error.offset(), Some(256)); // the shard that begins there
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the lowest false-positive rate that the filter could have with its other settings, rounded up to two
    /// digits, if it was to have [a lower one](BuildErrorKind::RateTooSmall).
    ///
    /// ```
    /// use koel::ConcurrentCuckooFilter;
    ///
    /// let builder = ConcurrentCuckooFilter::builder().capacity(100);
    /// let error = builder.clone().false_positive_rate(1e-12).plan().unwrap_err();
    /// let rate = error.least_rate().expect("it was too low");
    /// assert_eq!(rate, 8e-10);
    /// assert!(builder.false_positive_rate(rate).plan().is_ok());
    /// ```
    pub fn least_rate(&self) -> Option<f64> {
        self.0.least_rate
    }

    /// Returns the error of the system, if the system reported one.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash};
    /// use std::io;
    ///
    /// let error = ConcurrentCuckooFilter::<StableHash>::load("/").unwrap_err();
    /// assert_eq!(error.io_error().map(io::Error::kind), Some(io::ErrorKind::IsADirectory));
    /// assert!(std::error::Error::source(&error).is_some());
    /// ```
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.cause.as_deref()
    }
}

impl<K: PartialEq> PartialEq for Error<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0.kind == other.0.kind && self.0.text == other.0.text
    }
}

// A `main` that returns this error prints it in this form, so the form includes the advice.
impl<K: fmt::Debug> fmt::Debug for Error<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl<K> fmt::Display for Error<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl<K: fmt::Debug> std::error::Error for Error<K> {
    /// Returns the error of the system, if there is one.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.io_error().map(|error| error as _)
    }
}

/// The error returned when a filter cannot be built.
///
/// ```
/// use koel::{BuildErrorKind, ConcurrentCuckooFilter};
///
/// let error = ConcurrentCuckooFilter::builder().capacity(1_000).false_positive_rate(1.5).build();
/// let error = error.unwrap_err();
/// assert_eq!(error.kind(), BuildErrorKind::InvalidRate);
/// assert_eq!(
///     error.to_string(),
///     "the false-positive rate has to be more than 0 and less than 1, and 1.5 is not (1 % is 0.01)",
/// );
/// ```
pub type BuildError = Error<BuildErrorKind>;

/// The reason for a [`BuildError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BuildErrorKind {
    /// No capacity was given.
    NoCapacity,
    /// The false-positive rate is not strictly between 0 and 1.
    InvalidRate,
    /// The false-positive rate is lower than the longest fingerprints can achieve, which is the
    /// [`least_rate`](Error::least_rate) of the error.
    RateTooSmall,
    /// The table would be larger than the address space.
    CapacityOverflow,
    /// The memory could not be allocated.
    OutOfMemory,
    /// The expected growth is less than 1, or not a number.
    InvalidGrowth,
    /// The limit of bytes is less than a growing filter takes at the start.
    LimitTooSmall,
    /// The number of ticks for which items are remembered is not between 1 and 62.
    InvalidTicks,
    /// A setting is for growing filters, and the filter does not grow.
    NotGrowing,
}

/// The number of bytes that could not be allocated.
#[derive(Clone, Copy, Debug)]
pub struct NoMemory(pub usize);

impl NoMemory {
    /// The error when `count` values cannot be allocated.
    pub fn for_values<T>(count: usize) -> Self {
        NoMemory(count.saturating_mul(size_of::<T>()))
    }
}

impl From<NoMemory> for BuildError {
    fn from(NoMemory(bytes): NoMemory) -> Self {
        let text = format!(
            "the {bytes} bytes of the table could not be allocated: \
             ask for a smaller capacity or a higher false-positive rate"
        );
        BuildError::new(BuildErrorKind::OutOfMemory, text)
    }
}

impl From<NoMemory> for UnionError {
    fn from(NoMemory(bytes): NoMemory) -> Self {
        let text = format!("the {bytes} bytes for the copy of a shard could not be allocated");
        UnionError::new(UnionErrorKind::OutOfMemory, text)
    }
}

impl From<NoMemory> for io::Error {
    fn from(NoMemory(_): NoMemory) -> Self {
        io::ErrorKind::OutOfMemory.into()
    }
}

pub(crate) fn zeros(words: usize) -> Result<Vec<u64>, NoMemory> {
    repeated(0, words)
}

/// Allocates a value `count` times.
pub(crate) fn repeated<T: Clone>(value: T, count: usize) -> Result<Vec<T>, NoMemory> {
    let mut values = Vec::new();
    reserve(&mut values, count)?;
    values.resize(count, value);
    Ok(values)
}

pub(crate) fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<(), NoMemory> {
    values.try_reserve(more).map_err(|_| NoMemory::for_values::<T>(more))
}

/// The error returned when a filter cannot take over all entries of another one. The other filter is unchanged, and
/// this filter has lost nothing.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, UnionErrorKind};
///
/// let one = ConcurrentCuckooFilter::with_capacity(100);
/// let other = ConcurrentCuckooFilter::with_capacity(100);
/// let error = one.union(&other).unwrap_err(); // their hashers have different random keys
/// assert_eq!(error.kind(), UnionErrorKind::DifferentHasher);
/// ```
pub type UnionError = Error<UnionErrorKind>;

/// The reason for a [`UnionError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnionErrorKind {
    /// The hashers give an item different hashes.
    DifferentHasher,
    /// One of the filters grows, and the other does not.
    DifferentKind,
    /// The fingerprints have different sizes: the filters were built for different rates.
    DifferentLayout,
    /// The filters were built for different capacities: they have different fixed sizes, or they grow and [began with
    /// different numbers of shards](crate::guide::growth#filters-that-meet).
    DifferentSize,
    /// The filters do not [remember](crate::Builder::remembers) items for the same number of ticks.
    DifferentWindow,
    /// There was no room for some entries.
    Full {
        /// The reason why there was no room for the last entry that was refused.
        reason: FullKind,
        /// The number of entries that were added all the same. They stay.
        added: usize,
        /// The number of entries that were refused: all that did not fit, or the first thousand, after which the union
        /// ends.
        refused: usize,
    },
    /// There is no memory to copy a shard to.
    OutOfMemory,
}

impl UnionError {
    /// The error of a union that could not add some entries. `is_all` says whether all entries were tried.
    pub(crate) fn of_full(full: Full, added: usize, refused: usize, is_all: bool) -> Self {
        let most = if is_all { "" } else { "the first " };
        let rest = if is_all { "" } else { ", and what came after was not tried" };
        let text = format!(
            "{most}{refused} entries of the other filter were refused ({added} were added, \
             and stay{rest}): {full}"
        );
        Self::new(UnionErrorKind::Full { reason: full.kind(), added, refused }, text)
    }
}
