//! A filter that survives the end of its process.
//!
//! * [`streams`] orders the records of changes, and decides which journal each of them goes to;
//! * [`journal`] is the file of the records, and [`mapping`] its memory, [`space`] its place on disk, and [`names`] its name;
//! * [`keeper`] syncs the journal, and replaces the state and the journal by new ones when the journal is long;
//! * [`open`] replays the journals on the state;
//! * [`beside`] is what the command shares of that.

pub mod streams;

#[cfg(not(loom))]
mod batch;
#[cfg(not(loom))]
pub mod beside;
#[cfg(not(loom))]
mod claim;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod filter;
#[cfg(not(loom))]
mod journal;
#[cfg(not(loom))]
mod keeper;
#[cfg(not(loom))]
mod mapping;
#[cfg(not(loom))]
mod names;
#[cfg(not(loom))]
mod open;
#[cfg(not(loom))]
mod shared;
#[cfg(not(loom))]
mod space;

#[cfg(not(loom))]
pub use claim::{Claim, ClaimError};
#[cfg(not(loom))]
pub use error::{DurableError, DurableErrorKind};
#[cfg(not(loom))]
pub use filter::DurableFilter;
#[cfg(not(loom))]
pub use shared::SyncPolicy;
