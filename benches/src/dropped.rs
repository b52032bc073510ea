//! How many new URLs does a crawler drop because the filter takes them for URLs that it has seen?
//!
//! For each layout, a stream goes through a filter that is full at the end of the stream. Each new URL is followed by
//! one that has come before.

use crate::kit::arguments::{Arguments, Result};
use crate::kit::machine::about;
use koel::ConcurrentCuckooFilter;

pub fn run(mut arguments: Arguments) -> Result<()> {
    let usual = if arguments.test { 1_000 } else { 1_000_000 };
    let urls = arguments.number("--items", 1 << 32)?.unwrap_or(usual);
    arguments.end()?;
    println!("{}\nbits   bits an item   new URLs dropped", about());
    for rate in [0.065, 0.03, 0.012, 0.0025, 0.000_12, 6e-5, 1.2e-5, 3e-6, 6e-7, 2e-9] {
        let builder = ConcurrentCuckooFilter::builder().capacity(urls as usize);
        let filter = builder.false_positive_rate(rate).build()?;
        let mut dropped = 0;
        for url in 0..urls {
            dropped += u64::from(!filter.insert_if_absent(&url)?);
            if filter.insert_if_absent(&(url / 2))? {
                return Err(format!("{} was forgotten", url / 2).into());
            }
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
