//! A batch allocates at most 16 bytes per item, and never more than some megabytes, in addition to
//! the filter, the caller's slices and the answers.

use crate::common::rounds;
use crate::most;
use crate::runner::{Test, tests};
use koel::{ConcurrentCuckooFilter, Prehashed};

pub const TESTS: &[Test] = &tests![a_batch_takes_sixteen_bytes_an_item_and_no_more_than_a_cap];

/// Returns the peak of the memory that the work allocates, without its answers.
fn beside<A>(work: impl FnOnce() -> Vec<A>) -> usize {
    let (most, answers) = most(work);
    most - answers.capacity() * size_of::<A>()
}

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
