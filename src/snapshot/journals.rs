//! The journals beside a file: how they are named, and whether they have changes that the file lacks. A journal that a
//! crash has left beside a file that has its changes counts, too, until `DurableFilter::open` removes it.

use crate::disk::replace::{folder_of, follow, if_there};
use crate::snapshot::error::{SnapshotError, SnapshotErrorKind};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

#[cfg(all(unix, feature = "durable"))]
use crate::journal::reader::Reader;

/// Returns the beginning of the names of a state's journals. A long name of a state is replaced by its hash.
pub(crate) fn journals_begin(state: &OsStr) -> OsString {
    let mut start = match state.len() {
        ..=110 => state.to_os_string(),
        _ => format!("{:016x}", xxh3_64(state.as_encoded_bytes())).into(),
    };
    start.push(".journal.");
    start
}

pub(crate) fn journals_of(state: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(name) = state.file_name() else { return Ok(Vec::new()) };
    let (folder, start) = (folder_of(state), journals_begin(name));
    let mut found = Vec::new();
    let entries = loop {
        match fs::read_dir(folder) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            entries => break if_there(entries)?,
        }
    };
    let Some(entries) = entries else { return Ok(found) };
    for entry in entries {
        let name = entry?.file_name();
        let rest = name.as_encoded_bytes().strip_prefix(start.as_encoded_bytes());
        if rest.is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit)) {
            found.push(folder.join(name));
        }
    }
    Ok(found)
}

#[cfg(all(unix, feature = "durable"))]
pub(crate) fn number_in_name(journal: &Path) -> u64 {
    let number = journal.extension().and_then(OsStr::to_str);
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The changes that the file of a `DurableFilter` lacks, because only the journals beside it have them. There are some
/// if the filter is open, or was not closed. `DurableFilter::open` takes them in.
///
/// ```
/// use koel::{ConcurrentCuckooFilter, StableHash, UnreadChanges};
///
/// # let path = std::env::temp_dir().join(format!("koel-unread-{}", std::process::id()));
/// let builder = ConcurrentCuckooFilter::builder().capacity(100).hasher(StableHash::random());
/// builder.build()?.save(&path)?;
/// let unread = UnreadChanges::beside(&path)?;
/// assert_eq!((unread.journal, unread.bytes), (None, 0));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct UnreadChanges {
    /// A journal that has some of them, if there are any.
    pub journal: Option<PathBuf>,
    /// The number of bytes that all such journals use.
    pub bytes: u64,
}

impl UnreadChanges {
    /// Finds the changes beside the file at a path, which need not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be listed, or a journal not be inspected.
    pub fn beside(path: &Path) -> Result<Self, SnapshotError> {
        let path = follow(path)?;
        loop {
            let (mut unread, mut is_gone) = (UnreadChanges::default(), false);
            let journals = journals_of(&path);
            for journal in journals.map_err(SnapshotError::io("cannot open its folder"))? {
                let bytes = if_there(bytes_of_changes(&journal));
                match bytes.map_err(SnapshotError::io("cannot inspect its journal"))? {
                    Some(0) => {}
                    Some(bytes) => {
                        unread.bytes += bytes;
                        unread.journal.get_or_insert(journal);
                    }
                    None => is_gone = true,
                }
            }
            // A checkpoint that has removed a journal has made another one, which may not have been listed.
            if !is_gone {
                return Ok(unread);
            }
        }
    }

    /// The same for a file that is to be read. The journals of a folder that this process may not list count as none.
    /// Look for them before the file is opened: a checkpoint replaces the file, and then removes its journals.
    pub(crate) fn to_read(path: &Path) -> Result<Self, SnapshotError> {
        Self::beside(path).or_else(|error| match error.io_error().map(io::Error::kind) {
            Some(ErrorKind::PermissionDenied) => Ok(UnreadChanges::default()),
            _ => Err(error),
        })
    }

    pub(crate) fn refuse(&self, advice: &str) -> Result<(), SnapshotError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let text = format!("changes may be in its journal {} alone{advice}", journal.display());
        Err(SnapshotError::new(SnapshotErrorKind::HasJournal, text))
    }
}

/// Returns the number of bytes in use in a journal, or 0 if it has no changes. A journal that cannot be read may have
/// changes in all of its bytes.
#[cfg(all(unix, feature = "durable"))]
fn bytes_of_changes(journal: &Path) -> io::Result<u64> {
    match Reader::open(journal) {
        Ok(Some(reader)) if !reader.is_empty() => Ok(reader.bytes()),
        Ok(_) => Ok(0),
        Err(_) => Ok(journal.symlink_metadata()?.len()),
    }
}

#[cfg(not(all(unix, feature = "durable")))]
fn bytes_of_changes(journal: &Path) -> io::Result<u64> {
    Ok(journal.symlink_metadata()?.len())
}
