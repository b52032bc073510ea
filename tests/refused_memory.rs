//! A size beyond the machine's memory is refused before any memory is touched.
//!
//! The allocator of this program refuses large requests, as a system without enough memory does,
//! and counts the bytes that it grants.

use koel::{BuildErrorKind, ConcurrentCuckooFilter};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The largest request that is granted: less than the table of any filter below.
const MOST_AT_ONCE: usize = 1 << 33;

static GRANTED: AtomicUsize = AtomicUsize::new(0);

struct Refusing;

// SAFETY: all requests go to the system's allocator, or are refused with null.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > MOST_AT_ONCE {
            return std::ptr::null_mut();
        }
        GRANTED.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from the system's allocator with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() > MOST_AT_ONCE {
            return std::ptr::null_mut();
        }
        GRANTED.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

#[test]
fn a_size_beyond_memory_is_refused_before_any_is_touched() {
    for bits in [34, 36, 40, 44, 50, 55, 60, 63] {
        for rate in [0.1, 0.000_12, 1e-8] {
            let builder =
                || ConcurrentCuckooFilter::builder().capacity(1 << bits).false_positive_rate(rate);
            let before = GRANTED.load(Relaxed);
            let fixed = builder().build().expect_err("no such memory").kind();
            let growing = builder().growing().build().expect_err("no such memory").kind();
            let granted = GRANTED.load(Relaxed) - before;
            for kind in [fixed, growing] {
                let is_refused =
                    [BuildErrorKind::OutOfMemory, BuildErrorKind::CapacityOverflow].contains(&kind);
                assert!(is_refused, "2^{bits} items at {rate}: {kind:?}");
            }
            assert!(granted < 1 << 16, "2^{bits} items at {rate}: {granted} bytes were granted");
        }
    }
}
