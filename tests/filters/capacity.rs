//! A filter holds as many distinct items as its capacity, in no more memory than promised.

use crate::common::{
    Filter, Hashes, LAYOUTS, Layout, SplitMix, bytes_of, fill_to_refusal, layouts, rounds,
};
use koel::{BuildErrorKind, ConcurrentCuckooFilter, Prehashed, StableHash};
use std::time::{Duration, Instant};

/// Capacities, and the number of filters to fill for each. Programs may have very many small filters, so that even a rare
/// refusal would occur.
const SIZES: [(usize, u64); 17] = [
    (1, 100_000),
    (2, 100_000),
    (3, 100_000),
    (5, 100_000),
    (7, 100_000),
    (10, 100_000),
    (14, 100_000),
    (20, 100_000),
    (33, 100_000),
    (60, 100_000),
    (101, 1_000),
    (500, 1_000),
    (1_000, 500),
    (2_100, 200),
    (5_000, 100),
    (20_000, 40),
    (100_000, 8),
];

/// Fills the filter to its first refusal, with different items for each seed. Returns how many
/// fitted.
fn fitted(filter: &Filter, seed: u64) -> usize {
    filter.clear();
    let (inserted, _) = fill_to_refusal(filter, &mut SplitMix(seed << 32));
    assert_eq!(filter.len(), inserted.len());
    assert!(filter.has(&inserted), "an item was inserted and is absent");
    inserted.len()
}

/// The same with `insert_if_absent`, which takes no room for an item that the filter takes for another.
fn fitted_if_absent(filter: &Filter, seed: u64) -> usize {
    filter.clear();
    let mut hashes = SplitMix(!seed << 32).take(filter.capacity());
    let answer = |hash: &u64| filter.insert_if_absent(&Prehashed(*hash));
    let added: Vec<bool> = hashes.iter().map_while(|hash| answer(hash).ok()).collect();
    hashes.truncate(added.len());
    assert_eq!(filter.len(), added.iter().filter(|new| **new).count());
    assert!(filter.has(&hashes));
    hashes.len()
}

/// Fills filters of each layout and capacity, as many as the number says. Fails with a list of all capacities that are not
/// kept, not only the first.
fn are_kept(cases: impl Iterator<Item = (Layout, usize, u64)>, fitted: fn(&Filter, u64) -> usize) {
    let mut short = Vec::new();
    for (layout, capacity, seeds) in cases {
        let filter = layout.filter(capacity);
        let held: Vec<usize> = (0..seeds).map(|seed| fitted(&filter, seed)).collect();
        let misses = held.iter().filter(|&&held| held < capacity).count();
        if misses > 0 {
            let worst = held.iter().min().expect("a seed");
            let what = format!("{layout:?}: {worst} of {capacity} items fitted");
            short.push(format!("{what} ({misses} of {seeds} filters)"));
        }
    }
    assert!(short.is_empty(), "these capacities are not kept:\n{}", short.join("\n"));
}

/// The cases of all sizes, with this part of the filters.
fn of_all_sizes(part: u64) -> impl Iterator<Item = (Layout, usize, u64)> {
    let case = move |layout: &Layout| {
        SIZES.map(|(capacity, filters)| (*layout, capacity, filters.div_ceil(part)))
    };
    layouts().iter().flat_map(case)
}

#[test]
fn as_many_distinct_items_as_the_capacity_fit() {
    are_kept(of_all_sizes(rounds(50, 1)), fitted);
}

#[test]
fn the_capacity_fits_one_by_one_if_absent() {
    are_kept(of_all_sizes(rounds(500, 50)), fitted_if_absent);
}

