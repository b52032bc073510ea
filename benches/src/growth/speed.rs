//! The speed of a growing filter beside that of a fixed one with as many buckets and the same items, in its fullest and
//! its emptiest state. Both are filled from the first item on, and begin with fresh memory. They alternate, and ratios
//! are medians over repetitions.

use crate::kit::figures::{Rounds, Table, rate};
use crate::kit::{ABSENT, BATCH};
use koel::{ConcurrentCuckooFilter, Prehashed};
use std::time::Instant;

type Filter = ConcurrentCuckooFilter;

/// The largest number of lookups in a measurement.
const LOOKUPS: u64 = 1 << 22;

/// A filter of 16-bit fingerprints that begins with room for 2^14 items.
pub fn growing() -> Filter {
    let builder = Filter::builder().capacity(1 << 14).growing();
    let filter = builder.false_positive_rate(0.002).build().expect("memory for the filter");
    assert_eq!(filter.stats().fingerprint_bits, 16);
    filter
}

/// Compares filters of about a million items, and of this power of two, and tells the memory of filters of ten items.
pub fn speed(power: u32, reps: u64) -> String {
    let grows = Filter::builder().capacity(10).growing().build().expect("memory").size_in_bytes();
    let fixed = Filter::with_capacity(10).size_in_bytes();
    let few = format!("  made for ten items: {grows} bytes if it grows, {fixed} if not\n");
    let powers = [20.min(power - 1), power];
    let sizes = powers.into_iter().flat_map(|power| [(1 << power) / 10 * 9, 1 << power]);
    sizes.map(|items| compare(items, reps)).fold(few, |text, table| text + &table)
}

fn compare(items: u64, reps: u64) -> String {
    let mut rates = Rounds::new();
    let mut pair = None;
    for _ in 0..if items > 1 << 24 { 1 } else { reps } {
        drop(pair.take());
        let mut fill = |is_grown, make: &dyn Fn() -> Filter| {
            let start = Instant::now();
            let filter = make();
            (0..items).for_each(|key| filter.insert(&Prehashed(key)).expect("room"));
            rates.note(("the whole fill", is_grown), rate(items, start.elapsed()));
            filter
        };
        let grown = fill(true, &growing);
        let slots = grown.stats().slots as f64;
        let fixed = fill(false, &|| Filter::with_capacity((slots * 0.93) as usize));
        pair = Some((grown, fixed));
    }
    let (grown, fixed) = pair.expect("one fill");

    // All items, or a sample of them, spread over the table.
    let stride = (items / LOOKUPS).max(1) as usize;
    let keys = |from| (0..items).step_by(stride).map(move |key| Prehashed(from + key)).collect();
    let [there, absent]: [Vec<Prehashed>; 2] = [keys(0), keys(ABSENT)];
    // A short list of keys is looked up several times.
    let rounds = (LOOKUPS / there.len() as u64).max(1);
    let looks = rounds * there.len() as u64;
    for (name, keys, in_batches) in [
        ("hits", &there, false),
        ("misses", &absent, false),
        ("hits in batches", &there, true),
        ("misses in batches", &absent, true),
    ] {
        for _ in 0..reps {
            for (filter, is_grown) in [(&grown, true), (&fixed, false)] {
                let start = Instant::now();
                let found: u64 = (0..rounds).map(|_| look_up(filter, keys, in_batches)).sum();
                rates.note((name, is_grown), rate(looks, start.elapsed()));
                let most_absent = looks / 250;
                let is_right = if keys[0].0 == 0 { found == looks } else { found <= most_absent };
                assert!(is_right, "{name}: {found} of {looks} were found");
            }
        }
    }
    let mib = |filter: &Filter| filter.size_in_bytes() as f64 / 1_048_576.0;
    let title = format!("{items} items, load {:.2}, M/s", grown.stats().load());
    let columns = [
        &*format!("{:.1} MiB", mib(&grown)),
        &format!("fixed, {:.1} MiB", mib(&fixed)),
        "grown : fixed",
    ];
    let mut table = Table::new(title, &columns);
    for (name, _) in rates.0.iter().map(|(name, _)| name).filter(|name| name.1) {
        let [grown, fixed] = [true, false].map(|is_grown| rates.median(&(*name, is_grown)));
        let ratio = rates.ratio(&(*name, true), &(*name, false));
        table.figures(name, 2, [grown, fixed, ratio]);
    }
    format!("\n{table}")
}

/// Returns the number of keys found.
#[inline]
fn look_up(filter: &Filter, keys: &[Prehashed], in_batches: bool) -> u64 {
    if !in_batches {
        return keys.iter().filter(|key| filter.contains(*key)).count() as u64;
    }
    let batches = keys.chunks(BATCH).flat_map(|batch| filter.contains_many(batch));
    batches.map(u64::from).sum()
}
