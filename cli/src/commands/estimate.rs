//! `koel dedup --estimate`: how much memory and disk a number of lines will take.

use crate::arguments::dedup::Dedup;
use crate::commands::report::{self, Ending};
use crate::failure::Failure;
use crate::run::screen::{self, Report};
use indicatif::{BinaryBytes, HumanCount};
use serde_json::json;

pub fn estimate(lines: u64, options: &Dedup) -> Result<Ending, Failure> {
    let plan = options.making.plan()?;
    let items = usize::try_from(lines).unwrap_or(usize::MAX);
    let (memory, file) = (plan.bytes_for(items) as u64, plan.file_bytes_for(items));
    let (bits, rate) = (plan.fingerprint_bits, plan.false_positive_rate_at_capacity);
    let planned = plan.planned_items as u64;
    let fields = vec![
        ("lines", json!(lines)),
        ("memory_bytes", json!(memory)),
        ("file_bytes", json!(file)),
        ("fingerprint_bits", json!(bits)),
        ("rate_expected", json!(rate)),
        ("planned_lines", json!(planned)),
    ];
    let rate = match lines <= planned {
        true => format!("at most {rate:.1e}, up to {} lines", HumanCount(planned)),
        false => format!(
            "at most {rate:.1e} up to {} lines, and higher beyond; --capacity plans for more",
            HumanCount(planned)
        ),
    };
    let rows = [
        ("memory", BinaryBytes(memory).to_string()),
        ("state", BinaryBytes(file).to_string()),
        ("stores", format!("{bits} bits per line")),
        ("rate", rate),
    ];
    let lines = screen::lines(lines).replace(" line", " distinct line");
    let text = report::table(lines, rows);
    report::print(&Report { text, fields }, options.output.reporting.json)
}
