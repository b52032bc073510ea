//! The journals of another program, which keeps the state with the library's [`DurableFilter`].

use crate::arguments::common::Waiting;
use crate::failure::{Failure, without_numbers};
use crate::state::comparison::{Comparison, LineHash};
use crate::state::keeper::Keeper;
use crate::state::refusals::check_grows;
use indicatif::HumanCount;
use koel::files::{has_changes, journals_of};
use koel::{ConcurrentCuckooFilter, DurableFilter};
use std::fs;
use std::path::{Path, PathBuf};

/// Claims a state, and puts the changes of its journals into it. Also returns a warning if some are lost.
pub fn claim(path: &Path, waiting: &Waiting) -> Result<(Keeper, Option<String>), Failure> {
    let mut warning = None;
    // The library claims the state, too, so another program may come between.
    for round in 0..3 {
        let keeper = Keeper::claim(path, waiting)?;
        let journals = journals_of(&keeper.real_path());
        let journals = journals.map_err(|error| Failure::about(path, &error))?;
        if journals.is_empty() {
            return Ok((keeper, warning));
        }
        drop(keeper);
        warning = match path.exists() {
            true => take_in(path, round > 0)?.or(warning),
            false => journals.iter().try_for_each(|journal| remove(journal)).map(|()| warning)?,
        };
    }
    Err(Failure::new(format!("{}: other programs change it; try again", path.display())))
}

/// Returns the first journal of a state that has changes, and the number of bytes of all that have some.
pub fn waiting(state: &Path) -> Option<(PathBuf, u64)> {
    let mut found = None;
    for journal in journals_of(state).ok()? {
        if has_changes(&journal).ok()? == Some(true) {
            let (_, bytes) = found.get_or_insert((journal.clone(), 0));
            *bytes += journal.metadata().ok()?.len();
        }
    }
    found
}

/// Opens the state as the other program would. Returns a warning if changes are lost. `again` tells why journals are
/// still there: if one cannot be removed, that is an error.
fn take_in(path: &Path, again: bool) -> Result<Option<String>, Failure> {
    check_grows(path)?;
    // There is a state, so nothing is built.
    let builder = ConcurrentCuckooFilter::builder().hasher(LineHash::random(Comparison::Bytes));
    let failed = |error| Failure::new(format!("{}: {}", path.display(), without_numbers(error)));
    let seen = DurableFilter::open(path, builder).map_err(failed)?;
    let lost = seen.lost_changes();
    if again {
        let found = journals_of(seen.path()).map_err(|error| Failure::about(path, &error))?;
        // After this, the state has all changes of the journals that were found.
        seen.checkpoint().map_err(failed)?;
        for journal in found.iter().filter(|journal| journal.exists()) {
            let what = format!("{}: cannot remove this journal", journal.display());
            fs::remove_file(journal).map_err(|error| Failure::of(what, &error))?;
        }
    }
    seen.close().map_err(failed)?;
    let path = path.display();
    Ok((lost > 0).then(|| {
        format!("{path}: its journal was damaged; changes lost by that: {}", HumanCount(lost))
    }))
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
