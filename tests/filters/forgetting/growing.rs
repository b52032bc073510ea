//! Growing filters that forget: what expires leaves no trace, however often shards were split.

use super::{Came, Filter, WINDOWS, agree, errs_as_it_says, stream};
use crate::common::{Fixed, Hashes, SplitMix, layouts, rounds, with_rate};
use koel::{ConcurrentCuckooFilter, Prehashed};

/// A filter with this rate after growing by a factor of 16, or with a higher one if none can keep it.
pub fn growing(capacity: usize, rate: f64, ticks: u32) -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity).remembers(ticks);
    let builder = builder.hasher(Fixed { key: 3 }).growing().expected_growth(16.0);
    with_rate(builder, rate).build().expect("a filter")
}

#[test]
fn a_growing_filter_agrees_with_a_map_of_time_stamps() {
    for layout in layouts() {
        for ticks in rounds(&WINDOWS[1..2], &WINDOWS[..]) {
            let filter = growing(100, layout.rate, *ticks);
            // Fingerprints of 32 bits lose a few of them.
            let is_exact = filter.stats().fingerprint_bits == 32 && *ticks < 10;
            agree(&filter, 100_000, *ticks, is_exact, rounds(200_000, 120_000));
        }
    }
}

/// Bursts split shards until the fingerprints have no bits left, so that lanes are in both halves; then
/// they expire, and others come.
#[test]
fn every_item_is_counted_until_it_expires() {
    for layout in layouts() {
        for ticks in rounds(&WINDOWS[1..2], &[1, 2, 6, 30][..]) {
            let (filter, window) = (growing(100, layout.rate, *ticks), u64::from(*ticks) + 1);
            let most = rounds(300_000, 500_000) / window;
            let in_tick = |tick| if tick % (window + 2) < 3 { most } else { most / 50 };
            let mut came = Came::new();
            stream(&filter, *ticks, &mut came, (0..4 * window + 4).map(in_tick), 13);
            (0..*ticks).for_each(|_| filter.tick());
            assert_eq!((filter.len(), filter.stats().items), (0, 0));
            let is_left = came.into_iter().flatten().any(|item| filter.contains(&item));
            assert!(!is_left && filter.stats().false_positive_rate == 0.0, "something is left");
        }
    }
}

/// What is removed twice, or was never there, takes other items along. The counts bear it.
#[test]
fn wrong_removals_never_make_the_counts_wrong_for_good() {
    for layout in layouts() {
        let filter = growing(100, layout.rate, 2);
        let mut random = SplitMix(5);
        for _ in 0..12 {
            for _ in 0..rounds(60_000, 200_000) {
                let item = random.next() % 300_000;
                if random.below(3) > 0 {
                    filter.insert_if_absent(&item).expect("memory for another shard");
                } else {
                    let before = filter.len();
                    let was_there = filter.remove(&item);
                    assert_eq!(filter.len(), before - usize::from(was_there));
                }
            }
            filter.tick();
        }
        for _ in 0..3 {
            filter.tick();
        }
        assert_eq!((filter.len(), filter.stats().items), (0, 0));
        assert!(!(0..300_000u64).any(|item| filter.contains(&item)), "something is left");
        // And it is as good as new.
        for item in 0..50_000u64 {
            filter.insert(&item).expect("room");
        }
        assert_eq!(filter.len(), 50_000);
        assert!((0..50_000u64).all(|item| filter.remove(&item)));
        assert!(filter.is_empty());
    }
}

/// After many windows a filter has the memory of a full one, and its rate.
#[test]
fn a_steady_stream_stops_growing() {
    for layout in layouts().iter().filter(|layout| layout.rate > 1e-4) {
        for ticks in rounds([6, 6], [1, 14]) {
            let filter = growing(100, layout.rate, ticks);
            let window = u64::from(ticks) + 1;
            let (in_a_tick, mut came) = (300_000 / window, Came::new());
            let mut pass = |windows| {
                let counts = (0..windows * window).map(|_| in_a_tick);
                stream(&filter, ticks, &mut came, counts, 997);
                errs_as_it_says(&filter);
                filter.size_in_bytes()
            };
            let [after_two, bytes] = [pass(2), pass(rounds(6, 28))];
            assert!(bytes as f64 <= 1.1 * after_two as f64, "{after_two} bytes became {bytes}");
            let stats = filter.stats();
            // No lane is as old as a split.
            let slots = stats.slots as f64 / (window * in_a_tick) as f64;
            assert!(slots < 2.6, "{slots} slots an item of the window");
            assert!(stats.false_positive_rate <= stats.false_positive_rate_at_capacity);
        }
    }
}

/// Lanes without bits are in several shards, and other items refresh them there. All the same, an item that is
/// refreshed in time is found, counted and removed.
#[test]
fn what_is_refreshed_in_time_stays_and_can_be_removed() {
    let builder = ConcurrentCuckooFilter::builder().capacity(100).false_positive_rate(0.4);
    let builder = builder.hasher(crate::common::Fixed { key: 3 }).remembers(2).growing();
    let filter = builder.build().expect("a layout");
    // Of one that is taken for another, there is nothing to remove.
    let items = SplitMix(50).take(rounds(750_000, 1_500_000));
    let added =
        items.iter().copied().filter(|item| filter.insert_if_absent(&Prehashed(*item)) == Ok(true));
    let added: Vec<u64> = added.collect();
    filter.tick();
    SplitMix(51)
        .take(rounds(150_000, 3_000_000))
        .iter()
        .for_each(|other| _ = filter.refresh(&Prehashed(*other)));
    for tick in 2..=rounds(6, 20) {
        filter.tick();
        assert!(added.iter().all(|item| filter.refresh(&Prehashed(*item))), "tick {tick}");
        assert!(filter.len() >= added.len(), "{} items of {}", filter.len(), added.len());
    }
    assert!(filter.has(&added));
    let removed = added.iter().filter(|item| filter.remove(&Prehashed(**item))).count();
    assert_eq!(removed, added.len());
}
