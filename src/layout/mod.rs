//! Where things go: bits in a word, buckets in a shard, shards in a filter.
//!
//! Pure arithmetic on copies of numbers. Nothing here touches memory that threads share.

pub mod aging;
pub mod bucket;
pub mod geometry;
pub mod sizing;

/// True under a checker and in `tiny-tests`: tables are tiny and retries few, so that a model
/// explores every interleaving, or a test every level of growth.
pub const SMALL: bool = cfg!(any(loom, shuttle, tiny));
