//! The commands. Each replies as RedisBloom's does, and replicates what changed.
//!
//! * [`reserve`], [`add`], [`insert`], [`merge`] write; [`delete`] and [`compact`] take out.
//! * [`lookup`] has the questions, [`info`] the figures.
//! * [`dump`] takes a filter out of the server and back, chunk by chunk.
//! * [`tick`] lets time pass in the filters of replicas.

mod add;
mod compact;
mod delete;
mod dump;
mod info;
mod insert;
mod lookup;
mod merge;
mod reserve;
mod tick;

use crate::server::load::Registry;

/// Adds all commands to a registry.
pub fn each(registry: &mut Registry) -> Result<(), ()> {
    registry.add::<reserve::Reserve>()?;
    registry.add::<add::Add>()?;
    registry.add::<add::AddNew>()?;
    registry.add::<insert::Insert>()?;
    registry.add::<insert::InsertNew>()?;
    registry.add::<lookup::Exists>()?;
    registry.add::<lookup::ManyExist>()?;
    registry.add::<lookup::Count>()?;
    registry.add::<delete::Delete>()?;
    registry.add::<info::Info>()?;
    registry.add::<dump::ScanDump>()?;
    registry.add::<dump::LoadChunk>()?;
    registry.add::<compact::Compact>()?;
    registry.add::<merge::Merge>()?;
    registry.add::<tick::Tick>()
}
