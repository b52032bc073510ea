//! Exclusive use of a filter's file by one process at a time.

pub use koel::files::Claim;
