//! What the threads of a durable filter share.

use crate::filter::ConcurrentCuckooFilter;
use crate::journal::file::write::Writer;
use crate::journal::streams::Streams;
use std::time::Duration;

/// When changes are made to survive a power failure. (They always survive the end of the process.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncPolicy {
    /// Before a call that has changed something returns. Threads that wait at the same time share a sync.
    Each,
    /// At this interval.
    Every(Duration),
    /// When the system writes them.
    Never,
}

impl Default for SyncPolicy {
    /// Every second.
    fn default() -> Self {
        SyncPolicy::Every(Duration::from_secs(1))
    }
}

pub struct Shared<S> {
    pub filter: ConcurrentCuckooFilter<S>,
    pub streams: Streams<Writer>,
}
