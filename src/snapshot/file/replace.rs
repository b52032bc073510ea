//! Puts a new file in the place of an old one: as a whole, or not at all.
//!
//! The new file is written next to the old one as an *unfinished file*, named `.NAME.koel-saving`.
//! It is synced and renamed, and then the folder is synced. So the path leads to the old file or to
//! the new one at every moment, and it leads to the old one until the new one is on disk.
//!
//! Only one save to a path runs at a time. Otherwise an earlier save could replace what a later one
//! has written. The lock on the unfinished file ensures this. When a process is killed, the system
//! releases its lock, unless a child that it forked is still alive. A later save that gets the lock
//! therefore knows that the file was abandoned, and removes it. No save ever writes to a file that
//! another one has created.
//!
//! Where there are no such locks, each unfinished file has a name of its own, and saves to the same
//! path do not notice each other.

use crate::snapshot::error::Reason;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// Replaces the file at `path` with what `write` writes.
pub fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, Reason>,
) -> Result<T, Reason> {
    // Such a path names a folder. Without this check, only the rename at the end would fail.
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(Reason::NotAFile);
    }
    let target = follow(path)?;
    let old = old_metadata(&target)?;
    // A folder that cannot be opened cannot be synced. It is better to fail before anything is
    // done.
    let folder = Folder::open(folder_of(&target)).map_err(Reason::io("cannot open its folder"))?;
    let mut unfinished = Unfinished::new(&target, old.is_some())?;
    let written = write(&mut unfinished.file)?;
    // The permissions of the old file may have changed meanwhile.
    if let Some(old) = old_metadata(&target)? {
        let copied = copy_permissions(&unfinished.file, &old);
        copied.map_err(Reason::io("cannot give the new file the permissions of the old one"))?;
    }
    unfinished.finish(&target)?;
    folder.sync().map_err(|error| Reason::NotSynced { error })?;
    Ok(written)
}

/// Returns the metadata of the old file, if there is one.
fn old_metadata(target: &Path) -> Result<Option<Metadata>, Reason> {
    match fs::metadata(target) {
        Ok(old) if !old.is_file() => Err(Reason::NotAFile),
        Ok(old) => Ok(Some(old)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Reason::io("cannot inspect the old file")(error)),
    }
}

/// Returns where a symbolic link leads, even if nothing is there yet; or any other path as it is.
fn follow(path: &Path) -> Result<PathBuf, Reason> {
    let mut path = path.to_path_buf();
    // The system follows this many links, too.
    for _ in 0..40 {
        match fs::symlink_metadata(&path) {
            Ok(there) if there.is_symlink() => {
                let to =
                    fs::read_link(&path).map_err(Reason::io("cannot read the symbolic link"))?;
                path = folder_of(&path).join(to);
            }
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            Err(error) => return Err(Reason::io("cannot inspect the old file")(error)),
        }
    }
    Ok(path)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// A new file until it is renamed. No other save writes to it. It is removed if this is dropped.
struct Unfinished {
    path: PathBuf,
    file: File,
    finished: bool,
}

impl Unfinished {
    /// Creates and locks the file. If it will replace another one, only its owner can read it until
    /// it gets the permissions of the old file.
    fn new(target: &Path, replaces: bool) -> Result<Self, Reason> {
        let name = target.file_name().ok_or(Reason::NotAFile)?;
        let path = folder_of(target).join(unfinished_name(name));
        if !LOCKS {
            return Self::without_locks(&path, replaces);
        }
        // A save that was faster may have finished by the next attempt.
        for _ in 0..100 {
            let mut unfinished = match Self::create(&path, replaces) {
                Ok(unfinished) => unfinished,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    match remove_leftover(&path)? {
                        Leftover::Removed => continue,
                        Leftover::Unknown => return Self::without_locks(&path, replaces),
                    }
                }
                Err(error) => return Err(cannot("cannot create", &path, error)),
            };
            match try_lock(&unfinished.file) {
                Some(Ok(())) if is_at(&unfinished.file, &path)? => return Ok(unfinished),
                // Another save took the file for a leftover before it was locked, and removes it.
                Some(Ok(()) | Err(TryLockError::WouldBlock)) => unfinished.finished = true,
                Some(Err(TryLockError::Error(error))) => {
                    return Err(cannot("cannot lock", &path, error));
                }
                None => {
                    drop(unfinished);
                    return Self::without_locks(&path, replaces);
                }
            }
        }
        Err(Reason::Busy { unfinished: path })
    }

    fn create(path: &Path, private: bool) -> io::Result<Self> {
        let file = create(path, private)?;
        Ok(Unfinished { path: path.to_path_buf(), file, finished: false })
    }

    /// Creates the file under a name that no other save has.
    fn without_locks(path: &Path, replaces: bool) -> Result<Self, Reason> {
        let process = std::process::id();
        for number in 0.. {
            let mut name = path.as_os_str().to_owned();
            name.push(format!("-{process}-{number}"));
            let path = PathBuf::from(name);
            match Self::create(&path, replaces) {
                Ok(unfinished) => return Ok(unfinished),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < 10_000 => {}
                Err(error) => return Err(cannot("cannot create", &path, error)),
            }
        }
        Err(Reason::InTheWay { unfinished: path.to_path_buf() })
    }

    /// Syncs the file and renames it.
    fn finish(mut self, target: &Path) -> Result<(), Reason> {
        self.file.sync_all().map_err(Reason::io("cannot sync the new file"))?;
        if !is_at(&self.file, &self.path)? {
            return Err(Reason::Removed { unfinished: std::mem::take(&mut self.path) });
        }
        match fs::rename(&self.path, target) {
            Ok(()) => {}
            // A network file system may report an error for a rename that it has carried out.
            Err(_) if is_at(&self.file, target).is_ok_and(|it_is| it_is) && LOCKS => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Reason::Removed { unfinished: std::mem::take(&mut self.path) });
            }
            Err(error) => return Err(cannot("cannot rename", &self.path, error)),
        }
        self.finished = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // The file is still locked here. Once it is not, the path may be another save's file.
        if !self.finished && is_at(&self.file, &self.path).is_ok_and(|ours| ours) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The outcome for an unfinished file that was there already.
