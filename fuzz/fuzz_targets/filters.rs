//! Filters, what they write, and numbers that look random.

use koel_small::{ConcurrentCuckooFilter, StableHash};

pub type Filter = ConcurrentCuckooFilter<StableHash>;

pub fn written(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    let report = filter.write_to(&mut bytes).expect("a Vec takes everything");
    assert_eq!(report.bytes, bytes.len() as u64);
    bytes
}

/// Whether a filter that was read from a file of so many bytes is as the file has it. One that is mostly empty shrinks.
pub fn is_as_read(filter: &Filter, bytes: usize) -> bool {
    let stats = filter.stats();
    5 * stats.items >= 2 * stats.slots && written(filter).len() == bytes || !stats.grows
}

pub fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ n >> 31
}
