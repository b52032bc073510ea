//! What a part of a filter is: a file, or a piece.
//!
//! * [`format`](mod@format) is the specification, and seals what is written.
//! * [`header`] encodes and parses the header.
//! * [`blocks`] validates each block, and checks that the blocks of a part follow one another.
//! * [`coverage`] is what blocks cover of a filter.
//! * [`time`] tells when a block was copied, in a filter that forgets.
//! * [`origin`] tells which filter a part is of.

pub mod blocks;
pub mod coverage;
pub mod format;
pub mod header;
pub mod origin;
pub mod time;
