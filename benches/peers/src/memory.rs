//! What a peer holds, in bytes: what it gives back when it is dropped, or has taken while watched.
//!
//! Not all peers tell what they take, and some tell less than they do. So the program's allocator
//! can count. It counts only while something is dropped or watched, and nothing is timed then.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);

fn count(counter: &AtomicUsize, bytes: usize) {
    if COUNTS.load(Relaxed) {
        counter.fetch_add(bytes, Relaxed);
    }
}

// SAFETY: every call goes on to `System` as it came, and so keeps the contract as `System` does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(&TAKEN, layout.size());
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(&TAKEN, layout.size());
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(&TAKEN, size);
        count(&FREED, layout.size());
        // SAFETY: the caller keeps the same contract.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        count(&FREED, layout.size());
        // SAFETY: the caller keeps the same contract.
        unsafe { System.dealloc(old, layout) }
    }
}

/// For huge pages to begin at, koel takes more than it uses: of each large table so many bytes are
/// never touched, and the system gives no memory for them.
const UNTOUCHED: usize = 2 << 20;

/// What is held of these bytes, by a peer that says how many it touches.
pub fn touched(bytes: usize, said: Option<usize>) -> usize {
    let touched = said.unwrap_or(bytes);
    let untouched = bytes.checked_sub(touched).expect("a peer holds what it says");
    assert!(untouched.is_multiple_of(UNTOUCHED), "{bytes} bytes, of which it says {touched}");
    touched
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

/// Counts from now on, until it is dropped. One at a time, and no other thread may be at work.
pub struct Watch(());

impl Watch {
    pub fn start() -> Self {
        TAKEN.store(0, Relaxed);
        FREED.store(0, Relaxed);
        COUNTS.store(true, Relaxed);
        Watch(())
    }

    /// What has been taken and not given back.
    pub fn held(&self) -> usize {
        TAKEN.load(Relaxed).saturating_sub(FREED.load(Relaxed))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        COUNTS.store(false, Relaxed);
    }
}
