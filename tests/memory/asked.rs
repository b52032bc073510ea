//! What a filter asks of the allocator: as much as it says, and nothing for a size that the machine
//! does not have.
//!
//! The allocator of this program refuses large requests, as a system without enough memory does,
//! and counts the bytes that it grants to each thread.

#[path = "common/rounds.rs"]
mod rounds;

use koel::{BuildErrorKind, ConcurrentCuckooFilter, FullKind, Prehashed, RandomState};
use rounds::rounds;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The largest request that is granted: less than the table of any filter that is too large.
static MAX_AT_ONCE: AtomicUsize = AtomicUsize::new(if cfg!(target_pointer_width = "64") {
    usize::MAX >> 31
} else {
    usize::MAX >> 1
});

thread_local! {
    /// All bytes that this thread was granted, and those that it gave back. (The test harness has
    /// threads of its own.)
    static GRANTED: Cell<usize> = const { Cell::new(0) };
    static RETURNED: Cell<usize> = const { Cell::new(0) };
}

/// The largest request is the same for all threads, so there is one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

struct Refusing;

// SAFETY: all requests go to the system's allocator, or are refused with null.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > MAX_AT_ONCE.load(Relaxed) {
            return std::ptr::null_mut();
        }
        GRANTED.with(|bytes| bytes.set(bytes.get() + layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        RETURNED.with(|bytes| bytes.set(bytes.get() + layout.size()));
        // SAFETY: the pointer came from the system's allocator with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() > MAX_AT_ONCE.load(Relaxed) {
            return std::ptr::null_mut();
        }
        GRANTED.with(|bytes| bytes.set(bytes.get() + layout.size()));
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

#[test]
fn a_size_beyond_memory_is_refused_before_any_is_touched() {
    let _alone = ALONE.lock();
    for bits in [34, 36, 40, 44, 50, 55, 60, 63] {
        for rate in [0.1, 0.000_12, 1e-8] {
            let builder =
                || ConcurrentCuckooFilter::builder().capacity(1 << bits).false_positive_rate(rate);
            let before = GRANTED.get();
            let fixed = builder().build().expect_err("no such memory").kind();
            let growing = builder().growing().build().expect_err("no such memory").kind();
            let granted = GRANTED.get() - before;
            for kind in [fixed, growing] {
                let is_refused =
                    [BuildErrorKind::OutOfMemory, BuildErrorKind::CapacityOverflow].contains(&kind);
                assert!(is_refused, "2^{bits} items at {rate}: {kind:?}");
            }
            assert!(granted < 1 << 16, "2^{bits} items at {rate}: {granted} bytes were granted");
        }
    }
}

#[test]
fn a_filter_that_cannot_grow_or_be_copied_says_why() {
    let _alone = ALONE.lock();
    let builder = ConcurrentCuckooFilter::builder().capacity(10_000).growing();
    let filter = builder.build().expect("memory");
    let most = MAX_AT_ONCE.swap(1 << 14, Relaxed);
    let full = (0..100_000u64).find_map(|hash| filter.insert(&Prehashed(hash)).err());
    let copy = filter.try_clone();
    MAX_AT_ONCE.store(most, Relaxed);
    assert_eq!(full.map(|full| full.kind()), Some(FullKind::NoMemory));
    let error = copy.expect_err("no memory");
    assert_eq!(error.kind(), BuildErrorKind::OutOfMemory);
    assert!((0..100_000u64).all(|hash| filter.insert(&Prehashed(hash)).is_ok()));
    assert_eq!(filter.try_clone().expect("memory").stats().items, filter.len());
}

fn held() -> usize {
    GRANTED.get().wrapping_sub(RETURNED.get())
}

fn assert_told(filter: &ConcurrentCuckooFilter<RandomState>, held: usize, what: &str) {
    let told = filter.size_in_bytes() - size_of_val(filter);
    assert!(held.abs_diff(told) * 50 <= held, "{what}: {told} bytes are told, {held} held");
    assert_eq!(filter.stats().size_in_bytes, filter.size_in_bytes());
}

#[test]
fn what_is_held_is_what_is_told_at_every_size() {
    let _alone = ALONE.lock();
    // The first hasher of a process allocates the seeds of all.
    drop(ConcurrentCuckooFilter::with_capacity(1));
    for exponent in 0..=27 {
        for rate in [0.05, 0.000_12, 1e-6] {
            let capacity = (1.9_f64.powi(exponent)) as usize;
            let before = held();
            let builder = ConcurrentCuckooFilter::builder();
            let builder = builder.capacity(capacity).false_positive_rate(rate);
            let filter = builder.build().expect("memory");
            let held = held().wrapping_sub(before);
            assert_told(&filter, held, &format!("{capacity} items at {rate}"));
        }
    }
}

#[test]
fn what_is_held_is_what_is_told_while_a_filter_grows() {
    let _alone = ALONE.lock();
    for (capacity, limit) in [(100, 9_000_000), (1_000_000, 7_000_000), (100_000, 3_000_000)] {
        let (capacity, limit) = (capacity / rounds(5, 1), limit / rounds(5, 1));
        let before = held();
        let builder = ConcurrentCuckooFilter::builder().capacity(capacity).growing();
        let filter: ConcurrentCuckooFilter =
            builder.max_bytes(limit).build().expect("less than the limit");
        for hash in 0u64.. {
            let is_full = filter.insert(&Prehashed(hash)).is_err();
            if is_full || hash.is_power_of_two() || hash % 100_000 == 0 {
                let held = held().wrapping_sub(before);
                assert_told(&filter, held, &format!("{hash} of {capacity} items"));
                assert!(held <= limit, "{hash} of {capacity} items: {held} bytes held");
            }
            if is_full {
                break;
            }
        }
    }
}
