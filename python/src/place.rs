//! Where a filter is: in memory, in memory with its file, or only in a file, which is read and not loaded.
//!
//! Operations share a filter, and closing it waits for those that run: what they have answered is in the file then.
//! A merge into a filter in a file has it alone.
//!
//! A child that is forked leaves all files to its parent: it can use the filters, and not save to their files, where
//! the parent would overwrite them, or be overwritten.
//!
//! # The lock of a filter in a file
//!
//! It is taken only in [`attached`] or [`detached`], and nobody who holds it waits for the interpreter. Whoever has the
//! interpreter's lock only tries to take it, and waits for it without that.

use crate::errors;
use crate::fork::{attached, detached};
use crate::kept::{Kept, window_of};
use koel::{Prehashed, SnapshotError, SnapshotFile, StableHash, Stats};
use pyo3::prelude::*;
use std::any::Any;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};

#[allow(clippy::large_enum_variant, reason = "there is one for each filter")]
pub enum Place {
    Memory {
        kept: Kept,
        /// `Relaxed`: it publishes nothing.
        closed: AtomicBool,
    },
    File(Arc<Opened>),
    ReadOnly(Read),
}

/// A file that is read, and not loaded. All processes that do so share the system's cache of it, and children that are
/// forked go on with it.
pub struct Read {
    path: PathBuf,
    /// `None` once it is closed.
    file: RwLock<Option<SnapshotFile<StableHash>>>,
}

/// A filter with its file.
pub struct Opened {
    path: PathBuf,
    /// The process that opened it.
    process: u32,
    /// Whether each change waits for the disk.
    waits: bool,
    /// `None` once it is closed.
    kept: RwLock<Option<Kept>>,
}

/// The filters in files, for forks.
static FILES: Mutex<Vec<Weak<Opened>>> = Mutex::new(Vec::new());

fn files() -> MutexGuard<'static, Vec<Weak<Opened>>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The path in full, so that it stays the same when the process goes to another folder.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

impl Opened {
    fn read(&self) -> RwLockReadGuard<'_, Option<Kept>> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<Kept>> {
        self.kept.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a checkpoint.
    pub fn save(&self, kept: &Kept) -> PyResult<()> {
        match kept.journaled() {
            Some(durable) => {
                durable.checkpoint().map_err(|error| errors::of_durable(&error, Some(&self.path)))
            }
            None => Err(errors::of_parent(&self.path, self.process)),
        }
    }

    fn close(&self) -> PyResult<()> {
        let Some(kept) = self.write().take() else { return Ok(()) };
        kept.keep_up();
        kept.close().map_err(|error| errors::of_durable(&error, Some(&self.path)))
    }
}

impl Read {
    pub fn new(path: &Path, file: SnapshotFile<StableHash>) -> Self {
        Read { path: absolute(path), file: RwLock::new(Some(file)) }
    }

    fn with<T>(
        &self,
        operation: impl FnOnce(&SnapshotFile<StableHash>) -> Result<T, SnapshotError>,
    ) -> PyResult<T> {
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
        let file = file.as_ref().ok_or_else(errors::closed)?;
        operation(file).map_err(|error| errors::of_snapshot(&error))
    }

    /// Looks up an item: without the interpreter's lock only if its shard has to be read first.
    #[inline]
    fn contains(&self, py: Python<'_>, hash: Prehashed) -> PyResult<bool> {
        let at_once = attached(py, || match self.file.try_read().as_deref() {
            Ok(Some(file)) => file.contains_at_once(&hash),
            _ => None,
        });
        match at_once {
            Some(found) => Ok(found),
            None => detached(py, || self.with(|file| file.contains(&hash))),
        }
    }

    /// Loads it into memory, at the present time.
    fn load(&self) -> PyResult<Kept> {
        let filter = self.with(SnapshotFile::load)?;
        let window = window_of(&filter).map_err(|why| errors::named(&self.path, why))?;
        Ok(Kept::in_memory(filter, window))
    }

    fn stats(&self) -> PyResult<Stats> {
        self.with(|file| {
            let mut stats = file.info().stats.clone();
            stats.size_in_bytes = file.size_in_bytes();
            Ok(stats)
        })
    }

