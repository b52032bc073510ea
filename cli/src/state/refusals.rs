//! What is said of a file that cannot be used as a state. The texts of the library address programs.

use crate::failure::{Failure, without_numbers};
use koel::{SnapshotError, SnapshotErrorKind, SnapshotInfo};
use koel_state::files::is_folder;
use std::path::Path;

/// What to do about a state that is not there.
pub const NO_STATE: &str = "no such state; koel add or koel dedup --state creates one";

/// Checks that a path may be that of a state, which need not be there. Opening a pipe would wait for
/// another process.
pub fn check_path(path: &Path) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        return Err(Failure::new("a state must be a file, not standard input"));
    }
    let what = match path.metadata() {
        _ if is_folder(path) => "a folder",
        Ok(file) if !file.is_file() => "not a regular file",
        _ => return Ok(()),
    };
    Err(Failure::new(format!(
        "{}: it is {what}, and a state must be a regular file",
        path.display()
    )))
}

/// Checks that a file does not hold a filter of fixed size, which another program may have saved, by what it says of
/// itself. Any other fault of the file is for the load to find.
pub fn check_grows(path: &Path) -> Result<(), Failure> {
    if SnapshotInfo::read(path).map_or(true, |info| info.stats.grows) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}: it holds a filter of fixed size, which koel query and koel info can read; to change it, \
         use a state saved by dedup or add",
        path.display()
    )))
}

/// Returns an error of loading or saving a state, with advice.
pub fn cannot_use(path: &Path, error: &SnapshotError) -> Failure {
    let is_empty = path.metadata().is_ok_and(|file| file.len() == 0);
    let path = path.display();
    let text = without_numbers(error);
    Failure::new(match error.kind() {
        SnapshotErrorKind::NotFound => format!("{path}: {NO_STATE}"),
        SnapshotErrorKind::NotAFile => {
            format!("{path}: it is not a regular file, and a state must be one")
        }
        SnapshotErrorKind::WrongHasher => format!(
            "{path}: it was not saved by this command, and its items were hashed in another way than \
             lines are; use a state saved by dedup or add"
        ),
        SnapshotErrorKind::NotASnapshot if is_empty => {
            format!("{path}: it is empty; remove it, and dedup makes one")
        }
        SnapshotErrorKind::NotASnapshot => format!("{text}; use a state saved by dedup or add"),
        SnapshotErrorKind::Incomplete | SnapshotErrorKind::Damaged => {
            format!("{text}, or move it away and make a new one from the lines with koel add")
        }
        _ => text,
    })
}
