//! A state and the journals beside it, for a program that keeps journals of its own there: `koel dedup`.
//!
//! Its journals have the same names and headers as those of a [`DurableFilter`](crate::DurableFilter), and the same
//! rule says which of them belong to a state. What follows the header is the program's own.

pub use crate::durable::open::{Found, chained, sort_journals};
pub use crate::journal::file::header::{Header, Kind, StateId};
pub use crate::journal::file::names::{journal_of, journals_of, number_of};
pub use crate::journal::file::read::open_journal;

use crate::filter::ConcurrentCuckooFilter;
use crate::journal::file::read::Reader;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::format::End;
use crate::snapshot::header::Part;
use crate::snapshot::load::SnapshotInfo;
use crate::snapshot::replace::replace;
use crate::snapshot::write::{SaveReport, write};
use crate::stable_hash::PersistentHasher;
use std::io::{self, Write};
use std::path::Path;

/// What the journals of a state call it.
pub fn state_id(state: &Path) -> Result<StateId, SnapshotError> {
    SnapshotInfo::end(state).map(id_in)
}

fn id_in(End { sums, bytes, .. }: End) -> StateId {
    StateId { sums, bytes }
}

/// The kind and the header of the journal at a path. `None` if nothing has been recorded in it.
pub fn header_of(journal: &Path) -> io::Result<Option<(Kind, Header)>> {
    Header::read_any(&open_journal(journal)?)
}

/// Returns `true` if a journal of changes has any.
pub fn has_changes(journal: &Path) -> io::Result<bool> {
    Ok(Reader::open(journal)?.is_some_and(|(_, reader)| !reader.is_empty()))
}

/// Saves a filter as [`save`](ConcurrentCuckooFilter::save) does. Before each shard is written, `goes_on` may end it
/// all with an error; and before the new state takes the place of the old one, `last` gets its name in journals, and
/// may still do so.
pub fn replace_state<S: PersistentHasher>(
    filter: &ConcurrentCuckooFilter<S>,
    path: &Path,
    mut goes_on: impl FnMut() -> io::Result<()>,
    last: impl FnOnce(StateId) -> io::Result<()>,
) -> Result<SaveReport, SnapshotError> {
    let replaced = replace(path, |file| {
        let write_all = |bytes: &[u8]| {
            let written = goes_on().and_then(|()| file.write_all(bytes));
            written.map_err(SnapshotError::io("cannot write"))
        };
        let about = (filter.capacity(), filter.hasher());
        let (end, _) = write(filter.backend(), about, Part::FILE, &(), write_all)?;
        last(id_in(end)).map_err(SnapshotError::io("cannot write a journal"))?;
        Ok(end.into())
    });
    replaced.map_err(|error| error.of_file(path))
}
