//! Lookups in a state: in its file while they are few, in memory once they are many.

use crate::failure::Failure;
use crate::state::comparison::LineHash;
use crate::state::refusals::{cannot_use, check_path};
use crate::state::seen::Seen;
use koel::{Prehashed, SnapshotError, SnapshotFile, Stats};
use koel_state::window;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A state that is only asked. Loading a state of 50 million lines takes half a second of CPU time,
/// and looking up a line in its file some 30 microseconds.
///
/// `asked` decides only when the state is loaded, and publishes nothing, so it is `Relaxed`.
pub struct Lookups {
    path: PathBuf,
    file: SnapshotFile<LineHash>,
    /// The number of lines that were looked up so far, or are about to be.
    asked: AtomicU64,
    loaded: OnceLock<Seen>,
    loading: Mutex<()>,
}

/// A lookup in the file reads a shard. When the lookups have read this part of all shards, loading
/// all of them costs little more.
const PART: u64 = 8;

/// A state of no more shards, about a megabyte, is loaded at once: then it is known to be whole before
/// any line is read.
const FEW_SHARDS: usize = 16;

impl Lookups {
    pub fn open(path: &Path) -> Result<Self, Failure> {
        check_path(path)?;
        let file = SnapshotFile::open(path).map_err(|error| cannot_use(path, &error))?;
        let (asked, loaded, loading) = (AtomicU64::new(0), OnceLock::new(), Mutex::new(()));
        // What is in the file of a state that forgets may be forgotten by now.
        if file.info().stats.shards <= FEW_SHARDS || file.info().remembers.is_some() {
            let filter = file.load().map_err(|error| cannot_use(path, &error))?;
            window::keep_up(&filter);
            let _ = loaded.set(filter);
        }
        Ok(Lookups { path: path.to_path_buf(), file, asked, loaded, loading })
    }

    pub fn hasher(&self) -> &LineHash {
        self.file.hasher()
    }

    /// Looks up the lines with these hashes.
    pub fn find(&self, hashes: &[Prehashed]) -> Result<Vec<bool>, Failure> {
        let answers = match self.loaded(hashes.len() as u64) {
            Ok(None) => self.file.contains_many(hashes),
            Ok(Some(seen)) => Ok(seen.contains_many(hashes)),
            Err(error) => Err(error),
        };
        answers.map_err(|error| cannot_use(&self.path, &error))
    }

    /// Returns the state in memory, if that is worth it with so many more lookups.
    fn loaded(&self, more: u64) -> Result<Option<&Seen>, SnapshotError> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(Some(loaded));
        }
        let asked = self.asked.fetch_add(more, Relaxed).saturating_add(more);
        if asked <= self.file.info().stats.shards as u64 / PART {
            return Ok(None);
        }
        let _alone = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if self.loaded.get().is_none() {
            let _ = self.loaded.set(self.file.load()?);
        }
        Ok(self.loaded.get())
    }

    /// The figures of the state. Its size is what it takes here, and its rate is an estimate as long as it is not
    /// loaded.
    pub fn stats(&self) -> Stats {
        if let Some(seen) = self.loaded.get() {
            return seen.stats();
        }
        let mut stats = self.file.info().stats.clone();
        stats.size_in_bytes = self.file.size_in_bytes();
        // Where the state is damaged, the lines have to tell.
        stats.false_positive_rate =
            self.file.false_positive_rate().unwrap_or(stats.false_positive_rate);
        stats
    }
}
