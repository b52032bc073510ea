//! Outputs that take the place of a file once they are whole.
//!
//! The lines are written to a new file beside the old one, which then gets its name. So the old file
//! stays until the run has come to its end, and the input may be the same file, or come from a program
//! that is still reading it.

use crate::failure::Failure;
use crate::files::{folder_of, follow};
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, TempPath};

/// The longest part of a name that the name of the unfinished file repeats.
const NAME: usize = 100;

/// A file that is being written. It is removed unless it takes the other one's place.
pub struct Replacement {
    unfinished: TempPath,
    file: File,
    /// The file of that name, if there is one.
    old: Option<Metadata>,
    path: PathBuf,
}

impl Replacement {
    /// Begins a file for this path, which may be that of a regular file. Returns `None` if its folder
    /// does not allow new files, although the file itself may be written to.
    pub fn begin(path: &Path) -> io::Result<Option<Replacement>> {
        // Links are followed, so that the file is replaced and not the link.
        let path = follow(path);
        let old = match OpenOptions::new().write(true).open(&path) {
            Ok(old) => Some(old.metadata()?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mode = old.as_ref().map_or(0o666, |old| old.permissions().mode() & 0o777);
        let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
        let mut prefix = OsString::from(".");
        if name.len() <= NAME {
            prefix.push(name);
        }
        let mut builder = Builder::new();
        builder.prefix(&prefix).suffix(".koel-writing").permissions(Permissions::from_mode(mode));
        let (file, unfinished) = match builder.tempfile_in(folder_of(&path)) {
            Ok(unfinished) => unfinished.into_parts(),
            Err(error) if error.kind() == ErrorKind::PermissionDenied && old.is_some() => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if old.is_some() {
            // Whatever the process's mask would have left out.
            fs::set_permissions(&unfinished, Permissions::from_mode(mode))?;
        }
        Ok(Some(Replacement { unfinished, file, old, path }))
    }

    /// The file to write to.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// The file that is to be replaced, if it is there.
    pub fn old(&self) -> Option<&Metadata> {
        self.old.as_ref()
    }

    /// Gives the file its name. An old file of that name is replaced, once the new one is on the disk.
    pub fn finish(self) -> Result<(), Failure> {
        let Replacement { unfinished, file, old, path } = self;
        let cannot = |error| Failure::of(format!("{}: cannot replace it", path.display()), &error);
        if old.is_some() {
            file.sync_data().map_err(cannot)?;
        }
        unfinished.persist(&path).map_err(|error| cannot(error.error))
    }
}
