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
