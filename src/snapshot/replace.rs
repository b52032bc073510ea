//! A new file in the place of an old one: as a whole, or not at all.

use crate::snapshot::error::Reason;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Puts what `write` writes in the place of the file at `path`.
///
/// It is written beside it, under a name of its own, and synced before it gets its name. So the path leads to the old
/// file or to the new one at any moment, and to the old one as long as the new one is not on disk. The
/// unfinished file is locked, so nobody else writes to it; when the process is killed, the system gives
/// the lock back, and the next save writes over what is left there.
pub fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, Reason>,
) -> Result<T, Reason> {
    let target = follow(path)?;
    let old = match fs::metadata(&target) {
        Ok(old) if !old.is_file() => return Err(Reason::NotAFile),
        Ok(old) => Some(old),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(Reason::io("cannot look at the file of before")(error)),
    };
    let beside = Beside::open(&target)?;
    if let Some(old) = old {
        // Before anything is in it that not everybody may see.
        let same = beside.file.set_permissions(old.permissions());
        same.map_err(Reason::io("cannot give the new file the permissions of the old one"))?;
    }
    let (written, folder) = beside.write(write)?;
    sync(&folder).map_err(|error| Reason::NotSynced { error })?;
    Ok(written)
}

/// Where the path leads, if it is a symbolic link.
fn follow(path: &Path) -> Result<PathBuf, Reason> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(path.to_path_buf()),
        target => target.map_err(Reason::io("cannot find out where it is")),
    }
}

/// An unfinished file beside its place, which nobody else has; it goes when this does.
struct Beside<'a> {
    target: &'a Path,
    folder: PathBuf,
    path: PathBuf,
    file: File,
    finished: bool,
}

impl<'a> Beside<'a> {
    fn open(target: &'a Path) -> Result<Self, Reason> {
        let name = target.file_name().ok_or(Reason::NotAFile)?;
        let folder = match target.parent() {
            Some(folder) if folder != Path::new("") => folder.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let mut beside = OsString::from(".");
        beside.push(name);
        beside.push(".koel-saving");
        let path = folder.join(beside);
        // Whoever had it locked may have removed it, or given it its final name.
        for _ in 0..100 {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
            let file = file.map_err(Reason::io("cannot write beside it"))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Reason::Busy { beside: path }),
                Err(TryLockError::Error(error)) => {
                    return Err(Reason::io("cannot lock the file beside it")(error));
                }
            }
            if is_at(&file, &path).map_err(Reason::io("cannot look at the file beside it"))? {
                return Ok(Beside { target, folder, path, file, finished: false });
            }
        }
        Err(Reason::InTheWay { beside: path })
    }

    /// Writes, syncs and renames; says where that was.
    fn write<T>(
        mut self,
        write: impl FnOnce(&mut File) -> Result<T, Reason>,
    ) -> Result<(T, PathBuf), Reason> {
        // Something may be left of one who was killed.
        self.file.set_len(0).map_err(Reason::io("cannot write"))?;
        let written = write(&mut self.file)?;
        self.file.sync_all().map_err(Reason::io("cannot sync what was written"))?;
        fs::rename(&self.path, self.target).map_err(Reason::io("cannot rename the new file"))?;
        self.finished = true;
        Ok((written, std::mem::take(&mut self.folder)))
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        if !self.finished {
            // While it is locked: afterwards it may be somebody else's.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether a path still leads to the file that was opened there, and is no link.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let opened = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Where open files cannot be renamed or removed, it does.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path)?.is_file())
}

/// Makes the system write down what a folder has in it.
#[cfg(unix)]
fn sync(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some file systems have nothing to sync of a folder.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}

#[cfg(not(unix))]
fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}
