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
use std::io;
use std::path::{Path, PathBuf};

/// Claims a state, and puts the changes of its journals into it. Also returns a warning if some are lost.
pub fn claim(path: &Path, waiting: &Waiting) -> Result<(Keeper, Option<String>), Failure> {
    let mut keeper = Keeper::claim(path, waiting)?;
    let mut left = journals(&keeper.real_path())?;
    let mut lost = None;
    if left.iter().any(|(_, has_changes)| has_changes.is_some()) {
        // The library claims the state, too.
        drop(keeper);
        lost = take_in(path, &left)?;
        keeper = Keeper::claim(path, waiting)?;
        left = journals(&keeper.real_path())?;
    }
    for (journal, has_changes) in &left {
        if *has_changes == Some(true) {
            return Err(Failure::new(format!(
                "{}: another program has changed the state meanwhile; try again",
                journal.display()
            )));
        }
        fs::remove_file(journal).map_err(|error| Failure::about(journal, &error))?;
    }
    Ok((keeper, lost))
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

/// Returns the journals beside a state, each with whether it has changes: `None` if it is not begun.
fn journals(state: &Path) -> Result<Vec<(PathBuf, Option<bool>)>, Failure> {
    let cannot = |error: io::Error| {
        Failure::of(format!("{}: cannot list its journals", state.display()), &error)
    };
    let unreadable = |journal: &Path, error: io::Error| {
        let what = Failure::of(format!("{}: cannot read this journal", journal.display()), &error);
        Failure::new(format!(
            "{what}; it has the newest changes of the state beside it: restore it, or remove it, and the changes with \
             it"
        ))
    };
    let journal = |path: PathBuf| match has_changes(&path) {
        Ok(has_changes) => Ok((path, has_changes)),
        Err(error) => Err(unreadable(&path, error)),
    };
    journals_of(state).map_err(cannot)?.into_iter().map(journal).collect()
}

/// Opens the state as the other program would. Returns a warning if changes are lost.
fn take_in(path: &Path, left: &[(PathBuf, Option<bool>)]) -> Result<Option<String>, Failure> {
    if !path.exists() {
        return match left.iter().find(|(_, has_changes)| *has_changes == Some(true)) {
            None => Ok(None),
            Some((journal, _)) => Err(Failure::new(format!(
                "{} has changes of another state than the one beside it; restore that state, or remove this file, and \
                 the changes with it",
                journal.display()
            ))),
        };
    }
    check_grows(path)?;
    // There is a state, so nothing is built.
    let builder = ConcurrentCuckooFilter::builder().hasher(LineHash::random(Comparison::Bytes));
    let failed = |error| Failure::new(format!("{}: {}", path.display(), without_numbers(error)));
    let seen = DurableFilter::open(path, builder).map_err(failed)?;
    let lost = seen.lost_changes();
    seen.close().map_err(failed)?;
    Ok((lost > 0).then(|| {
        format!(
            "{}: its journal was damaged, and {} {} behind the damage or in it {} lost",
            path.display(),
            HumanCount(lost),
            if lost == 1 { "change" } else { "changes" },
            if lost == 1 { "is" } else { "are" },
        )
    }))
}
