//! A filter that survives the end of its process.
//!
//! * [`filter`] and [`batch`] make changes and record them in a [`journal`](crate::journal); readers are lent a view;
//! * [`keeper`] syncs the [`journals`], and replaces them and the state when they are long;
//! * [`open`] replays the journals on the state, under a [`claim`] that no other process has;
//! * [`beside`] is what the command needs of that.

mod batch;
pub mod beside;
mod claim;
mod error;
mod filter;
mod journals;
mod keeper;
mod open;

pub use claim::{Claim, ClaimError};
pub use error::{DurableError, DurableErrorKind};
pub use filter::{DurableFilter, FilterView};
pub use journals::SyncPolicy;
