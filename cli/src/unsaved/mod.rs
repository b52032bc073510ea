//! What a state does not have yet: the lines that a killed run has written, and the changes that another program, which
//! keeps the state with the library's [`DurableFilter`], has recorded in journals beside it. A command that changes the
//! state takes them in first.
//!
//! [`output`] explains what a kill leaves of a run with `--state` and `--output`.

pub mod output;

use crate::arguments::common::Waiting;
use crate::failure::Failure;
use crate::state::comparison::{Comparison, LineHash};
use crate::state::keeper::{Keeper, cannot_use, check_grows};
use indicatif::{BinaryBytes, HumanCount};
use koel::{ConcurrentCuckooFilter, DurableFilter, UnreadChanges};
use std::fs;
use std::path::{Path, PathBuf};

/// Claims a state to change it, and takes in what earlier runs and other programs have left. Notes what the user
/// should know about that.
pub fn claim(path: &Path, waiting: &Waiting, notes: &mut Vec<String>) -> Result<Keeper, Failure> {
    let mut keeper = Keeper::claim(path, waiting)?;
    if let Some(journal) = unread(&keeper.real_path())?.journal {
        if !path.exists() {
            return Err(Failure::new(format!(
                "{} has changes of a state that is gone; restore that state, or remove this file, and the changes \
                 with it",
                journal.display()
            )));
        }
        // The library claims the state, too. If another program comes between, its changes keep this one from loading.
        drop(keeper);
        take_in_journals(path, notes)?;
        keeper = Keeper::claim(path, waiting)?;
    }
    output::take_in(&keeper, notes)?;
    Ok(keeper)
}

fn unread(path: &Path) -> Result<UnreadChanges, Failure> {
    UnreadChanges::beside(path).map_err(|error| cannot_use(path, &error))
}

/// Opens the state as the other program would. Notes how many changes are lost.
fn take_in_journals(path: &Path, notes: &mut Vec<String>) -> Result<(), Failure> {
    check_grows(path)?;
    // There is a state, so nothing is built.
    let builder = ConcurrentCuckooFilter::builder().hasher(LineHash::random(Comparison::Bytes));
    let name = path.display();
    let failed = |error| Failure::about(path, error);
    let seen = DurableFilter::open(path, builder).map_err(failed)?;
    let lost = match seen.lost_changes() {
        0 => return seen.close().map_err(failed),
        lost => format!("its journal was damaged; changes lost by that: {}", HumanCount(lost)),
    };
    seen.close().map_err(|error| Failure::new(format!("{} ({lost})", failed(error))))?;
    notes.push(format!("{name}: {lost}"));
    Ok(())
}

/// Returns the file with the changes that a state does not have yet, and the number of their bytes.
pub fn waiting(path: &Path) -> Option<(PathBuf, u64)> {
    // Opening a pipe would wait for another process.
    let real = fs::canonicalize(path).ok().filter(|real| real.is_file())?;
    let in_journals = || {
        let unread = unread(&real).ok()?;
        Some((path.with_file_name(unread.journal?.file_name()?), unread.bytes))
    };
    in_journals().or_else(|| output::waiting(&real))
}

/// Returns a warning if there are newer changes than those of a state that is only read.
pub fn note(path: &Path) -> Option<String> {
    let (file, bytes) = waiting(path)?;
    Some(format!(
        "{}: newer changes, {} of them, are in {}, and not read here: another run is using the state, or was killed \
         or not closed; the next command that changes the state takes in what such a run has left",
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
         one that was killed or not closed has left: koel add {0} < /dev/null",
        path.display(),
        file.display()
    )))
}