    fn close(&self) {
        drop(self.file.write().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// A filter that is in use, and is not closed meanwhile.
#[allow(clippy::large_enum_variant, reason = "it is on the stack")]
enum Held<'a> {
    Memory(&'a Kept),
    Shared(RwLockReadGuard<'a, Option<Kept>>),
    Alone(RwLockWriteGuard<'a, Option<Kept>>),
    /// What a file had that is only read.
    Loaded(Kept),
}

impl Held<'_> {
    fn kept(&self) -> PyResult<&Kept> {
        let kept = match self {
            Held::Memory(kept) => return Ok(kept),
            Held::Loaded(kept) => return Ok(kept),
            Held::Shared(kept) => kept.as_ref(),
            Held::Alone(kept) => kept.as_ref(),
        };
        kept.ok_or_else(errors::closed)
    }
}

impl Place {
    pub fn in_memory(kept: Kept) -> Place {
        Place::Memory { kept, closed: AtomicBool::new(false) }
    }

    /// The place of a filter that was opened with this file, by [`detached`].
    pub fn in_file(path: &Path, kept: Kept, waits: bool) -> Place {
        let (path, process) = (absolute(path), process::id());
        let opened = Arc::new(Opened { path, process, waits, kept: RwLock::new(Some(kept)) });
        let mut files = files();
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&opened));
        Place::File(opened)
    }

    pub fn path(&self) -> Option<&Path> {
        match self {
            Place::Memory { .. } => None,
            Place::File(opened) => Some(opened.path()),
            Place::ReadOnly(read) => Some(&read.path),
        }
    }

    /// The memory beside the object: the table, and what keeps its file. A closed filter in memory still has its table.
    pub fn heap_bytes(&self, py: Python<'_>) -> usize {
        match self {
            Place::Memory { kept, .. } => {
                attached(py, || kept.filter().size_in_bytes() - size_of_val(kept.filter()))
            }
            Place::File(_) => {
                let table = self.shortly(py, |kept| Ok(kept.filter().size_in_bytes()));
                size_of::<Opened>() + table.unwrap_or(0)
            }
            Place::ReadOnly(read) => {
                let own = |file: &SnapshotFile<_>| Ok(file.size_in_bytes() - size_of_val(file));
                detached(py, || read.with(own)).unwrap_or(0)
            }
        }
    }

    pub fn is_closed(&self) -> bool {
        match self {
            Place::Memory { closed, .. } => closed.load(Relaxed),
            Place::File(opened) => opened.kept.try_read().is_ok_and(|kept| kept.is_none()),
            Place::ReadOnly(read) => read.file.try_read().is_ok_and(|file| file.is_none()),
        }
    }

    pub fn is_read_only(&self) -> bool {
        matches!(self, Place::ReadOnly(_))
    }

    /// Refuses to change a filter that is only read.
    #[inline]
    fn check_change(&self) -> PyResult<()> {
        match self {
            Place::ReadOnly(_) if self.is_closed() => Err(errors::closed()),
            Place::ReadOnly(_) => Err(errors::read_only()),
            _ => Ok(()),
        }
    }

    fn shared(&self) -> PyResult<Held<'_>> {
        match self {
            Place::Memory { .. } if self.is_closed() => Err(errors::closed()),
            Place::Memory { kept, .. } => Ok(Held::Memory(kept)),
            Place::File(opened) => Ok(Held::Shared(opened.read())),
            Place::ReadOnly(read) => Ok(Held::Loaded(read.load()?)),
        }
    }

    /// Waits until nobody else uses a filter in a file. One in memory needs that for nothing.
    fn alone(&self) -> PyResult<Held<'_>> {
        match self {
            Place::File(opened) => Ok(Held::Alone(opened.write())),
            _ => self.shared(),
        }
    }

    /// Fails if the filter is closed.
    pub fn check_open(&self, py: Python<'_>) -> PyResult<()> {
        match self {
            Place::ReadOnly(_) if attached(py, || self.is_closed()) => Err(errors::closed()),
            Place::ReadOnly(_) => Ok(()),
            _ => self.shortly(py, |_| Ok(())),
        }
    }

    /// Looks up an item.
    #[inline]
    pub fn contains(&self, py: Python<'_>, hash: Prehashed) -> PyResult<bool> {
        match self {
            Place::ReadOnly(read) => read.contains(py, hash),
            _ => self.shortly(py, |kept| Ok(kept.set().contains(hash))),
        }
    }

    pub fn contains_many(&self, py: Python<'_>, hashes: &[Prehashed]) -> PyResult<Vec<bool>> {
        match self {
            Place::ReadOnly(read) => detached(py, || read.with(|file| file.contains_many(hashes))),
            _ => self.at_length(py, |kept| Ok(kept.set().contains_many(hashes))),
        }
    }

    pub fn len(&self, py: Python<'_>) -> PyResult<usize> {
        match self {
            Place::ReadOnly(read) => detached(py, || read.with(|file| Ok(file.info().stats.items))),
            _ => self.shortly(py, |kept| Ok(kept.filter().len())),
        }
    }

