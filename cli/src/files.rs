//! Small questions about files that several parts of the command ask.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns whether two are the same file.
pub fn is_same(one: &Metadata, other: &Metadata) -> bool {
    one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Returns the folder that a path names a file in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}
