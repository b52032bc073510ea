//! koel's errors as Python's own.

use koel::{
    BuildError, BuildErrorKind, DurableError, DurableErrorKind, Full, FullKind, SnapshotError,
    SnapshotErrorKind, UnionError,
};
use koel_state::claim::ClaimError;
use libc::{EAGAIN, EINVAL, ENOENT};
use pyo3::exceptions::{
    PyBlockingIOError, PyFileNotFoundError, PyMemoryError, PyOSError, PyOverflowError, PyValueError,
};
use pyo3::prelude::*;
use std::fmt::Display;
use std::io;
use std::path::Path;

/// An error of the system about a file, with its number. Python makes the subclass of it that fits.
fn of_system(number: i32, text: impl Display, path: Option<&Path>) -> PyErr {
    let path = path.map(|path| path.as_os_str().to_os_string());
    PyOSError::new_err((number, text.to_string(), path))
}

/// The text without the path at its beginning and the number of the system's error, which Python adds itself.
fn without_path(text: &str, path: Option<&Path>) -> String {
    let path = path.map(|path| format!("{}: ", path.display())).unwrap_or_default();
    let text = text.strip_prefix(&path).unwrap_or(text);
    let number = text.find(" (os error ").and_then(|at| Some(at..at + text[at..].find(')')? + 1));
    match number {
        Some(number) => format!("{}{}", &text[..number.start], &text[number.end..]),
        None => text.to_string(),
    }
}

pub fn of_snapshot(error: &SnapshotError) -> PyErr {
    of_file(error.kind(), &error.to_string(), error.path(), error.io_error())
}

/// An error about a filter's file.
fn of_file(
    kind: SnapshotErrorKind,
    text: &str,
    path: Option<&Path>,
    error: Option<&io::Error>,
) -> PyErr {
    let number = error.and_then(io::Error::raw_os_error);
    match (kind, number) {
        (SnapshotErrorKind::OutOfMemory, _) => PyMemoryError::new_err(text.to_string()),
        (SnapshotErrorKind::Busy, _) => of_system(EAGAIN, without_path(text, path), path),
        (SnapshotErrorKind::NotFound, None) => of_system(ENOENT, without_path(text, path), path),
        (SnapshotErrorKind::NotAFile, _) => of_system(EINVAL, without_path(text, path), path),
        (_, Some(number)) => of_system(number, without_path(text, path), path),
        (SnapshotErrorKind::Io, None) => PyOSError::new_err(text.to_string()),
        _ => PyValueError::new_err(text.to_string()),
    }
}

/// An error of a filter, which has this file if it has one.
#[cold]
pub fn of_durable(error: &DurableError, file: Option<&Path>) -> PyErr {
    let text = error.to_string();
    let number = error.io_error().and_then(io::Error::raw_os_error);
    let path = error.path().or(file);
    match (error.kind(), number) {
        (DurableErrorKind::Full(kind), _) => of_full_kind(kind, text),
        (DurableErrorKind::State(kind), _) => of_file(kind, &text, error.path(), error.io_error()),
        (DurableErrorKind::Build(BuildErrorKind::OutOfMemory), _) => PyMemoryError::new_err(text),
        _ if error.is_in_use() => of_system(EAGAIN, without_path(&text, file), file),
        (DurableErrorKind::Forked, _) => of_system(EAGAIN, text, file),
        (_, Some(number)) => of_system(number, without_path(&text, path), path),
        (DurableErrorKind::InUse, None) => of_system(EINVAL, without_path(&text, file), file),
        (DurableErrorKind::NoSpace | DurableErrorKind::NotSynced, None) => PyOSError::new_err(text),
        // Not as it should be: damaged, or of another state.
        _ => PyValueError::new_err(text),
    }
}

pub fn of_claim(error: &ClaimError, path: &Path) -> PyErr {
    let text = without_path(&error.to_string(), Some(path));
    match error.io_error().and_then(io::Error::raw_os_error) {
        _ if error.is_taken() => of_system(EAGAIN, text, Some(path)),
        Some(number) => of_system(number, text, Some(path)),
        None => of_system(EINVAL, text, Some(path)),
    }
}

pub fn of_build(error: &BuildError) -> PyErr {
    match error.kind() {
        BuildErrorKind::OutOfMemory => PyMemoryError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

pub fn of_full(full: Full) -> PyErr {
    of_full_kind(full.kind(), full.to_string())
}

fn of_full_kind(kind: FullKind, text: String) -> PyErr {
    match kind {
        FullKind::LimitReached => PyMemoryError::new_err(
            "the filter has reached its limit, so this item was not added: raise max_bytes",
        ),
        FullKind::NoMemory => PyMemoryError::new_err(
            "there is no memory for the filter to grow, so this item was not added",
        ),
        _ => PyOverflowError::new_err(text),
    }
}

/// Filters could not be merged.
pub fn of_union(error: &UnionError) -> PyErr {
    match error.full() {
        Some(full) => of_full(full),
        None => PyValueError::new_err(error.to_string()),
    }
}

/// The filter was closed.
pub fn closed() -> PyErr {
    PyValueError::new_err("this filter is closed")
}

/// The file is another process's.
pub fn of_parent(path: &Path, process: u32) -> PyErr {
    PyBlockingIOError::new_err((
        EAGAIN,
        format!(
            "process {process} keeps this file, and this one was forked from it: let it save, or save a copy to \
             another path"
        ),
        path.as_os_str().to_os_string(),
    ))
}

/// There is something else.
pub fn not_a_file(path: &Path) -> PyErr {
    of_system(EINVAL, "it is not a regular file, and a filter must be one", Some(path))
}

/// There is no file.
pub fn missing(path: &Path) -> PyErr {
    let path = path.as_os_str().to_os_string();
    PyFileNotFoundError::new_err((ENOENT, "there is no filter, and create=False", path))
}
