//! What all benches share: the command line, the machine and its threads, figures, memory,
//! waits, and child processes.

pub mod arguments;
pub mod figures;
pub mod machine;
pub mod memory;
pub mod waits;
pub mod worker;

/// Keys from here on are in no set.
pub const ABSENT: u64 = 1 << 40;

/// Returns a number that looks random.
pub fn scattered(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
}
