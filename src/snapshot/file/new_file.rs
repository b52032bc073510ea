//! A new file beside an old one, which it replaces.

use crate::snapshot::error::{SnapshotError, SnapshotErrorKind};
use crate::snapshot::file::paths::{beside, is_at};
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A new file that has not taken its place yet. No other save writes to it. Dropping it removes the file.
///
/// If the file is to replace another one, only its owner can read it until it gets the permissions of the other.
#[derive(Debug)]
pub struct NewFile {
    /// The file to write to.
    pub file: File,
    path: PathBuf,
    target: PathBuf,
    /// Whether the file has taken its place, or another save removes it.
    is_gone: bool,
}

impl NewFile {
    /// Creates a file with a unique name: that of the target with the suffix, the process and a number. The target must
    /// not be a link.
    pub fn create(target: &Path, suffix: &str, replaces: bool) -> Result<Self, SnapshotError> {
        let (process, mut number) = (std::process::id(), 0);
        loop {
            let path = beside(target, &format!("{suffix}-{process}-{number}"));
            let path = path.ok_or(SnapshotError::not_a_file())?;
            match Self::at(&path, target, replaces) {
                Ok(new) => return Ok(new),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < 10_000 => {
                    number += 1;
                }
                Err(error) => return Err(SnapshotError::unfinished("cannot create", &path, error)),
            }
        }
    }

    /// Creates and locks a file whose suffix has no number, after removing a leftover file. Returns `None` where there
    /// are no locks.
    pub fn alone(
        target: &Path,
        suffix: &str,
        replaces: bool,
    ) -> Result<Option<Self>, SnapshotError> {
        let path = beside(target, suffix).ok_or(SnapshotError::not_a_file())?;
        if !LOCKS {
            return Ok(None);
        }
        // A faster save may have finished by the next attempt.
        for _ in 0..100 {
            let mut new = match Self::at(&path, target, replaces) {
                Ok(new) => new,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    match remove_leftover(&path)? {
                        Some(()) => continue,
                        None => return Ok(None),
                    }
                }
                Err(error) => return Err(SnapshotError::unfinished("cannot create", &path, error)),
            };
            match try_lock(&new.file, &path)? {
                Some(true) if is_at(&new.file, &path)? => return Ok(Some(new)),
                // Another save took the file for a leftover before it was locked, and removes it.
                Some(_) => new.is_gone = true,
                None => return Ok(None),
            }
        }
        Err(SnapshotError::busy(&path))
    }

    fn at(path: &Path, target: &Path, replaces: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, if replaces { 0o600 } else { 0o666 });
        #[cfg(not(unix))]
        let _ = replaces;
        let file = options.open(path)?;
        let (path, target) = (path.to_path_buf(), target.to_path_buf());
        Ok(NewFile { file, path, target, is_gone: false })
    }

    /// Gives the file the permissions of the file that it replaces, which may have changed meanwhile. Returns whether
    /// there is such a file.
    pub fn keep_permissions(&self) -> Result<bool, SnapshotError> {
        let Some(old) = old(&self.target)? else { return Ok(false) };
        copy_permissions(&self.file, &old).map_err(SnapshotError::io(
            "cannot give the new file the permissions of the old one",
        ))?;
        Ok(true)
    }

    /// Renames the file to its target.
    pub fn take_place(mut self) -> Result<(), SnapshotError> {
        if !is_at(&self.file, &self.path)? {
            return Err(SnapshotError::removed(&self.path));
        }
        match fs::rename(&self.path, &self.target) {
            Ok(()) => {}
            // A network file system may report an error for a rename that it has carried out.
            Err(_) if is_at(&self.file, &self.target).is_ok_and(|it_is| it_is) && LOCKS => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(SnapshotError::removed(&self.path));
            }
            Err(error) => {
                return Err(SnapshotError::unfinished("cannot rename", &self.path, error));
            }
        }
        self.is_gone = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // If the file was locked, it still is. Once it is unlocked, the path may belong to another save.
        if !self.is_gone && is_at(&self.file, &self.path).is_ok_and(|ours| ours) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns the metadata of the old file, if there is one.
