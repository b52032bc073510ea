//! What the command needs of a [`DurableFilter`](crate::DurableFilter): whether changes wait beside a state, and a save
//! that may be given up.

pub use crate::journal::file::names::journals_of;

use crate::filter::ConcurrentCuckooFilter;
use crate::journal::file::read::Reader;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::header::Part;
use crate::snapshot::replace::replace;
use crate::snapshot::write::{SaveReport, UNCUT, write};
use crate::stable_hash::PersistentHasher;
use std::io::{self, Write};
use std::path::Path;

/// Returns whether a journal has changes. `None` if it has no header yet: then it is empty.
pub fn has_changes(journal: &Path) -> io::Result<Option<bool>> {
    Ok(Reader::open(journal)?.map(|(_, reader)| !reader.is_empty()))
}

/// Saves a filter as [`save`](ConcurrentCuckooFilter::save) does. Before each shard is written, `goes_on` may end it
/// all with an error; and `last` may do so before the new state takes the place of the old one.
pub fn replace_state<S: PersistentHasher>(
    filter: &ConcurrentCuckooFilter<S>,
    path: &Path,
    mut goes_on: impl FnMut() -> io::Result<()>,
    last: impl FnOnce() -> io::Result<()>,
) -> Result<SaveReport, SnapshotError> {
    let replaced = replace(path, |file| {
        let write_all = |bytes: &[u8]| {
            let written = goes_on().and_then(|()| file.write_all(bytes));
            written.map_err(SnapshotError::io("cannot write"))
        };
        let about = (filter.capacity(), filter.hasher());
        let (end, _) = write(filter.backend(), about, Part::FILE, UNCUT, write_all)?;
        last().map_err(SnapshotError::io("cannot write"))?;
        Ok(end.into())
    });
    replaced.map_err(|error| error.of_file(path))
}
