//! What a filter promises to threads that use it at the same time. One test runs after the other, and no
//! others beside them: threads that share their processors with those of other tests seldom meet.

#[path = "../common/mod.rs"]
mod common;

mod races;
mod stress;