pub fn old(target: &Path) -> Result<Option<Metadata>, SnapshotError> {
    match fs::metadata(target) {
        Ok(old) if !old.is_file() => Err(SnapshotError::not_a_file()),
        Ok(old) => Ok(Some(old)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SnapshotError::io("cannot inspect the old file")(error)),
    }
}

/// Removes a leftover file, if no save is using it. Returns `None` if that cannot be known, for want of locks.
fn remove_leftover(path: &Path) -> Result<Option<()>, SnapshotError> {
    let is_file = fs::symlink_metadata(path).map(|left| left.is_file());
    if matches!(is_file, Ok(false)) {
        return Err(in_the_way(path));
    }
    // Some systems lock only files that are open for writing.
    let left = OpenOptions::new().write(true).open(path).or_else(|error| match error.kind() {
        ErrorKind::PermissionDenied => File::open(path),
        _ => Err(error),
    });
    let left = match left {
        Ok(left) => left,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(())),
        Err(error) => {
            return Err(SnapshotError::unfinished("cannot open the leftover file", path, error));
        }
    };
    match try_lock(&left, path)? {
        Some(false) => Err(SnapshotError::busy(path)),
        // While the file is locked, no other save removes it and creates a new one.
        Some(true) if is_at(&left, path)? => match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(SnapshotError::unfinished("cannot remove the leftover file", path, error))
            }
            _ => Ok(Some(())),
        },
        Some(true) => Ok(Some(())),
        None => Ok(None),
    }
}

fn in_the_way(unfinished: &Path) -> SnapshotError {
    let text = format!(
        "{} is in the way, where the new file is written before it replaces the old one: remove it",
        unfinished.display()
    );
    SnapshotError::new(SnapshotErrorKind::Io, text)
}

/// Whether [`is_at`] can determine which file a path leads to. Locks are useless without that.
const LOCKS: bool = cfg!(unix);

/// Tries to lock the file. Returns whether nobody else had locked it, or `None` if there are no locks here.
fn try_lock(file: &File, path: &Path) -> Result<Option<bool>, SnapshotError> {
    match file.try_lock() {
        Ok(()) => Ok(Some(true)),
        Err(TryLockError::WouldBlock) => Ok(Some(false)),
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => {
            try_lock(file, path)
        }
        // The errors of systems and file systems without locks.
        Err(TryLockError::Error(error))
            if error.kind() == ErrorKind::Unsupported
                || error.raw_os_error().is_some_and(|code| NO_LOCKS.contains(&code)) =>
        {
            Ok(None)
        }
        Err(TryLockError::Error(error)) => {
            Err(SnapshotError::unfinished("cannot lock", path, error))
        }
    }
}

/// `ENOLCK`, and `EBADF`, which some systems return for a file that is not open for writing.
#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
const NO_LOCKS: [i32; 2] = [libc::ENOLCK, libc::EBADF];
#[cfg(all(unix, any(not(target_os = "linux"), loom, shuttle)))]
const NO_LOCKS: [i32; 2] = [77, 9];
#[cfg(not(unix))]
const NO_LOCKS: [i32; 0] = [];

/// Gives a file the owner, the group and the permissions of the old one, as far as the system
/// allows.
///
/// No user gets a permission that they did not have. If the owner cannot be changed, the old owner
/// may now be one of the others, who therefore get no more than the old owner had. If the group
/// cannot be changed either, the file's group gets nothing, and the others, who may now include the
/// old group, get no more than the old group had.
#[cfg(unix)]
pub fn copy_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let was = old.permissions().mode() & 0o7777;
    let mut mode = was;
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid())
        && fchown(file, Some(old.uid()), Some(old.gid())).is_err()
    {
        // The set-ID bits are dropped, so that nobody acts as another owner.
        mode &= 0o777 & (!0o7 | was >> 6);
        if fchown(file, None, Some(old.gid())).is_err() {
            mode &= !0o077 | was >> 3 & 0o7;
        }
    }
    if new.permissions().mode() & 0o7777 == mode {
        return Ok(());
    }
    file.set_permissions(PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
pub(crate) fn copy_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())
}
