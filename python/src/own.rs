//! A filter that can be changed: in memory, or in memory with its file.
//!
//! There are two verbs. [`with_gil`](Own::with_gil) does something short, and keeps the interpreter's lock unless it
//! has to wait. [`without_gil`](Own::without_gil) lets others run meanwhile. Both act at the present time, and refuse a
//! filter that is closed. Both share the filter, and closing one with a file waits for those that run: what they have
//! answered is in the file then. A merge into a filter with a file has it alone.
//!
//! # Forks
//!
//! In a child, any lock may be held by a thread that the child does not have, and any change may be half made. So a
//! child may use nothing of a filter that its parent opened. It drops one with a file, which koel then leaves to the
//! parent, and does not even drop one in memory.
//!
//! # The lock of a filter with a file
//!
//! A thread that holds it does not wait for the interpreter. A thread that has the interpreter's lock only tries to take
//! it, and waits for it without that.

use crate::errors;
use crate::process;
use crate::set::{self, Durable, Set, Table};
use koel::{DurableError, StableHash, UnionError, UnionErrorKind, Window};
use pyo3::prelude::*;
use std::mem;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub struct Own {
    home: Home,
    pub hasher: StableHash,
    pub window: Option<Window>,
    /// The forks that led to the process that opened it.
    forks: u64,
}

#[allow(clippy::large_enum_variant, reason = "there is one for each filter")]
enum Home {
    Memory {
        table: Table,
        /// `Relaxed`: it publishes nothing.
        closed: AtomicBool,
    },
    File(File),
}

/// A filter with its file, or `None` once it is closed.
struct File(RwLock<Option<Durable>>);

impl File {
    fn read(&self) -> RwLockReadGuard<'_, Option<Durable>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<Durable>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Own {
    pub fn in_memory(table: Table) -> Self {
        let (hasher, window) = (*table.hasher(), table.window());
        let home = Home::Memory { table, closed: AtomicBool::new(false) };
        Own { home, hasher, window, forks: process::forks() }
    }

    /// A filter that was saved, at the present time. An error if another program counts its ticks.
    pub fn loaded(table: Table) -> Result<Self, String> {
        set::window_of(&table)?;
        table.keep_up();
        Ok(Self::in_memory(table))
    }

    pub fn with_file(durable: Durable) -> Self {
        let (hasher, window) = (*durable.hasher(), durable.window());
        let home = Home::File(File(RwLock::new(Some(durable))));
        Own { home, hasher, window, forks: process::forks() }
    }

    /// Returns whether this process was forked from the one that opened the filter.
    #[inline]
    fn is_inherited(&self) -> bool {
        self.forks != process::forks()
    }

    #[inline]
    fn check_process(&self) -> PyResult<()> {
        if self.is_inherited() { Err(errors::forked()) } else { Ok(()) }
    }

    /// Whether ticks are due.
    #[inline]
    fn is_late(&self, set: &dyn Set) -> bool {
        self.window.is_some_and(|window| set.present_tick() < Some(window.number_now()))
    }

