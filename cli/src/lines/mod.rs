//! Lines: where they come from, the chunks that carry them, and where they go.

pub mod aside;
pub mod chunk;
pub mod cutter;
pub mod folder;
pub mod input;
pub mod json;
pub mod output;
pub mod packing;
pub mod paragraphs;
pub mod replacement;
pub mod rules;
pub mod streams;
