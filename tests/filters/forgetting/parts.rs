//! Ticks in parts: who changes a filter cannot tell how far a tick has come.

use crate::common::{LAYOUTS, SplitMix, bytes_of, layouts, rounds, with_rate};
use koel::{ConcurrentCuckooFilter, StableHash};
use std::fmt::Debug;

type Filter = ConcurrentCuckooFilter<StableHash>;

/// Asks both the same, and returns their answer.
#[track_caller]
fn same<T: PartialEq + Debug>(filters: [&Filter; 2], ask: impl Fn(&Filter) -> T) -> T {
    let [whole, parts] = filters.map(ask);
    assert_eq!(whole, parts, "they differ");
    whole
}

/// Does the same to a filter whose ticks pass as a whole and to one where they pass in parts, and compares
/// what they answer, and what they are.
fn compare(make: impl Fn() -> Filter, items_in_a_tick: usize, what: &str) {
    let (whole, parts) = (make(), make());
    let both = [&whole, &parts];
    let mut random = SplitMix(7);
    let (mut next, mut number) = (0u64, 100);
    assert_eq!(same(both, |it| it.tick_to(number)), 0);
    for tick in 0..12 {
        // Mostly the next one, and once so many that nothing is left.
        number += if tick == 8 { 1_000 } else { 1 };
        let passed = whole.tick_to(number);
        while !parts.tick_in_parts(usize::MAX) {}
        // A whole tick begins with this.
        parts.shrink();
        assert_eq!(parts.begin_tick_to(number), passed);
        let burst = if tick % 4 == 3 { items_in_a_tick / 10 } else { items_in_a_tick };
        for step in 0..burst {
            let old = next.saturating_sub(random.below(3 * items_in_a_tick) as u64);
            if step % 5_000 == 0 {
                // A batch that is sorted, and one that is not.
                let count = if step % 10_000 == 0 { 20_000 } else { 100 };
                let mut old = || next.saturating_sub(random.below(3 * items_in_a_tick) as u64);
                let items: Vec<u64> = (0..count).map(|_| old()).collect();
                same(both, |it| it.insert_if_absent_many(&items));
                same(both, |it| it.remove_many(&items[..50]));
            }
            match random.below(20) {
                0..=12 => {
                    next += 1;
                    _ = same(both, |it| it.insert(&next));
                }
                13..=16 => _ = same(both, |it| it.insert_if_absent(&old)),
                17 => _ = same(both, |it| it.remove(&old)),
                18 => _ = same(both, |it| (it.age(&old), it.count(&old), it.refresh(&old))),
                _ => assert!(parts.contains(&old) || !whole.contains(&old), "{what}, {tick}"),
            }
            // Some ticks are over soon, others not before the next one.
            if step % 64 == 0 && tick % 3 > 0 {
                parts.tick_in_parts(tick);
            }
        }
        if tick % 2 == 0 {
            // (To write it sweeps it.)
            assert!(bytes_of(&whole) == bytes_of(&parts), "{what}: they differ in tick {tick}");
            while !parts.tick_in_parts(usize::MAX) {}
            assert_eq!(whole.len(), parts.len());
        }
    }
}

#[test]
fn a_fixed_filter_is_as_if_ticks_passed_at_once() {
    for layout in layouts() {
        let make = || filter_of(1_500_000, layout.rate, 2);
        compare(make, rounds(100_000, 500_000), &format!("{layout:?}"));
    }
}

/// In a full filter, a search for room meets what has expired far from the buckets of its item.
#[test]
fn a_full_filter_is_as_if_ticks_passed_at_once() {
    let make = || filter_of(50_000, LAYOUTS[0].rate, 10);
    let (whole, parts) = (make(), make());
    let mut item = 0u64;
    for tick in 0..rounds(20, 40) {
        whole.tick();
        parts.tick_in_parts(usize::MAX);
        assert!(parts.begin_tick());
        for step in 0..6_000 {
            item += 1;
            same([&whole, &parts], |it| match step % 2 {
                0 => it.insert(&item).is_ok(),
                _ => it.insert_if_absent(&item).is_ok(),
            });
            if step % 100 == 0 {
                parts.tick_in_parts(1);
            }
        }
        assert!(bytes_of(&whole) == bytes_of(&parts), "they differ in tick {tick}");
    }
    assert!(whole.len() > 49_000, "it is not full");
}

fn filter_of(capacity: usize, rate: f64, ticks: u32) -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity).remembers(ticks);
    with_rate(builder.hasher(StableHash::with_seed(3)), rate).build().expect("a filter")
}

fn growing(rate: f64, expected_growth: f64) -> Filter {
    growing_from(3, rate, expected_growth, 2)
}

fn growing_from(seed: u64, rate: f64, expected_growth: f64, ticks: u32) -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(100).remembers(ticks);
    let builder = builder.hasher(StableHash::with_seed(seed)).growing();
    with_rate(builder.expected_growth(expected_growth), rate).build().expect("a filter")
}

/// Shards are split, while a tick passes too.
#[test]
fn a_growing_filter_is_as_if_ticks_passed_at_once() {
    for layout in layouts() {
        let make = || growing(layout.rate, 4_096.0);
        compare(make, rounds(75_000, 400_000), &format!("{layout:?}"));
    }
}

/// It grows until its fingerprints have no bits left.
#[test]
fn a_worn_filter_is_as_if_ticks_passed_at_once() {
    let make = || growing(LAYOUTS[0].rate, 1.0);
    compare(make, rounds(200_000, 900_000), "worn");
    let (whole, parts) = (make(), make());
    for filter in [&whole, &parts] {
        filter.tick_to(100);
        (0..10_000u64).for_each(|item| filter.insert(&item).expect("memory"));
        filter.tick_to(102);
    }
    whole.tick();
    assert!(parts.begin_tick());
    let later = 1_000_000..rounds(1_750_000, 2_500_000u64);
    let both = [&whole, &parts];
    later.clone().for_each(|item| _ = same(both, |it| it.insert(&item)));
    later.for_each(|item| _ = same(both, |it| it.remove(&item)));
    (0..5_000u64).for_each(|item| _ = same(both, |it| it.insert(&item)));
    assert!(bytes_of(&whole) == bytes_of(&parts));
}

/// A split shares out what is counted, and the first that leaves an entry in both halves is no exception.
#[test]
fn the_first_entry_in_two_shards_is_shared_out_as_if_the_tick_had_passed_at_once() {
    for seed in 0..rounds(6, 40) {
        let mut random = SplitMix(seed);
        let make = || growing_from(seed, LAYOUTS[0].rate, 1.0, 1 + seed as u32 % 3);
        let (whole, parts) = (make(), make());
        assert_eq!((whole.tick_to(100), parts.tick_to(100)), (0, 0));
        let mut next = 0u64;
        let mut insert = |most: usize| {
            for _ in 0..2_000 + random.below(most) {
                next += 1;
                assert_eq!(whole.insert(&next), parts.insert(&next));
            }
        };
        for tick in 101..104 + seed % 3 {
            insert(8_000);
            whole.tick_to(tick);
            while !parts.tick_in_parts(usize::MAX) {}
            parts.begin_tick_to(tick);
        }
        insert(1_000_000);
        assert!(bytes_of(&whole) == bytes_of(&parts), "seed {seed}");
    }
}
