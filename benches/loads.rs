//! How full do tables get before they first refuse an item? These are the figures behind
//! `src/layout/sizing.rs`.
//!
//! For each layout and size, this fills a filter many times, each time with different keys,
//! until the first refusal. It prints the mean load factor, its standard deviation in items, the
//! worst load factor, and the load factor at the promised capacity.
//!
//! ```text
//! cargo bench -p koel-benches --bench loads -- [BITS…]
//! ```

use koel::{ConcurrentCuckooFilter, Prehashed};

/// The bits of a fingerprint, and a rate that selects this layout. The second one of 32 bits has wide
/// buckets.
const LAYOUTS: [(u32, f64); 11] = [
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

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn main() {
    let is_test = std::env::args().any(|arg| arg == "--test");
    let wanted: Vec<u32> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    println!(
        "bits  capacity  buckets×slots shards  fills    mean  σ(items)   worst  promised  margin(σ) worst/promised"
    );
    for (bits, rate) in LAYOUTS {
        if !wanted.is_empty() && !wanted.contains(&bits) {
            continue;
        }
        for size in SIZES {
            let fills = (10_000_000 / (size + 20)).clamp(8, 200_000);
            let fills = if is_test { 1 } else { fills };
            let mut seed = 0;
            let mut held = Vec::new();
            let filter =
                ConcurrentCuckooFilter::builder().capacity(size).false_positive_rate(rate).build();
            let filter = filter.expect("a layout for each rate");
            for _ in 0..fills {
                filter.clear();
                while filter.insert(&Prehashed(splitmix(&mut seed))).is_ok() {}
                held.push(filter.len());
            }
            let stats = filter.stats();
            let mean = held.iter().sum::<usize>() as f64 / fills as f64;
            let variance =
                held.iter().map(|&n| (n as f64 - mean).powi(2)).sum::<f64>() / fills as f64;
            let worst = held.iter().copied().min().unwrap_or(0);
            println!(
                "{bits:4} {size:9} {:9}×{} {:6} {fills:6}  {:6.2}%  {:8.1} {:6.2}% {:8.2}%  {:8.1}  {:.4}{}",
                stats.slots / stats.slots_per_bucket,
                stats.slots_per_bucket,
                stats.shards,
                100.0 * mean / stats.slots as f64,
                variance.sqrt(),
                100.0 * worst as f64 / stats.slots as f64,
                100.0 * size as f64 / stats.slots as f64,
                (mean - size as f64) / variance.sqrt(),
                worst as f64 / size as f64,
                if worst < size { "  SHORT" } else { "" },
            );
        }
    }
}
