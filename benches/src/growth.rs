//! The costs of growth: false positives, memory, speed, and the longest waits.
//!
//! A filter of 16-bit fingerprints grows from 2^14 items to 2^24, or to the power of two that `--to` gives.
//!
//! * *errors*: at each doubling, all items are looked up, and millions of absent keys. The false-positive rate is
//!   compared with the one that the filter reports (in standard deviations), and with a formula: each item adds 2 /
//!   (buckets × 2^15), where `buckets` is the number of buckets at the time of its insert. Unequal shares of the shards
//!   add some 4 % to that. The memory is compared with that of a fixed filter built for the same number of items.
//! * *speed*: lookups are compared with those in a fixed filter with the same number of buckets and the same items. The
//!   whole fill is compared with the fill of this fixed filter; both begin with fresh memory. The filters alternate,
//!   and ratios are medians over repetitions.
//! * *small*: very many filters of ten items are made, filled, asked and dropped, and beside them as many fixed filters
//!   for ten items.
//! * *unions*: one filter takes over what another one knows, and both have as many shards, or one has more. The time is
//!   for each entry of the other.
//! * *waits*: one thread inserts, another looks up present items, and each single operation is timed. The growing
//!   filter is compared with a filter behind a lock that is rebuilt at twice the capacity whenever it is full. The
//!   machine may be shared. So for a second before and a second after, a loop that only reads the clock measures the
//!   longest gap that it sees: waits that are no longer than this say nothing about the filter. Delays by other work
//!   come and go, but those by the filter recur in every repetition, so the least of the longest waits is printed as
//!   well.

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{Rounds, median};
use crate::kit::machine::about;
use crate::kit::waits::{Time, Waits, longest_gap, watch};
use koel::{ConcurrentCuckooFilter, Prehashed};
use parking_lot::RwLock;
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Filter = ConcurrentCuckooFilter;

/// The initial number of items, as a power of two.
const FIRST: u32 = 14;
/// The first key that is in no filter.
const ABSENT: u64 = 1 << 40;
/// Keys in a batch of lookups.
const BATCH: usize = 1 << 16;
/// The largest number of lookups in a measurement of speed.
const LOOKUPS: u64 = 1 << 22;

pub fn run(mut arguments: Arguments) -> Result<()> {
    let test = arguments.test;
    let usual = |usual, tiny| if test { tiny } else { usual };
    let to = arguments.number("--to", 32)?.unwrap_or(usual(24, 17));
    let parts = arguments.parts(&["errors", "small", "speed", "unions", "waits"]);
    arguments.end()?;
    println!("{}", about());
    let (last, reps) = ((to as u32).max(FIRST + 1), usual(5, 1) as usize);
    for part in parts {
        match part {
            "errors" => errors(last, usual(1 << 24, 1 << 18)),
            "small" => small(usual(10_000, 100), reps),
            "unions" => unions(usual(2_000_000, 20_000), reps),
            "waits" => {
                let reps = if last > 24 { 1 } else { reps };
                waits(last, reps, Duration::from_millis(usual(1_000, 10)));
            }
            // The fullest and the emptiest state of a growing filter, in the caches and at the end.
            _ => {
                for power in [20.min(last - 1), last] {
                    speed((1 << power) / 10 * 9, reps);
                    speed(1 << power, reps);
                }
            }
        }
    }
    Ok(())
}

fn growing() -> Filter {
    let builder = Filter::builder().capacity(1 << FIRST).growing();
    let filter = builder.false_positive_rate(0.002).build().expect("memory for the filter");
    assert_eq!(filter.stats().fingerprint_bits, 16);
    filter
}

fn fill(filter: &Filter, keys: Range<u64>) {
    keys.for_each(|key| filter.insert(&Prehashed(key)).expect("memory to grow"));
}

/// Takes over filters of so many items, or into such filters.
fn unions(most: u64, reps: usize) {
    println!("unions of filters, the larger of which has {most} items");
    println!("  {:>24} {:>10} {:>10} {:>10} {:>8}", "", "here", "there", "ns/entry", "splits");
    let there = most..2 * most;
    for (what, here, there) in [
        ("disjoint, as large", 0..most, there.clone()),
        ("disjoint, twice as large", 0..most / 2, there.clone()),
        ("8 times as large", 0..most / 8, there.clone()),
        ("into an empty one", 0..0, there),
        ("half as large", 0..most, most..most + most / 2),
        ("an eighth as large", 0..most, most..most + most / 8),
        ("the same items", 0..most, 0..most),
    ] {
        let (mut times, mut splits) = (Vec::new(), 0);
        for _ in 0..reps {
            let one = growing();
            // With the same hasher.
            let other = one.try_clone().expect("memory");
            fill(&one, here.clone());
            fill(&other, there.clone());
            let before = one.stats().shards;
            let start = Instant::now();
            one.union(&other).expect("memory to grow");
            times.push(start.elapsed().as_secs_f64() * 1e9 / other.len() as f64);
            splits = one.stats().shards - before;
        }
        let (here, there) = (here.end - here.start, there.end - there.start);
        println!("  {what:>24} {here:10} {there:10} {:10.1} {splits:8}", median(times.into_iter()));
    }
}

