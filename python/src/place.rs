//! The file of a filter, which this process has claimed: where it saves.
//!
//! A claim is kept until the filter is closed or dropped. A child that is forked leaves all claims to its parent:
//! it can use the filter, and not save to its file, where the parent's filter would overwrite it, or be
//! overwritten.

use crate::errors;
use crate::kept::Kept;
use koel_state::claim::{Claim, ClaimError};
use pyo3::PyResult;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

pub struct Place {
    path: PathBuf,
    /// The process that made it.
    process: u32,
    /// `None` once the filter is closed, and in a child. Saves to this file are made one after the other.
    claim: Mutex<Option<Claim>>,
}

/// The places that there are, for [`leave_to_parent`].
static PLACES: Mutex<Vec<Weak<Place>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The path in full, so that it stays the same when the process goes to another folder.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

impl Place {
    /// Claims a path. Does not wait if another process has it.
    pub fn claim(path: &Path) -> Result<Arc<Place>, ClaimError> {
        let claim = Claim::lay(path, Duration::ZERO)?;
        let (path, process) = (absolute(path), process::id());
        let place = Arc::new(Place { path, process, claim: Mutex::new(Some(claim)) });
        let mut places = lock(&PLACES);
        places.retain(|place| place.strong_count() > 0);
        places.push(Arc::downgrade(&place));
        Ok(place)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_of_parent(&self) -> bool {
        self.process != process::id()
    }

    pub fn save(&self, kept: &Kept) -> PyResult<()> {
        let claim = lock(&self.claim);
        match *claim {
            Some(_) => kept.save(&self.path).map_err(|error| errors::of_snapshot(&error)),
            None if self.is_of_parent() => Err(errors::of_parent(&self.path, self.process)),
            None => Err(errors::closed()),
        }
    }

    /// Leaves the file to others.
    pub fn leave(&self) {
        drop(lock(&self.claim).take());
    }
}

/// In a child, closes the files of all claims, so that they end with the parent. No other thread is there, and no
/// lock is held: forks wait for what locks them.
pub fn leave_to_parent() {
    for place in lock(&PLACES).drain(..).filter_map(|place| place.upgrade()) {
        place.leave();
    }
}
