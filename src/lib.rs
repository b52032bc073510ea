//! koel
#![cfg_attr(not(loom), forbid(unsafe_code))]
#![cfg_attr(loom, deny(unsafe_code))]
#![cfg_attr(not(loom), warn(missing_docs, missing_debug_implementations))]

mod bucket;
mod builder;
mod error;
mod filter;
mod geometry;
mod kick;
mod lock;
mod path;
mod shard;
mod sizing;
mod stats;
mod stripe;
mod sync;

pub use builder::Builder;
pub use error::{BuildError, BuildErrorKind, Full};
pub use filter::ConcurrentCuckooFilter;
pub use stats::Stats;

/// The parts, for the models that check them.
#[cfg(loom)]
#[doc(hidden)]
pub mod internals {
    pub use crate::bucket::{Fingerprint, Lane, Lanes};
    pub use crate::geometry::{Bucket, Geometry, Place};
    pub use crate::kick::{Copies, Outcome, make_room, make_room_if_absent, walk};
    pub use crate::path::{Path, Step, find};
    pub use crate::shard::Shard;
    pub use crate::stripe::{Locks, Many, Moving, One, Stamps, Stripe, Two};
    pub use crate::sync::{AtomicU64, set_queue_first};
}
