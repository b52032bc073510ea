//! How many new URLs does a crawler drop because the filter takes them for URLs that it has seen?
//!
//! For each layout, a stream goes through a filter that is full at the end of the stream. Every URL
//! is in the stream twice, in random order.
//!
//! ```text
//! cargo bench -p koel-benches --bench dropped -- [URLS]
//! ```

use koel::ConcurrentCuckooFilter;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::collections::HashSet;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let is_test = std::env::args().any(|arg| arg == "--test");
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let few_or_many = if is_test { 1_000 } else { 1_000_000 };
    let urls: usize = wanted.map_or(Ok(few_or_many), |arg| arg.parse())?;
    let mut rng = SmallRng::seed_from_u64(7);
    let mut stream: Vec<u64> = (0..urls).map(|_| rng.random()).collect();
    stream.extend_from_within(..);
    stream.shuffle(&mut rng);

    println!("bits   bits an item   new URLs dropped");
    for rate in [0.065, 0.03, 0.012, 0.0025, 0.000_12, 6e-5, 1.2e-5, 3e-6, 6e-7, 2e-9] {
        let filter =
            ConcurrentCuckooFilter::builder().capacity(urls).false_positive_rate(rate).build()?;
        let mut exact = HashSet::with_capacity(urls);
        let mut dropped = 0;
        for &url in &stream {
            let new = filter.insert_if_absent(&url)?;
            dropped += usize::from(exact.insert(url) && !new);
        }
        println!(
            "{:4}   {:12.2}   {dropped:8} of {urls}, {:.4} %",
            filter.stats().fingerprint_bits,
            8.0 * filter.size_in_bytes() as f64 / urls as f64,
            100.0 * dropped as f64 / urls as f64,
        );
    }
    Ok(())
}
