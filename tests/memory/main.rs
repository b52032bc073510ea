//! The memory that filters take: of the allocator, and of the system.
//!
//! The allocator of this program counts the bytes of the whole process, and refuses large requests, as a system without
//! enough memory does. So the tests run one after the other, and nothing else of the program runs beside them.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/file.rs"]
mod file;
#[path = "../common/runner.rs"]
mod runner;

mod asked;
#[cfg(feature = "rayon")]
mod batches;
#[cfg(all(unix, feature = "durable"))]
mod failing;
mod loading;
#[cfg(target_os = "linux")]
mod shrinking;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The bytes that are allocated now.
static NOW: AtomicUsize = AtomicUsize::new(0);
/// The most that there were of them since [`forget_most`].
static MOST: AtomicUsize = AtomicUsize::new(0);

/// The largest request that is granted: less than the table of any filter that is too large.
static MAX_AT_ONCE: AtomicUsize = AtomicUsize::new(if cfg!(target_pointer_width = "64") {
    usize::MAX >> 31
} else {
    usize::MAX >> 1
});

/// How many requests of at least [`FAILING_FROM`] bytes are granted before one is refused. There is no such limit if this
/// is `usize::MAX`.
static UNTIL_FAILURE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Whether all later ones are refused, too.
static FAILS_ON: AtomicBool = AtomicBool::new(false);

/// The number of requests that were refused by [`UNTIL_FAILURE`].
static FAILURES: AtomicUsize = AtomicUsize::new(0);

/// A smaller request is not refused. Where one is, the process may end, as with Rust's own collections; and threads of
/// rayon ask for small blocks while they wait.
const FAILING_FROM: usize = 4_096;

/// Returns how many bytes are allocated.
fn now() -> usize {
    NOW.load(Relaxed)
}

/// Returns the most that `work` has allocated at once, and its result.
fn most<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = forget_most();
    let result = work();
    (MOST.load(Relaxed) - before, result)
}

/// Begins to look for the most anew. Returns how many bytes are allocated.
fn forget_most() -> usize {
    MOST.store(now(), Relaxed);
    now()
}

struct Counting;

/// Counts bytes that are allocated. Returns `false` if they are too many.
fn grant(bytes: usize) -> bool {
    let is_granted = bytes <= MAX_AT_ONCE.load(Relaxed) && !fails_now(bytes);
    if is_granted {
        let now = NOW.fetch_add(bytes, Relaxed) + bytes;
        MOST.fetch_max(now, Relaxed);
    }
    is_granted
}

/// Whether this request is one that [`UNTIL_FAILURE`] refuses.
fn fails_now(bytes: usize) -> bool {
    let left = UNTIL_FAILURE.load(Relaxed);
    if bytes < FAILING_FROM || left == usize::MAX {
        return false;
    }
    if left == 0 {
        FAILURES.fetch_add(1, Relaxed);
    }
    let stays = left == 0 && FAILS_ON.load(Relaxed);
    UNTIL_FAILURE.store(if stays { 0 } else { left.wrapping_sub(1) }, Relaxed);
    left == 0
}

// SAFETY: all requests go to the system's allocator, or are refused with null. The counters do not influence its
// results.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !grant(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of this method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !grant(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of this method.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The system remaps large blocks instead of copying them.
        NOW.fetch_sub(layout.size(), Relaxed);
        if !grant(size) {
            NOW.fetch_add(layout.size(), Relaxed);
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of this method.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of this method.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() {
    // Large blocks go back to the system at once. What the allocator keeps of one test would hide what the next one takes.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: both are numbers, and no other thread runs.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
    let mut tests = Vec::new();
    // Before rayon has threads.
    #[cfg(all(unix, feature = "durable"))]
    tests.extend(failing::TESTS);
    #[cfg(target_os = "linux")]
    tests.extend(shrinking::TESTS);
    tests.extend(asked::TESTS);
    #[cfg(feature = "rayon")]
    tests.extend(batches::TESTS);
    tests.extend(loading::TESTS);
    runner::run(runner::wanted(tests));
}
