//! koel's errors as Python's own, in terms of the arguments of `Filter`. koel's own texts address programs in Rust, and
//! are used where they speak of files alone.

use crate::asked::Asked;
use koel::{
    BuildErrorKind, DurableError, DurableErrorKind, Full, FullKind, SnapshotError,
    SnapshotErrorKind, UnionError, UnionErrorKind,
};
use libc::{EAGAIN, EEXIST, EINVAL, EISDIR, ENOENT};
use pyo3::exceptions::{
    PyFileNotFoundError, PyMemoryError, PyOSError, PyOverflowError, PyRuntimeError,
    PyRuntimeWarning, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::ffi::CString;
use std::fmt::Display;
use std::io;
use std::path::Path;

// An `OSError` and a `ValueError`, which Python raises if a file is written that was opened to be read.
pyo3::import_exception!(io, UnsupportedOperation);

/// An error of the system about a file, with its number. Python makes the subclass of it that fits.
pub fn of_system(number: i32, text: impl Display, path: Option<&Path>) -> PyErr {
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

/// A path that could not be claimed.
pub fn of_claim(error: &SnapshotError, path: &Path) -> PyErr {
    of_file(error.kind(), &error.to_string(), Some(path), error.io_error())
}

/// An error about a filter's file. koel's text begins with the path, if there is one.
fn of_file(
    kind: SnapshotErrorKind,
    text: &str,
    path: Option<&Path>,
    error: Option<&io::Error>,
) -> PyErr {
    let number = error.and_then(io::Error::raw_os_error);
    let named = |text: &str| match path {
        Some(path) => PyValueError::new_err(format!("{}: {text}", path.display())),
        None => PyValueError::new_err(text.to_string()),
    };
    match (kind, number) {
        (SnapshotErrorKind::OutOfMemory, _) => PyMemoryError::new_err(text.to_string()),
        (SnapshotErrorKind::Busy, _) => of_system(EAGAIN, without_path(text, path), path),
        (SnapshotErrorKind::NotFound, None) => of_system(ENOENT, without_path(text, path), path),
        (SnapshotErrorKind::NotAFile, _) => not_a_file(path),
        (SnapshotErrorKind::HasJournal, _) => of_system(
            EEXIST,
            "its journal has changes, which would be lost with this file: save to another path, or call \
             Filter(path).close() first",
            path,
        ),
        (_, Some(number)) => of_system(number, without_path(text, path), path),
        (SnapshotErrorKind::Io, None) => of_system(EINVAL, without_path(text, path), path),
        (SnapshotErrorKind::NotASnapshot, None) if path.is_some_and(is_empty) => {
            named("it is empty, and a filter never is: remove it to begin anew")
        }
        (SnapshotErrorKind::WrongHasher, None) => named(
            "its items were hashed in another way, so none of them would be found: by a Rust program with a hash of \
             its own, or by the koel command with options such as --url",
        ),
        (SnapshotErrorKind::Incomplete, None) => named(
            "it is not one whole filter: it was cut off, or something was appended, or it is one of several parts; \
             take another copy, or put the parts together with koel merge",
        ),
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
        (DurableErrorKind::Full(kind), _) => of_full_kind(kind),
        (DurableErrorKind::State(kind), _) => of_file(kind, &text, error.path(), error.io_error()),
        (DurableErrorKind::TooFull, _) => PyValueError::new_err(format!(
            "{}: not all changes in its journals fit into it again; move the journals away to open it as it was at \
             the last save",
            file.unwrap_or(Path::new("")).display()
        )),
        (DurableErrorKind::InUse, _) => of_system(EAGAIN, without_path(&text, file), file),
        (DurableErrorKind::Forked, _) => forked(),
        (_, Some(number)) => of_system(number, without_path(&text, path), path),
        (DurableErrorKind::NoSpace | DurableErrorKind::NotSynced, None) => PyOSError::new_err(text),
        // Not as it should be: damaged, or of another state.
        _ => PyValueError::new_err(text),
    }
}

/// A new filter cannot be built. `least` is the least rate, if that is why.
pub fn of_build(kind: BuildErrorKind, least: Option<f64>, asked: &Asked) -> PyErr {
    let max_bytes = asked.most_bytes();
    let rate = asked.rate.unwrap_or(koel::Plan::SEEN_SET_RATE);
    let items = asked.capacity.map_or(String::new(), |items| format!(" for capacity={items}"));
    PyValueError::new_err(match kind {
        BuildErrorKind::OutOfMemory => {
            return PyMemoryError::new_err(format!("there is no memory for a filter{items}"));
        }
        BuildErrorKind::InvalidRate => {
            format!("rate must be more than 0 and less than 1, not {rate:?} (1 % is 0.01)")
        }
        BuildErrorKind::RateTooSmall => {
            let how = if asked.capacity.is_some() {
                ""
            } else {
                ", or a capacity, which allows for less"
            };
            let least =
                least.map_or(String::new(), |least| format!(": pass {least:.1e} or more{how}"));
            format!("rate={rate:e} is out of reach{least}")
        }
        BuildErrorKind::CapacityOverflow => {
            format!("a filter{items} is larger than any memory: pass a smaller capacity")
        }
        BuildErrorKind::LimitTooSmall => {
            let least = asked.least_bytes();
            let least = least.map_or(String::new(), |bytes| format!(", which takes {bytes}"));
            format!("max_bytes={max_bytes} is too little to begin a filter{items}{least}")
        }
        // Of settings that are not Python's.
        _ => format!("there is no such filter{items}"),
    })
}

pub fn no_memory_for_a_copy() -> PyErr {
    PyMemoryError::new_err("there is no memory for a copy of the filter")
}

pub fn of_full(full: Full) -> PyErr {
    of_full_kind(full.kind())
}

fn of_full_kind(kind: FullKind) -> PyErr {
    match kind {
        FullKind::LimitReached => PyMemoryError::new_err(
            "the filter has reached its limit, so this item was not added: raise max_bytes",
        ),
        FullKind::NoMemory => PyMemoryError::new_err(
            "there is no memory for the filter to grow, so this item was not added",
        ),
        _ => PyOverflowError::new_err(
            "there is no room for this item, so it was not added, and the filter does not grow for it: remove items, \
             or begin another filter",
        ),
    }
}

/// Filters could not be merged.
pub fn of_union(error: &UnionError) -> PyErr {
    let UnionErrorKind::Full { reason, added, .. } = error.kind() else {
        return apart(error.kind());
    };
    let text = format!("{added} items have come, and there is no room for the others");
    match reason {
        FullKind::LimitReached => PyMemoryError::new_err(format!("{text}: raise max_bytes")),
        FullKind::NoMemory => PyMemoryError::new_err(text),
        _ => PyOverflowError::new_err(text),
    }
}

/// Filters are not alike.
pub fn apart(kind: UnionErrorKind) -> PyErr {
    let how = match kind {
        UnionErrorKind::DifferentHasher => "have different seeds: make both with one seed",
        UnionErrorKind::DifferentKind => {
            "are of two kinds: one of them, which a Rust program made, does not grow"
        }
        UnionErrorKind::DifferentLayout => {
            "have different rates: make both with one rate, and with one capacity or none"
        }
        UnionErrorKind::DifferentSize => "have different capacities: make both with one capacity",
        UnionErrorKind::DifferentWindow => {
            "remember items for different times: make both with one value of remembers"
        }
        UnionErrorKind::OutOfMemory => {
            return PyMemoryError::new_err("there is no memory to merge the filters");
        }
        _ => "cannot be merged",
    };
    PyValueError::new_err(format!("these filters {how}"))
}

/// A filter is not what was asked for.
pub fn named(path: &Path, why: impl Display) -> PyErr {
    PyValueError::new_err(format!("{}: {why}", path.display()))
}

/// Tells an error of closing a filter where nobody can catch it.
#[cold]
pub fn of_end(py: Python<'_>, error: PyErr) {
    let what = "closing a pykoel.Filter, whose journal has what its file lacks";
    error.write_unraisable(py, Some(PyString::new(py, what).as_any()));
}

/// Warns that a file which is only read lacks what is in its journal.
#[cold]
pub fn warn_of_journal(py: Python<'_>, path: &Path, bytes: u64) -> PyResult<()> {
    let text = CString::new(format!(
        "{}: readonly=True does not read its journal, which has {bytes} bytes of changes. They are seen after a save() \
         where the filter is open. If it is open nowhere, call Filter(path).close() once",
        path.display()
    ))?;
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)
}

/// The filter is only read, and not in memory.
#[cold]
pub fn read_only() -> PyErr {
    UnsupportedOperation::new_err(
        "this filter was opened with readonly=True: open it without that, or use a copy()",
    )
}

/// The filter was closed.
pub fn closed() -> PyErr {
    PyValueError::new_err("this filter is closed")
}

/// The filter was opened by a process that this one was forked from.
#[cold]
pub fn forked() -> PyErr {
    PyRuntimeError::new_err(
        "this filter was opened before this process was forked: open it with readonly=True there, open or build it in \
         the child, or pass it to the child pickled",
    )
}

fn is_empty(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.len() == 0)
}

/// There is something else, maybe a folder.
pub fn not_a_file(path: Option<&Path>) -> PyErr {
    match path.is_some_and(Path::is_dir) {
        true => of_system(EISDIR, "it is a folder, and a filter is kept in a file", path),
        false => of_system(EINVAL, "it is not a regular file, and a filter must be one", path),
    }
}

/// There is no file.
pub fn missing(path: &Path) -> PyErr {
    let path = path.as_os_str().to_os_string();
    PyFileNotFoundError::new_err((ENOENT, "there is no filter, and create=False", path))
}
