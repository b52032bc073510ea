//! The false-positive rate of a full filter is at most the requested one.
//!
//! Each measurement has to be near the value that theory predicts: within three standard deviations
//! in tests with few measurements, and within four in tests with about a hundred. (By mere chance,
//! one measurement in three hundred is off by more than three.) The items are the same in every
//! run. *Strangers* are hashes that were never inserted.

use crate::common::{
    Filter, Hashes, Identity, LAYOUTS, Layout, SplitMix, expected_rate, fingerprints, layouts,
    rounds,
};
use koel::{Prehashed, Stats};

struct Measured {
    hits: usize,
    probes: usize,
}

impl Measured {
    fn of<S: std::hash::BuildHasher>(
        filter: &Filter<S>,
        strangers: impl Iterator<Item = u64>,
    ) -> Self {
        let mut measured = Measured { hits: 0, probes: 0 };
        for hash in strangers {
            measured.hits += usize::from(filter.contains(&Prehashed(hash)));
            measured.probes += 1;
        }
        measured
    }

    /// Returns the standard deviation of the hits, if this is the false-positive rate.
    fn deviation(&self, rate: f64) -> f64 {
        (self.probes as f64 * rate * (1.0 - rate)).sqrt()
    }

    fn assert_is(&self, rate: f64, deviations: f64, what: &str) {
        let (expected, deviation) = (self.probes as f64 * rate, self.deviation(rate));
        let off = (self.hits as f64 - expected) / deviation;
        println!("{what}: {} hits, {expected:.1} expected, {off:+.2} σ", self.hits);
        assert!(
            off.abs() <= deviations,
            "{what}: {} of {} strangers are false positives, {expected:.1} ± {deviation:.1} are \
             expected",
            self.hits,
            self.probes
        );
    }
}

/// Returns the rate of a filter with random fingerprints, some of them equal.
fn theory<S: std::hash::BuildHasher>(filter: &Filter<S>) -> f64 {
    expected_rate(&filter.stats(), filter.stats().load())
}

/// Returns the rate of a filter if all fingerprints in a pair of buckets differ.
fn distinct_rate(stats: &Stats, load: f64) -> f64 {
    2.0 * stats.slots_per_bucket as f64 * load / fingerprints(stats)
}

fn strangers(random: &mut SplitMix, count: usize) -> impl Iterator<Item = u64> {
    (0..count).map(|_| random.next())
}

/// The number of strangers for each layout. The standard deviation of the measured rate is then at
/// most a third of the difference between the expected and the requested rate (four thirds in a
/// short run). From 20 bits on, this would take too many strangers.
const PROBES: [usize; 11] = [
    4_000_000, 4_000_000, 8_000_000, 20_000_000, 40_000_000, 60_000_000, 20_000_000, 40_000_000,
    20_000_000, 40_000_000, 60_000_000,
];

/// Returns the layouts of a test, with the number of strangers for each.
fn layouts_and_probes() -> impl Iterator<Item = (&'static Layout, usize)> {
    let words_and_bits = |layout: &Layout| (layout.words, layout.bits);
    let tested: Vec<_> = layouts().iter().map(words_and_bits).collect();
    let all = LAYOUTS.iter().zip(PROBES);
    all.filter(move |(layout, _)| tested.contains(&words_and_bits(layout)))
}

/// Full, half full, and of several shards.
#[test]
fn a_filter_errs_as_theory_says_and_at_most_as_requested() {
    for (layout, probes) in layouts_and_probes() {
        let several = rounds(1, 2) * layout.slots() * (1 << 17) + 99_999;
        let cases = [
            (200_000, 200_000, rounds(16, 1)),
            (50_000, 25_000, rounds(16, 4)),
            (several, several, rounds(32, 4)),
        ];
        for (capacity, items, part) in cases {
            let (filter, mut random) = (layout.filter(capacity), SplitMix(1));
            filter.put(&random.take(items));
            let measured = Measured::of(&filter, strangers(&mut random, probes / part));
            let what = format!("{layout:?}: {items} of {capacity}");
            measured.assert_is(theory(&filter), 3.0, &what);
            let off = if layout.is_exact() { 3.0 * measured.deviation(layout.rate) } else { 0.0 };
            let most = measured.probes as f64 * layout.rate + off;
            assert!(
                measured.hits as f64 <= most,
                "{what}: {} hits, {most:.0} at most",
                measured.hits
            );
            let stats = filter.stats();
            assert!(
                stats.false_positive_rate <= layout.rate
                    && (stats.shards > 1) == (items == several)
            );
            let part = stats.false_positive_rate / stats.false_positive_rate_at_capacity;
            assert!(items == capacity || (0.48..0.54).contains(&part), "{what}: {part}");
        }
    }
}

