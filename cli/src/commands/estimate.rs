//! `koel dedup --estimate`: how much memory and disk a number of lines will take.

use crate::arguments::dedup::Dedup;
use crate::commands::report::{self, Ending};
use crate::failure::Failure;
use indicatif::{BinaryBytes, HumanCount};
use serde::Serialize;
use std::fmt::{self, Display};

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
    let plan = options.making.plan()?;
    let items = usize::try_from(lines).unwrap_or(usize::MAX);
    let estimate = Estimate {
        lines,
        memory_bytes: plan.bytes_for(items) as u64,
        file_bytes: plan.file_bytes_for(items),
        fingerprint_bits: plan.fingerprint_bits,
        rate_expected: plan.false_positive_rate_at_capacity,
        planned_lines: plan.planned_items as u64,
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
