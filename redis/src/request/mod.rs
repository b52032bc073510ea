//! What commands have in common.
//!
//! * [`target`] finds the set of a key, or makes it.
//! * [`limits`] refuses what would take too much memory.
//! * [`options`] parses arguments.
//! * [`time`] lets time pass in the filter that is asked.

pub mod limits;
pub mod options;
pub mod target;
pub mod time;