/// Looks the keys up in batches, and returns the number of keys found.
fn found(keys: impl IntoIterator<Item = u64>, contains: impl Fn(&[Prehashed]) -> Vec<bool>) -> u64 {
    let mut keys = keys.into_iter().peekable();
    let mut found = 0;
    let mut batch = Vec::with_capacity(BATCH);
    while keys.peek().is_some() {
        batch.clear();
        batch.extend(keys.by_ref().take(BATCH).map(Prehashed));
        found += contains(&batch).into_iter().filter(|&is_in| is_in).count() as u64;
    }
    found
}

fn errors(last: u32, absent: u64) {
    println!("errors and memory from 2^{FIRST} to 2^{last} items, {absent} absent keys each time");
    println!(
        "  {:>10} {:>10} {:>10} {:>10} {:>7} {:>8} {:>12} {:>12} {:>9} {:>6}",
        "items",
        "measured",
        "told",
        "formula",
        "sigmas",
        "splits",
        "bytes",
        "bytes:(2 n)",
        "worst",
        "mean"
    );
    let filter = growing();
    let mut formula = 0.0;
    let mut memory = Memory::default();
    let mut filled = 0;
    for power in FIRST..=last {
        let items = 1_u64 << power;
        let mut of_doubling = Memory::default();
        // Small enough that the number of buckets hardly changes within a step.
        let step = ((items - filled) / 512).max(16);
        let every = ((items - filled) / step / 64).max(1);
        for sample in 0.. {
            let next = (filled + step).min(items);
            let before = filter.stats().slots;
            fill(&filter, filled..next);
            let buckets = (before + filter.stats().slots) as f64 / 2.0 / 4.0;
            formula += (next - filled) as f64 * 2.0 / (buckets * 32_768.0);
            filled = next;
            // Below the first power, the filter still has its initial size.
            if filled == items || (power > FIRST && sample % every == 0) {
                of_doubling.note(filter.size_in_bytes(), filled);
            }
            if filled == items {
                break;
            }
        }
        memory.add(&of_doubling);

        let found_items = found(0..items, |batch| filter.contains_many(batch));
        assert_eq!(found_items, items, "all that was inserted is found");
        // Other absent keys at each doubling.
        let other = ABSENT + (u64::from(power) << 32);
        let wrong =
            (other..other + absent).filter(|&key| filter.contains(&Prehashed(key))).count() as f64;
        let stats = filter.stats();
        let expected = stats.false_positive_rate * absent as f64;
        let measured = wrong / absent as f64;
        println!(
            "  {items:10} {:8.4} % {:8.4} % {:8.4} % {:7.1} {:8} {:12} {:12.2} {:9.2} {:6.2}",
            100.0 * measured,
            100.0 * stats.false_positive_rate,
            100.0 * formula,
            (wrong - expected) / expected.sqrt(),
            stats.splits,
            stats.size_in_bytes,
            stats.size_in_bytes as f64 / (2.0 * items as f64),
            of_doubling.worst,
            of_doubling.mean(),
        );
        // A larger deviation means a wrong rate, not chance.
        assert!((wrong - expected).abs() < 0.1 * expected + 8.0 * expected.sqrt());
    }
    println!(
        "  bytes : those of a fixed filter for as many items (worst and mean above): at worst {:.2}, on \
         average {:.2}",
        memory.worst,
        memory.mean()
    );
}

/// Memory relative to that of a fixed filter.
#[derive(Default)]
struct Memory {
    worst: f64,
    sum: f64,
    samples: u32,
}

impl Memory {
    fn note(&mut self, bytes: usize, items: u64) {
        let ratio = bytes as f64 / Filter::with_capacity(items as usize).size_in_bytes() as f64;
        self.add(&Memory { worst: ratio, sum: ratio, samples: 1 });
    }

    fn add(&mut self, other: &Memory) {
        self.worst = self.worst.max(other.worst);
        self.sum += other.sum;
        self.samples += other.samples;
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.samples.max(1))
    }
}

const TEN: u64 = 10;

