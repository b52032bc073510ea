//! The error of a union.

use crate::error::Full;
use std::error::Error;
use std::fmt;

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
#[derive(Clone, PartialEq)]
pub struct UnionError {
    reason: Reason,
}

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
    Full,
    /// There is no memory to copy a shard to.
    OutOfMemory,
}

/// The property in which two filters differ.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Different {
    Hasher,
    Kind,
    Layout,
    Size,
    Window,
}

#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    Different(Different),
    Full {
        full: Full,
        added: usize,
        refused: usize,
        /// Whether all entries were tried.
        is_all: bool,
    },
    OutOfMemory {
        bytes: usize,
    },
}

impl UnionError {
    /// Returns the reason why the filters could not be united.
    ///
    /// ```
    /// use koel::{ConcurrentCuckooFilter, StableHash, UnionErrorKind};
    ///
    /// let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(1));
    /// let small = builder.clone().capacity(1_000).build()?;
    /// let large = builder.capacity(2_000).build()?;
    /// assert_eq!(large.union(&small).unwrap_err().kind(), UnionErrorKind::DifferentSize);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn kind(&self) -> UnionErrorKind {
        match self.reason {
            Reason::Different(Different::Hasher) => UnionErrorKind::DifferentHasher,
            Reason::Different(Different::Kind) => UnionErrorKind::DifferentKind,
            Reason::Different(Different::Layout) => UnionErrorKind::DifferentLayout,
            Reason::Different(Different::Size) => UnionErrorKind::DifferentSize,
            Reason::Different(Different::Window) => UnionErrorKind::DifferentWindow,
            Reason::Full { .. } => UnionErrorKind::Full,
            Reason::OutOfMemory { .. } => UnionErrorKind::OutOfMemory,
        }
    }

    /// Returns why there was no room for the last entry that was refused, if any was.
    #[must_use]
    pub fn full(&self) -> Option<Full> {
        match self.reason {
            Reason::Full { full, .. } => Some(full),
            _ => None,
        }
    }

    /// Returns the number of entries that were added all the same. They stay.
    #[must_use]
    pub fn added(&self) -> usize {
        match self.reason {
            Reason::Full { added, .. } => added,
            _ => 0,
        }
    }

    /// Returns the number of entries that were refused: all that did not fit, or the first thousand, after which the
    /// union ends.
    #[must_use]
    pub fn refused(&self) -> usize {
        match self.reason {
            Reason::Full { refused, .. } => refused,
            _ => 0,
        }
    }
}

impl From<Reason> for UnionError {
    fn from(reason: Reason) -> Self {
        UnionError { reason }
    }
}

impl fmt::Debug for UnionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.reason, f)
    }
}

impl fmt::Display for UnionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Different(what) => f.write_str(match what {
                Different::Hasher => {
                    "the filters have different hashers (or different seeds), so neither can tell \
                     what the other knows: build both with one StableHash::with_seed"
                }
                Different::Kind => {
                    "one of the filters grows and the other does not: build both with .growing(), or neither"
                }
                Different::Layout => {
                    "the filters have fingerprints of different sizes: build both for one \
                     false-positive rate, and one expected growth if they grow"
                }
                Different::Size => {
                    "the filters have different sizes, or began with different numbers of shards if \
                     they grow: build both for one capacity"
                }
                Different::Window => {
                    "the filters remember items for different numbers of ticks: build both with \
                     one .remembers(ticks)"
                }
            }),
            Reason::Full { full, added, refused, is_all } => {
                let most = if *is_all { "" } else { "the first " };
                let rest = if *is_all { "" } else { ", and what came after was not tried" };
                write!(
                    f,
                    "{most}{refused} entries of the other filter were refused ({added} were added, \
                     and stay{rest}): {full}"
                )
            }
            Reason::OutOfMemory { bytes } => {
                write!(f, "the {bytes} bytes for the copy of a shard could not be allocated")
            }
        }
    }
}

impl Error for UnionError {}