#[test]
fn small_filters_keep_the_requested_rate() {
    for layout in layouts().iter().filter(|layout| !layout.is_exact()) {
        for capacity in [1, 2, 5, 10, 40, 150, 1_000, 4_000] {
            let filter = layout.filter(capacity);
            let filters = (rounds(20_000, 100_000) / capacity).clamp(50, 2_000);
            let mut random = SplitMix(capacity as u64);
            let mut all = Measured { hits: 0, probes: 0 };
            for _ in 0..filters {
                filter.clear();
                filter.put(&random.take(capacity));
                let probes = rounds(200_000, 2_000_000) / filters;
                let one = Measured::of(&filter, strangers(&mut random, probes));
                all.hits += one.hits;
                all.probes += one.probes;
            }
            let what = format!("{} bits, capacity {capacity}", layout.bits);
            all.assert_is(theory(&filter), 4.0, &what);
            assert!(filter.false_positive_rate() <= layout.rate, "{what}");
        }
    }
}

#[test]
fn a_filter_filled_by_insert_if_absent_keeps_the_requested_and_the_reported_rate() {
    for (layout, probes) in layouts_and_probes().filter(|(layout, _)| !layout.is_exact()) {
        for capacity in [1_000, 200_000] {
            let filter = layout.filter(capacity);
            let mut random = SplitMix(5);
            while filter.len() < capacity {
                filter.insert_if_absent(&Prehashed(random.next())).expect("the capacity fits");
            }
            let probes = probes / rounds(16, 1);
            let measured = Measured::of(&filter, strangers(&mut random, probes));
            let what = format!("{} bits, capacity {capacity}", layout.bits);
            measured.assert_is(filter.false_positive_rate(), 3.0, &what);
            assert!(measured.hits as f64 <= probes as f64 * layout.rate, "{what}");
        }
    }
}

#[test]
fn the_reported_rates_match_the_theory() {
    for layout in layouts() {
        for capacity in [1, 7, 100, 3_000, 100_000] {
            let filter = layout.filter(capacity);
            assert_eq!(filter.false_positive_rate(), 0.0);
            filter.put(&SplitMix(4).take(capacity / 2));
            let stats = filter.stats();
            assert_eq!(stats.items, capacity / 2);
            assert_eq!(stats.load(), (capacity / 2) as f64 / stats.slots as f64);
            let near = |told: f64, theory: f64| (told - theory).abs() <= 1e-9 * theory;
            let now = distinct_rate(&stats, stats.load());
            assert!(near(stats.false_positive_rate, now), "{stats:?}");
            assert_eq!(filter.false_positive_rate(), stats.false_positive_rate);
            let full = distinct_rate(&stats, capacity as f64 / stats.slots as f64);
            assert!(near(stats.false_positive_rate_at_capacity, full), "{stats:?}");
            assert!(full <= layout.rate, "{full:e} is more than the requested rate: {stats:?}");
        }
    }
}

type Weak = fn(u64) -> u64;

/// Sequences of hashes that a poor hasher might return for consecutive items.
const WEAK: [(&str, Weak); 18] = [
    ("sequential", |item| item),
    ("even", |item| item << 1),
    ("multiples of 1000", |item| item * 1_000),
    ("multiples of 2^20", |item| item << 20),
    ("descending", |item| !item),
    ("Gray codes", |item| item ^ item >> 1),
    ("squares", |item| item * item),
    ("a grid", |item| (item & 0x3FF) << 32 | item >> 10),
    ("halves alike", |item| item << 32 | item),
    ("bytes swapped", |item| item.swap_bytes()),
    ("bytes alike", |item| ((item & 0xFF) * 0x0101_0101_0101_0101) ^ (item >> 8)),
    ("a counter and a flag", |item| item.rotate_right(1)),
    ("multiples of a hasher's constant", |item| item.wrapping_mul(0xF135_7AEA_2E62_A9C5)),
    ("multiples of 4096", |item| item << 12),
    ("multiples of 2^32", |item| item << 32),
    ("the 20 bits at the top", |item| item << 44),
    ("the top, bits reversed", |item| item.reverse_bits()),
    ("multiples of the golden ratio", |item| item.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
];

fn weak_filter(layout: &Layout, capacity: usize, (name, weak): (&str, Weak)) -> Filter<Identity> {
    let filter = layout.filter_with(capacity, Identity);
    for item in 0..capacity as u64 {
        let added = filter.insert(&weak(item));
        assert_eq!(added, Ok(()), "item {item} of {capacity}, {} bits, {name}", layout.bits);
    }
    assert!((0..capacity as u64).all(|item| filter.contains(&weak(item))));
    filter
}

#[test]
fn the_capacity_fits_however_poor_the_hasher() {
    for layout in layouts() {
        for weak in WEAK {
            for &capacity in
                rounds(&[10, 100, 1_000, 30_000][..], &[10, 100, 1_000, 30_000, 300_000])
            {
                let filter = weak_filter(layout, capacity, weak);
                assert_eq!(filter.len(), capacity);
            }
        }
    }
}

#[test]
fn the_rate_holds_however_poor_the_hasher() {
    for layout in layouts().iter().filter(|layout| !layout.is_exact()) {
        for (name, weak) in WEAK {
            let filter = weak_filter(layout, 48_576, (name, weak));
            let others = (48_576..rounds(1 << 19, 1 << 20)).map(weak);
            let measured = Measured::of(&filter, others);
            let what = format!("{} bits, {name}", layout.bits);
            measured.assert_is(theory(&filter), 4.0, &what);
        }
    }
}
