//! A record of each change: in which order they are recorded, and in what file.

pub(crate) mod streams;

#[cfg(not(loom))]
pub(crate) mod format;
#[cfg(not(loom))]
pub(crate) mod reader;
#[cfg(not(loom))]
pub(crate) mod writer;
