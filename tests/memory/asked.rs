//! What a filter asks of the allocator: as much as it says, and nothing for a size that the machine
//! does not have.

use crate::common::rounds;
use crate::runner::{Test, tests};
use crate::{MAX_AT_ONCE, most, now};
use koel::{BuildErrorKind, ConcurrentCuckooFilter, FullKind, Prehashed, RandomState};
use std::sync::atomic::Ordering::Relaxed;

pub const TESTS: &[Test] = &tests![
    a_size_beyond_memory_is_refused_before_any_is_touched,
    a_filter_that_cannot_grow_or_be_copied_says_why,
    what_is_held_is_what_is_told_at_every_size,
    what_is_held_is_what_is_told_while_a_filter_grows,
];

fn a_size_beyond_memory_is_refused_before_any_is_touched() {
    for bits in [34, 36, 40, 44, 50, 55, 60, 63] {
        for rate in [0.1, 0.000_12, 1e-8] {
            let builder =
                || ConcurrentCuckooFilter::builder().capacity(1 << bits).false_positive_rate(rate);
            let (granted, errors) = most(|| {
                [builder().build(), builder().growing().build()]
                    .map(|filter| filter.expect_err("no such memory"))
            });
            for (error, grows) in errors.iter().zip([false, true]) {
                let kind = error.kind();
                // A table of fixed size may be so large that no fingerprint is long enough for the rate.
                let is_refused = match error.least_rate() {
                    Some(least) => kind == BuildErrorKind::RateTooSmall && !grows && least > rate,
                    None => matches!(
                        kind,
                        BuildErrorKind::OutOfMemory | BuildErrorKind::CapacityOverflow
                    ),
                };
                assert!(is_refused, "2^{bits} items at {rate}: {kind:?}");
            }
            assert!(granted < 1 << 16, "2^{bits} items at {rate}: {granted} bytes were granted");
        }
    }
}

fn a_filter_that_cannot_grow_or_be_copied_says_why() {
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

fn assert_told(filter: &ConcurrentCuckooFilter<RandomState>, held: usize, what: &str) {
    let told = filter.size_in_bytes() - size_of_val(filter);
    assert!(held.abs_diff(told) * 50 <= held, "{what}: {told} bytes are told, {held} held");
    assert_eq!(filter.stats().size_in_bytes, filter.size_in_bytes());
}

fn what_is_held_is_what_is_told_at_every_size() {
    // The first hasher of a process allocates the seeds of all.
    drop(ConcurrentCuckooFilter::with_capacity(1));
    for exponent in 0..=27 {
        for rate in [0.05, 0.000_12, 1e-6] {
            let capacity = (1.9_f64.powi(exponent)) as usize;
            let before = now();
            let builder = ConcurrentCuckooFilter::builder();
            let builder = builder.capacity(capacity).false_positive_rate(rate);
            let filter = builder.build().expect("memory");
            let held = now() - before;
            assert_told(&filter, held, &format!("{capacity} items at {rate}"));
        }
    }
}

fn what_is_held_is_what_is_told_while_a_filter_grows() {
    for (capacity, limit) in [(100, 9_000_000), (1_000_000, 7_000_000), (100_000, 3_000_000)] {
        let (capacity, limit) = (capacity / rounds(5, 1), limit / rounds(5, 1));
        let before = now();
        let builder = ConcurrentCuckooFilter::builder().capacity(capacity).growing();
        let filter: ConcurrentCuckooFilter =
            builder.max_bytes(limit).build().expect("less than the limit");
        for hash in 0u64.. {
            let is_full = filter.insert(&Prehashed(hash)).is_err();
            if is_full || hash.is_power_of_two() || hash % 100_000 == 0 {
                let held = now() - before;
                assert_told(&filter, held, &format!("{hash} of {capacity} items"));
                assert!(held <= limit, "{hash} of {capacity} items: {held} bytes held");
            }
            if is_full {
                break;
            }
        }
    }
}
