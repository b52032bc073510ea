//! The subcommands, and the summary that they end with.

pub mod compact;
pub mod dedup;
pub mod estimate;
pub mod generate;
pub mod info;
pub mod merge;
pub mod report;
pub mod sample;
