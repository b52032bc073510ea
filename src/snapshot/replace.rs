//! A new file in the place of an old one: as a whole, or not at all.
//!
//! The new file is written beside the old one, under a name of its own, `.NAME.koel-saving`, synced,
//! and renamed; then the folder is synced. So the path leads to the old file or to the new one at any
//! moment, and to the old one as long as the new one is not on disk.
//!
//! One save to a path at a time, or an earlier one might replace what a later one has written. The
//! unfinished file is locked for that. When its process is killed, the system gives the lock back (unless a child
//! that it forked lives on), and whoever comes next knows by it that the file is nobody's any more. Nobody
//! ever writes to a file that another has made.
//!
//! Where there are no such locks, unfinished files have names that nobody else has, and saves of one
//! path are not told of each other.

use crate::snapshot::error::Reason;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// Puts what `write` writes in the place of the file at `path`.
pub fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, Reason>,
) -> Result<T, Reason> {
    // A folder's name would be found out only at the end.
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(Reason::NotAFile);
    }
    let target = follow(path)?;
    let old = look_at(&target)?;
    // A folder that cannot be opened cannot be synced. Better now than when all is done.
    let folder = Folder::open(folder_of(&target)).map_err(Reason::io("cannot open its folder"))?;
    let mut beside = Beside::new(&target, old.is_some())?;
    let written = write(&mut beside.file)?;
    // Somebody may have changed its permissions meanwhile.
    if let Some(old) = look_at(&target)? {
        let same = be_like(&beside.file, &old);
        same.map_err(Reason::io("cannot give the new file the permissions of the old one"))?;
    }
    beside.finish(&target)?;
    folder.sync().map_err(|error| Reason::NotSynced { error })?;
    Ok(written)
}

/// The file of before, if there is one.
fn look_at(target: &Path) -> Result<Option<Metadata>, Reason> {
    match fs::metadata(target) {
        Ok(old) if !old.is_file() => Err(Reason::NotAFile),
        Ok(old) => Ok(Some(old)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Reason::io("cannot look at the file of before")(error)),
    }
}

/// Where the path leads, if it is a symbolic link, also to something that is not there yet.
fn follow(path: &Path) -> Result<PathBuf, Reason> {
    let mut path = path.to_path_buf();
    // As many as the system follows.
    for _ in 0..40 {
        match fs::symlink_metadata(&path) {
            Ok(there) if there.is_symlink() => {
                let to = fs::read_link(&path).map_err(Reason::io("cannot find out where it is"))?;
                path = folder_of(&path).join(to);
            }
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            Err(error) => return Err(Reason::io("cannot look at the file of before")(error)),
        }
    }
    Ok(path)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// An unfinished file beside its place, which nobody else writes to; it goes when this does.
struct Beside {
    path: PathBuf,
    file: File,
    finished: bool,
}

impl Beside {
    /// If it is to replace a file, only its owner may read it until it has the permissions of that.
    fn new(target: &Path, replaces: bool) -> Result<Self, Reason> {
        let name = target.file_name().ok_or(Reason::NotAFile)?;
        let path = folder_of(target).join(name_beside(name));
        if !LOCKS {
            return Self::without_locks(&path, replaces);
        }
        // Whoever was faster may be done meanwhile.
        for _ in 0..100 {
            let mut beside = match Self::create(&path, replaces) {
                Ok(beside) => beside,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    match remove_what_was_left(&path)? {
                        Left::Removed => continue,
                        Left::Unknown => return Self::without_locks(&path, replaces),
                    }
                }
                Err(error) => return Err(cannot("cannot create", &path, error)),
            };
            match try_lock(&beside.file) {
                Some(Ok(())) if is_at(&beside.file, &path)? => return Ok(beside),
                // Somebody took it for one that was left, as it was not locked yet, and removes it.
                Some(Ok(()) | Err(TryLockError::WouldBlock)) => beside.finished = true,
                Some(Err(TryLockError::Error(error))) => {
                    return Err(cannot("cannot lock", &path, error));
                }
                None => {
                    drop(beside);
                    return Self::without_locks(&path, replaces);
                }
            }
        }
        Err(Reason::Busy { beside: path })
    }

    fn create(path: &Path, private: bool) -> io::Result<Self> {
        let file = create(path, private)?;
        Ok(Beside { path: path.to_path_buf(), file, finished: false })
    }

    /// Under a name that no other save has.
    fn without_locks(path: &Path, replaces: bool) -> Result<Self, Reason> {
        let process = std::process::id();
        for number in 0.. {
            let mut name = path.as_os_str().to_owned();
            name.push(format!("-{process}-{number}"));
            let path = PathBuf::from(name);
            match Self::create(&path, replaces) {
                Ok(beside) => return Ok(beside),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < 10_000 => {}
                Err(error) => return Err(cannot("cannot create", &path, error)),
            }
        }
        Err(Reason::InTheWay { beside: path.to_path_buf() })
    }

    /// Syncs the file and renames it.
    fn finish(mut self, target: &Path) -> Result<(), Reason> {
        self.file.sync_all().map_err(Reason::io("cannot sync what was written"))?;
        if !is_at(&self.file, &self.path)? {
            return Err(Reason::Removed { beside: std::mem::take(&mut self.path) });
        }
        match fs::rename(&self.path, target) {
            Ok(()) => {}
            // Systems of files that are elsewhere may have done it and say that they have not.
            Err(_) if is_at(&self.file, target).is_ok_and(|it_is| it_is) && LOCKS => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Reason::Removed { beside: std::mem::take(&mut self.path) });
            }
            Err(error) => return Err(cannot("cannot rename", &self.path, error)),
        }
        self.finished = true;
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // While it is locked: afterwards it may be somebody else's.
        if !self.finished && is_at(&self.file, &self.path).is_ok_and(|ours| ours) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What became of a file that an earlier save left.
