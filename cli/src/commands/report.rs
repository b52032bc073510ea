//! How a command ends: its summary, as text or JSON, and the exit code.

use crate::failure::{End, Failure};
use crate::lines::chunk::Counts;
use crate::lines::output::Sink;
use crate::lines::rules::{Field, Rules};
use crate::run::Outcome;
use crate::run::plan::{Plan, Verb};
use crate::run::screen::lines;
use crate::state::comparison::Comparison;
use indicatif::HumanCount;
use serde::Serialize;
use std::fmt::{self, Display};
use std::time::Duration;

/// How the process ends.
pub enum Ending {
    Code(u8),
    Signal(i32),
}

pub const DONE: Ending = Ending::Code(0);
pub const NONE: Ending = Ending::Code(1);
pub const FAILED: Ending = Ending::Code(2);

/// Prints what a command was asked for to standard output.
pub fn print(what: &(impl Display + Serialize), as_json: bool) -> Result<Ending, Failure> {
    let text = match as_json {
        true => serde_json::to_string_pretty(what).map_err(Failure::new)? + "\n",
        false => what.to_string(),
    };
    Sink::standard(&[], None)?.print(text.as_bytes())?;
    Ok(DONE)
}

/// The summary of a command that reads lines. The field names are those of the JSON.
#[derive(Serialize)]
pub struct Report {
    pub lines: u64,
    #[serde(flatten)]
    pub answer: Answer,
    /// Bytes of the lines, after decompression.
    bytes: u64,
    /// Lines that should be URLs and are not, if lines are compared as URLs.
    not_urls: Option<u64>,
    /// Lines that do not have the field by which lines are compared, if there is one.
    without_field: Option<u64>,
    /// Inputs that could not be read completely.
    unreadable: u64,
    /// Lines that were left out, because they are too long.
    too_long: u64,
    /// Records of which paragraphs were compared, and how many of them were left out. Their paragraphs are the lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    emptied: Option<u64>,
    /// The false-positive rate at the end of the run.
    rate: f64,
    /// Whether that is more than `--rate`, because there are far more lines than `--capacity`.
    rate_exceeded: Option<bool>,
    /// Lines in the state, including those of earlier runs, or else in the filter.
    known: usize,
    /// Memory of the filter.
    memory_bytes: usize,
    state: Option<String>,
    /// Whether the state was left as it was, because no line changed it.
    unchanged: bool,
    seconds: f64,
    end: End,
}

/// What became of the lines.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Added(u64),
    Seen(u64),
    Forgotten(u64),
    #[serde(untagged)]
    Deduplicated {
        new: u64,
        repeated: u64,
        /// The expected number of new lines that were dropped by mistake.
        expected_drops: f64,
        /// Lines dropped by mistake that `--lossless` wrote in the second pass.
        recovered: Option<u64>,
        /// What made two lines equal.
        compared: String,
        /// Whether the lines were saved to the state. --count and --repeated only read it.
        saved: bool,
    },
}

impl Report {
    /// Sums up a run.
    pub fn new(plan: &Plan, outcome: &Outcome, rate_exceeded: Option<bool>) -> Self {
        let Outcome { tally, stats, saved, .. } = outcome;
        let Counts { lines, bytes, not_urls, without_field, unreadable, too_long, .. } =
            tally.counts;
        let of_paragraphs =
            |count| matches!(plan.rules.field, Some(Field::Paragraphs(_))).then_some(count);
        Report {
            lines,
            answer: Answer::of(plan, outcome),
            bytes,
            not_urls: outcome.hash.comparison().expects_urls().then_some(not_urls),
            without_field: plan.rules.field.map(|_| without_field),
            unreadable,
            too_long,
            records: of_paragraphs(tally.counts.records),
            emptied: of_paragraphs(tally.counts.emptied),
            rate: stats.false_positive_rate,
            rate_exceeded,
            known: saved.as_ref().map_or(stats.items, |saved| saved.known),
            memory_bytes: stats.size_in_bytes,
            state: plan.state.as_ref().map(|path| path.display().to_string()),
            unchanged: saved.as_ref().is_some_and(|saved| saved.is_unchanged),
            seconds: seconds(plan.began.elapsed()),
            end: outcome.end.clone(),
        }
    }
}

impl Answer {
    fn of(plan: &Plan, outcome: &Outcome) -> Self {
        let Outcome { tally, recovered, .. } = outcome;
        let Counts { lines, yes, .. } = tally.counts;
        match plan.verb {
            Verb::Add => return Answer::Added(yes),
            Verb::Query => return Answer::Seen(yes),
            Verb::Forget => return Answer::Forgotten(yes),
            Verb::Dedup => {}
        }
        let new = yes + recovered.unwrap_or(0);
        let repeated = lines - new;
        Answer::Deduplicated {
            new,
            repeated,
            expected_drops: recovered.map_or_else(|| tally.doubt.expected(repeated), |_| 0.0),
            recovered: *recovered,
            compared: compared(outcome.hash.comparison(), plan.rules),
            saved: outcome.saved.is_some() && !matches!(outcome.end, End::Failed(_)),
        }
    }
}

