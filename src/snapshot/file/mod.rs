//! What a snapshot needs that is a file, and not any stream of bytes.
//!
//! * [`load`] turns a file into a filter, on all cores.
//! * [`info`] tells what a file holds, without loading it.
//! * [`lookup`] answers for single items, and reads only the shards that they lead to; [`block_index`]
//!   tells which those are.
//! * [`replace`] puts a new file in the place of an old one, atomically. Until then it is a
//!   [`new_file`] beside that; [`paths`] tells where that is.

mod block_index;
pub mod info;
pub mod load;
pub mod lookup;
pub mod new_file;
pub mod paths;
pub mod replace;
