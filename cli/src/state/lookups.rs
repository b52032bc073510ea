//! Lookups in a state: in its file, or in memory if it forgets.

use crate::failure::Failure;
use crate::state::comparison::LineHash;
use crate::state::refusals::{cannot_use, check_path};
use crate::state::seen::Seen;
use koel::{Prehashed, SnapshotFile, Stats};
use koel_state::window;
use std::path::{Path, PathBuf};

/// A state that is only asked.
pub struct Lookups {
    path: PathBuf,
    state: State,
}

#[allow(clippy::large_enum_variant, reason = "there is one, in a box")]
enum State {
    /// Any number of lines is looked up in the file: the first one in a shard reads and checks it, as a load does, so a
    /// load saves little, and its memory would be this process's alone.
    InFile(SnapshotFile<LineHash>),
    /// What is in the file of a state that forgets may be forgotten by now.
    Loaded(Seen),
}

/// A state of no more shards, about a megabyte, is checked at once: then it is known to be whole before any line is
/// read.
pub const FEW_SHARDS: usize = 16;

impl Lookups {
    pub fn open(path: &Path) -> Result<Self, Failure> {
        check_path(path)?;
        let cannot_use = |error| cannot_use(path, &error);
        let file = SnapshotFile::<LineHash>::open(path).map_err(cannot_use)?;
        if file.info().stats.shards <= FEW_SHARDS {
            file.check().map_err(cannot_use)?;
        }
        let state = match file.info().remembers {
            None => State::InFile(file),
            Some(_) => {
                let filter = file.load().map_err(cannot_use)?;
                window::keep_up(&filter);
                State::Loaded(filter)
            }
        };
        Ok(Lookups { path: path.to_path_buf(), state })
    }

    pub fn hasher(&self) -> &LineHash {
        match &self.state {
            State::InFile(file) => file.hasher(),
            State::Loaded(seen) => seen.hasher(),
        }
    }

    /// Looks up the lines with these hashes.
    pub fn find(&self, hashes: &[Prehashed]) -> Result<Vec<bool>, Failure> {
        match &self.state {
            State::InFile(file) => file.contains_many(hashes),
            State::Loaded(seen) => Ok(seen.contains_many(hashes)),
        }
        .map_err(|error| cannot_use(&self.path, &error))
    }

    /// The figures of the state. Its size is what it takes here, and its rate is an estimate if it is not loaded.
    pub fn stats(&self) -> Stats {
        match &self.state {
            State::Loaded(seen) => seen.stats(),
            State::InFile(file) => {
                let mut stats = file.info().stats.clone();
                stats.size_in_bytes = file.size_in_bytes();
                stats
            }
        }
    }
}
