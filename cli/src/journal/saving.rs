//! Saves a state that has journals.

use crate::failure::Failure;
use crate::journal::journaling::Journaling;
use crate::state::keeper::Keeper;
use crate::state::refusals::cannot_use;
use crate::state::seen::Seen;
use koel::files::replace_state;
use std::io;

/// Why a state was not saved.
pub enum NotSaved {
    /// The caller wanted it so.
    GivenUp,
    Failed(Failure),
}

impl From<Failure> for NotSaved {
    fn from(failure: Failure) -> Self {
        NotSaved::Failed(failure)
    }
}

/// Saves the state, and removes the journals that it has by then. Lines may go on. `goes_on` is asked all the time, and
/// `last` is called once when the filter is copied. Returns the number of items in the state.
pub fn save(
    keeper: &Keeper,
    seen: &Seen,
    journaling: Option<&Journaling>,
    mut goes_on: impl FnMut() -> bool,
    last: impl FnOnce() -> Result<(), NotSaved>,
) -> Result<usize, NotSaved> {
    if let Some(journaling) = journaling {
        journaling.begin_save()?;
    }
    let (mut why, mut new) = (None, None);
    let stop = || io::Error::other("the save has ended");
    let ask = || if goes_on() { Ok(()) } else { Err(stop()) };
    let replaced = replace_state(seen, keeper.path(), ask, |id| {
        new = Some(id);
        let ready = last().and_then(|()| Ok(journaling.map_or(Ok(()), |it| it.belong(id))?));
        ready.map_err(|reason| {
            why = Some(reason);
            stop()
        })
    });
    let items = match replaced {
        Ok(report) => report.items,
        // The old state may come back after a power failure, so its journals stay.
        Err(error) if error.is_in_place() => {
            journaling.inspect(|journaling| journaling.stay());
            return Ok(seen.len());
        }
        Err(_) if why.is_some() || new.is_none() && !goes_on() => {
            return Err(why.unwrap_or(NotSaved::GivenUp));
        }
        Err(error) => return Err(NotSaved::Failed(cannot_use(keeper.path(), &error))),
    };
    if let (Some(journaling), Some(id)) = (journaling, new) {
        journaling.end_save(id);
    }
    Ok(items)
}
