//! Replaces an old file with a new one: as a whole, or not at all.
//!
//! The new file is written next to the old one as an *unfinished file*, named `.NAME.koel-saving`. It is synced and
//! renamed, and then the folder is synced. Where the system does not rename over the old file, the save fails.
//!
//! A lock on the unfinished file keeps an earlier save from replacing the file of a later one. When a process is
//! killed, the system releases its lock, unless a child that it forked is still alive. A later save that gets the lock
//! therefore knows that the file was abandoned, and removes it. No save ever writes to a file that another save has
//! created.

use crate::disk::error::{DiskError, DiskErrorKind};
use crate::disk::space::{allocate, check_limit};
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

const UNFINISHED: &str = ".koel-saving";

/// A file that is being written, and then takes the place of another one, or is removed when this is dropped.
///
/// ```
/// use koel::disk::Replacement;
///
/// # let path = std::env::temp_dir().join(format!("koel-replace-{}", std::process::id()));
/// let mut new = Replacement::begin(&path)?;
/// new.write_all(b"1, 2")?;
/// new.write_all(b", 3")?;
/// assert!(!path.exists());
/// new.finish()?;
/// assert_eq!(std::fs::read(&path)?, b"1, 2, 3");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Replacement {
    new: Unfinished,
    #[cfg(unix)]
    folder: File,
    /// The number of bytes that were written.
    written: u64,
    /// Whether space was allocated.
    is_reserved: bool,
}

impl Replacement {
    /// Begins to replace the file at a path, which need not exist yet.
    ///
    /// # Errors
    ///
    /// Returns an error if no file can be written beside it, or if another process or thread replaces it.
    pub fn begin(path: &Path) -> Result<Self, DiskError> {
        // Such a path names a folder. Without this check, only the rename at the end would fail.
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(DiskError::not_a_file());
        }
        let target = follow(path)?;
        let replaces = old(&target)?.is_some();
        // A folder that cannot be opened cannot be synced. It is better to fail before anything is done.
        #[cfg(unix)]
        let folder =
            File::open(folder_of(&target)).map_err(DiskError::io("cannot open its folder"))?;
        Ok(Replacement {
            new: Unfinished::create(&target, UNFINISHED, replaces)?,
            #[cfg(unix)]
            folder,
            written: 0,
            is_reserved: false,
        })
    }

    /// Allocates space, if the file system can, so that a full disk is found out before anything is written.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no space.
    pub fn reserve(&mut self, bytes: u64) -> Result<(), DiskError> {
        self.is_reserved = true;
        allocate(&self.new.file, 0, bytes).map(drop).map_err(DiskError::io(CANNOT_WRITE))
    }

    /// Writes at the end of the new file.
    ///
    /// # Errors
    ///
    /// Returns an error if the system does, or if the file would be longer than this process may write one, for
    /// which the system would end the process with a signal.
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.written += bytes.len() as u64;
        let written = check_limit(self.written).and_then(|()| self.new.file.write_all(bytes));
        written.map_err(DiskError::io(CANNOT_WRITE))
    }

    /// Syncs the new file, and puts it in the place of the old one.
    ///
    /// # Errors
    ///
    /// Returns an error if the old file is still in place, or [`NotSynced`](DiskErrorKind::NotSynced).
    pub fn finish(self) -> Result<(), DiskError> {
        if self.is_reserved {
            self.new.file.set_len(self.written).map_err(DiskError::io(CANNOT_WRITE))?;
        }
        self.new.keep_permissions()?;
        self.new.file.sync_all().map_err(DiskError::io("cannot sync the new file"))?;
        self.new.take_place()?;
        #[cfg(unix)]
        sync_folder(&self.folder).map_err(DiskError::not_synced)?;
        Ok(())
    }
}

const CANNOT_WRITE: &str = "cannot write";

