//! koel's own sources, as `build.rs` has copied them, with the mutants in them.

#![allow(warnings, clippy::all)] // They are checked where they come from.

include!(concat!(env!("OUT_DIR"), "/koel/included.rs"));

/// The parts that models use. (`build.rs` opens the modules.)
pub mod internals {
    pub use crate::backend::Backend;
    pub use crate::backend::fixed::{Fixed, FixedShards};
    pub use crate::backend::growing::Growing;
    pub use crate::backend::growing::GrowingShards;
    pub use crate::backend::growing::directory::{Directory, SeenEntry};
    pub use crate::backend::growing::lease::{UntilSplit, WasSplit};
    pub use crate::backend::growing::site::{Entry, Site};
    pub use crate::backend::retry::Shards;
    pub use crate::filter::batch::{Insert, InsertIfAbsent, Operation, write as write_batch};
    pub use crate::journal::streams::{Change, STREAMS, Sink, Streams};
    pub use crate::layout::bucket::{Fingerprint, Lane, Lanes, Words};
    pub use crate::layout::geometry::{Bucket, Geometry, Mixed, Place};
    pub use crate::layout::shrinking::Shrinking;
    pub use crate::layout::sizing::{Layout, rate_of_a_lane};
    pub use crate::layout::stamps::Moment;
    pub use crate::shard::Shard;
    pub use crate::shard::kick::{Copies, Outcome, execute, kick};
    pub use crate::shard::path::{Path, Step, find};
    pub use crate::shard::raw::Known;
    pub use crate::shard::{Copied, Lease, Permanent, Refusal};
    pub use crate::sync::AtomicU64;
    pub use crate::sync::additions::set_queue_first;
    pub use crate::table::Table;
    pub use crate::table::stripe::{
        Locks, Many, SeenVersion, StripeSet, Stripes, Two, WriteSection,
    };
    pub use crate::table::ticking::{Clock, Goal, Ticking, Time};
    pub use crate::union::entry::Ages;
    pub use crate::union::{Incoming, Union};
}

/// The environment variable that names the mutant which this process runs.
pub const MUTANT: &str = "KOEL_MUTANT";

/// Whether this process runs that mutant.
fn broken(mutant: &str) -> bool {
    static RUN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    RUN.get_or_init(|| std::env::var(MUTANT).ok()).as_deref() == Some(mutant)
}
