//! How full do tables get before they first refuse an item? These are the figures behind `src/layout/sizing.rs`.
//!
//! For each layout and size, a filter is filled many times, each time with different keys, until the first refusal.
//! Told are the mean load factor, its standard deviation in items, the worst load factor, and the load factor at the
//! promised capacity. It is an error if a table refuses an item that was promised room.

use crate::kit::arguments::{Arguments, Result};
use crate::kit::machine::about;
use crate::kit::table::Table;
use koel::{ConcurrentCuckooFilter, Prehashed};

/// The bits of a fingerprint, and a rate that selects this layout. The second one of 32 bits has wide buckets.
const LAYOUTS: [(u64, f64); 11] = [
    (8, 0.065),
    (9, 0.03),
    (10, 0.012),
    (12, 0.0025),
    (16, 0.00012),
    (18, 6e-5),
    (20, 1.2e-5),
    (21, 3e-6),
    (24, 6e-7),
    (32, 1e-9),
    (32, 2e-9),
];

const SIZES: [usize; 16] =
    [1, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_003];

pub fn run(mut arguments: Arguments) -> Result<()> {
    let (wanted, test) = (arguments.numbers("--bits", 32)?, arguments.test);
    arguments.end()?;
    let columns = [
        "slots",
        "shards",
        "fills",
        "mean",
        "σ",
        "worst",
        "promised",
        "margin, σ",
        "worst : promised",
    ];
    let mut table = Table::new("bits, capacity", &columns);
    let mut short = 0;
    for (bits, rate) in LAYOUTS {
        if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&bits)) {
            continue;
        }
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
            let squares = held.iter().map(|&n| (n as f64 - mean).powi(2)).sum::<f64>();
            let deviation = (squares / fills as f64).sqrt();
            let worst = held.iter().copied().min().unwrap_or(0);
            short += usize::from(worst < size);
            let percent = |items: f64| format!("{:.2} %", 100.0 * items / stats.slots as f64);
            let (worst, promised) = (worst as f64, size as f64);
            let cells = [
                format!("{}×{}", stats.slots / stats.slots_per_bucket, stats.slots_per_bucket),
                stats.shards.to_string(),
                fills.to_string(),
                percent(mean),
                format!("{deviation:.1}"),
                percent(worst),
                percent(promised),
                format!("{:.1}", (mean - promised) / deviation),
                format!("{:.4}", worst / promised),
            ];
            table.row(format!("{bits}, {size}"), cells);
        }
    }
    print!("{}\n{table}", about());
    if short == 0 { Ok(()) } else { Err(format!("{short} tables held less than promised").into()) }
}