enum Left {
    Removed,
    /// There are no locks here to tell whether it is somebody's.
    Unknown,
}

/// Removes an unfinished file if it is nobody's any more.
fn remove_what_was_left(path: &Path) -> Result<Left, Reason> {
    let is_file = fs::symlink_metadata(path).map(|left| left.is_file());
    if matches!(is_file, Ok(false)) {
        return Err(Reason::InTheWay { beside: path.to_path_buf() });
    }
    // Some systems lock only what is open for writing.
    let left = OpenOptions::new().write(true).open(path).or_else(|error| match error.kind() {
        ErrorKind::PermissionDenied => File::open(path),
        _ => Err(error),
    });
    let left = match left {
        Ok(left) => left,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Left::Removed),
        Err(error) => return Err(cannot("cannot open what an earlier save left:", path, error)),
    };
    match try_lock(&left) {
        Some(Err(TryLockError::WouldBlock)) => Err(Reason::Busy { beside: path.to_path_buf() }),
        // While it is locked, nobody else removes it and makes a new one.
        Some(Ok(())) if is_at(&left, path)? => match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(cannot("cannot remove what an earlier save left:", path, error))
            }
            _ => Ok(Left::Removed),
        },
        Some(Ok(())) => Ok(Left::Removed),
        Some(Err(TryLockError::Error(error))) => Err(cannot("cannot lock", path, error)),
        None => Ok(Left::Unknown),
    }
}

fn cannot(doing: &'static str, path: &Path, error: io::Error) -> Reason {
    Reason::Beside { doing, beside: path.to_path_buf(), error }
}

/// The name of the unfinished file. Names have 255 bytes at most, or 143 in encrypted folders.
fn name_beside(name: &OsStr) -> OsString {
    let mut beside = OsString::from(".");
    if name.len() <= 130 {
        beside.push(name);
    } else {
        beside.push(format!("{:016x}", xxh3_64(name.as_encoded_bytes())));
    }
    beside.push(".koel-saving");
    beside
}

/// Makes a file that was not there.
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

/// Whether it can be told which file a path leads to, without which locks are of no use.
const LOCKS: bool = cfg!(unix);

/// Locks the file, or says that somebody else has; `None` if there are no locks here.
fn try_lock(file: &File) -> Option<Result<(), TryLockError>> {
    match file.try_lock() {
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => try_lock(file),
        // What systems and file systems say that have none.
        Err(TryLockError::Error(error))
            if error.kind() == ErrorKind::Unsupported
                || error.raw_os_error().is_some_and(|code| NO_LOCKS.contains(&code)) =>
        {
            None
        }
        result => Some(result),
    }
}

/// `ENOLCK`, and what is said of a file that is not open for writing.
#[cfg(all(target_os = "linux", not(any(loom, shuttle))))]
const NO_LOCKS: [i32; 2] = [libc::ENOLCK, libc::EBADF];
#[cfg(all(unix, any(not(target_os = "linux"), loom, shuttle)))]
const NO_LOCKS: [i32; 2] = [77, 9];
#[cfg(not(unix))]
const NO_LOCKS: [i32; 0] = [];

/// Whether a path leads to the file that was opened or made there, and is no link.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> Result<bool, Reason> {
    use std::os::unix::fs::MetadataExt;
    let id = |about: Metadata| (about.dev(), about.ino());
    let there = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        there => there.and_then(|there| Ok(id(there) == id(file.metadata()?))),
    };
    there.map_err(|error| cannot("cannot look at", path, error))
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> Result<bool, Reason> {
    Ok(path.exists())
}

/// Gives a file the owner, the group and the permissions of another, as far as that is allowed. Nobody gets
/// permissions who had none: those who were of the group, or were the owner, are others if they no longer are.
#[cfg(unix)]
fn be_like(file: &File, old: &Metadata) -> io::Result<()> {
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
fn be_like(file: &File, old: &Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())
}

/// A folder, of which the system can be made to write down what is in it.
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
            // Some file systems have nothing to sync of a folder.
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
