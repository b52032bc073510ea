//! What each layout of a bucket does: how full its tables get, and how many new items it takes for known ones.
//!
//! * *loads*: how full do tables get before they first refuse an item? These are the figures behind
//!   `src/layout/sizing.rs`. For each layout and size, a filter is filled many times, each time with different keys,
//!   until the first refusal. Told are the mean load factor, the worst, and that at the promised capacity. Tables are
//!   planned so that one fill in ten million, or fewer, refuses an item that was promised room. It is an error if many
//!   more do.
//! * *dropped*: how many new URLs does a crawler drop because the filter takes them for URLs that it has seen? A stream
//!   goes through a filter that is full at the end of the stream. Each new URL is followed by one that has come before.

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::Figures;
use koel::{ConcurrentCuckooFilter, Prehashed, Stats};

/// A rate for each layout, from 8 to 32 bits. The last one has wide buckets.
const RATES: [f64; 11] =
    [0.065, 0.03, 0.012, 0.0025, 0.000_12, 6e-5, 1.2e-5, 3e-6, 6e-7, 1e-9, 2e-9];

const SIZES: [usize; 16] =
    [1, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_003];

/// The fills of a table that may refuse an item below its capacity: one in so many, as `src/layout/sizing.rs` plans.
const PLANNED: f64 = 1e7;

/// The name of a layout.
fn layout(stats: &Stats) -> String {
    format!("{}×{}", stats.fingerprint_bits, stats.slots_per_bucket)
}

pub fn loads(mut arguments: Arguments) -> Result<()> {
    let (out, test) = (arguments.out("")?, arguments.test);
    arguments.end()?;
    let mut figures = Figures::new("loads");
    let (mut all, mut short) = (0, 0);
    for rate in RATES {
        for size in SIZES {
            let fills = if test { 1 } else { (10_000_000 / (size + 20)).clamp(8, 200_000) };
            let builder = ConcurrentCuckooFilter::builder().capacity(size);
            let filter = builder.false_positive_rate(rate).build()?;
            let mut key = 0;
            let mut fill = || {
                filter.clear();
                while filter.insert(&Prehashed(key)).is_ok() {
                    key += 1;
                }
                // The refused one is not the first of the next fill.
                key += 1;
                filter.len()
            };
            let held: Vec<usize> = (0..fills).map(|_| fill()).collect();
            let stats = filter.stats();
            let mean = held.iter().sum::<usize>() as f64 / fills as f64;
            let worst = held.iter().copied().min().unwrap_or(0);
            all += fills;
            short += held.iter().filter(|held| **held < size).count();
            let (set, at) = (layout(&stats), size.to_string());
            for (what, unit, figure) in [
                ("buckets", "buckets", (stats.slots / stats.slots_per_bucket) as f64),
                ("shards", "shards", stats.shards as f64),
                ("fills", "fills", fills as f64),
                ("mean", "share", mean / stats.slots as f64),
                ("worst", "share", worst as f64 / stats.slots as f64),
                ("promised", "share", size as f64 / stats.slots as f64),
            ] {
                figures.note(&set, what, &at, unit, figure);
            }
        }
    }
    let said = format!("Of {all} fills, {short} refused an item below the capacity.");
    figures.say("refused", said.clone());
    figures.write(&out.join("loads.csv"))?;
    // By chance, five times as many as are planned come once in some thousand runs. A short run has none.
    if short <= (5.0 * all as f64 / PLANNED) as usize { Ok(()) } else { Err(said.into()) }
}

pub fn dropped(mut arguments: Arguments) -> Result<()> {
    let out = arguments.out("")?;
    let urls = if arguments.test { 1_000 } else { 1_000_000 };
    arguments.end()?;
    let mut figures = Figures::new("dropped");
    for rate in RATES {
        let builder = ConcurrentCuckooFilter::builder().capacity(urls);
        let filter = builder.false_positive_rate(rate).build()?;
        let mut dropped = 0_u32;
        for url in 0..urls {
            dropped += u32::from(!filter.insert_if_absent(&url)?);
            if filter.insert_if_absent(&(url / 2))? {
                return Err(format!("{} was forgotten", url / 2).into());
            }
        }
        let bits = 8.0 * filter.size_in_bytes() as f64 / urls as f64;
        let set = layout(&filter.stats());
        figures.note(&set, "bits an item", "", "bits", bits);
        figures.note(&set, "dropped", "", "URLs", f64::from(dropped));
        figures.note(&set, "of", "", "URLs", urls as f64);
    }
    figures.write(&out.join("dropped.csv"))
}
