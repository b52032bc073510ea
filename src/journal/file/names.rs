//! The names of the journals of a state.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// The name of a journal of a state.
pub fn journal_of(state: &Path, number: u64) -> PathBuf {
    let mut name = journals_begin(state.file_name().unwrap_or_default());
    name.push(number.to_string());
    state.with_file_name(name)
}

/// How the names of the journals of a state begin. A name that would be too long is replaced by its hash.
fn journals_begin(state: &OsStr) -> OsString {
    let mut start = match state.len() {
        ..=110 => state.to_os_string(),
        _ => format!("{:016x}", xxh3_64(state.as_encoded_bytes())).into(),
    };
    start.push(".journal.");
    start
}

/// The journals beside a state, of all numbers.
pub fn journals_of(state: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = match state.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Some(name) = state.file_name() else { return Ok(Vec::new()) };
    let start = journals_begin(name);
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        let rest = name.as_encoded_bytes().strip_prefix(start.as_encoded_bytes());
        if rest.is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit)) {
            found.push(folder.join(name));
        }
    }
    Ok(found)
}

/// The number in the name of a journal.
pub fn number_of(journal: &Path) -> u64 {
    let number = journal.extension().and_then(OsStr::to_str).and_then(|number| number.parse().ok());
    number.unwrap_or(0)
}