/// Between one large shard and many, shards are small, and chance treats them least evenly.
#[test]
fn the_capacity_fits_in_every_shard_of_several_and_of_many_small_ones() {
    let cases = layouts().iter().flat_map(|layout| {
        let one = layout.slots() * (1 << 17);
        // Each of them leaves little room in shards of their size.
        let small = rounds(&[119][..], &[104, 119, 137, 160, 200, 238, 283]).iter();
        let small = small.map(move |hundredths| (one * hundredths / 100 * 94 / 100, rounds(1, 8)));
        small.chain([(rounds(1, 3) * one + 12_345, rounds(1, 2))]).map(|case| (*layout, case))
    });
    let cases = cases.map(|(layout, (capacity, seeds))| {
        assert!(layout.filter(capacity).stats().shards > 1, "{layout:?}");
        (layout, capacity, seeds)
    });
    are_kept(cases, fitted);
}

/// From where too many of them meet, items spread over the whole table at once.
#[test]
fn few_fingerprints_fill_a_large_table() {
    let layout = LAYOUTS.iter().find(|layout| layout.bits == 8).expect("a layout");
    for seed in 0..4 {
        let filter = layout.filter(100_000);
        let load = fitted(&filter, seed) as f64 / filter.stats().slots as f64;
        assert!(load > 0.993, "{load}");
    }
}

#[test]
fn a_large_filter_takes_few_bits_per_item() {
    let most = [(8, 8.8), (10, 11.6), (12, 14.0), (16, 17.6), (21, 24.5), (32, 38.5)];
    for (bits, most) in most {
        let layout = LAYOUTS.iter().find(|layout| layout.bits == bits).expect("a layout");
        let taken = 8.0 * layout.filter(1_000_003).size_in_bytes() as f64 / 1_000_003.0;
        assert!(taken <= most, "{bits} bits: {taken:.2} bits an item, {most} at most");
    }
}

#[test]
fn a_filter_for_ten_items_takes_no_more_than_five_hundred_and_forty_bytes() {
    for layout in LAYOUTS {
        let bytes = layout.filter(10).size_in_bytes();
        assert!(bytes <= 540, "{} bits: {bytes} bytes", layout.bits);
    }
}

#[test]
fn the_size_grows_with_the_capacity_and_never_jumps() {
    for layout in layouts() {
        let bytes = |capacity| layout.filter(capacity).size_in_bytes();
        let per_item = bytes(1_000_003) as f64 / 1_000_003.0;
        let (mut capacity, mut before) = (1, 0);
        while capacity < 3_000_000 {
            let (now, soon) = (bytes(capacity), bytes(capacity + capacity / 50));
            let at = format!("{} bits, capacity {capacity}", layout.bits);
            assert!(now >= before, "{at}: {now} bytes, but {before} for fewer items");
            assert!(
                soon as f64 <= 1.08 * now as f64 + 200.0,
                "{at}: {now} bytes, but {soon} for a fiftieth more items"
            );
            if capacity >= 1_000 {
                let most = 1.5 * per_item * capacity as f64;
                assert!(now as f64 <= most, "{at}: {now} bytes, {most} at most");
            }
            // Every small capacity, then steps of half a percent (four percent in a short run).
            (capacity, before) = (capacity + 1 + capacity / rounds(25, 200), now);
        }
    }
}

