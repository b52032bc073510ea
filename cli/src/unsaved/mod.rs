//! What a state does not have yet: the lines that a killed run has written, and the changes that another program has
//! recorded beside it. A command that changes the state takes them in first.
//!
//! [`output`] explains what a kill leaves of a run with `--state` and `--output`.

pub mod changes;
pub mod output;

use crate::arguments::common::Waiting;
use crate::failure::Failure;
use crate::state::keeper::Keeper;
use indicatif::BinaryBytes;
use std::fs;
use std::path::{Path, PathBuf};

/// Claims a state to change it, and takes in what earlier runs have left. Also returns what the user should know about
/// that.
pub fn claim(path: &Path, waiting: &Waiting) -> Result<(Keeper, Option<String>), Failure> {
    let (keeper, lost) = changes::claim(path, waiting)?;
    let notes: Vec<String> = lost.into_iter().chain(output::take_in(&keeper)?).collect();
    Ok((keeper, (!notes.is_empty()).then(|| notes.join("; "))))
}

/// Returns the file with the changes that a state does not have yet, and the number of their bytes.
pub fn waiting(path: &Path) -> Option<(PathBuf, u64)> {
    // Opening a pipe would wait for another process.
    let real = fs::canonicalize(path).ok().filter(|real| real.is_file())?;
    if let Some((journal, bytes)) = changes::waiting(&real) {
        return Some((path.with_file_name(journal.file_name()?), bytes));
    }
    output::waiting(&real)
}

/// Returns a warning if there are newer changes than those of a state that is only read.
pub fn note(path: &Path) -> Option<String> {
    let (file, bytes) = waiting(path)?;
    Some(format!(
        "{}: newer changes, {} of them, are in {}, and not read here: another run is using the state, or was killed; \
         the next command that changes the state takes in what a killed one has left",
        path.display(),
        BinaryBytes(bytes),
        file.display()
    ))
}

/// Fails if there are newer changes than those of a state that must be read as a whole.
pub fn check_whole(path: &Path) -> Result<(), Failure> {
    let Some((file, _)) = waiting(path) else { return Ok(()) };
    Err(Failure::new(format!(
        "{}: newer changes are in {}, and would be left out; wait for the run that is using the state, or take in what \
         a killed one has left: koel add {0} < /dev/null",
        path.display(),
        file.display()
    )))
}