/// Returns what makes two lines equal, in words: what a run without loss promises depends on it.
fn compared(comparison: Comparison, rules: Rules) -> String {
    let part = match rules.field {
        None => String::new(),
        Some(Field::Numbered { number, .. }) => format!("by field {number}, "),
        Some(Field::Paragraphs(path)) => format!("by paragraphs of {}, ", path.names().join(".")),
        Some(Field::Json(path)) => format!("by JSON field {}, ", path.names().join(".")),
    };
    let how = match comparison {
        Comparison::Bytes => "byte by byte".into(),
        Comparison::IgnoringCase => "in lower case (--ignore-case)".into(),
        Comparison::Urls(_) => format!("as {comparison}"),
    };
    let end = if rules.folds_cr { ", ignoring a CR before the newline" } else { "" };
    format!("{part}{how}{end}")
}

/// Rounds to milliseconds.
pub fn seconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1e3).round() / 1e3
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = match self.records {
            None => lines(self.lines),
            Some(records) => {
                format!("{} paragraphs in {} records", HumanCount(self.lines), HumanCount(records))
            }
        };
        write!(f, "{all}, ")?;
        let others = |lines| HumanCount(self.lines - lines);
        let mut is_saved = !matches!(self.end, End::Failed(_));
        match self.answer {
            Answer::Added(added) => write!(f, "{} added", HumanCount(added))?,
            Answer::Seen(seen) => {
                write!(f, "{} seen, {} not seen", HumanCount(seen), others(seen))?;
            }
            Answer::Forgotten(gone) => {
                write!(f, "{} forgotten, {} not found", HumanCount(gone), others(gone))?;
            }
            Answer::Deduplicated {
                new,
                repeated,
                expected_drops,
                recovered,
                ref compared,
                saved,
            } => {
                write!(f, "{} new, {} repeated; ", HumanCount(new), HumanCount(repeated))?;
                match recovered {
                    None => f.write_str(&drops(expected_drops))?,
                    Some(0) => f.write_str("none dropped by mistake")?,
                    Some(some) => write!(f, "{} recovered in the second pass", HumanCount(some))?,
                }
                // "None dropped" is only true for this meaning of equal, so the summary says which it is.
                if recovered.is_some() {
                    write!(f, "; compared {compared}")?;
                }
                is_saved = saved;
            }
        }
        let counts = [
            (self.not_urls, "is not a URL", "are not URLs"),
            (self.without_field, "does not have the field", "do not have the field"),
            (self.emptied, "record has none left", "records have none left"),
            (Some(self.too_long), "more was too long", "more were too long"),
        ];
        for (number, one, more) in counts {
            match number {
                None | Some(0) => {}
                Some(1) => write!(f, "; 1 {one}")?,
                Some(lines) => write!(f, "; {} {more}", HumanCount(lines))?,
            }
        }
        if let Some(state) = self.state.as_ref().filter(|_| is_saved) {
            write!(f, "; {}", holds(state, self.known, self.unchanged))?;
        }
        write!(f, "; {}", took(self.seconds))?;
        match self.end {
            End::Signal(_) => write!(f, "; ended by {}", self.end.name()),
            End::Enough => f.write_str("; ended by --limit"),
            End::Failed(_) => f.write_str("; failed"),
            End::Reached | End::BrokenPipe => Ok(()),
        }
    }
}

/// Returns the name of a state and the number of its lines, and whether it was left as it was.
pub fn holds(state: &str, known: usize, unchanged: bool) -> String {
    format!("{state} {}has {}", if unchanged { "still " } else { "" }, lines(known as u64))
}

pub fn took(seconds: f64) -> String {
    format!("{seconds:.1} s")
}

/// Returns the expected number of lines dropped by mistake, in words.
fn drops(expected: f64) -> String {
    match expected {
        0.0 => "none dropped by mistake".into(),
        ..0.001 => "below 0.1 % chance of a line dropped by mistake".into(),
        ..0.5 => {
            let chance = 100.0 * (1.0 - (-expected).exp());
            format!("{chance:.1} % chance of a line dropped by mistake")
        }
        _ => format!("about {} dropped by mistake", HumanCount(expected.round().max(1.0) as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_reported_in_words() {
        for (expected, words) in [
            (0.0, "none dropped by mistake"),
            (1e-9, "below 0.1 % chance of a line dropped by mistake"),
            (0.01, "1.0 % chance of a line dropped by mistake"),
            (0.7, "about 1 dropped by mistake"),
            (1234.4, "about 1,234 dropped by mistake"),
        ] {
            assert_eq!(drops(expected), words);
        }
    }
}