    /// Does something short with the filter. Lets the interpreter's lock go only if it has to wait.
    #[inline]
    pub fn with_gil<T: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&dyn Set) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.check_process()?;
        match &self.home {
            Home::Memory { closed, .. } if closed.load(Relaxed) => return Err(errors::closed()),
            Home::Memory { table, .. } if !self.is_late(table) => return operation(table),
            Home::Memory { .. } => {}
            Home::File(file) => match file.0.try_read().as_deref() {
                Ok(None) => return Err(errors::closed()),
                Ok(Some(durable)) if !self.is_late(durable) => return operation(durable),
                _ => {}
            },
        }
        self.without_gil(py, operation)
    }

    /// Does something that may take longer with the filter, and lets others run meanwhile.
    pub fn without_gil<T: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&dyn Set) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.check_process()?;
        // If ticks cannot be recorded, they pass later: an item may always be remembered for longer.
        let now = |set: &dyn Set| {
            let _ = set.keep_up();
            operation(set)
        };
        py.detach(|| match &self.home {
            Home::Memory { closed, .. } if closed.load(Relaxed) => Err(errors::closed()),
            Home::Memory { table, .. } => now(table),
            Home::File(file) => now(file.read().as_ref().ok_or_else(errors::closed)?),
        })
    }

    /// Makes a checkpoint, if the filter has a file. Returns whether it has.
    pub fn checkpoint(&self, py: Python<'_>, path: Option<&Path>) -> PyResult<bool> {
        self.check_process()?;
        let Home::File(file) = &self.home else { return self.with_gil(py, |_| Ok(false)) };
        py.detach(|| {
            let checkpoint = file.read().as_ref().ok_or_else(errors::closed)?.checkpoint();
            checkpoint.map(|()| true).map_err(|error| errors::of_durable(&error, path))
        })
    }

    /// Returns a copy in memory.
    pub fn copy(&self, py: Python<'_>) -> PyResult<Table> {
        self.without_gil(py, |set| set.copy().map_err(|_| errors::no_memory_for_a_copy()))
    }

    /// Does something with the table and without the interpreter's lock: with a copy, if the filter has a file, because
    /// koel lends no table that has a journal.
    pub fn lend<T: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&Table) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        match &self.home {
            Home::Memory { table, .. } => self.without_gil(py, |_| operation(table)),
            Home::File(_) => {
                let copy = self.copy(py)?;
                py.detach(move || operation(&copy))
            }
        }
    }

    /// Adds what another filter has. If this one has a file, nobody else uses it until a checkpoint is made: what comes
    /// is not on record, and nobody may see it before it is in the file. If the checkpoint fails, it is seen, the
    /// error says so, and it gets on record with the next one.
    pub fn merge(&self, py: Python<'_>, other: &Own, path: Option<&Path>) -> PyResult<usize> {
        self.check_process()?;
        other.check_process()?;
        if std::ptr::eq(self, other) {
            return self.with_gil(py, |_| Ok(0));
        }
        if self.window != other.window {
            return Err(errors::apart(UnionErrorKind::DifferentWindow));
        }
        other.lend(py, |other| match &self.home {
            Home::Memory { closed, .. } if closed.load(Relaxed) => Err(errors::closed()),
            Home::Memory { table, .. } => {
                table.keep_up();
                unite(table, other, Table::union)
            }
            Home::File(file) => {
                let alone = file.write();
                let durable = alone.as_ref().ok_or_else(errors::closed)?;
                let _ = durable.keep_up();
                let merged = unite(durable, other, Durable::union_unrecorded);
                let saved = durable.checkpoint().map_err(|error| errors::of_durable(&error, path));
                saved.and(merged)
            }
        })
    }

    /// Returns the memory beside the object: the table, and what keeps its file. A closed filter in memory still has
    /// its table.
    pub fn heap_bytes(&self, py: Python<'_>) -> usize {
        let table = match &self.home {
            Home::Memory { table, .. } if !self.is_inherited() => Ok(table.size_in_bytes()),
            Home::Memory { .. } => return 0,
            Home::File(_) => self.without_gil(py, |set| Ok(set.stats().size_in_bytes)),
        };
        table.unwrap_or(0).saturating_sub(size_of::<Table>())
    }

    pub fn is_closed(&self) -> bool {
        match &self.home {
            Home::Memory { closed, .. } => closed.load(Relaxed),
            Home::File(file) => file.0.try_read().is_ok_and(|durable| durable.is_none()),
        }
    }

    /// Closes the filter. One with a file leaves it to others, with all changes. In a child, the file stays the
    /// parent's.
    pub fn close(&self, py: Python<'_>) -> Result<(), DurableError> {
        match &self.home {
            Home::Memory { closed, .. } => {
                closed.store(true, Relaxed);
                Ok(())
            }
            Home::File(file) if self.is_inherited() => {
                // If a thread of the parent used it at the fork, it stays until the child ends.
                drop(file.0.try_write().ok().and_then(|mut durable| durable.take()));
                Ok(())
            }
            Home::File(file) => py.detach(|| match file.write().take() {
                Some(durable) => {
                    let _ = durable.keep_up();
                    durable.close()
                }
                None => Ok(()),
            }),
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if self.is_inherited() && matches!(self.home, Home::Memory { .. }) {
            // A thread of the parent may have been in the middle of a change of it.
            mem::forget(mem::replace(&mut self.home, Home::File(File(RwLock::new(None)))));
        }
    }
}

/// Adds what another filter has, if both were made alike.
fn unite<S: Set>(
    set: &S,
    other: &Table,
    union: fn(&S, &Table) -> Result<usize, UnionError>,
) -> PyResult<usize> {
    // koel would tell of their seeds first, which are mostly different, too.
    if set.stats().grows != other.grows() {
        return Err(errors::apart(UnionErrorKind::DifferentKind));
    }
    union(set, other).map_err(|error| errors::of_union(&error))
}
