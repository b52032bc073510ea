//! Real threads use one filter.
//!
//! These tests find frequent errors. The models in `loom-tests` find errors that occur once in a
//! billion runs, or only on other machines.

use crate::common::{
    Filter, Hashes, LAYOUTS, Layout, SplitMix, alone, in_time, layouts, rounds, together, watched,
};
use koel::Prehashed;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Churners insert and remove items, beside pinned ones, which are half of all. Nothing is lost.
///
/// Each removes its oldest item and inserts a new one, at 95 % of the capacity, where no item is refused. Or the table is
/// always full to the last lane: every insert moves other items, or is refused, and then another item goes.
fn churn(layout: &Layout, capacity: usize, rounds: usize, until_full: bool) {
    let churners = if until_full { 3 } else { 2 };
    let filter = layout.filter(capacity);
    let pinned = SplitMix(30).take(capacity * 95 / 200);
    filter.put(&pinned);
    let most = match until_full {
        true => usize::MAX,
        false => (capacity * 95 / 100 - pinned.len()) / churners,
    };
    let kept = watched(&filter, &pinned, churners, |churner| {
        let mut random = SplitMix((churner as u64 + 1) << 48);
        let mut items = VecDeque::new();
        for _ in 0..rounds {
            if items.len() == most {
                filter.take(&[items.pop_front().expect("own items")]);
            }
            let hash = random.next();
            match filter.insert(&Prehashed(hash)) {
                Ok(()) => {
                    assert!(filter.contains(&Prehashed(hash)));
                    items.push_back(hash);
                }
                Err(full) => {
                    assert!(until_full, "there is room below 95 % of the capacity: {full}");
                    let gone = (!items.is_empty()).then(|| random.below(items.len()));
                    filter.take(gone.and_then(|at| items.swap_remove_back(at)).as_slice());
                }
            }
        }
        Vec::from(items)
    });
    let kept = kept.concat();
    let what = format!("{layout:?}, capacity {capacity}");
    assert_eq!(filter.len(), pinned.len() + kept.len(), "{what}");
    match until_full {
        true => assert!(filter.len() >= capacity * 9 / 10, "{what}: only {} items", filter.len()),
        false => assert_eq!(kept.len(), churners * most, "{what}"),
    }
    filter.take(&pinned);
    filter.take(&kept);
    assert!(filter.is_empty());
}

#[test]
fn a_pinned_item_is_never_absent_while_others_come_and_go() {
    let _alone = alone();
    for layout in layouts() {
        for &capacity in rounds(&[10, 200][..], &[10, 40, 200]) {
            churn(layout, capacity, rounds(1_100, 30_000), false);
        }
        churn(layout, 2_000, rounds(5_500, 300_000), false);
        let capacity = rounds(20_000, 60_000);
        churn(layout, capacity, rounds(10_000, 220_000), false);
    }
}

#[test]
fn a_pinned_item_is_never_absent_in_a_filter_of_several_shards() {
    let _alone = alone();
    let capacity = rounds(600_000, 1_200_000);
    churn(&LAYOUTS[4], capacity, capacity / 4 + rounds(10_000, 200_000), false);
}

#[test]
fn a_pinned_item_is_never_absent_while_others_are_refused() {
    let _alone = alone();
    for layout in layouts() {
        for &capacity in rounds(&[10, 200][..], &[10, 25, 200, 3_000]) {
            churn(layout, capacity, rounds(600, 8_000), true);
        }
    }
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
