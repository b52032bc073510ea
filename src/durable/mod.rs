//! A filter that survives the end of its process.

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
