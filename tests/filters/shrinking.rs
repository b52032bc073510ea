//! A growing filter gives back what it does not need any more, and keeps what it has.

use crate::common::{Filter, Fixed, Hashes, SplitMix, answers, layouts, rounds};
use koel::{ConcurrentCuckooFilter, Prehashed};

fn builder(capacity: usize) -> koel::Builder<Fixed> {
    ConcurrentCuckooFilter::builder().capacity(capacity).growing().hasher(Fixed { key: 1 })
}

/// At most half as large again, or (elsewhere than on Linux) with as few shards.
fn is_as_small_as(filter: &Filter, other: &Filter) {
    let [own, others] = [filter, other].map(Filter::stats);
    let most = others.shards + others.shards / 2;
    assert!(own.shards <= most, "{} shards, and {} otherwise", own.shards, others.shards);
    if cfg!(target_os = "linux") {
        let most = others.size_in_bytes * 3 / 2 + 400 * own.shards + 500_000;
        assert!(own.size_in_bytes <= most, "{own}\n{others}");
    }
}

#[test]
fn a_filter_that_was_ten_times_as_large_is_as_one_that_never_was() {
    // Shorter fingerprints lose all their bits in such a burst.
    for layout in layouts().iter().filter(|layout| layout.bits >= 16) {
        for &usual in &[100_000, 260_000, 400_000][..rounds(1, 3)] {
            let builder =
                builder(usual / 2).false_positive_rate(layout.rate * 8.0).expected_growth(32.0);
            let filter = builder.clone().build().expect("memory");
            let hashes = SplitMix(usual as u64).take(10 * usual);
            filter.put(&hashes);
            let (stay, go) = hashes.split_at(usual);
            filter.take(go);
            let before = filter.stats();
            filter.shrink();
            let after = filter.stats();
            assert!(after.shards * 4 < before.shards, "{layout:?}\n{before}\n{after}");
            assert_eq!(filter.len(), usual);
            assert!(filter.has(stay));
            let never = builder.build().expect("memory");
            never.put(stay);
            is_as_small_as(&filter, &never);
            let rates = [&filter, &never].map(Filter::false_positive_rate);
            assert!(rates[0] < 1.3 * rates[1] || rates[0] <= after.false_positive_rate_at_capacity);
            // What it says is what it does.
            let absent = SplitMix(7).take(200_000);
            let found = filter.found(&absent);
            let expected = rates[0] * absent.len() as f64;
            assert!((found as f64) < expected + 5.0 * expected.sqrt() + 5.0, "{found} {expected}");
            // It grows again.
            filter.put(go);
            assert!(filter.has(&hashes));
            filter.take(&hashes);
            assert!(filter.is_empty());
        }
    }
}

#[test]
fn an_emptied_filter_is_as_small_as_a_new_one_and_a_hundredth_of_what_it_was() {
    for capacity in [100, 200_000] {
        let filter = builder(capacity).build().expect("memory");
        let new = filter.stats();
        let hashes = SplitMix(1).take(rounds(1_000_000, 2_000_000));
        filter.put(&hashes);
        let largest = filter.size_in_bytes();
        filter.take(&hashes);
        let given_back = filter.shrink();
        let stats = filter.stats();
        assert_eq!((stats.shards, stats.items), (new.shards, 0));
        if cfg!(target_os = "linux") {
            assert!(stats.size_in_bytes <= new.size_in_bytes + largest / 100);
            assert_eq!(given_back, largest - stats.size_in_bytes);
        }
        assert_eq!(filter.shrink(), 0);
    }
}

/// Splits and joins do not undo each other.
#[test]
fn a_filter_that_is_as_full_as_it_was_keeps_its_shards() {
    for layout in layouts() {
        let builder = builder(1_000).false_positive_rate(layout.rate * 8.0).expected_growth(32.0);
        let filter = builder.build().expect("memory");
        filter.put(&SplitMix(3).take(500_000));
        let before = filter.stats().shards;
        filter.shrink();
        let after = filter.stats().shards;
        assert!(after * 10 >= before * 9, "{before} shards, then {after}");
    }
}

