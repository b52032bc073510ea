//! The promises of a filter with a journal.

mod damage;
mod limits;
mod opening;
