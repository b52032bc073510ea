//! **Pages to read, not modules**: how to choose, what an operation may wait for, why koel is built as it is. They are
//! in the documentation only, so nothing of them can be imported.
//!
//! * For users: [`rates`], [`growth`], [`files`], [`durable`], [`batches`] and [`progress`].
//! * For readers of the source: [`design`], [`format`](mod@crate::guide::format), and why lookups stay right:
//!   [`kick`](mod@crate::guide::kick), [`sweep`](mod@crate::guide::sweep), [`split`](mod@crate::guide::split) and
//!   [`join`](mod@crate::guide::join).

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
