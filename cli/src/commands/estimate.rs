//! `koel dedup --estimate`: how much memory and disk a number of lines will take.
//!
//! A filter of that size may not fit into memory, so a smaller one is filled and measured. A filter that grows
//! consists of many small tables. One with half of the tables takes half of the memory for half of the lines, and so
//! does one that has grown by one doubling less.

use crate::arguments::dedup::Dedup;
use crate::commands::report::{self, Ending};
use crate::failure::Failure;
use crate::random::mix;
use indicatif::{BinaryBytes, HumanCount};
use koel::Prehashed;
use serde::Serialize;
use std::fmt::{self, Display};
use std::io;

/// Half of the highest number of lines that are added: enough for dozens of tables, and a matter of milliseconds.
const MOST: u64 = 1 << 20;

/// The field names are those of the JSON.
#[derive(Serialize)]
struct Estimate {
    lines: u64,
    /// Memory of the filter.
    memory_bytes: u64,
    /// Size of the state.
    file_bytes: u64,
    fingerprint_bits: u32,
    /// The rate that the filter is planned to have at most.
    rate_expected: f64,
    /// The number of lines for which it is planned.
    planned_lines: u64,
}

pub fn estimate(lines: u64, options: &Dedup) -> Result<Ending, Failure> {
    let making = &options.making;
    let mut halvings = 0;
    while making.capacity.is_some_and(|capacity| capacity >> halvings > MOST) {
        halvings += 1;
    }
    let small = making.build(0, halvings)?;
    let first = small.stats();
    // The number of tables is rounded, so the filter itself is asked for its first size. Until it is used, the system
    // gives it no memory. If it is larger than any memory, rounding changes little.
    let slots = making.build(0, 0).map(|seen| seen.stats().slots as f64);
    let slots = slots.unwrap_or(first.slots as f64 * f64::from(halvings).exp2());
    let mut ratio = slots / first.slots as f64;
    while lines as f64 / ratio > 2.0 * MOST as f64 {
        ratio *= 2.0;
    }
    let hashes: Vec<_> =
        (0..(lines as f64 / ratio) as u64).map(|line| Prehashed(mix(line))).collect();
    if small.insert_if_absent_many(&hashes).iter().any(Result::is_err) {
        return Err(Failure::new("there is not enough memory for an estimate"));
    }
    let file = small.write_to(io::sink()).map_err(|error| Failure::new(error.to_string()))?;
    let whole = |bytes: u64| (bytes as f64 * ratio) as u64;
    let capacity = making.capacity.unwrap_or(first.capacity as u64);
    let estimate = Estimate {
        lines,
        memory_bytes: whole(small.size_in_bytes() as u64),
        file_bytes: whole(file.bytes),
        fingerprint_bits: first.fingerprint_bits,
        rate_expected: first.false_positive_rate_at_capacity,
        planned_lines: (capacity as f64 * first.expected_growth) as u64,
    };
    report::print(&estimate, options.output.reporting.json)
}

impl Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = HumanCount(self.lines);
        writeln!(f, "{lines} distinct {}", if self.lines == 1 { "line" } else { "lines" })?;
        writeln!(f, "  memory     {}", BinaryBytes(self.memory_bytes))?;
        writeln!(f, "  state      {}", BinaryBytes(self.file_bytes))?;
        writeln!(f, "  stores     {} bits per line", self.fingerprint_bits)?;
        let (rate, planned) = (self.rate_expected, HumanCount(self.planned_lines));
        if self.lines <= self.planned_lines {
            return writeln!(f, "  rate       at most {rate:.1e}, up to {planned} lines");
        }
        write!(
            f,
            "  rate       higher than {rate:.1e}, which is planned for up to {planned} lines; "
        )?;
        writeln!(f, "--capacity plans for more")
    }
}
