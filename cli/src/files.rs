//! Helpers for files and paths.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns `true` if both are the same regular file.
pub fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Returns the folder of the file that a path names.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}
