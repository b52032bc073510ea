//! A record of each change: in which order they are recorded, and in what file.

pub mod streams;

#[cfg(not(loom))]
pub mod format;
#[cfg(not(loom))]
pub mod read;
#[cfg(not(loom))]
pub mod write;
