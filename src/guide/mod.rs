//! **Pages to read, not modules**: how to choose, what an operation may wait for, why koel is built as it is. They are
//! in the documentation only, so nothing of them can be imported.
//!
//! For users:
//!
//! * [`rates`]: which false-positive rate to choose, and what it costs in memory
//! * [`growth`]: filters for an unknown number of items
//! * [`files`]: saving, loading, and resuming a crawl
//! * [`durable`]: a filter that a crash does not rob
//! * [`batches`]: many items at once, on one thread or on all
//! * [`progress`]: which operations take locks, and what they may wait for
//!
//! For readers of the source:
//!
//! * [`design`]: the decisions, and the measurements behind them
//! * [`kick`](mod@crate::guide::kick): how a lookup stays right while items move
//! * [`sweep`](mod@crate::guide::sweep): how items expire while other threads use the filter
//! * [`split`](mod@crate::guide::split): how a lookup stays right while a shard is split
//! * [`join`](mod@crate::guide::join): and while two shards are joined
//! * [`format`](mod@crate::guide::format): a saved filter, byte by byte, as a file or in pieces

#[doc = include_str!("rates.md")]
pub mod rates {}

#[doc = include_str!("growth.md")]
pub mod growth {}

#[doc = include_str!("files.md")]
pub mod files {}

#[cfg_attr(all(unix, feature = "durable"), doc = include_str!("durable.md"))]
pub mod durable {}

#[cfg_attr(feature = "rayon", doc = include_str!("batches.md"))]
pub mod batches {}

#[doc = include_str!("progress.md")]
pub mod progress {}

#[doc = include_str!("design.md")]
pub mod design {}

#[doc = include_str!("kick.md")]
pub mod kick {}

#[doc = include_str!("sweep.md")]
pub mod sweep {}

#[doc = include_str!("split.md")]
pub mod split {}

#[doc = include_str!("join.md")]
pub mod join {}

#[doc = include_str!("format.md")]
pub mod format {}
