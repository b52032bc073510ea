//! Outputs that take the place of a file once they are whole.
//!
//! The lines are written to a new file in the folder of the old one, which then gets its name. So the old file
//! stays until the run has come to its end, and the input may be the same file, or come from a program
//! that is still reading it.
//!
//! Where the system and the file system can, the new file has no name until then, so nothing is left of it if the run is
//! killed. Elsewhere, it has a name of its own.

use crate::failure::Failure;
use koel::SnapshotError;
use koel::files::{NewFile, beside, copy_permissions, folder_of, follow};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A file that is being written. It is removed unless it takes the other one's place.
pub struct Replacement {
    new: New,
    /// The file of that name, if there is one.
    old: Option<Metadata>,
    path: PathBuf,
}

enum New {
    Unnamed(File),
    Named(NewFile),
}

const SUFFIX: &str = ".koel-writing";

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
        if let Some(file) = unnamed::create(folder_of(&target), old.is_some()) {
            return Ok(Replacement { new: New::Unnamed(file), old, path: target });
        }
        let suffix = format!("{SUFFIX}-{}", std::process::id());
        match NewFile::create(&target, &suffix, old.is_some()) {
            Ok(new) => Ok(Replacement { new: New::Named(new), old, path: target }),
            Err(error) if old.is_some() => {
                let (name, folder) = (path.display(), folder_of(&target).display());
                let what = format!(
                    "{name}: cannot create a file in its folder {folder}, where the lines are \
                     written before they replace it (standard output needs no such file)"
                );
                Err(Failure::of(what, &error.into_io_error()))
            }
            Err(error) => Err(cannot(error.into_io_error())),
        }
    }

    /// The file to write to.
    pub fn file(&self) -> io::Result<File> {
        match &self.new {
            New::Unnamed(file) => file.try_clone(),
            New::Named(new) => new.file.try_clone(),
        }
    }

    /// The file that is to be replaced, if it is there.
    pub fn old(&self) -> Option<&Metadata> {
        self.old.as_ref()
    }

    /// Gives the file its name. An old file of that name is replaced, once the new one is on the disk.
    pub fn finish(self) -> Result<(), Failure> {
        let Replacement { new, path, .. } = self;
        let finish = || match new {
            New::Unnamed(file) => take_place(&file, &path),
            New::Named(new) => {
                if new.keep_permissions().map_err(SnapshotError::into_io_error)? {
                    new.file.sync_data()?;
                }
                new.take_place().map_err(SnapshotError::into_io_error)
            }
        };
        finish()
            .map_err(|error| Failure::of(format!("{}: cannot replace it", path.display()), &error))
    }
}

/// Renames a file without a name to its target. For a moment, it has another name: a link does not replace a file.
fn take_place(file: &File, target: &Path) -> io::Result<()> {
    match fs::metadata(target) {
        Ok(old) if !old.is_file() => return Err(io::Error::other("it is not a regular file")),
        Ok(old) => {
            copy_permissions(file, &old)?;
            file.sync_data()?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let process = std::process::id();
    for number in 0..10_000 {
        let Some(name) = beside(target, &format!("{SUFFIX}-{process}-{number}")) else { break };
        match unnamed::link(file, &name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(()) => {
                return fs::rename(&name, target).inspect_err(|_| drop(fs::remove_file(&name)));
            }
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod unnamed {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::{Path, PathBuf};

    /// The path of an open file, from which it can be linked.
    fn path_of(file: &File) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }

    /// Creates a file without a name in a folder. `None` if that is not possible.
    pub fn create(folder: &Path, replaces: bool) -> Option<File> {
        let mode = Mode::from_raw_mode(if replaces { 0o600 } else { 0o666 });
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(openat(CWD, folder, flags, mode).ok()?);
        // Without /proc, it could not get a name.
        path_of(&file).symlink_metadata().is_ok().then_some(file)
    }

    pub fn link(file: &File, name: &Path) -> io::Result<()> {
        Ok(linkat(CWD, path_of(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub fn create(_: &Path, _: bool) -> Option<File> {
        None
    }

    pub fn link(_: &File, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
