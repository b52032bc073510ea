//! Paths: where a file is, and the files beside it.

use crate::snapshot::error::SnapshotError;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// Returns the path that a symbolic link leads to, even if nothing is there yet, or any other path as it is.
pub fn follow(path: &Path) -> Result<PathBuf, SnapshotError> {
    let mut path = path.to_path_buf();
    // The system follows this many links, too.
    for _ in 0..40 {
        match fs::symlink_metadata(&path) {
            Ok(there) if there.is_symlink() => {
                let to = fs::read_link(&path)
                    .map_err(SnapshotError::io("cannot read the symbolic link"))?;
                path = folder_of(&path).join(to);
            }
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            Err(error) => return Err(SnapshotError::io("cannot inspect the old file")(error)),
        }
    }
    Ok(path)
}

/// Returns the folder of the file that a path names.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Returns the path `.NAME` and this suffix in the folder of a file, or `None` if the path names no file.
///
/// A name has at most 255 bytes, or 143 in an encrypted folder, so a long name is replaced by its hash.
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
pub fn is_at(file: &File, path: &Path) -> Result<bool, SnapshotError> {
    use std::os::unix::fs::MetadataExt;
    let id = |about: fs::Metadata| (about.dev(), about.ino());
    let there = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        there => there.and_then(|there| Ok(id(there) == id(file.metadata()?))),
    };
    there.map_err(|error| SnapshotError::unfinished("cannot inspect", path, error))
}

#[cfg(not(unix))]
pub fn is_at(_: &File, path: &Path) -> Result<bool, SnapshotError> {
    Ok(path.exists())
}
