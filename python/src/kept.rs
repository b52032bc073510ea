//! A filter in memory or with its file, which knows the time if it forgets.

use crate::errors;
use koel::Window;
use koel::{
    BuildError, ConcurrentCuckooFilter, DurableError, DurableFilter, Full, Prehashed,
    SnapshotError, StableHash, UnionErrorKind,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::convert;
use std::path::Path;

/// For how long a filter remembers items. An error if another program counts its ticks.
pub fn window_of(filter: &ConcurrentCuckooFilter<StableHash>) -> Result<Option<Window>, String> {
    let Some(ticks) = filter.remembers() else { return Ok(None) };
    filter.window().map(Some).ok_or_else(|| {
        format!(
            "it remembers items for {ticks} ticks, which another program counts, so nobody knows here when to \
             forget one"
        )
    })
}

/// Operations of a filter, with or without a journal. Without one, only a lack of room is an error.
pub trait Set {
    /// Adds an item that is not there. With `refresh`, one that is there is remembered from now on.
    fn add(&self, hash: Prehashed, refresh: bool) -> Result<bool, DurableError>;
    fn contains(&self, hash: Prehashed) -> bool;
    fn discard(&self, hash: Prehashed) -> Result<bool, DurableError>;
    fn add_many(&self, hashes: &[Prehashed], refresh: bool) -> Answers;
    fn contains_many(&self, hashes: &[Prehashed]) -> Vec<bool>;
    fn discard_many(&self, hashes: &[Prehashed]) -> Result<Vec<bool>, DurableError>;
    fn clear(&self) -> Result<(), DurableError>;
    /// Lets ticks pass up to a number.
    fn tick_to(&self, number: u64) -> Result<u64, DurableError>;
    /// Returns memory that is no longer needed to the system, and how many bytes.
    fn compact(&self) -> usize;
}

/// For each item, whether it was new.
pub type Answers = Result<Vec<Result<bool, Full>>, DurableError>;

/// Implements `Set` by the methods of a filter. `$result` turns the return value of a change into a `Result`.
macro_rules! set {
    ($filter:ident, $result:path) => {
        impl Set for $filter<StableHash> {
            #[inline]
            fn add(&self, hash: Prehashed, refresh: bool) -> Result<bool, DurableError> {
                match refresh {
                    true => Ok(self.insert_or_refresh(&hash)?),
                    false => Ok(self.insert_if_absent(&hash)?),
                }
            }
            #[inline]
            fn contains(&self, hash: Prehashed) -> bool {
                self.contains(&hash)
            }
            fn discard(&self, hash: Prehashed) -> Result<bool, DurableError> {
                $result(self.remove(&hash))
            }
            fn add_many(&self, hashes: &[Prehashed], refresh: bool) -> Answers {
                match refresh {
                    true => $result(self.insert_or_refresh_many(hashes)),
                    false => $result(self.insert_if_absent_many(hashes)),
                }
            }
            fn contains_many(&self, hashes: &[Prehashed]) -> Vec<bool> {
                self.contains_many(hashes)
            }
            fn discard_many(&self, hashes: &[Prehashed]) -> Result<Vec<bool>, DurableError> {
                $result(self.remove_many(hashes))
            }
            fn clear(&self) -> Result<(), DurableError> {
                $result(self.clear())
            }
            fn tick_to(&self, number: u64) -> Result<u64, DurableError> {
                $result(self.tick_to(number))
            }
            fn compact(&self) -> usize {
                self.shrink()
            }
        }
    };
}

set!(ConcurrentCuckooFilter, Ok);
set!(DurableFilter, convert::identity);

pub struct Kept {
    table: Table,
    window: Option<Window>,
}

enum Table {
    Memory(ConcurrentCuckooFilter<StableHash>),
    Durable(DurableFilter<StableHash>),
}

impl Kept {
    pub fn in_memory(filter: ConcurrentCuckooFilter<StableHash>, window: Option<Window>) -> Kept {
        let kept = Kept { table: Table::Memory(filter), window };
        kept.keep_up();
        kept
    }

    pub fn durable(filter: DurableFilter<StableHash>, window: Option<Window>) -> Kept {
        let kept = Kept { table: Table::Durable(filter), window };
        kept.keep_up();
        kept
    }

    /// A filter in memory, of the bytes of a file.
    pub fn read(bytes: &[u8]) -> PyResult<Kept> {
        let mut rest = bytes;
        let filter = ConcurrentCuckooFilter::read_from(&mut rest)
            .map_err(|error| errors::of_snapshot(&error))?;
        if !rest.is_empty() {
            return Err(PyValueError::new_err("there are more bytes than those of a filter"));
        }
        let window = window_of(&filter).map_err(PyValueError::new_err)?;
        Ok(Self::in_memory(filter, window))
    }

    /// The filter itself. What is changed there is not on record.
    #[inline]
    pub fn filter(&self) -> &ConcurrentCuckooFilter<StableHash> {
        match &self.table {
            Table::Memory(filter) => filter,
            Table::Durable(durable) => durable.unrecorded(),
        }
    }

    /// The filter with its journal, if it has one and was opened by this process. In a child, it is only memory.
    #[inline]
    pub fn journaled(&self) -> Option<&DurableFilter<StableHash>> {
        match &self.table {
            Table::Durable(durable) if !durable.is_forked_child() => Some(durable),
            _ => None,
        }
    }

    /// The filter to ask and to change, which records changes if it has a journal.
    #[inline]
    pub fn set(&self) -> &dyn Set {
        match self.journaled() {
            Some(durable) => durable,
            None => self.filter(),
        }
    }

    /// In a child, leaves the file to the parent.
    pub fn leave_to_parent(&self) {
        if let Table::Durable(durable) = &self.table {
            durable.leave_to_parent();
        }
    }

    /// Leaves its file as the only one, with all changes.
    pub fn close(self) -> Result<(), DurableError> {
        match self.table {
            Table::Durable(durable) if !durable.is_forked_child() => durable.close(),
            _ => Ok(()),
        }
    }

    pub fn window(&self) -> Option<Window> {
        self.window
    }

    /// Whether ticks are due.
    #[inline]
    pub fn is_late(&self) -> bool {
        self.window.is_some_and(|window| self.filter().present_tick() < Some(window.number_now()))
    }

    /// Lets the ticks pass that are due. If they cannot be recorded, they pass later: an item may always be remembered
    /// for longer.
    pub fn keep_up(&self) {
        if let Some(window) = self.window {
            let _ = self.set().tick_to(window.number_now());
        }
    }

    /// Checks that another filter was made like this one.
    pub fn check_merge(&self, other: &Kept) -> PyResult<()> {
        if self.window != other.window {
            return Err(errors::apart(UnionErrorKind::DifferentWindow));
        }
        // koel would tell of their seeds first, which are mostly different, too.
        if self.filter().grows() != other.filter().grows() {
            return Err(errors::apart(UnionErrorKind::DifferentKind));
        }
        self.filter().check_union(other.filter()).map_err(|error| errors::of_union(&error))
    }

    /// Saves a copy.
    pub fn save(&self, path: &Path) -> Result<(), SnapshotError> {
        match self.filter().save(path) {
            Err(error) if !error.is_in_place() => Err(error),
            _ => Ok(()),
        }
    }

    /// A copy in memory.
    pub fn copy(&self) -> Result<Kept, BuildError> {
        Ok(Kept { table: Table::Memory(self.filter().try_clone()?), window: self.window })
    }
}
