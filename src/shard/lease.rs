//! Whether a shard still owns the items it was asked about.
//!
//! A shard of a fixed filter does for good, under the lease [`Permanent`](crate::shard::permanent::Permanent). A shard
//! of a growing filter does until it is split; its lease is
//! [`UntilSplit`](crate::backend::growing::until_split::UntilSplit).

use crate::error::FullKind;
use crate::layout::SMALL;
use crate::shard::accounts::Accounts;
use crate::shard::encoding::Encoding;
use crate::table::Table;
use crate::table::clock::Clock;
use crate::table::shard_memory::ShardMemory;
use std::fmt::Debug;

/// The most full buckets that any search for room lists before it gives up.
pub const MAX_NODES: usize = if SMALL { 16 } else { 512 };

pub trait Lease: Encoding + Accounts {
    /// Tells the caller that the lease has ended, and to look up the item's shard again.
    type Lapsed: Debug;

    /// Whether a word's meaning never changes. Then a fingerprint that was seen once is a hit.
    const IS_PERMANENT: bool;

    /// The number of full buckets a search for room lists before it gives up.
    const MAX_NODES: usize;

    /// What lookups read of the shard, if it is at hand.
    #[inline]
    fn memory(&self) -> Option<ShardMemory<'_>> {
        None
    }

    /// Whether the shard still owns the item. The answer stays true for as long as the caller holds
    /// a lock of the shard.
    fn check(self) -> Result<(), Self::Lapsed>;

    /// The same for a caller that holds a lock of the shard and may go on to end the lease. The entry
    /// changes only under all locks, so a plain load is ordered by the one.
    fn check_alone(self) -> Result<(), Self::Lapsed>;

    /// The clock, if the filter forgets. In the hands of a caller that holds a lock of the shard, no thread that held
    /// it before had a later time.
    fn clock<'t>(&'t self, table: &'t Table) -> Option<&'t Clock>;
}

/// Why a shard did not do what it was asked to.
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

/// What became of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The item is not here.
    Absent,
    Done,
    /// It is done, and perhaps no item is [left](crate::backend::growing::ledger).
    PerhapsLast,
}

/// The result of an operation for which the shard may be full, or no longer own the item.
pub type Answer<T, L> = Result<T, Refusal<<L as Lease>::Lapsed>>;
