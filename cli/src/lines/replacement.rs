//! Outputs that take the place of a file once they are whole.
//!
//! The lines are written to a new file in the folder of the old one, `.NAME.koel-writing`, which then gets its name. So
//! the old file stays until the run has come to its end, and the input may be the same file, or come from a program
//! that is still reading it. What a killed run has left is removed by the next one that writes to this path.

use crate::failure::Failure;
use koel::disk::{DiskError, Unfinished, beside, follow};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A file that is being written. It is removed unless it takes the other one's place.
pub struct Replacement {
    new: Unfinished,
    /// The file of that name, if there is one.
    pub old: Option<Metadata>,
    path: PathBuf,
}

pub const SUFFIX: &str = ".koel-writing";

impl Replacement {
    /// Begins a file for this path, which may be that of a regular file. Until it takes the place of
    /// another one, only its owner can read it.
    pub fn begin(path: &Path) -> Result<Replacement, Failure> {
        let cannot = |error| Failure::about(path, &error);
        // Links are followed, so that the file is replaced and not the link.
        let target = follow(path).map_err(|error| cannot(error.into_io_error()))?;
        let old = match OpenOptions::new().write(true).open(&target) {
            Ok(old) => Some(old.metadata().map_err(cannot)?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(cannot(error)),
        };
        let new = Unfinished::create(&target, SUFFIX, old.is_some()).map_err(|error| {
            let what = "cannot create a file in its folder, where the lines are written first";
            let advice = "standard output needs no such file";
            Failure::of(format!("{}: {what} ({advice})", path.display()), error.into_io_error())
        })?;
        Ok(Replacement { new, old, path: target })
    }

    /// The file to write to.
    pub fn file(&self) -> io::Result<File> {
        self.new.file.try_clone()
    }

    /// The path of the file that is to take the place of this one.
    pub fn unfinished_beside(path: &Path) -> Option<PathBuf> {
        beside(path, SUFFIX)
    }

    /// The path that it is to have.
    pub fn target(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name. An old file of that name is replaced, once the new one is on the disk.
    pub fn finish(self) -> Result<(), Failure> {
        let Replacement { new, path, .. } = self;
        let finish = || {
            if new.keep_permissions().map_err(DiskError::into_io_error)? {
                new.file.sync_data()?;
            }
            new.take_place().map_err(DiskError::into_io_error)
        };
        finish()
            .map_err(|error| Failure::of(format!("{}: cannot replace it", path.display()), &error))
    }
}
