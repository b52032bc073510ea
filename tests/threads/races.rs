//! Threads race for the same item: exactly one of them inserts it, and each copy is removed once.

use crate::common::{Filter, Fixed, Layout, SplitMix, alone, layouts, rounds, together};
use koel::{ConcurrentCuckooFilter, Prehashed};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// Returns capacities, numbers of threads and numbers of races.
fn races() -> [(usize, usize, u64); 3] {
    [(10, 4, rounds(10, 300)), (400, 8, rounds(3, 60)), (rounds(3_000, 20_000), 4, rounds(1, 4))]
}

/// All threads insert the same items in the same order, so that they race for each of them: a
/// thread that is ahead waits for memory and locks, and the others catch up. No item may have two
/// winners; an item that the filter takes for another has none. Returns the number of refusals.
fn race(layout: &Layout, filter: &Filter, items: usize, threads: usize, seed: u64) -> u32 {
    race_beside(layout, filter, items, threads, seed, |_, _| ())
}

/// The same where each thread does something else after each item. That leaves the filter as it was.
fn race_beside(
    layout: &Layout,
    filter: &Filter,
    items: usize,
    threads: usize,
    seed: u64,
    beside: impl Fn(usize, usize) + Sync,
) -> u32 {
    filter.clear();
    let hashes = SplitMix(seed << 32).take(items);
    let winners: Vec<AtomicU32> = hashes.iter().map(|_| AtomicU32::new(0)).collect();
    let refused = AtomicU32::new(0);
    together(threads, |thread| {
        for (at, (&hash, winners)) in hashes.iter().zip(&winners).enumerate() {
            match filter.insert_if_absent(&Prehashed(hash)) {
                Ok(won) => {
                    winners.fetch_add(u32::from(won), Relaxed);
                    assert!(filter.contains(&Prehashed(hash)), "an inserted item is absent");
                }
                Err(_) => _ = refused.fetch_add(1, Relaxed),
            }
            beside(thread, at);
        }
    });

    let what = format!("{layout:?}, {filter:?}, {threads} threads, seed {seed}");
    let winners: Vec<u32> = winners.into_iter().map(AtomicU32::into_inner).collect();
    assert!(winners.iter().all(|&winners| winners <= 1), "two winners of one item: {what}");
    assert_eq!(filter.len(), winners.iter().sum::<u32>() as usize, "{what}");
    let refused = refused.into_inner();
    for (&hash, &winners) in hashes.iter().zip(&winners) {
        let found = filter.contains(&Prehashed(hash));
        assert!(found || winners == 0, "a winner's item is absent: {what}");
        assert!(found || refused > 0, "an item was neither inserted nor refused: {what}");
        assert!(winners == 1 || refused > 0 || !layout.is_exact(), "an item has no winner: {what}");
    }
    refused
}

/// As many as fit, and more.
#[test]
fn exactly_one_of_the_racing_threads_inserts_an_item_also_in_a_filter_that_overflows() {
    let _alone = alone();
    for layout in layouts() {
        for (capacity, threads, rounds) in races() {
            let filter = layout.filter(capacity);
            let too_many = filter.stats().slots * 11 / 10 + 10;
            for seed in 0..rounds {
                let refused = race(layout, &filter, capacity, threads, seed);
                assert_eq!(refused, 0, "{layout:?}: not all of {capacity} items fitted");
                let refused = race(layout, &filter, too_many, threads, !seed);
                assert!(refused > 0, "{layout:?}, {filter:?}: nothing was refused");
            }
        }
    }
}

/// Through the first splits of a filter that grows, too, beside other items that come and go.
#[test]
fn exactly_one_of_the_racing_threads_inserts_an_item_while_shards_are_split() {
    let _alone = alone();
    for seed in 0..rounds(6, 60) {
        // Narrow and wide buckets.
        let rate = [0.0015, 1e-5][seed as usize % 2];
        let builder = ConcurrentCuckooFilter::builder().capacity(10).hasher(Fixed { key: 0 });
        let filter = builder.growing().false_positive_rate(rate).build().expect("a small filter");
        let layout = Layout { bits: filter.stats().fingerprint_bits, rate, words: 1 };
        let comes_and_goes = |thread: usize, at: usize| {
            if at % 4 == thread && at.is_multiple_of(3) {
                let other = Prehashed(u64::MAX - at as u64);
                assert!(filter.insert(&other).is_ok() && filter.remove(&other));
            }
        };
        let refused = race_beside(&layout, &filter, 60_000, 4, seed, comes_and_goes);
        assert_eq!(refused, 0, "an item was refused");
        assert!(filter.len() > 59_400 && filter.stats().splits > 0);
    }
}

#[test]
fn threads_that_race_to_remove_items_take_out_each_copy_once() {
    let _alone = alone();
    for layout in layouts() {
        for (capacity, threads, rounds) in races() {
            for seed in 0..rounds {
                let filter = layout.filter(capacity);
                let hashes = SplitMix(seed << 32).take(capacity / 2);
                // One, two or three copies of each item; some of the third copies are refused.
                let copies = hashes.iter().zip((1..=3).cycle()).flat_map(|(h, n)| vec![*h; n]);
                let inserted =
                    copies.filter(|&hash| filter.insert(&Prehashed(hash)).is_ok()).count();
                let removed = AtomicUsize::new(0);
                together(threads, |_| {
                    for &hash in &hashes {
                        while filter.remove(&Prehashed(hash)) {
                            removed.fetch_add(1, Relaxed);
                        }
                    }
                });
                assert_eq!(removed.into_inner(), inserted, "{layout:?}, capacity {capacity}");
                assert!(filter.is_empty());
                assert!(hashes.iter().all(|&hash| filter.count(&Prehashed(hash)) == 0));
            }
        }
    }
}