    pub fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        match self {
            Place::ReadOnly(read) => detached(py, || read.stats()),
            _ => self.at_length(py, |kept| Ok(kept.filter().stats())),
        }
    }

    /// Does something short with the filter, at the present time. If it is only read, it is loaded for this.
    #[inline]
    pub fn shortly<T: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&Kept) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let unless_done = attached(py, || match self {
            Place::Memory { closed, .. } if closed.load(Relaxed) => Ok(Err(errors::closed())),
            Place::Memory { kept, .. } if !kept.is_late() => Ok(operation(kept)),
            Place::Memory { .. } => Err(operation),
            Place::File(opened) => match opened.kept.try_read().as_deref() {
                Ok(None) => Ok(Err(errors::closed())),
                Ok(Some(kept)) if !kept.is_late() => Ok(operation(kept)),
                _ => Err(operation),
            },
            Place::ReadOnly(_) => Err(operation),
        });
        unless_done.unwrap_or_else(|operation| self.at_length(py, operation))
    }

    /// Does something short that changes the filter.
    #[inline]
    pub fn change<T: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&Kept) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        match self {
            Place::File(opened) if opened.waits => self.at_length(py, operation),
            Place::ReadOnly(_) => self.change_at_length(py, operation),
            _ => self.shortly(py, operation),
        }
    }

    /// Does something that may take longer, and changes the filter.
    pub fn change_at_length<T: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&Kept) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        attached(py, || self.check_change())?;
        self.at_length(py, operation)
    }

    /// Does something that may take longer, at the present time, and without the interpreter's lock. If the filter is
    /// only read, it is loaded for this.
    pub fn at_length<T: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&Kept) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        detached(py, || {
            let held = self.shared()?;
            let kept = held.kept()?;
            kept.keep_up();
            operation(kept)
        })
    }

    /// Adds what another filter has. If this one is in a file, nobody else uses it until a checkpoint is made: what
    /// comes is not on record, and nobody may see it before it is in the file. (If the checkpoint fails, it is seen,
    /// and the error says so: it gets on record with the next one.)
    pub fn merge(&self, py: Python<'_>, other: &Place) -> PyResult<usize> {
        attached(py, || self.check_change())?;
        detached(py, || {
            let is_same = std::ptr::eq(self, other);
            // Always in the same order, so that no two wait for each other.
            let is_first = std::ptr::from_ref(self) < std::ptr::from_ref(other);
            let before = if is_same || is_first { None } else { Some(other.shared()?) };
            let own = self.alone()?;
            let after = if is_first { Some(other.shared()?) } else { None };
            let kept = own.kept()?;
            let other = before.as_ref().or(after.as_ref()).map_or(Ok(kept), Held::kept)?;
            kept.keep_up();
            other.keep_up();
            kept.check_merge(other)?;
            let merged = kept.filter().union(other.filter());
            let merged = merged.map_err(|error| errors::of_union(&error));
            match self {
                Place::File(opened) if kept.journaled().is_some() => opened.save(kept).and(merged),
                _ => merged,
            }
        })
    }

    /// Closes the filter. One in a file leaves it to others, with all changes.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self {
            Place::Memory { closed, .. } => {
                closed.store(true, Relaxed);
                Ok(())
            }
            Place::File(opened) => detached(py, || opened.close()),
            Place::ReadOnly(read) => {
                detached(py, || read.close());
                Ok(())
            }
        }
    }
}

/// Closes the filters in files that the program has left open.
pub fn close_all(py: Python<'_>) {
    for file in detached(py, opened) {
        if let Err(error) = detached(py, || file.close()) {
            errors::of_end(py, error);
        }
    }
}

/// The filters in files that there are. Call it under a lock that forks wait for.
pub fn opened() -> Vec<Arc<Opened>> {
    files().iter().filter_map(Weak::upgrade).collect()
}

/// While it lives, a filter makes no checkpoint by itself.
pub type Quiesced = Box<dyn Any + Send>;

/// Lets filters make no checkpoints by themselves, and waits for those that are being made.
pub fn quiesce(opened: &[Arc<Opened>]) -> Vec<Quiesced> {
    let quiesced = |file: &Arc<Opened>| -> Option<Quiesced> {
        Some(Box::new(file.read().as_ref()?.journaled()?.quiesced()))
    };
    opened.iter().filter_map(quiesced).collect()
}

/// In a child, leaves all files to the parent. No other thread is there, and no lock is held: forks wait for what locks
/// them.
pub fn leave_to_parent() {
    for file in files().drain(..).filter_map(|file| file.upgrade()) {
        if let Some(kept) = file.read().as_ref() {
            kept.leave_to_parent();
        }
    }
}
