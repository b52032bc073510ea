//! Many items at once: piece by piece, and the table without the interpreter's lock.

use crate::errors;
use crate::items::Items;
use koel::{Full, Prehashed, StableHash};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Asks a filter about all items, and returns its answers in a list. `ask` asks it about a piece of them.
pub fn answer(
    py: Python<'_>,
    items: &Bound<'_, PyAny>,
    hasher: StableHash,
    ask: impl Fn(&[Prehashed]) -> PyResult<Vec<Result<bool, Full>>>,
) -> PyResult<Py<PyList>> {
    let mut items = Items::of(items)?;
    let (answers, mut hashes) = (PyList::empty(py), Vec::new());
    loop {
        items.next_piece(py, hasher, &mut hashes)?;
        if hashes.is_empty() {
            return Ok(answers.unbind());
        }
        for answer in ask(&hashes)? {
            answers.append(answer.map_err(errors::of_full)?)?;
        }
        // Somebody may have pressed Ctrl-C.
        py.check_signals()?;
    }
}