enum Leftover {
    Removed,
    /// Without locks it cannot be known whether a save is using it.
    Unknown,
}

/// Removes an unfinished file if no save is using it.
fn remove_leftover(path: &Path) -> Result<Leftover, Reason> {
    let is_file = fs::symlink_metadata(path).map(|left| left.is_file());
    if matches!(is_file, Ok(false)) {
        return Err(Reason::InTheWay { unfinished: path.to_path_buf() });
    }
    // Some systems lock only files that are open for writing.
    let left = OpenOptions::new().write(true).open(path).or_else(|error| match error.kind() {
        ErrorKind::PermissionDenied => File::open(path),
        _ => Err(error),
    });
    let left = match left {
        Ok(left) => left,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Leftover::Removed),
        Err(error) => return Err(cannot("cannot open the leftover file", path, error)),
    };
    match try_lock(&left) {
        Some(Err(TryLockError::WouldBlock)) => Err(Reason::Busy { unfinished: path.to_path_buf() }),
        // As long as it is locked, no other save removes it and creates a new one.
        Some(Ok(())) if is_at(&left, path)? => match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(cannot("cannot remove the leftover file", path, error))
            }
            _ => Ok(Leftover::Removed),
        },
        Some(Ok(())) => Ok(Leftover::Removed),
        Some(Err(TryLockError::Error(error))) => Err(cannot("cannot lock", path, error)),
        None => Ok(Leftover::Unknown),
    }
}

fn cannot(doing: &'static str, path: &Path, error: io::Error) -> Reason {
    Reason::Unfinished { doing, unfinished: path.to_path_buf(), error }
}

/// Returns the name of the unfinished file for a file of this name. A name has at most 255 bytes,
/// or 143 in an encrypted folder, so a long name is replaced by its hash.
fn unfinished_name(name: &OsStr) -> OsString {
    let mut unfinished = OsString::from(".");
    if name.len() <= 130 {
        unfinished.push(name);
    } else {
        unfinished.push(format!("{:016x}", xxh3_64(name.as_encoded_bytes())));
    }
    unfinished.push(".koel-saving");
    unfinished
}

/// Creates a file that does not exist yet. If it is `private`, only its owner can read and write
/// it.
fn create(path: &Path, private: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    options.open(path)
}

/// Whether [`is_at`] can tell which file a path leads to. Locks are of no use without that.
const LOCKS: bool = cfg!(unix);

/// Locks the file unless another save has locked it. Returns `None` if there are no locks here.
fn try_lock(file: &File) -> Option<Result<(), TryLockError>> {
    match file.try_lock() {
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => try_lock(file),
        // The errors of systems and file systems that have no locks.
        Err(TryLockError::Error(error))
            if error.kind() == ErrorKind::Unsupported
                || error.raw_os_error().is_some_and(|code| NO_LOCKS.contains(&code)) =>
        {
            None
        }
        result => Some(result),
    }
}

/// `ENOLCK`, and `EBADF`, which some systems return for a file that is not open for writing.
#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
const NO_LOCKS: [i32; 2] = [libc::ENOLCK, libc::EBADF];
#[cfg(all(unix, any(not(target_os = "linux"), loom, shuttle)))]
const NO_LOCKS: [i32; 2] = [77, 9];
#[cfg(not(unix))]
const NO_LOCKS: [i32; 0] = [];

/// Whether this file is still at the path, and the path is not a symbolic link.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> Result<bool, Reason> {
    use std::os::unix::fs::MetadataExt;
    let id = |about: Metadata| (about.dev(), about.ino());
    let there = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        there => there.and_then(|there| Ok(id(there) == id(file.metadata()?))),
    };
    there.map_err(|error| cannot("cannot inspect", path, error))
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> Result<bool, Reason> {
    Ok(path.exists())
}

/// Gives a file the owner, the group and the permissions of the old one, as far as the system
/// allows.
///
/// No user gets a permission that they did not have. If the owner cannot be changed, the old owner
/// may now be one of the others, who therefore get no more than the old owner had. If the group
/// cannot be changed either, the file's group gets nothing, and the others, who may now include the
/// old group, get no more than the old group had.
#[cfg(unix)]
fn copy_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let was = old.permissions().mode() & 0o7777;
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
    if new.permissions().mode() & 0o7777 == mode {
        return Ok(());
    }
    file.set_permissions(PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
fn copy_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())
}

/// An open folder, so that the names of its files can be synced to disk.
struct Folder {
    #[cfg(unix)]
    open: File,
}

impl Folder {
    #[cfg(unix)]
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Folder { open: File::open(path)? })
    }

    #[cfg(unix)]
    fn sync(&self) -> io::Result<()> {
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
    fn open(_: &Path) -> io::Result<Self> {
        Ok(Folder {})
    }

    #[cfg(not(unix))]
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
