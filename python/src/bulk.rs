//! Many items at once: piece by piece, and the table without the interpreter's lock.

use crate::errors;
use crate::filter::Filter;
use crate::fork::detached;
use crate::items::Items;
use crate::kept::Kept;
use koel::Full;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Asks the table about all items, and returns its answers in a list.
fn answer(
    py: Python<'_>,
    filter: &Filter,
    items: &Bound<'_, PyAny>,
    ask: impl Fn(&Kept, &[u64]) -> Vec<Result<bool, Full>> + Sync,
) -> PyResult<Py<PyList>> {
    let mut items = Items::of(items)?;
    let (answers, mut hashes) = (PyList::empty(py), Vec::new());
    let kept = filter.kept()?;
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
        filter.kept()?;
        for answer in piece {
            answers.append(answer.map_err(errors::of_full)?)?;
        }
        // Somebody may have pressed Ctrl-C.
        py.check_signals()?;
    }
}

pub fn add(py: Python<'_>, filter: &Filter, items: &Bound<'_, PyAny>) -> PyResult<Py<PyList>> {
    answer(py, filter, items, |kept, hashes| kept.add_many(hashes, filter.refreshes()))
}

pub fn contains(py: Python<'_>, filter: &Filter, items: &Bound<'_, PyAny>) -> PyResult<Py<PyList>> {
    answer(py, filter, items, |kept, hashes| {
        kept.contains_many(hashes).into_iter().map(Ok).collect()
    })
}

pub fn discard(py: Python<'_>, filter: &Filter, items: &Bound<'_, PyAny>) -> PyResult<Py<PyList>> {
    answer(py, filter, items, |kept, hashes| {
        kept.discard_many(hashes).into_iter().map(Ok).collect()
    })
}
