//! The operations on snapshots that need a file rather than any stream of bytes.
//!
//! * [`load`] turns a file into a filter, on all cores.
//! * [`info`] reads the description of a filter from its file, without loading the filter.
//! * [`lookup`] looks up single items, and reads only the shards that they lead to, which [`block_index`] finds.
//! * [`replace`] replaces an old file with a new one, atomically.

mod block_index;
pub mod info;
pub mod load;
pub mod lookup;
pub mod replace;
