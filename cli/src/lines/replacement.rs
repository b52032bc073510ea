//! Outputs that take the place of a file once they are whole.
//!
//! The lines are written to a new file beside the old one, which then gets its name. So the old file
//! stays until the run has come to its end, and the input may be the same file, or come from a program
//! that is still reading it.

use crate::failure::Failure;
use koel_state::files::{folder_of, follow};
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
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
    /// Begins a file for this path, which may be that of a regular file. Until it takes the place of
    /// another one, only its owner can read it.
    pub fn begin(path: &Path) -> Result<Replacement, Failure> {
        let cannot = |error| Failure::about(path, &error);
        // Links are followed, so that the file is replaced and not the link.
        let target = follow(path);
        let old = match OpenOptions::new().write(true).open(&target) {
            Ok(old) => Some(old.metadata().map_err(cannot)?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(cannot(error)),
        };
        let mode = if old.is_some() { 0o600 } else { 0o666 };
        let name = target.file_name().ok_or_else(|| cannot(ErrorKind::IsADirectory.into()))?;
        let mut prefix = OsString::from(".");
        if name.len() <= NAME {
            prefix.push(name);
        }
        let mut builder = Builder::new();
        builder.prefix(&prefix).suffix(".koel-writing").permissions(Permissions::from_mode(mode));
        let folder = folder_of(&target);
        let (file, unfinished) = match builder.tempfile_in(folder) {
            Ok(unfinished) => unfinished.into_parts(),
            Err(error) if old.is_some() => {
                let (name, folder) = (path.display(), folder.display());
                let what = format!(
                    "{name}: cannot create a file in its folder {folder}, where the lines are \
                     written before they replace it (standard output needs no such file)"
                );
                return Err(Failure::of(what, &error));
            }
            Err(error) => return Err(cannot(error)),
        };
        Ok(Replacement { unfinished, file, old, path: target })
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
            // Its permissions may have changed meanwhile.
            if let Ok(old) = fs::metadata(&path) {
                copy_permissions(&file, &old).map_err(cannot)?;
            }
            file.sync_data().map_err(cannot)?;
        }
        unfinished.persist(&path).map_err(|error| cannot(error.error))
    }
}

/// Gives a file the owner, the group and the permissions of the old one, as far as the system allows,
/// as a save of a state does.
///
/// No user gets a permission that they did not have. If the owner cannot be changed, the old owner may
/// now be one of the others, who therefore get no more than the old owner had. If the group cannot be
/// changed either, the file's group gets nothing, and the others, who may now include the old group,
/// get no more than the old group had.
fn copy_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    let was = old.permissions().mode() & 0o777;
    let mut mode = was;
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid())
        && fchown(file, Some(old.uid()), Some(old.gid())).is_err()
    {
        mode &= !0o7 | was >> 6;
        if fchown(file, None, Some(old.gid())).is_err() {
            mode &= !0o077 | was >> 3 & 0o7;
        }
    }
    file.set_permissions(Permissions::from_mode(mode))
}
