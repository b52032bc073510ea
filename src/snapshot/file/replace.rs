//! Replaces an old file with a new one: as a whole, or not at all.
//!
//! The new file is written next to the old one as an *unfinished file*, named `.NAME.koel-saving`.
//! It is synced and renamed, and then the folder is synced. So the path leads to the old file or to
//! the new one at every moment, and it leads to the old one until the new one is on disk.
//!
//! Only one save to a path runs at a time. Otherwise an earlier save could replace the file of a later one. The lock on
//! the unfinished file ensures this. When a process is killed, the system releases its lock, unless a child that it
//! forked is still alive. A later save that gets the lock therefore knows that the file was abandoned, and removes it.
//! No save ever writes to a file that another save has created.
//!
//! Where there are no such locks, each unfinished file has a name of its own, and saves to the same
//! path do not notice each other.

use crate::snapshot::error::SnapshotError;
use crate::snapshot::file::new_file::{NewFile, old};
use crate::snapshot::file::paths::{folder_of, follow};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

const UNFINISHED: &str = ".koel-saving";

/// Replaces the file at `path` with the output of `write`.
pub fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, SnapshotError>,
) -> Result<T, SnapshotError> {
    // Such a path names a folder. Without this check, only the rename at the end would fail.
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(SnapshotError::not_a_file());
    }
    let target = follow(path)?;
    let replaces = old(&target)?.is_some();
    // A folder that cannot be opened cannot be synced. It is better to fail before anything is done.
    let folder =
        Folder::open(folder_of(&target)).map_err(SnapshotError::io("cannot open its folder"))?;
    let mut new = match NewFile::alone(&target, UNFINISHED, replaces)? {
        Some(new) => new,
        None => NewFile::create(&target, UNFINISHED, replaces)?,
    };
    let written = write(&mut new.file)?;
    new.keep_permissions()?;
    new.file.sync_all().map_err(SnapshotError::io("cannot sync the new file"))?;
    new.take_place()?;
    folder.sync().map_err(SnapshotError::not_synced)?;
    Ok(written)
}

/// Syncs the folder of a file, so that the names there survive a power failure.
#[cfg(all(unix, feature = "durable", not(any(loom, shuttle))))]
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    Folder::open(folder_of(path))?.sync()
}

/// An open folder, so that the names of its files can be synced to disk.
pub(crate) struct Folder {
    #[cfg(unix)]
    open: File,
}

impl Folder {
    #[cfg(unix)]
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Folder { open: File::open(path)? })
    }

    #[cfg(unix)]
    pub(crate) fn sync(&self) -> io::Result<()> {
        match self.open.sync_all() {
            // Some file systems have nothing to sync for a folder.
            Err(error)
                if [ErrorKind::InvalidInput, ErrorKind::Unsupported].contains(&error.kind()) =>
            {
                Ok(())
            }
            result => result,
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn open(_: &Path) -> io::Result<Self> {
        Ok(Folder {})
    }

    #[cfg(not(unix))]
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
