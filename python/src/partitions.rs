//! The hashes of a batch, divided among partitions, and answers put back in the order of the items.
//!
//! `pykoel.partitions` has the interface.

use crate::items::Items;
use koel::StableHash;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::collections::HashMap;

/// The hashes of one partition, as native `uint64`.
type Hashes<'py> = Bound<'py, PyBytes>;

/// Hashes each item once. Returns the hashes of each of `count` equal ranges of hashes, in the order of the items, and
/// the partition of each item, as native `uint16`.
///
/// The top bits of a hash choose the partition. A filter mixes a hash before it uses its bits, so the hashes of one
/// partition fill a filter as evenly as all hashes do.
#[pyfunction]
pub fn _split<'py>(
    py: Python<'py>,
    items: &Bound<'py, PyAny>,
    seed: u64,
    count: u16,
) -> PyResult<(Vec<Hashes<'py>>, Bound<'py, PyBytes>)> {
    if count == 0 {
        return Err(PyValueError::new_err("there must be at least one partition"));
    }
    let hasher = StableHash::with_seed(seed);
    let mut items = Items::of(items)?;
    let mut partitions = vec![Vec::new(); count.into()];
    let (mut piece, mut partition_of) = (Vec::new(), Vec::new());
    loop {
        items.next_piece(py, hasher, &mut piece)?;
        if piece.is_empty() {
            break;
        }
        for hash in &piece {
            let partition = ((u128::from(hash.0) * u128::from(count)) >> u64::BITS) as u16;
            partitions[usize::from(partition)].extend_from_slice(&hash.0.to_ne_bytes());
            partition_of.extend_from_slice(&partition.to_ne_bytes());
        }
        // Somebody may have pressed Ctrl-C.
        py.check_signals()?;
    }
    let partitions = partitions.iter().map(|hashes| PyBytes::new(py, hashes)).collect();
    Ok((partitions, PyBytes::new(py, &partition_of)))
}

/// Returns the answers in the order of the items: True, False, or None for each item of a partition without an entry.
#[pyfunction]
pub fn _join<'py>(
    py: Python<'py>,
    partition_of: &[u8],
    answers: HashMap<u16, Bound<'py, PyBytes>>,
) -> PyResult<Bound<'py, PyList>> {
    let count = answers.keys().max().map_or(0, |&most| usize::from(most) + 1);
    let mut left = vec![None; count];
    for (&partition, answers) in &answers {
        left[usize::from(partition)] = Some(answers.as_bytes().iter());
    }
    let (partition_of, _) = partition_of.as_chunks();
    let joined: Option<Vec<Option<bool>>> = partition_of
        .iter()
        .map(|&partition| match left.get_mut(usize::from(u16::from_ne_bytes(partition))) {
            Some(Some(answers)) => answers.next().map(|&answer| Some(answer != 0)),
            _ => Some(None),
        })
        .collect();
    match joined {
        Some(joined) if left.iter().flatten().all(|left| left.len() == 0) => {
            PyList::new(py, joined)
        }
        _ => Err(PyValueError::new_err("each item of a partition must have one answer")),
    }
}
