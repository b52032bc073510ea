//! A filter that grows: shards of equal size, which are split when they are full.
//!
//! * [`sharded`] has the shards, each of which is [split](mod@split) when it is full, if [a split
//!   helps](sharded::split_policy), and [joined](mod@join) with its other half when both together fit well into one;
//! * [`void`] counts the items of lanes that have no bits left.
//!
//! # The path to a shard
//!
//! 1. The hash has a [position](crate::layout::roots::Position) among the hashes of the shards that the
//!    filter began with.
//! 2. The [`directory`] has an entry there, which is valid until the shard is [split or joined](until_split).
//! 3. The entry is the address of the shard's [site](tables::Site): its memory in one of the [`tables`], and its figures.
//!
//! A shard takes 64 KiB, or 128 KiB with wide buckets, and a filter begins with at least one.

pub(crate) mod directory;
pub(crate) mod join;
pub(crate) mod sharded;
pub(crate) mod split;
pub(crate) mod tables;
pub(crate) mod until_split;
pub(crate) mod void;
