//! Real threads use one filter.
//!
//! These tests find frequent errors. The models in `loom-tests` find errors that occur once in a
//! billion runs, or only on other machines.

use crate::common::{
    Filter, Hashes, LAYOUTS, Layout, SplitMix, alone, in_time, layouts, race, rounds, together,
    watched,
};
use koel::Prehashed;
use std::time::{Duration, Instant};

/// Churners insert and remove items, beside pinned ones, which are half of all. Nothing is lost. The table is always full to
/// the last lane: every insert moves other items, or is refused, and then another item goes.
fn churn(layout: &Layout, capacity: usize, rounds: usize) {
    let filter = layout.filter(capacity);
    let pinned = SplitMix(30).take(capacity * 95 / 200);
    filter.put(&pinned);
    let kept = watched(&filter, &pinned, 3, |churner| {
        let mut random = SplitMix((churner as u64 + 1) << 48);
        let mut items = Vec::new();
        for _ in 0..rounds {
            let hash = random.next();
            if filter.insert(&Prehashed(hash)).is_ok() {
                assert!(filter.contains(&Prehashed(hash)));
                items.push(hash);
            } else if !items.is_empty() {
                filter.take(&[items.swap_remove(random.below(items.len()))]);
            }
        }
        items
    });
    let kept = kept.concat();
    let what = format!("{layout:?}, capacity {capacity}");
    assert_eq!(filter.len(), pinned.len() + kept.len(), "{what}");
    assert!(filter.len() >= capacity * 9 / 10, "{what}: only {} items", filter.len());
    filter.take(&pinned);
    filter.take(&kept);
    assert!(filter.is_empty());
}

/// (`soak.rs` has filters of all kinds that are not full.)
#[test]
fn a_pinned_item_is_never_absent_while_others_move_and_are_refused() {
    let _alone = alone();
    for layout in layouts() {
        for &capacity in rounds(&[10, 200][..], &[10, 25, 200, 3_000]) {
            churn(layout, capacity, rounds(600, 8_000));
        }
        churn(layout, 20_000, rounds(5_000, 200_000));
    }
    // Of several shards.
    churn(&LAYOUTS[4], 600_000, rounds(110_000, 500_000));
}

/// Returns hashes that the filter takes for this one. For half of them, the first bucket is the
/// second bucket of this one.
fn twins(filter: &Filter, hash: u64, random: &mut SplitMix) -> Vec<u64> {
    filter.clear();
    filter.insert(&Prehashed(hash)).expect("room in an empty filter");
    (0..)
        .map(|_| random.next())
        .filter(|&other| filter.contains(&Prehashed(other)))
        .take(6)
        .collect()
}

/// A copy is always inserted before another one is removed, alternately in both buckets. So the
/// item is always present.
#[test]
fn an_item_is_never_absent_while_its_copies_come_and_go() {
    let _alone = alone();
    // Twins of longer fingerprints would take too long to find.
    for layout in layouts().iter().filter(|layout| layout.bits <= 16) {
        // Large enough that the two buckets mostly lie in two cache lines.
        let filter = layout.filter(300);
        let mut random = SplitMix(34);
        let hash = random.next();
        for twin in twins(&filter, hash, &mut random).into_iter().take(rounds(2, 6)) {
            filter.clear();
            filter.insert(&Prehashed(hash)).expect("room in an empty filter");
            watched(&filter, &[hash, twin], 1, |_| {
                for _ in 0..rounds(5_000, 250_000) {
                    for (comes, goes) in [(hash, twin), (twin, hash)] {
                        filter.insert(&Prehashed(comes)).expect("room for two copies");
                        assert!(
                            filter.remove(&Prehashed(goes)),
                            "there are two copies, but none was removed"
                        );
                    }
                }
            });
            assert_eq!(filter.len(), 1);
        }
    }
}