fn small(filters: u64, reps: usize) {
    println!(
        "{filters} filters of {TEN} items, each of: {:>10} {:>12} {:>12} {:>12}",
        "bytes", "made, filled", "asked", "dropped"
    );
    let fixed = || Filter::with_capacity(TEN as usize);
    let grows = || {
        let builder = Filter::builder().capacity(TEN as usize).growing();
        builder.build().expect("memory for a small filter")
    };
    let (mut times, mut bytes) = (Rounds::new(), [0; 2]);
    for _ in 0..reps {
        bytes[0] = small_once(filters, grows, |what, nanos| times.note((0, what), nanos));
        bytes[1] = small_once(filters, fixed, |what, nanos| times.note((1, what), nanos));
    }
    for (at, name) in ["grows", "fixed"].into_iter().enumerate() {
        let bytes = bytes[at] as f64 / filters as f64;
        let [made, asked, dropped] = [0, 1, 2].map(|what| times.median(&(at, what)));
        println!("  {name:34} {bytes:10.0} {made:9.0} ns {asked:9.0} ns {dropped:9.0} ns");
    }
}

/// Makes, asks and drops small filters. Notes the nanoseconds of each, and returns the bytes of all.
fn small_once(filters: u64, make: impl Fn() -> Filter, mut note: impl FnMut(u8, f64)) -> usize {
    let mut each = |what, start: Instant| {
        note(what, start.elapsed().as_nanos() as f64 / filters as f64);
    };
    let start = Instant::now();
    let filled = || {
        let filter = make();
        fill(&filter, 0..TEN);
        filter
    };
    let all: Vec<_> = (0..filters).map(|_| filled()).collect();
    each(0, start);
    let start = Instant::now();
    let found = |filter: &Filter| {
        by_one(&(0..TEN).collect::<Vec<_>>(), |key| filter.contains(&Prehashed(key)))
    };
    let found: u64 = all.iter().map(found).sum();
    each(1, start);
    assert_eq!(found, filters * TEN, "all that was inserted is found");
    let bytes = all.iter().map(|filter| filter.size_in_bytes()).sum();
    let start = Instant::now();
    drop(all);
    each(2, start);
    bytes
}

fn speed(items: u64, reps: usize) {
    let fills = if items > 1 << 24 { 1 } else { reps };
    let mut ratios = Vec::new();
    let mut pair = None;
    for _ in 0..fills {
        drop(pair.take());
        let start = Instant::now();
        let grown = growing();
        fill(&grown, 0..items);
        let of_grown = start.elapsed().as_secs_f64();
        let stats = grown.stats();
        let start = Instant::now();
        let fixed = Filter::with_capacity((stats.slots as f64 * 0.93) as usize);
        fill(&fixed, 0..items);
        let of_fixed = start.elapsed().as_secs_f64();
        ratios.push((of_grown / of_fixed, items as f64 / of_grown / 1e6));
        pair = Some((grown, fixed));
    }
    let (grown, fixed) = pair.expect("one fill");
    println!(
        "speed with {items} items in {:.1} MiB (fixed: {:.1} MiB), load {:.2}",
        grown.size_in_bytes() as f64 / 1_048_576.0,
        fixed.size_in_bytes() as f64 / 1_048_576.0,
        grown.stats().load(),
    );
    println!(
        "  {:24} {:6.1} M a second, takes {:.2} times as long as in the fixed filter",
        "the whole fill",
        median(ratios.iter().map(|ratio| ratio.1)),
        median(ratios.iter().map(|ratio| ratio.0)),
    );

    // All items, or a sample of them, spread over the table.
    let stride = (items / LOOKUPS).max(1);
    let keys = |from: u64| (0..items).step_by(stride as usize).map(move |key| from + key).collect();
    let there: Vec<u64> = keys(0);
    let absent: Vec<u64> = keys(ABSENT);
    let (all, few) = (1.0..=1.0, 0.0..=0.004);
    println!("  {:24} {:>9} {:>9} {:>15}", "", "grown", "fixed", "grown : fixed");
    for (name, keys, expected) in [("hits", &there, &all), ("misses", &absent, &few)] {
        compare(
            name,
            (keys, expected, reps),
            || by_one(keys, |key| grown.contains(&Prehashed(key))),
            || by_one(keys, |key| fixed.contains(&Prehashed(key))),
        );
    }
    for (name, keys, expected) in
        [("hits in batches", &there, &all), ("misses in batches", &absent, &few)]
    {
        compare(
            name,
            (keys, expected, reps),
            || found(keys.iter().copied(), |batch| grown.contains_many(batch)),
            || found(keys.iter().copied(), |batch| fixed.contains_many(batch)),
        );
    }
}

#[inline]
fn by_one(keys: &[u64], contains: impl Fn(u64) -> bool) -> u64 {
    keys.iter().filter(|&&key| contains(key)).count() as u64
}

