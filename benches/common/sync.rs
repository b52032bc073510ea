//! What `src/table/memory.rs` imports, for a benchmark of its own.

pub use std::sync::atomic::AtomicU64;

pub fn zeroed_words(count: usize) -> Option<Box<[AtomicU64]>> {
    Some((0..count).map(|_| AtomicU64::new(0)).collect())
}
