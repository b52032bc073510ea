//! What a snapshot needs that is a file, and not any stream of bytes.
//!
//! * [`load`] turns a file into a filter, on all cores.
//! * [`info`] tells what a file holds, without loading it.
//! * [`replace`] puts a new file in the place of an old one, atomically.

pub mod info;
pub mod load;
pub mod replace;
