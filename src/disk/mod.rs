//! Files, whatever is in them.
//!
//! * A [`Replacement`] takes the place of a file as a whole, or not at all.
//! * A `Claim` gives a file to one process at a time.
//!
//! koel's own programs use these, too.

#[cfg(all(unix, feature = "durable"))]
pub(crate) mod claim;
pub(crate) mod error;
#[cfg(all(unix, not(any(loom, shuttle))))]
pub(crate) mod mapping;
pub(crate) mod replace;
pub(crate) mod space;

#[cfg(all(unix, feature = "durable"))]
pub use claim::Claim;
pub use error::{DiskError, DiskErrorKind};
#[cfg(unix)]
pub use replace::copy_permissions;
pub use replace::{Replacement, Unfinished, beside, folder_of, follow};
