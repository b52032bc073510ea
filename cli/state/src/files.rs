//! Helpers for files and paths.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns `true` if both are the same regular file.
pub fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Returns the folder of the file that a path names.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Returns `true` if a path can only be that of a folder, whether it is there or not.
pub fn is_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.") || path.is_dir()
}

/// Follows symbolic links to a file that need not exist.
pub fn follow(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    // The system follows as many.
    for _ in 0..40 {
        let Ok(to) = fs::read_link(&path) else { break };
        path = folder_of(&path).join(to);
    }
    path
}
