//! A filter that is asked in its file, which is not loaded. All processes that do so share the system's cache of the
//! file, and children that are forked go on with it.

use crate::errors;
use crate::set::Table;
use koel::{Prehashed, SnapshotError, SnapshotFile, StableHash, Stats};
use pyo3::prelude::*;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

pub struct Reader {
    /// It has no lock, which another thread might have at a fork. So it stays until nothing refers to the filter.
    file: SnapshotFile<StableHash>,
    /// `Relaxed`: it publishes nothing.
    closed: AtomicBool,
}

impl Reader {
    pub fn new(file: SnapshotFile<StableHash>) -> Self {
        Reader { file, closed: AtomicBool::new(false) }
    }

    /// Returns the file, unless the filter is closed.
    #[inline]
    pub fn file(&self) -> PyResult<&SnapshotFile<StableHash>> {
        if self.is_closed() { Err(errors::closed()) } else { Ok(&self.file) }
    }

    /// Asks the file without the interpreter's lock.
    fn without_gil<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&SnapshotFile<StableHash>) -> Result<T, SnapshotError> + Send,
    ) -> PyResult<T> {
        let file = self.file()?;
        py.detach(|| ask(file)).map_err(|error| errors::of_snapshot(&error))
    }

    /// Looks up an item: without the interpreter's lock only if its shard has to be read first.
    #[inline]
    pub fn contains(&self, py: Python<'_>, hash: Prehashed) -> PyResult<bool> {
        match self.file()?.contains_at_once(&hash) {
            Some(found) => Ok(found),
            None => self.without_gil(py, |file| file.contains(&hash)),
        }
    }

    pub fn contains_many(&self, py: Python<'_>, hashes: &[Prehashed]) -> PyResult<Vec<bool>> {
        self.without_gil(py, |file| file.contains_many(hashes))
    }

    pub fn len(&self) -> PyResult<usize> {
        Ok(self.file()?.info().stats.items)
    }

    pub fn stats(&self) -> PyResult<Stats> {
        let mut stats = self.file()?.info().stats.clone();
        stats.size_in_bytes = self.file.size_in_bytes();
        Ok(stats)
    }

    /// Loads it into memory.
    pub fn load(&self, py: Python<'_>) -> PyResult<Table> {
        self.without_gil(py, SnapshotFile::load)
    }

    /// Returns the memory beside the object.
    pub fn heap_bytes(&self) -> usize {
        self.file.size_in_bytes() - size_of_val(&self.file)
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    pub fn close(&self) {
        self.closed.store(true, Relaxed);
    }
}
