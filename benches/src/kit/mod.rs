//! What all benches share: the command line, the machine and its threads, medians and CSV files, memory, and waits.

pub mod arguments;
pub mod figures;
pub mod machine;
pub mod memory;
pub mod waits;
