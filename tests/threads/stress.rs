//! Real threads use one filter.
//!
//! These tests find frequent errors. The models in `loom-tests` find errors that occur once in a
//! billion runs, or only on other machines.

use crate::common::{
    Filter, Hashes, LAYOUTS, Layout, SplitMix, alone, in_time, layouts, rounds, together,
};
use koel::Prehashed;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::scope;
use std::time::{Duration, Instant};

/// Sets a flag when dropped, so that the waiting threads stop even if this thread panics.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Looks up the pinned items repeatedly until the churning ends. Returns the number of lookups.
fn watch(filter: &Filter, pinned: &[u64], done: &AtomicBool) -> usize {
    let mut looks = 0;
    while !done.load(Relaxed) {
        for (at, &hash) in pinned.iter().enumerate() {
            assert!(
                filter.contains(&Prehashed(hash)),
                "a pinned item is absent, after {looks} looks"
            );
            if at % 64 == 0 {
                assert!(filter.count(&Prehashed(hash)) >= 1, "a pinned item is not counted");
                assert_eq!(
                    filter.insert_if_absent(&Prehashed(hash)),
                    Ok(false),
                    "a pinned item is new"
                );
            }
            looks += 1;
        }
    }
    looks
}

/// Runs the churners, each with its number, and two watchers of the pinned items until the churners
/// end. Returns the results of the churners.
fn churn<T: Send>(
    filter: &Filter,
    pinned: &[u64],
    churners: u64,
    work: impl Fn(u64) -> T + Sync,
) -> Vec<T> {
    let done = AtomicBool::new(false);
    let (work, done) = (&work, &done);
    scope(|scope| {
        let watchers = [(); 2].map(|()| scope.spawn(move || watch(filter, pinned, done)));
        let churners: Vec<_> = (0..churners).map(|n| scope.spawn(move || work(n))).collect();
        let _done = Done(done);
        let results =
            churners.into_iter().map(|thread| thread.join().expect("a churner")).collect();
        drop(_done);
        for watcher in watchers {
            watcher.join().expect("a watcher");
        }
        results
    })
}

/// Each churner repeatedly removes its oldest item and inserts a new one, at 95 % of the capacity.
/// No item is refused or lost.
fn churn_at_95_percent(layout: &Layout, capacity: usize, rounds: usize) {
    const CHURNERS: usize = 2;
    let filter = layout.filter(capacity);
    let mut random = SplitMix(30);
    let pinned = random.take(capacity * 95 / 200);
    filter.put(&pinned);
    let own = (capacity * 95 / 100 - pinned.len()) / CHURNERS;

    let kept = churn(&filter, &pinned, CHURNERS as u64, |churner| {
        let mut random = SplitMix((churner + 1) << 48);
        let mut items = VecDeque::new();
        for round in 0..rounds + own {
            if round >= own {
                let oldest = items.pop_front().expect("own items");
                assert!(filter.remove(&Prehashed(oldest)), "a present item was not removed");
            }
            let hash = random.next();
            filter.insert(&Prehashed(hash)).expect("room below 95 % of the capacity");
            assert!(filter.contains(&Prehashed(hash)));
            items.push_back(hash);
        }
        items
    });

    assert_eq!(filter.len(), pinned.len() + CHURNERS * own, "{layout:?}, capacity {capacity}");
    for hash in pinned.into_iter().chain(kept.into_iter().flatten()) {
        assert!(filter.remove(&Prehashed(hash)), "a present item was not removed");
    }
    assert!(filter.is_empty());
}

#[test]
fn a_pinned_item_is_never_absent_while_others_come_and_go() {
    let _alone = alone();
    for layout in layouts() {
        for &capacity in rounds(&[10, 200][..], &[10, 40, 200]) {
            churn_at_95_percent(layout, capacity, rounds(1_000, 30_000));
        }
        churn_at_95_percent(layout, 2_000, rounds(5_000, 300_000));
        churn_at_95_percent(layout, rounds(20_000, 60_000), rounds(5_000, 200_000));
    }
}

#[test]
fn a_pinned_item_is_never_absent_in_a_filter_of_several_shards() {
    let _alone = alone();
    churn_at_95_percent(&LAYOUTS[4], rounds(600_000, 1_200_000), rounds(10_000, 200_000));
}

/// The same in tables that are always full to the last lane, so that every insert moves other items
/// or is refused.
#[test]
fn a_pinned_item_is_never_absent_while_others_are_refused() {
    let _alone = alone();
    for layout in layouts() {
        for &capacity in rounds(&[10, 200][..], &[10, 25, 200, 3_000]) {
            let filter = layout.filter(capacity);
            let pinned = SplitMix(31).take(capacity / 2);
            filter.put(&pinned);
            let kept = churn(&filter, &pinned, 3, |churner| {
                let mut random = SplitMix((churner + 1) << 48);
                let mut items = Vec::new();
                for _ in 0..rounds(600, 8_000) {
                    let hash = random.next();
                    match filter.insert(&Prehashed(hash)) {
                        Ok(()) => items.push(hash),
                        Err(_) if items.is_empty() => {}
                        Err(_) => {
                            let gone = items.swap_remove(random.below(items.len()));
                            assert!(
                                filter.remove(&Prehashed(gone)),
                                "a present item was not removed"
                            );
                        }
                    }
                }
                items
            });
            let kept: Vec<u64> = kept.into_iter().flatten().collect();
            let what = format!("{layout:?}, capacity {capacity}");
            assert_eq!(filter.len(), pinned.len() + kept.len(), "{what}");
            assert!(filter.len() >= capacity * 9 / 10, "{what}: only {} items", filter.len());
            assert!(
                pinned.iter().chain(&kept).all(|&hash| filter.remove(&Prehashed(hash))),
                "{what}"
            );
            assert!(filter.is_empty(), "{what}");
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
            churn(&filter, &[hash, twin], 1, |_| {
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