/// Prints how fast both filters look the keys up, and checks that each finds the expected part.
fn compare(
    name: &str,
    (keys, expected, reps): (&[u64], &RangeInclusive<f64>, usize),
    grown: impl Fn() -> u64,
    fixed: impl Fn() -> u64,
) {
    // A short list of keys is looked up several times.
    let rounds = (LOOKUPS / keys.len() as u64).max(1);
    let looks = (rounds * keys.len() as u64) as f64;
    let rate = |found: &dyn Fn() -> u64| {
        let start = Instant::now();
        let found: u64 = (0..rounds).map(|_| found()).sum();
        let time = start.elapsed();
        let part = found as f64 / looks;
        assert!(expected.contains(&part), "{name}: {part} were found");
        looks / time.as_secs_f64() / 1e6
    };
    let rates: Vec<(f64, f64)> = (0..reps).map(|_| (rate(&grown), rate(&fixed))).collect();
    let median_of = |figure: fn(&(f64, f64)) -> f64| median(rates.iter().map(figure));
    println!(
        "  {name:24} {:7.1} M {:7.1} M {:15.2}",
        median_of(|rates| rates.0),
        median_of(|rates| rates.1),
        median_of(|rates| rates.0 / rates.1)
    );
}

/// A set that one thread fills while another one looks items up.
trait Shared: Sync {
    fn insert(&self, key: u64);
    fn contains(&self, key: u64) -> bool;
}

impl Shared for Filter {
    #[inline]
    fn insert(&self, key: u64) {
        self.insert(&Prehashed(key)).expect("memory to grow");
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.contains(&Prehashed(key))
    }
}

/// A filter behind a lock that blocks all threads while it is rebuilt. Keys are inserted in order,
/// from 0 on.
struct Rebuilt(RwLock<Filter>);

impl Shared for Rebuilt {
    #[inline]
    fn insert(&self, key: u64) {
        let refused = self.0.read().insert(&Prehashed(key)).is_err();
        if refused {
            let mut filter = self.0.write();
            let larger = Filter::with_capacity(2 * filter.capacity());
            (0..=key).for_each(|key| larger.insert(&Prehashed(key)).expect("twice the room"));
            *filter = larger;
        }
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.read().contains(&Prehashed(key))
    }
}

/// How long inserts and lookups took, and the longest gap before and after them.
struct Watched {
    inserts: Waits,
    lookups: Waits,
    gap: u64,
}

fn waits(power: u32, reps: usize, pause: Duration) {
    println!(
        "waits while one thread inserts 2^{power} items and another looks them up, medians of {reps} repetitions"
    );
    println!(
        "  {:24} {:>11} {:>11} {:>11} {:>16}",
        "", "median", "99.99 %", "longest", "least longest"
    );
    let mut runs = Vec::new();
    for _ in 0..reps {
        let rebuilt = Rebuilt(RwLock::new(Filter::with_capacity(1 << FIRST)));
        runs.push([beside(&growing(), power, pause), beside(&rebuilt, power, pause)]);
    }
    for (at, name) in ["grows", "is rebuilt"].into_iter().enumerate() {
        let show = |what: &str, figures: &dyn Fn(&Watched) -> [u64; 3]| {
            let all = runs.iter().map(|run| figures(&run[at]));
            let [middle, most, longest] = [0, 1, 2].map(|figure| {
                Time(median(all.clone().map(|figures| figures[figure] as f64)) as u64)
            });
            let least = Time(all.map(|figures| figures[2]).min().unwrap_or(0));
            println!("  {what:24} {middle:>11} {most:>11} {longest:>11} {least:>16}");
        };
        let of = |waits: &Waits| [waits.within(0.5), waits.within(0.999_9), waits.longest];
        show(&format!("{name}: insert"), &|run| of(&run.inserts));
        show(&format!("{name}: lookup"), &|run| of(&run.lookups));
        show("(gap without it)", &|run| [0, 0, run.gap]);
    }
}

/// Fills a set on one thread, while another one looks up what is there.
fn beside(filter: &impl Shared, power: u32, pause: Duration) -> Watched {
    let (items, filled) = (1_u64 << power, AtomicU64::new(0));
    let before = longest_gap(pause);
    let look_up = |number: u64| {
        let random = u128::from(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let filled = filled.load(Ordering::Acquire);
        let key = ((random * u128::from(filled)) >> 64) as u64;
        assert!(filled == 0 || filter.contains(key), "what is in is found");
    };
    let (lookups, _, inserts) = watch((1, 1), look_up, || {
        let (mut waits, mut last) = (Waits::new(), Instant::now());
        for key in 0..items {
            filter.insert(key);
            last = waits.since(last);
            filled.store(key + 1, Ordering::Release);
        }
        waits
    });
    assert!((0..items).all(|key| filter.contains(key)), "all that was inserted is found");
    Watched { inserts, lookups, gap: before.max(longest_gap(pause)) }
}
