//! Many items at once: piece by piece, and the table without the interpreter's lock.

use crate::errors;
use crate::items::Items;
use koel::{Full, Prehashed, StableHash};
use pyo3::prelude::*;

/// Asks a filter about all items, and passes each answer on to `take`. `ask` asks it about a piece of them.
pub fn answer(
    py: Python<'_>,
    items: &Bound<'_, PyAny>,
    hasher: StableHash,
    ask: impl Fn(&[Prehashed]) -> PyResult<Vec<Result<bool, Full>>>,
    take: impl Fn(bool) -> PyResult<()>,
) -> PyResult<()> {
    let mut items = Items::of(items)?;
    let mut hashes = Vec::new();
    loop {
        items.next_piece(py, hasher, &mut hashes)?;
        if hashes.is_empty() {
            return Ok(());
        }
        for answer in ask(&hashes)? {
            take(answer.map_err(errors::of_full)?)?;
        }
        // Somebody may have pressed Ctrl-C.
        py.check_signals()?;
    }
}
