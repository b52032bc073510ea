//! koel's own sources, as `build.rs` has copied them, with the mutants in them.

#![allow(warnings, clippy::all)] // They are checked where they come from.

include!(concat!(env!("OUT_DIR"), "/koel/included.rs"));

pub use backend::shards::additions as act;

/// The environment variable that names the mutant which this process runs.
pub const MUTANT: &str = "KOEL_MUTANT";

/// Whether this process runs that mutant.
fn broken(mutant: &str) -> bool {
    static RUN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    RUN.get_or_init(|| std::env::var(MUTANT).ok()).as_deref() == Some(mutant)
}
