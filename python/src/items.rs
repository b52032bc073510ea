//! What Python passes as items, and their hashes.
//!
//! A `str` is its UTF-8 bytes. Many items come piece by piece: an iterable is asked for some thousand, or for a
//! megabyte, while the interpreter's lock is held, and the table is asked without it.

use koel::{Prehashed, StableHash};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyIterator, PyMemoryView, PySlice, PyString};

/// The most items of a piece, and the bytes after which it ends.
const MAX_ITEMS: usize = 4_096;
const MAX_BYTES: usize = 1 << 20;

/// A larger item is hashed without the interpreter's lock.
const LARGE: usize = 1 << 20;

/// Returns the hash of an item, and its length.
#[inline]
pub fn hash(hasher: StableHash, item: &Bound<'_, PyAny>) -> PyResult<(Prehashed, usize)> {
    let bytes = if let Ok(text) = item.cast::<PyString>() {
        text.to_str()?.as_bytes()
    } else if let Ok(bytes) = item.cast::<PyBytes>() {
        bytes.as_bytes()
    } else {
        return Err(wrong_type(item));
    };
    let hash = match bytes.len() {
        // Neither `str` nor `bytes` ever change, and `item` keeps this one.
        LARGE.. => item.py().detach(|| hasher.hash_bytes(bytes)),
        _ => hasher.hash_bytes(bytes),
    };
    Ok((Prehashed(hash), bytes.len()))
}

#[cold]
fn wrong_type(item: &Bound<'_, PyAny>) -> PyErr {
    let name = item.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!("an item must be str or bytes, not {name}"))
}

/// Whether numbers of this format have the machine's order of bytes.
fn is_native(format: &[u8]) -> bool {
    match format.first() {
        Some(b'<') => cfg!(target_endian = "little"),
        Some(b'>' | b'!') => cfg!(target_endian = "big"),
        _ => true,
    }
}

/// Many items: an iterable of `str` and `bytes`, or a buffer of hashes.
pub enum Items<'py> {
    Iterator(Bound<'py, PyIterator>),
    Hashes { view: Bound<'py, PyMemoryView>, next: usize, end: usize },
}

impl<'py> Items<'py> {
    pub fn of(items: &Bound<'py, PyAny>) -> PyResult<Self> {
        if items.is_instance_of::<PyString>()
            || items.is_instance_of::<PyBytes>()
            || items.is_instance_of::<PyByteArray>()
        {
            return Err(PyTypeError::new_err(
                "this takes many items: a list of str or bytes, say, and not one",
            ));
        }
        // A list has no buffer, and an array of anything else than hashes is a mistake.
        if let Ok(buffer) = PyBuffer::<u64>::get(items) {
            if !is_native(buffer.format().to_bytes()) {
                return Err(PyTypeError::new_err(
                    "a buffer of hashes must have this machine's order of bytes",
                ));
            }
            if buffer.dimensions() != 1 {
                return Err(PyTypeError::new_err("a buffer of hashes must have one dimension"));
            }
            let view = PyMemoryView::from(items)?;
            return Ok(Items::Hashes { view, next: 0, end: buffer.item_count() });
        }
        let is_buffer = items.is_instance_of::<PyMemoryView>()
            || items.hasattr("__array_interface__")?
            || items.hasattr("typecode")?;
        // An empty one may have no memory.
        if is_buffer && items.len()? > 0 {
            return Err(PyTypeError::new_err(
                "a buffer must be of uint64, which are taken for hashes",
            ));
        }
        Ok(Items::Iterator(items.try_iter()?))
    }

    /// Puts the hashes of the next piece in the place of those of the last one. There are none at the end.
    pub fn next_piece(
        &mut self,
        py: Python<'py>,
        hasher: StableHash,
        hashes: &mut Vec<Prehashed>,
    ) -> PyResult<()> {
        hashes.clear();
        match self {
            Items::Iterator(iterator) => {
                let mut bytes = 0;
                while hashes.len() < MAX_ITEMS && bytes < MAX_BYTES {
                    let Some(item) = iterator.next() else { break };
                    let (hash, length) = hash(hasher, &item?)?;
                    hashes.push(hash);
                    bytes += length;
                }
            }
            Items::Hashes { view, next, end } => {
                let upto = (*end).min(*next + MAX_ITEMS);
                // A view of a view: others may change the buffer meanwhile, so it is copied while they wait.
                let piece = view.get_item(PySlice::new(py, *next as isize, upto as isize, 1))?;
                let numbers = PyBuffer::<u64>::get(&piece)?.to_vec(py)?;
                *hashes = numbers.into_iter().map(Prehashed).collect();
                *next = upto;
            }
        }
        Ok(())
    }
}
