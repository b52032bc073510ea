//! What a state does not have yet: the lines that a killed run has written, and the changes that another program, which
//! keeps the state with the library's [`DurableFilter`], has recorded in journals beside it. A command that changes the
//! state takes them in first.
//!
//! [`output`] explains what a kill leaves of a run with `--state` and `--output`.

pub mod output;

use crate::arguments::common::Waiting;
use crate::failure::{Failure, without_numbers};
use crate::state::comparison::{Comparison, LineHash};
use crate::state::keeper::{Keeper, check_grows};
use indicatif::{BinaryBytes, HumanCount};
use koel::files::{Unread, has_changes, journals_of};
use koel::{ConcurrentCuckooFilter, DurableFilter};
use std::fs;
use std::path::{Path, PathBuf};

/// Claims a state to change it, and takes in what earlier runs and other programs have left. Also returns what the user
/// should know about that.
pub fn claim(path: &Path, waiting: &Waiting) -> Result<(Keeper, Option<String>), Failure> {
    let mut keeper = Keeper::claim(path, waiting)?;
    let cannot = |error| Failure::about(path, &error);
    let mut lost = None;
    let journals = journals_of(&keeper.real_path()).map_err(cannot)?;
    if !journals.is_empty() {
        // The library claims the state, too, so another program may come between.
        drop(keeper);
        match path.exists() {
            true => lost = take_in_journals(path)?,
            false => journals.iter().try_for_each(|journal| remove(journal))?,
        }
        keeper = Keeper::claim(path, waiting)?;
        if let Some(journal) = journals_of(&keeper.real_path()).map_err(cannot)?.first() {
            let lost = lost.map_or(String::new(), |lost| format!("; {lost}"));
            let what = "another program has begun this journal; try again";
            return Err(Failure::new(format!("{}: {what}{lost}", journal.display())));
        }
    }
    let notes: Vec<String> = lost.into_iter().chain(output::take_in(&keeper)?).collect();
    Ok((keeper, (!notes.is_empty()).then(|| notes.join("; "))))
}

/// Opens the state as the other program would. Returns a warning if changes are lost.
fn take_in_journals(path: &Path) -> Result<Option<String>, Failure> {
    check_grows(path)?;
    // There is a state, so nothing is built.
    let builder = ConcurrentCuckooFilter::builder().hasher(LineHash::random(Comparison::Bytes));
    let failed = |error| Failure::new(format!("{}: {}", path.display(), without_numbers(error)));
    let seen = DurableFilter::open(path, builder).map_err(failed)?;
    let lost = Some(HumanCount(seen.lost_changes())).filter(|lost| lost.0 > 0);
    let lost = lost.map(|lost| format!("its journal was damaged; changes lost by that: {lost}"));
    seen.close().map_err(|error| match &lost {
        Some(lost) => {
            Failure::new(format!("{}: {} ({lost})", path.display(), without_numbers(error)))
        }
        None => failed(error),
    })?;
    Ok(lost.map(|lost| format!("{}: {lost}", path.display())))
}

/// Removes a journal of a state that is gone, unless it has changes.
fn remove(journal: &Path) -> Result<(), Failure> {
    let has_changes = has_changes(journal).map_err(|error| Failure::about(journal, &error))?;
    if has_changes == Some(true) {
        return Err(Failure::new(format!(
            "{} has changes of a state that is gone; restore that state, or remove this file, and the changes with it",
            journal.display()
        )));
    }
    fs::remove_file(journal).map_err(|error| Failure::about(journal, &error))
}

/// Returns the file with the changes that a state does not have yet, and the number of their bytes.
pub fn waiting(path: &Path) -> Option<(PathBuf, u64)> {
    // Opening a pipe would wait for another process.
    let real = fs::canonicalize(path).ok().filter(|real| real.is_file())?;
    let in_journals = || {
        let Unread { journal, bytes } = Unread::beside(&real).ok()?;
        Some((path.with_file_name(journal?.file_name()?), bytes))
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
