//! The parts of a filter: files and pieces.
//!
//! * [`format`](mod@format) is the specification, and has the checksums.
//! * [`header`] encodes and parses the header.
//! * [`blocks`] validates each block, and checks that the blocks of a part are consecutive.
//! * [`coverage`] tracks which hashes the blocks of a filter cover.
//! * [`time`] has the time at which a block was copied, in a filter that forgets.

pub mod blocks;
pub mod coverage;
pub mod format;
pub mod header;
pub mod time;
