//! What all benches share: the command line, the machine and its threads, figures, tables and curves, memory, and waits.

pub mod arguments;
pub mod curves;
pub mod figures;
pub mod machine;
pub mod memory;
pub mod table;
pub mod waits;
