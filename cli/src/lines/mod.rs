//! Lines: where they come from, the chunks they travel in, and where they go to.

pub mod aside;
pub mod chunk;
pub mod crawl;
pub mod cutter;
pub mod input;
pub mod output;
pub mod suspects;
