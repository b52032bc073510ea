//! A filter that survives the end of its process.
//!
//! * [`filter`] makes changes and records them in a [`journal`](crate::journal);
//! * [`keeper`] syncs the journal, and calls for a [`checkpoint`], which replaces it and the state, when it is long;
//! * [`open`] replays the journal on the state, under a [claim](crate::disk::Claim) that no other process has.

mod checkpoint;
mod error;
mod filter;
mod keeper;
mod mismatch;
mod open;

pub use error::{DurableError, DurableErrorKind};
pub use filter::DurableFilter;
pub use keeper::SyncPolicy;
pub use open::DurableOptions;