#[test]
fn parts_do_what_the_whole_does() {
    let filters = [(); 2].map(|()| {
        let filter = builder(1_000).build().expect("memory");
        let hashes = SplitMix(5).take(600_000);
        filter.put(&hashes);
        filter.take(&hashes[50_000..]);
        filter
    });
    filters[0].shrink();
    let next = |cursor: &u64| filters[1].shrink_part(*cursor, 3);
    assert!(std::iter::successors(Some(0), next).count() > 10);
    let [whole, parts] = filters;
    assert_eq!(whole.stats().shards, parts.stats().shards);
    let hashes = SplitMix(6).take(300_000);
    assert!(answers(&whole, hashes.iter().copied()) == answers(&parts, hashes));
}

#[test]
fn what_does_not_grow_gives_nothing_back() {
    let filter = ConcurrentCuckooFilter::builder().capacity(100_000).build().expect("memory");
    let shard = builder(1_000).build().expect("memory");
    filter.insert("an item").expect("room");
    shard.insert("an item").expect("room");
    assert_eq!((filter.shrink(), shard.shrink()), (0, 0));
    assert_eq!((filter.shrink_part(0, 0), shard.shrink_part(0, 0)), (None, None));
}

/// A stream with a burst: in usual times a filter that forgets is as small as before.
#[test]
fn a_burst_is_forgotten_after_two_windows() {
    const WINDOW: usize = 4;
    const USUAL: usize = 30_000;
    let filters = [(); 2].map(|()| {
        builder(50_000).remembers(WINDOW as u32).expected_growth(64.0).build().expect("memory")
    });
    let mut random = SplitMix(9);
    let mut lately: Vec<Vec<u64>> = Vec::new();
    for tick in 0..6 * WINDOW {
        let burst = if (2 * WINDOW..3 * WINDOW).contains(&tick) { 10 } else { 1 };
        let hashes = random.take(USUAL * burst);
        filters[0].put(&hashes);
        filters[1].put(&hashes[..USUAL]);
        lately.push(hashes);
        for hashes in lately.iter().rev().take(WINDOW + 1) {
            assert!(filters[0].has(hashes));
        }
        if tick == 3 * WINDOW {
            assert!(filters[0].size_in_bytes() > 5 * filters[1].size_in_bytes());
        }
        if tick >= 5 * WINDOW {
            is_as_small_as(&filters[0], &filters[1]);
        }
        filters.iter().for_each(Filter::tick);
    }
}

/// A window of one tick loses half of its items in each, and gets as many again. That is no reason to shrink.
#[test]
fn a_steady_window_is_not_joined_and_split_in_turns() {
    let filter = builder(1_000).remembers(1).expected_growth(256.0).build().expect("memory");
    let mut random = SplitMix(11);
    let mut shards = Vec::new();
    for tick in 0..20 {
        filter.put(&random.take(150_000));
        if tick > 5 {
            shards.push(filter.stats().shards);
        }
        filter.tick();
        if tick > 5 {
            shards.push(filter.stats().shards);
        }
    }
    let (least, most) = (shards.iter().min().expect("some"), shards.iter().max().expect("some"));
    assert!(most - least <= most / 10, "{shards:?}");
}

/// Bursts that come and go leave a filter as it was, as long as it stays within its expected growth.
#[test]
fn bursts_within_the_expected_growth_leave_nothing() {
    let of = |rate, growth| builder(100).false_positive_rate(rate).expected_growth(growth);
    for (builder, burst) in
        [(of(0.03, 64.0), 1_000_000), (of(0.03, 256.0), 7_000_000)].into_iter().take(rounds(1, 2))
    {
        let filter = builder.build().expect("memory");
        let stay = SplitMix(12).take(100);
        filter.put(&stay);
        let before = filter.stats();
        let mut random = SplitMix(13);
        for round in 0..rounds(2, 8) {
            let hashes = random.take(burst);
            let taken = hashes.iter().filter(|&&hash| filter.insert(&Prehashed(hash)).is_ok());
            // The filter cannot tell some from so many others that it takes no more.
            assert!(taken.count() >= burst - burst / 100_000, "{round}");
            filter.take(&hashes);
            filter.shrink();
            assert!(filter.has(&stay));
            let after = filter.stats();
            assert_eq!((after.shards, after.items), (before.shards, before.items), "{round}");
            assert!(after.false_positive_rate <= 1.01 * before.false_positive_rate, "{round}");
        }
    }
}
