//! What models do with an item: the operations of a backend, in shards of one kind.

use crate::backend::shards::{Adding, Shards, ask, settle};
use crate::error::Full;
use crate::layout::geometry::Mixed;
use crate::shard::Shard;

pub fn insert<'a, S: Shards<'a>>(shards: S, hash: Mixed) -> Result<(), Full> {
    let (shard, place) = shards.locate_in_time(hash);
    let add = || settle(shards, hash, Adding::Copy).map(|_| ());
    shard.insert_at_once(place).map_or_else(add, Ok)
}

pub fn insert_if_absent<'a, S: Shards<'a>>(shards: S, hash: Mixed) -> Result<bool, Full> {
    let (shard, place) = shards.locate_in_time(hash);
    let add = || settle(shards, hash, Adding::IfAbsent);
    shard.insert_if_absent_at_once(place).map_or_else(add, Ok)
}

pub fn remove<'a, S: Shards<'a>>(shards: S, hash: Mixed) -> bool {
    let (shard, place) = shards.locate_in_time(hash);
    shard.remove(place).unwrap_or_else(|_| ask(shards, hash, Shard::remove))
}

pub fn refresh<'a, S: Shards<'a>>(shards: S, hash: Mixed) -> bool {
    let (shard, place) = shards.locate_in_time(hash);
    shard.refresh(place).unwrap_or_else(|_| ask(shards, hash, Shard::refresh))
}

pub fn contains<'a, S: Shards<'a>>(shards: S, hash: Mixed) -> bool {
    ask(shards, hash, Shard::contains)
}
