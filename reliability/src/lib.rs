//! What these tests share with those of the library.

#[allow(clippy::should_implement_trait)] // it applies to what others can use
#[path = "../../tests/common/mod.rs"]
pub mod common;
#[path = "../../tests/common/kind.rs"]
pub mod kind;
#[path = "../../tests/common/process.rs"]
pub mod process;
#[path = "../../tests/common/runner.rs"]
pub mod runner;

/// Returns the seeds of a test: those that `seeds` has for it, and then all from 0 on; or, if there is `KOEL_SEED`, all
/// from that on. A test that fails prints its seed.
pub fn seeds(test: &str) -> impl Iterator<Item = u64> {
    let chosen = common::rounds::number("KOEL_SEED");
    let listed = if chosen.is_some() { "" } else { include_str!("../seeds") };
    let of_test = listed.lines().filter_map(|line| line.strip_prefix(test)?.strip_prefix(' '));
    let failed: Vec<u64> = of_test.map(|seed| seed.parse().expect("a number")).collect();
    failed.into_iter().chain(chosen.unwrap_or(0)..)
}