/// A new file that has not taken its place yet. Nobody else writes to it. Dropping it removes the file. If it is to
/// replace another one, only its owner can read it until it gets the permissions of the other.
#[derive(Debug)]
pub struct Unfinished {
    /// The file to write to.
    pub file: File,
    path: PathBuf,
    target: PathBuf,
    /// Whether the file has taken its place, or another save removes it.
    is_gone: bool,
}

impl Unfinished {
    /// Creates and locks a file that has the name of the target with a suffix, after removing a leftover file. The
    /// target must not be a link.
    ///
    /// # Errors
    ///
    /// Returns an error if no file can be written there, or if another process or thread does.
    pub fn create(target: &Path, suffix: &str, replaces: bool) -> Result<Self, DiskError> {
        let path = beside(target, suffix).ok_or_else(DiskError::not_a_file)?;
        // A faster save may have finished by the next attempt.
        for _ in 0..100 {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true);
            let mode = if replaces { 0o600 } else { 0o666 };
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
            #[cfg(not(unix))]
            let _ = mode;
            let file = match options.open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    remove_leftover(&path)?;
                    continue;
                }
                Err(error) => return Err(DiskError::unfinished("cannot create", &path)(error)),
            };
            let target = target.to_path_buf();
            let mut new = Unfinished { file, path: path.clone(), target, is_gone: false };
            if try_lock(&new.file, &path)? && is_at(&new.file, &path)? {
                return Ok(new);
            }
            // Another save took the file for a leftover before it was locked, and removes it.
            new.is_gone = true;
        }
        Err(DiskError::busy(&path))
    }

    /// Gives the file the permissions of the file that it replaces, which may have changed meanwhile. Returns whether
    /// there is such a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the system does.
    pub fn keep_permissions(&self) -> Result<bool, DiskError> {
        let Some(old) = old(&self.target)? else { return Ok(false) };
        copy_permissions(&self.file, &old)
            .map_err(DiskError::io("cannot give the new file the permissions of the old one"))?;
        Ok(true)
    }

    /// Renames the file to its target.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is gone, or if the system does not rename it.
    pub fn take_place(mut self) -> Result<(), DiskError> {
        if !is_at(&self.file, &self.path)? {
            return Err(DiskError::removed(&self.path));
        }
        match fs::rename(&self.path, &self.target) {
            Ok(()) => {}
            // A network file system may report an error for a rename that it has carried out.
            Err(_) if cfg!(unix) && is_at(&self.file, &self.target).is_ok_and(|it_is| it_is) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(DiskError::removed(&self.path));
            }
            Err(error) => {
                return Err(DiskError::unfinished("cannot rename", &self.path)(error));
            }
        }
        self.is_gone = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // The file is still locked. Once it is unlocked, the path may belong to another save.
        if !self.is_gone && is_at(&self.file, &self.path).is_ok_and(|ours| ours) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn old(target: &Path) -> Result<Option<Metadata>, DiskError> {
    match if_there(fs::metadata(target)).map_err(DiskError::io(CANNOT_INSPECT))? {
        Some(old) if !old.is_file() => Err(DiskError::not_a_file()),
        old => Ok(old),
    }
}

const CANNOT_INSPECT: &str = "cannot inspect it";

/// Returns `None` in the place of the error that there is no such file.
pub(crate) fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Removes a leftover file, if no save is using it.
fn remove_leftover(path: &Path) -> Result<(), DiskError> {
    if fs::symlink_metadata(path).is_ok_and(|left| !left.is_file()) {
        let text = format!(
            "{} is in the way, where the new file is written before it replaces the old one: remove it",
            path.display()
        );
        return Err(DiskError::new(DiskErrorKind::Io, text));
    }
    // Some systems lock only files that are open for writing.
    let left = OpenOptions::new().write(true).open(path).or_else(|error| match error.kind() {
        ErrorKind::PermissionDenied => File::open(path),
        _ => Err(error),
    });
    let cannot_open = DiskError::unfinished("cannot open the leftover file", path);
    let Some(left) = if_there(left).map_err(cannot_open)? else { return Ok(()) };
    if !try_lock(&left, path)? {
        return Err(DiskError::busy(path));
    }
    // While the file is locked, no other save removes it and creates a new one.
    if !is_at(&left, path)? {
        return Ok(());
    }
    let removed = if_there(fs::remove_file(path)).map(|_| ());
    removed.map_err(DiskError::unfinished("cannot remove the leftover file", path))
}

