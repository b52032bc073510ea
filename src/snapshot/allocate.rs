//! Memory for what a file claims to hold: refused as an error, never by an abort.

use crate::layout::geometry::Geometry;
use crate::snapshot::error::Reason;
use crate::table::Table;

/// Fails unless a machine of this kind could hold a table of `shards` shards like this one.
pub fn can_be_had(one: &Geometry, shards: usize) -> Result<(), Reason> {
    let bytes = Table::bytes(one).saturating_mul(shards);
    if bytes > isize::MAX as usize / 2 { Err(Reason::OutOfMemory { bytes }) } else { Ok(()) }
}

/// Allocates `words` zeros.
pub fn zeros(words: usize) -> Result<Vec<u64>, Reason> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(words).map_err(|_| Reason::OutOfMemory { bytes: 8 * words })?;
    zeros.resize(words, 0);
    Ok(zeros)
}
