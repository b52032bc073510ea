//! The commands. Each replies as RedisBloom's does, and replicates what changed.
//!
//! * [`items`] has single items and questions, [`insert`] many items at once.
//! * [`filter`] has what is done to a filter as a whole.
//! * [`dump`] takes a filter out of the server and back, chunk by chunk.

mod dump;
mod filter;
mod insert;
mod items;

use crate::server::load::Registry;

/// Adds all commands to a registry.
pub fn each(registry: &mut Registry) -> Result<(), ()> {
    registry.add::<filter::Reserve>()?;
    registry.add::<items::Add>()?;
    registry.add::<items::AddNew>()?;
    registry.add::<insert::Insert<false>>()?;
    registry.add::<insert::Insert<true>>()?;
    registry.add::<items::Exists>()?;
    registry.add::<items::ManyExist>()?;
    registry.add::<items::Count>()?;
    registry.add::<items::Delete>()?;
    registry.add::<filter::Info>()?;
    registry.add::<dump::ScanDump>()?;
    registry.add::<dump::LoadChunk>()?;
    registry.add::<filter::Compact>()?;
    registry.add::<filter::Merge>()?;
    registry.add::<filter::Tick>()
}