/// The system allocates pages on the first write, so this test needs little memory.
#[test]
fn a_filter_for_a_billion_items_is_built_at_once_and_works() {
    let begin = Instant::now();
    let filter = LAYOUTS[4].filter(1_000_000_000);
    assert!(filter.size_in_bytes() < 2_200_000_000);
    let hashes = SplitMix(9).take(rounds(100, 1_000));
    filter.put(&hashes);
    assert!(filter.has(&hashes));
    assert_eq!(filter.len(), hashes.len());
    filter.take(&hashes);
    assert!(filter.is_empty());
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_plan_is_what_is_built() {
    for layout in layouts() {
        for capacity in [0, 10, 30_000, 1_000_000] {
            let builder = ConcurrentCuckooFilter::builder().capacity(capacity);
            let fixed = builder.false_positive_rate(layout.rate);
            let growing = fixed.clone().growing().expected_growth(1.0).false_positive_rate(0.01);
            for builder in [fixed, growing] {
                for builder in [builder.clone(), builder.false_positive_rate(0.01).remembers(6)] {
                    let plan = builder.plan().expect("a plan");
                    let stats = builder.build().expect("a filter").stats();
                    assert_eq!(plan.initial_bytes, stats.size_in_bytes);
                    assert_eq!(plan.bytes_for(capacity), stats.size_in_bytes);
                    assert_eq!((plan.grows, plan.capacity), (stats.grows, stats.capacity));
                    assert_eq!(plan.fingerprint_bits, stats.fingerprint_bits);
                    assert_eq!(plan.expected_growth, stats.expected_growth);
                    let rate = stats.false_positive_rate_at_capacity;
                    assert_eq!(plan.false_positive_rate_at_capacity, rate);
                }
            }
        }
    }
    let builder = ConcurrentCuckooFilter::builder().capacity(10).growing().max_bytes(10);
    assert!(builder.plan().expect("a plan").initial_bytes > 10);
    let kind = |builder: koel::Builder| builder.plan().expect_err("no plan").kind();
    let builder = ConcurrentCuckooFilter::builder();
    assert_eq!(kind(builder.clone().capacity(usize::MAX)), BuildErrorKind::CapacityOverflow);
    assert_eq!(kind(builder), BuildErrorKind::NoCapacity);
}

/// Memory and files, from before the first split. Most estimates are right to within a hundredth. The others may be off
/// by as much as is allocated at once: a shard of a few, or a table of 2 MiB.
#[test]
fn a_plan_tells_how_large_a_filter_becomes() {
    for (capacity, rate, growth, ticks) in
        [(100, 0.01, 256.0, None), (10_000, 1e-6, 8_192.0, None), (300_000, 0.001, 4.0, Some(14))]
    {
        let builder = ConcurrentCuckooFilter::builder().capacity(capacity).growing();
        let builder = builder.false_positive_rate(rate).expected_growth(growth);
        let builder = ticks.map_or(builder.clone(), |ticks| builder.remembers(ticks));
        let builder = builder.hasher(StableHash::with_seed(1));
        let (plan, filter) = (builder.plan().expect("a plan"), builder.build().expect("a filter"));
        let (mut checks, mut near) = (0, 0);
        let mut next = 1_000;
        for items in 1..=rounds(2_000_000, 8_000_000) {
            filter.insert(&items).expect("memory");
            if items < next {
                continue;
            }
            next += next / 40;
            let is = filter.size_in_bytes();
            let ratio = plan.bytes_for(items) as f64 / is as f64;
            assert!((0.5..=2.0).contains(&ratio), "{rate}, {items}: {ratio}");
            (checks, near) = (checks + 1, near + usize::from((ratio - 1.0).abs() < 0.035));
        }
        assert!(8 * near > 7 * checks, "{rate}: {near} of {checks}");
        let file = bytes_of(&filter);
        let planned = plan.file_bytes_for(filter.len()) as f64;
        assert!((planned / file.len() as f64 - 1.0).abs() < 0.035, "{rate}: {planned}");
    }
    // Estimates of what no machine has.
    let plan = ConcurrentCuckooFilter::builder().seen_set().plan().expect("a plan");
    let [bytes, more] = [1 << 40, usize::MAX].map(|items| plan.bytes_for(items));
    assert!((5 << 40..8 << 40).contains(&bytes) && more > bytes, "{bytes}, {more}");
}

/// Beyond 2^32 buckets, fingerprints have bits in common with the index of their bucket.
#[test]
fn a_fixed_filter_keeps_its_rate_at_any_size() {
    for capacity in (0..44).filter_map(|power| usize::try_from(1u64 << power).ok()) {
        let rates = std::iter::successors(Some(1.0 - f64::EPSILON), |rate| Some(rate * 0.97));
        for rate in rates.take_while(|rate| *rate > 1e-9) {
            let builder = ConcurrentCuckooFilter::builder().capacity(capacity);
            // No fingerprint is long enough for the lowest rates of the largest, and no memory is on 32 bits.
            if let Ok(plan) = builder.false_positive_rate(rate).plan() {
                let at_capacity = plan.false_positive_rate_at_capacity;
                assert!(at_capacity <= rate, "{capacity} items at {rate}: {at_capacity}");
            }
        }
    }
}

#[test]
fn the_least_rate_of_an_error_can_be_had_and_no_lower_one() {
    for ticks in [None, Some(1), Some(14), Some(62)] {
        for growth in [None, Some(1.0), Some(16.0), Some(1_000.0)] {
            let mut builder = ConcurrentCuckooFilter::builder().capacity(1_000_000_000_000);
            builder = ticks.map_or(builder.clone(), |ticks| builder.remembers(ticks));
            if let Some(growth) = growth {
                builder = builder.growing().expected_growth(growth);
            }
            let plan = |rate| builder.clone().false_positive_rate(rate).plan();
            let error = plan(1e-30).expect_err("no fingerprint is that long");
            assert_eq!(error.kind(), BuildErrorKind::RateTooSmall);
            let least = error.least_rate().expect("a rate");
            assert!(plan(least).is_ok(), "{least} for {ticks:?}, {growth:?}");
            // Two digits.
            assert_eq!(format!("{least:.1e}").parse(), Ok(least));
            let lower = plan(least / 1.11).expect_err("two digits are off by a tenth at most");
            assert_eq!(lower.least_rate(), Some(least));
            assert!(lower.to_string().contains(&format!("ask for {least:.1e} or more")));
        }
    }
    let other = ConcurrentCuckooFilter::builder().plan().expect_err("no capacity");
    assert_eq!(other.least_rate(), None);
}

#[test]
fn a_seen_set_chooses_what_is_not_set() {
    let seen = || ConcurrentCuckooFilter::builder().seen_set();
    for (builder, capacity, growth, bits) in [
        (seen(), 10_000, 8_192.0, 32),
        (seen().false_positive_rate(1e-6), 10_000, 8_192.0, 32),
        (seen().false_positive_rate(1e-4), 10_000, 256.0, 21),
        (seen().remembers(14), 10_000, 128.0, 32),
        (seen().remembers(14).false_positive_rate(0.01), 10_000, 128.0, 21),
        (seen().capacity(500), 500, 4.0, 32),
        (seen().capacity(500).remembers(14), 500, 4.0, 32),
        (seen().expected_growth(64.0), 10_000, 64.0, 32),
        // One setter after the other, in any order.
        (ConcurrentCuckooFilter::builder().capacity(500).growing().seen_set(), 500, 4.0, 32),
    ] {
        let plan = builder.plan().expect("a plan");
        assert!(plan.grows, "{builder:?}");
        let is = (plan.capacity, plan.expected_growth, plan.fingerprint_bits);
        assert_eq!(is, (capacity, growth, bits), "{builder:?}");
        assert_eq!(plan.planned_items, capacity * growth as usize);
    }
}

#[test]
fn the_sizes_in_the_readme_are_those_of_plans() {
    let builder = ConcurrentCuckooFilter::builder;
    let readme = include_str!("../../README.md");
    let mut rows = 0;
    for (rate, name) in [
        (0.0024, "fixed size, 0.23 % of new items taken for seen"),
        (0.00012, "fixed size, 0.011 % (the default)"),
        (1e-6, "fixed size, 0.00006 %"),
        (0.00012, "grown 256-fold, at most 0.012 %"),
        (1e-6, "grown 256-fold, at most 0.0001 %"),
    ] {
        let bytes = [1e6, 1e9].map(|items| {
            let at_once = builder().capacity(items as usize).false_positive_rate(rate);
            let begun = builder().capacity(items as usize / 200).false_positive_rate(rate);
            let plan = if name.starts_with("fixed") { at_once } else { begun.growing() }.plan();
            let plan = plan.expect("a filter that can be had");
            assert!(plan.planned_items >= items as usize, "{name}");
            assert!(plan.false_positive_rate_at_capacity <= rate, "{name}");
            plan.bytes_for(items as usize) as f64 / items
        });
        let row = format!("| {name} | {:.1} MB | {:.1} GB |", bytes[0], bytes[1]);
        assert!(readme.contains(&row), "{row}");
        rows += 1;
    }
    assert_eq!(readme.matches(" MB | ").count(), rows);
}
