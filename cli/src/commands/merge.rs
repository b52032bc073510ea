//! `koel merge`: puts the lines of several states into one.

use crate::arguments::membership::Merge;
use crate::commands::closing::{DONE, Ending};
use crate::commands::report::{Holds, Took, seconds};
use crate::failure::{Failure, without_numbers};
use crate::run::screen::Screen;
use crate::state::keeper::Keeper;
use crate::state::refusals::{cannot_use, check_path};
use crate::state::seen::{Seen, most_bytes, window_of};
use crate::state::window::keep_up;
use indicatif::{BinaryBytes, HumanCount};
use koel::{FullKind, UnionError, UnionErrorKind};
use serde::Serialize;
use std::fmt::{self, Display};
use std::path::Path;
use std::time::Instant;

/// The field names are those of the JSON.
#[derive(Serialize)]
struct Report {
    /// The states that were merged into this one.
    states: usize,
    added: usize,
    known: usize,
    rate: f64,
    memory_bytes: usize,
    state: String,
    unchanged: bool,
    seconds: f64,
}

pub fn merge(options: &Merge) -> Result<Ending, Failure> {
    let began = Instant::now();
    let Merge { state, states, .. } = options;
    let keeper = Keeper::claim(state, &options.waiting)?;
    let exists = state.exists();
    let merged = if exists { keeper.load()? } else { load(&states[0])? };
    let most = most_bytes(options.max_memory);
    let takes = merged.size_in_bytes();
    if takes > most {
        return Err(Failure::new(format!(
            "{}: it already takes {} of memory; raise --max-memory",
            if exists { state } else { &states[0] }.display(),
            BinaryBytes(takes as u64)
        )));
    }
    merged.set_max_bytes(most);
    keep_up(&merged);
    let before = if exists { merged.len() } else { 0 };
    let rate = merged.false_positive_rate();
    // The first is in it already if it began as a copy.
    for path in &states[usize::from(!exists)..] {
        take_over(&merged, path)?;
    }
    let added = merged.len().saturating_sub(before);
    // Lines may have become younger, or their fingerprints vaguer.
    let is_same = merged.remembers().is_none() && merged.false_positive_rate() == rate;
    let unchanged = exists && added == 0 && is_same;
    if !unchanged {
        keeper.save(&merged)?;
    }
    let report = Report {
        states: states.len(),
        added,
        known: merged.len(),
        rate: merged.false_positive_rate(),
        memory_bytes: merged.size_in_bytes(),
        state: state.display().to_string(),
        unchanged,
        seconds: seconds(began.elapsed()),
    };
    let screen = Screen::new(false, false, None);
    if options.json {
        screen.say_plainly(serde_json::to_string(&report).map_err(Failure::new)?);
    } else if !options.quiet {
        screen.say(report);
    }
    Ok(DONE)
}

fn load(path: &Path) -> Result<Seen, Failure> {
    check_path(path)?;
    let seen = Seen::load(path).map_err(|error| cannot_use(path, &error))?;
    window_of(&seen, path)?;
    Ok(seen)
}

fn take_over(merged: &Seen, path: &Path) -> Result<usize, Failure> {
    let other = load(path)?;
    let (is, has) = (merged.hasher().comparison(), other.hasher().comparison());
    if is != has {
        return Err(Failure::new(format!(
            "{}: this state compares {has}, and the others {is}; nothing was saved",
            path.display()
        )));
    }
    // As many ticks, but of other lengths, would be taken for times long after each other.
    if let (Some(is), Some(has)) = (keep_up(merged), keep_up(&other))
        && is != has
    {
        return Err(Failure::new(format!(
            "{}: this state forgets lines after {has}, and the others after {is}; nothing was saved",
            path.display()
        )));
    }
    merged.union(&other).map_err(|error| refused(path, &error))
}

/// Says why a state was refused. The texts of the library address programs.
fn refused(path: &Path, error: &UnionError) -> Failure {
    let why = match error.kind() {
        UnionErrorKind::DifferentHasher => {
            "this state has another seed than the others; states that are to be merged have to be made \
             with one --seed"
                .to_string()
        }
        UnionErrorKind::DifferentLayout => {
            "this state stores other parts of a line than the others; states that are to be merged \
             have to be made with one --rate, and all with --capacity or all without"
                .to_string()
        }
        UnionErrorKind::DifferentWindow => {
            "this state does not forget lines after the time that the others do; states that are to be \
             merged have to be made with one --forget-after"
                .to_string()
        }
        UnionErrorKind::Full => match error.full().map(|full| full.kind()) {
            Some(FullKind::LimitReached) => {
                "there is no room for all of its lines; raise --max-memory".to_string()
            }
            _ => format!("there is no room for all of its lines ({})", without_numbers(error)),
        },
        _ => without_numbers(error),
    };
    Failure::new(format!("{}: {why}; nothing was saved", path.display()))
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.states {
            1 => f.write_str("1 state")?,
            states => write!(f, "{states} states")?,
        }
        write!(f, ", {} lines added; ", HumanCount(self.added as u64))?;
        write!(f, "{}; ", Holds(&self.state, self.known, self.unchanged))?;
        write!(f, "{}", Took(self.seconds))
    }
}
