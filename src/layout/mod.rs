//! Where things go: bits in a word, buckets in a shard, shards in a filter.
//!
//! ```text
//! Filter    routes a hash to a shard
//!  └ Shard      at most 2^17 buckets (1 or 2 MiB): a complete cuckoo table; it has both buckets of an item
//!     └ Segment     512 buckets (4 or 8 KiB), guarded by one stripe: a lock, a version, a count of items
//!        └ Bucket      one 64-bit atomic word, or two, cut into equal lanes
//!           └ Lane        one fingerprint, or 0 when empty
//! ```
//!
//! This is pure arithmetic on copies of numbers. Nothing here touches memory that threads share.

pub(crate) mod bucket;
pub(crate) mod geometry;
pub(crate) mod roots;
pub(crate) mod shrinking;
pub(crate) mod sizing;
pub(crate) mod stamps;

/// True under a checker and in `tests/random`: tables are then tiny and retries few, so that a model explores every
/// interleaving, or a test reaches every level of growth.
pub(crate) const SMALL: bool = cfg!(any(loom, shuttle, tiny));
