//! The records of a journal, and their checks.

use crate::journal::streams::Change;

/// Bytes in a page of a journal, the unit of its chunks.
pub const PAGE_BYTES: u64 = 4 << 10;
pub const PAGE_RECORDS: usize = PAGE_BYTES as usize / 16;

/// Binary logarithm of the number of pages in the longest chunk: 64 KiB.
pub const MAX_CHUNK: u32 = 4;

/// What happened in the first record of a chunk.
pub const CHUNK: u64 = 5;

/// The check of a record, with what happened in its lowest bits.
#[inline]
pub fn sealed(key: u64, place: u64, word: u64, what: u64) -> u64 {
    let a = (word ^ key) | 1;
    let product = u128::from(a.wrapping_add(place << 3 | what))
        * u128::from((word.rotate_left(32) ^ 0x9E37_79B9_7F4A_7C15).wrapping_add(place));
    let folded = (product >> 64) as u64 ^ product as u64;
    let mixed = (folded ^ key.rotate_left(17)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed ^ mixed >> 32) & !7 | what
}

pub fn code_of(change: Change) -> u64 {
    match change {
        Change::Added => 1,
        Change::Removed => 2,
        Change::Refreshed => 3,
        Change::Ticked => 4,
        Change::TickedTo => 6,
        Change::Cleared => 7,
        Change::Follows => 0,
    }
}

pub fn change_of(code: u64) -> Option<Change> {
    Some(match code {
        1 => Change::Added,
        2 => Change::Removed,
        3 => Change::Refreshed,
        4 => Change::Ticked,
        6 => Change::TickedTo,
        7 => Change::Cleared,
        0 => Change::Follows,
        _ => return None,
    })
}
