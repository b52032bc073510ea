//! The types that backends and snapshots exchange.

use crate::backend::growing::tables::Tables;
use crate::table::Table;
use crate::table::ticking::Time;

/// What a backend reports about a shard that it has copied.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copied {
    pub depth: u32,
    /// The number of lanes that are not void.
    pub items: i64,
    /// The time of the copy, in a filter that forgets.
    pub time: Option<Time>,
}

/// The figures that a block of a file records about its shard, and the block's checksum.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub depth: u32,
    /// The number of lanes that are not void, each of which is one item.
    pub items: i64,
    /// The [`surplus`](crate::backend::growing::site::Site::surplus) of the shard, in a growing filter.
    pub surplus: u64,
    /// The time of the copy, in a filter that forgets.
    pub time: Option<Time>,
    pub sum: u64,
}

impl Block {
    pub const EMPTY: Block = Block { depth: 0, items: 0, surplus: 0, time: None, sum: 0 };
}

/// The contents of a file, or of pieces.
#[doc(hidden)]
pub struct Loaded {
    /// The shards, in the order of their hashes.
    pub memory: Memory,
    pub blocks: Vec<Block>,
    /// The number of items that [void](crate::backend::growing::void) lanes stand for.
    pub void: u64,
    pub time: Option<Time>,
}

/// The memory of all shards.
#[doc(hidden)]
pub enum Memory {
    /// All shards of this table.
    Table(Table),
    /// All shards of these tables that are in use.
    Tables(Box<Tables>),
}
