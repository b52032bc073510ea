//! Operations on many items at once.
//!
//! * `many` has the operations on batches, `into` the same with results in the caller's memory, and
//!   `parallel` the same on rayon's threads.
//! * `refresh` has those on items that are seen again, in a filter that forgets.
//! * `extend` takes streams of any length.
//! * `bulk` chooses the order in which a batch is processed, and `ahead` prefetches its memory.

pub mod ahead;
pub mod bulk;
mod extend;
mod into;
mod many;
#[cfg(feature = "rayon")]
mod parallel;
mod refresh;
