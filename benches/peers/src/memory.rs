//! The bytes that a peer holds: those that it frees when it is dropped, or allocates while watched.
//!
//! Not all peers report their memory, and some report too little. So the program's allocator can
//! count bytes. It counts only while something is dropped or watched, and nothing is timed then.

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

// SAFETY: every call is passed on to `System` unchanged, and `System` keeps the contract.
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

/// The bytes that koel allocates beside each large table and never touches, so that the table can
/// begin at a huge page. The system provides no memory for them.
const UNTOUCHED: usize = 2 << 20;

/// Returns how many of the allocated bytes a peer holds, if it may report the bytes that it
/// touches. The difference has to be a multiple of [`UNTOUCHED`].
pub fn touched(bytes: usize, said: Option<usize>) -> usize {
    let touched = said.unwrap_or(bytes);
    let untouched = bytes.checked_sub(touched).expect("a peer holds what it says");
    assert!(untouched.is_multiple_of(UNTOUCHED), "{bytes} bytes, of which it says {touched}");
    touched
}

/// Drops `whole`, and returns the bytes that it held, including itself. Only one thread may run
/// during the call.
pub fn held<T>(whole: T) -> usize {
    FREED.store(0, Relaxed);
    COUNTS.store(true, Relaxed);
    drop(whole);
    COUNTS.store(false, Relaxed);
    FREED.load(Relaxed) + size_of::<T>()
}

/// Counts bytes from its start until it is dropped. There may be one at a time, and only one thread
/// may run meanwhile.
pub struct Watch(());

impl Watch {
    pub fn start() -> Self {
        TAKEN.store(0, Relaxed);
        FREED.store(0, Relaxed);
        COUNTS.store(true, Relaxed);
        Watch(())
    }

    /// Returns the bytes that have been allocated and not freed since the start.
    pub fn held(&self) -> usize {
        TAKEN.load(Relaxed).saturating_sub(FREED.load(Relaxed))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        COUNTS.store(false, Relaxed);
    }
}
