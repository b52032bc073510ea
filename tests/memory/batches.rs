//! A batch allocates at most 16 bytes per item, and never more than some megabytes, in addition to
//! the filter, the caller's slices and the answers.
//!
//! This is the only test of the program, because the allocator counts for the whole process.

#[path = "common/rounds.rs"]
mod rounds;

use koel::{ConcurrentCuckooFilter, Prehashed};
use rounds::rounds;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MAX: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded unchanged to the system's allocator; the counters do not
// influence its result.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        MAX.fetch_max(now, Relaxed);
        // SAFETY: the caller keeps the contract of this method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of this method.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Returns the peak of the memory that the work allocates, without its answers.
fn beside<A>(work: impl FnOnce() -> Vec<A>) -> usize {
    let before = NOW.load(Relaxed);
    MAX.store(before, Relaxed);
    let answers = work();
    MAX.load(Relaxed) - before - answers.capacity() * size_of::<A>()
}

#[test]
fn a_batch_takes_sixteen_bytes_an_item_and_no_more_than_a_cap() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
    // Large enough for batches to be processed shard by shard.
    let filter = ConcurrentCuckooFilter::with_capacity(6_000_000);
    for items in rounds([100, 20_000, 100_000, 3_300_000], [100, 20_000, 1_000_000, 5_000_000]) {
        let numbers: Vec<u64> = (0..items as u64).collect();
        let hashes: Vec<Prehashed> = numbers.iter().map(|hash| Prehashed(*hash)).collect();
        let limit = (16 * items + 20_000).min(48 << 20);
        // Rayon allocates a little for itself on first use.
        pool.install(|| drop(filter.par_contains_many(&hashes)));
        type Operation<'a> = (&'static str, &'a (dyn Fn() -> usize + Sync));
        let operations: [Operation; 9] = [
            ("contains_many, hashes", &|| beside(|| filter.contains_many(&hashes))),
            ("insert_many, hashes", &|| beside(|| filter.insert_many(&hashes))),
            ("remove_many, hashes", &|| beside(|| filter.remove_many(&hashes))),
            ("insert_many", &|| beside(|| filter.insert_many(&numbers))),
            ("contains_many", &|| beside(|| filter.contains_many(&numbers))),
            ("remove_many", &|| beside(|| filter.remove_many(&numbers))),
            ("par_insert_many, hashes", &|| beside(|| filter.par_insert_many(&hashes))),
            ("par_contains_many", &|| beside(|| filter.par_contains_many(&numbers))),
            ("par_remove_many", &|| beside(|| filter.par_remove_many(&numbers))),
        ];
        // Of the most items, a short run has one operation of each kind.
        let step = if items > 1_000_000 { rounds(4, 1) } else { 1 };
        for (name, operation) in operations.into_iter().step_by(step) {
            let taken = pool.install(operation);
            println!(
                "{name} of {items}: {taken} bytes, {:.1} an item",
                taken as f64 / items as f64
            );
            assert!(
                taken <= limit,
                "{name} of {items} items took {taken} bytes, more than {limit}"
            );
        }
    }
}