/// As many as fit, and more.
#[test]
fn exactly_one_of_the_racing_threads_inserts_an_item_also_in_a_filter_that_overflows() {
    let _alone = alone();
    let large = rounds(3_000, 20_000);
    let races = [(10, 4, rounds(10, 300)), (400, 8, rounds(3, 60)), (large, 4, rounds(1, 4))];
    for (layout, (capacity, threads, rounds)) in
        layouts().iter().flat_map(|layout| races.map(|race| (layout, race)))
    {
        let filter = layout.filter(capacity);
        let too_many = filter.stats().slots * 11 / 10 + 10;
        for (seed, items) in (0..rounds).flat_map(|it| [(it, capacity), (!it, too_many)]) {
            let hashes = SplitMix(seed << 32).take(items);
            let refused = race(&filter, &hashes, threads, layout.is_exact());
            assert_eq!(refused > 0, items == too_many, "{filter:?}: {refused} of {items}");
        }
    }
}

/// Performs a random operation on a random item.
fn anything(filter: &Filter, items: &[u64], random: &mut SplitMix) {
    let hash = items[random.below(items.len())];
    let slots = filter.stats().slots_per_bucket;
    match random.below(100) {
        0..35 => _ = filter.insert(&Prehashed(hash)),
        35..60 => _ = filter.insert_if_absent(&Prehashed(hash)),
        60..80 => _ = filter.remove(&Prehashed(hash)),
        80..90 => _ = filter.contains(&Prehashed(hash)),
        90..99 => assert!(filter.count(&Prehashed(hash)) <= 2 * slots),
        _ if random.below(40) == 0 => filter.clear(),
        _ => drop(format!("{filter:?} {} {}", filter.stats(), filter.is_empty())),
    }
}

#[test]
fn after_any_mixture_of_operations_the_length_is_the_number_of_removable_items() {
    let _alone = alone();
    for layout in layouts() {
        for &capacity in rounds(&[10, 1_000][..], &[10, 1_000, 40_000]) {
            let filter = layout.filter(capacity);
            let items = SplitMix(33).take(filter.stats().slots * 11 / 10);
            let what = format!("{layout:?}, capacity {capacity}");
            let mix = || {
                together(4, |thread| {
                    let mut random = SplitMix((thread as u64) << 32);
                    (0..rounds(1_500, 15_000)).for_each(|_| anything(&filter, &items, &mut random));
                });
            };

            mix();
            let len = filter.len();
            let counted: usize = items.iter().map(|&hash| filter.count(&Prehashed(hash))).sum();
            assert!(counted == len || counted > len && !layout.is_exact(), "{what}");
            let taken = |hash| (0..).take_while(|_| filter.remove(&Prehashed(hash))).count();
            assert_eq!(items.iter().map(|&hash| taken(hash)).sum::<usize>(), len, "{what}");
            assert!(filter.is_empty(), "{what}");

            mix();
            filter.clear();
            assert_eq!(filter.len(), 0, "{what}");
            assert!(items.iter().all(|&hash| filter.count(&Prehashed(hash)) == 0), "{what}");
        }
    }
}

/// Divides the same amount of work among the threads. Each leaves one item in the filter. Returns
/// the time that it took.
fn crowd(filter: &Filter, threads: usize) -> Duration {
    filter.clear();
    let begin = Instant::now();
    together(threads, |thread| {
        let mut random = SplitMix((thread as u64) << 32);
        let mut last = None;
        for _ in 0..rounds(12_800, 1_024_000) / threads {
            let hash = random.next();
            filter.insert(&Prehashed(hash)).expect("room for two items of each thread");
            assert!(filter.contains(&Prehashed(hash)));
            if let Some(last) = last.replace(hash) {
                assert!(filter.remove(&Prehashed(last)));
            }
        }
    });
    assert_eq!(filter.len(), threads);
    begin.elapsed()
}

#[test]
fn more_threads_than_processors_finish_the_same_work() {
    let _alone = alone();
    in_time(|| {
        for layout in layouts() {
            for (capacity, one_stripe) in [(300, true), (1_000_000, false)] {
                let filter = layout.filter(capacity);
                assert_eq!(filter.stats().segments == 1, one_stripe);
                let [few, many] = [2, 128].map(|threads| crowd(&filter, threads));
                println!("{} bits, capacity {capacity}: {few:?}, {many:?}", layout.bits);
                assert!(many < 20 * few + Duration::from_secs(2), "{layout:?}: {few:?}, {many:?}");
            }
        }
    });
}
