//! Allocates memory for what a file claims to hold. If there is not enough, the result is an error and never an abort.

use crate::backend::exchange::Plan;
use crate::layout::geometry::Geometry;
use crate::snapshot::error::Reason;
use crate::table::Table;

/// Checks that a table of `shards` shards like this one would fit into the address space.
pub fn check_fits(one: &Geometry, shards: usize) -> Result<(), Reason> {
    let bytes = Table::bytes(one).saturating_mul(shards);
    if bytes > isize::MAX as usize / 2 { Err(Reason::OutOfMemory { bytes }) } else { Ok(()) }
}

/// The error when `count` values cannot be allocated.
pub fn no_memory_for<T>(count: usize) -> Reason {
    Reason::OutOfMemory { bytes: count.saturating_mul(size_of::<T>()) }
}

/// Reserves memory for `more` values.
pub fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<(), Reason> {
    values.try_reserve(more).map_err(|_| no_memory_for::<T>(more))
}

/// Allocates `words` zeros.
pub fn zeros(words: usize) -> Result<Vec<u64>, Reason> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(words).map_err(|_| no_memory_for::<u64>(words))?;
    zeros.resize(words, 0);
    Ok(zeros)
}

/// Allocates an empty table with this number of shards.
pub fn table_of(plan: &Plan, shards: usize) -> Result<Table, Reason> {
    check_fits(&plan.geometry().with_shards(1), shards)?;
    let table = Table::new(plan.geometry().with_shards(shards));
    table.map_err(|bytes| Reason::OutOfMemory { bytes })
}
