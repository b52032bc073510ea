//! Many items at once: piece by piece, and the table without the interpreter's lock.

use crate::errors;
use crate::fork::detached;
use crate::items::Items;
use crate::kept::Kept;
use koel::{Full, Prehashed};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Asks the table of a filter about all items, and returns its answers in a list. `open` returns the filter, unless
/// it is closed.
pub fn answer<'k>(
    py: Python<'_>,
    items: &Bound<'_, PyAny>,
    open: impl Fn() -> PyResult<&'k Kept>,
    ask: impl Fn(&Kept, &[Prehashed]) -> Vec<Result<bool, Full>> + Sync,
) -> PyResult<Py<PyList>> {
    let mut items = Items::of(items)?;
    let (answers, mut hashes) = (PyList::empty(py), Vec::new());
    let kept = open()?;
    loop {
        items.next_piece(py, kept, &mut hashes)?;
        if hashes.is_empty() {
            return Ok(answers.unbind());
        }
        let piece = detached(py, || {
            kept.keep_up();
            ask(kept, &hashes)
        });
        // If it was closed meanwhile, the file may not have them.
        open()?;
        for answer in piece {
            answers.append(answer.map_err(errors::of_full)?)?;
        }
        // Somebody may have pressed Ctrl-C.
        py.check_signals()?;
    }
}