/// Tries to lock the file. Returns whether nobody else had locked it.
fn try_lock(file: &File, path: &Path) -> Result<bool, DiskError> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => {}
            Err(TryLockError::Error(error)) => {
                return Err(DiskError::unfinished("cannot lock", path)(error));
            }
        }
    }
}

/// Gives a file the owner, the group and the permissions of the old one, as far as the system allows.
///
/// No user gets a permission that they did not have:
///
/// 1. The owner cannot be changed. The old owner may now be among the others, who get no more than the old owner had.
/// 2. The group cannot be changed either. The file's group gets nothing, and the others, who may now include the old group,
///    get no more than the old group had.
///
/// # Errors
///
/// Returns an error if the system does not change the permissions.
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

/// Returns the path that a symbolic link leads to, even if nothing is there yet, or any other path as it is.
///
/// # Errors
///
/// Returns an error if the system does.
pub fn follow(path: &Path) -> Result<PathBuf, DiskError> {
    let mut path = path.to_path_buf();
    // The system follows this many links, too.
    for _ in 0..40 {
        let there = if_there(fs::symlink_metadata(&path));
        let there = there.map_err(DiskError::io(CANNOT_INSPECT))?;
        if !there.is_some_and(|there| there.is_symlink()) {
            break;
        }
        let to = fs::read_link(&path);
        let to = to.map_err(DiskError::io("cannot read the symbolic link"))?;
        path = folder_of(&path).join(to);
    }
    Ok(path)
}

/// Returns the folder of the file that a path names.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Returns the path `.NAME` and this suffix in the folder of a file, or `None` if the path names no file.
///
/// A name has at most 255 bytes, or 143 in an encrypted folder, so a long name is replaced by its hash.
#[must_use]
pub fn beside(path: &Path, suffix: &str) -> Option<PathBuf> {
    let name = path.file_name()?;
    let mut beside = OsString::from(".");
    if name.len() + suffix.len() < 143 {
        beside.push(name);
    } else {
        beside.push(format!("{:016x}", xxh3_64(name.as_encoded_bytes())));
    }
    beside.push(suffix);
    Some(folder_of(path).join(beside))
}

/// Returns whether this file is still at the path, and the path is not a symbolic link.
#[cfg(unix)]
pub(crate) fn is_at(file: &File, path: &Path) -> Result<bool, DiskError> {
    let is_it = if_there(fs::symlink_metadata(path)).and_then(|there| match there {
        Some(there) => Ok(id_of(&there) == id_of(&file.metadata()?)),
        None => Ok(false),
    });
    is_it.map_err(DiskError::unfinished("cannot inspect", path))
}

/// Returns what no other file of the system has, as long as this one is open.
#[cfg(unix)]
pub(crate) fn id_of(file: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (file.dev(), file.ino())
}

/// Returns whether there is any file at the path, because this system does not tell which.
#[cfg(not(unix))]
pub fn is_at(_: &File, path: &Path) -> Result<bool, DiskError> {
    Ok(path.exists())
}

/// Syncs the folder of a file, so that the names there survive a power failure.
#[cfg(all(unix, feature = "durable"))]
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    sync_folder(&File::open(folder_of(path))?)
}

#[cfg(unix)]
fn sync_folder(folder: &File) -> io::Result<()> {
    match folder.sync_all() {
        // Some file systems have nothing to sync for a folder.
        Err(error) if [ErrorKind::InvalidInput, ErrorKind::Unsupported].contains(&error.kind()) => {
            Ok(())
        }
        result => result,
    }
}
