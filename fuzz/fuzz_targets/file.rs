//! The reader of the tests, which knows the format and has nothing of koel.

#[path = "../../tests/common/file.rs"]
mod reader;

pub use reader::*;
