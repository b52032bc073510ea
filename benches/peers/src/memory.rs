//! What a peer holds, in bytes: what it gives back when it is dropped.
//!
//! Not all peers tell what they take, and some tell less than they do. So the program's allocator
//! can count. It counts only while something is dropped, and nothing is timed then.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static FREED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes on to `System` as it came, and so keeps the contract as `System` does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the same contract.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        if COUNTS.load(Relaxed) {
            FREED.fetch_add(layout.size(), Relaxed);
        }
        // SAFETY: the caller keeps the same contract.
        unsafe { System.dealloc(old, layout) }
    }
}

/// Drops `whole`; the bytes that it held, itself included. One call at a time, and no other thread
/// may be at work.
pub fn held<T>(whole: T) -> usize {
    FREED.store(0, Relaxed);
    COUNTS.store(true, Relaxed);
    drop(whole);
    COUNTS.store(false, Relaxed);
    FREED.load(Relaxed) + size_of::<T>()
}
