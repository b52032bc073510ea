//! Leases: whether a shard still owns the items that an operation asks about.
//!
//! A shard of a fixed filter owns its items for good; its lease is
//! [`Permanent`](crate::shard::lease::permanent::Permanent). A shard of a growing filter owns them until it is
//! split; its lease is [`UntilSplit`](crate::backend::growing::until_split::UntilSplit).

pub mod accounts;
pub mod encoding;
pub mod permanent;

use crate::error::FullKind;
use crate::layout::SMALL;
use crate::layout::bucket::Lanes;
use crate::layout::geometry::Bucket;
use crate::shard::lease::accounts::Accounts;
use crate::shard::lease::encoding::Encoding;
use crate::sync::AtomicU64;
use crate::table::Table;
use crate::table::clock::Clock;
use std::fmt::Debug;

/// The most full buckets that any search for room lists.
pub const MAX_NODES: usize = if SMALL { 16 } else { 512 };

pub trait Lease: Encoding + Accounts {
    /// The error that the lease has ended, so that the caller has to look up the item's shard again.
    type Lapsed: Debug;

    /// Whether the meaning of a word never changes. If so, a fingerprint that was seen once is a hit.
    const IS_PERMANENT: bool;

    /// The number of full buckets that a search for room lists before it gives up.
    const MAX_NODES: usize;

    /// Returns the lanes of the shard's table.
    #[inline]
    fn lanes(&self, table: &Table) -> Lanes {
        table.geometry().lanes()
    }

    /// Returns the first word of a bucket. The shard begins at bucket `base` of the table.
    fn heads<'t>(&'t self, table: &'t Table, base: usize, bucket: Bucket) -> &'t AtomicU64;

    /// Reads the second word of a wide bucket.
    fn read_second(&self, table: &Table, base: usize, bucket: Bucket) -> u64;

    /// Returns the version of a bucket's stripe.
    fn version<'t>(&'t self, table: &'t Table, base: usize, bucket: Bucket) -> &'t AtomicU64;

    /// Checks that the shard still owns the item. It stays so for as long as the caller holds a lock of the
    /// shard.
    fn check(self) -> Result<(), Self::Lapsed>;

    /// The same for a caller that holds a lock of the shard and may go on to end the lease. The entry changes
    /// only under all locks of the shard, so the caller's lock orders a plain load.
    fn check_alone(self) -> Result<(), Self::Lapsed>;

    /// Returns the clock, if the filter forgets. A caller that holds a lock of the shard reads a time no
    /// earlier than that of any thread that held the lock before.
    fn clock<'t>(&'t self, table: &'t Table) -> Option<&'t Clock>;
}

/// The reason why a shard refused an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal<E> {
    /// There is no room for the item.
    Full(FullKind),
    /// The shard no longer owns the item.
    Lapsed(E),
}

impl<E> From<E> for Refusal<E> {
    fn from(lapsed: E) -> Self {
        Refusal::Lapsed(lapsed)
    }
}

/// The result of an operation that fails if the shard is full or no longer owns the item.
pub type Answer<T, L> = Result<T, Refusal<<L as Lease>::Lapsed>>;
