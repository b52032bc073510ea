//! The summary at the end of a run, as text or JSON.

use crate::lines::rules::Rules;
use crate::run::coordinator::End;
use crate::run::screen::lines;
use crate::state::comparison::LineHash;
use indicatif::HumanCount;
use serde::Serialize;
use std::fmt::{self, Display};
use std::time::Duration;

/// The summary of `koel dedup`. The field names are those of the JSON.
#[derive(Serialize)]
pub struct Deduplicated<'a> {
    pub lines: u64,
    pub new: u64,
    pub repeated: u64,
    /// Bytes of the lines, after decompression.
    pub bytes: u64,
    /// The expected number of new lines that were dropped by mistake.
    pub expected_drops: f64,
    /// Lines dropped by mistake that `--lossless` wrote in the second pass.
    pub recovered: Option<u64>,
    /// What made two lines equal.
    pub compared: String,
    /// Lines that should be URLs and are not.
    pub not_urls: Option<u64>,
    /// Lines that do not have the field by which lines are compared.
    pub without_field: Option<u64>,
    /// Inputs that could not be read completely.
    pub unreadable: u64,
    /// The false-positive rate at the end of the run.
    pub rate: f64,
    /// Whether that is more than `--rate`, because there are far more lines than `--capacity`.
    pub rate_exceeded: bool,
    /// Lines in the state, including those of earlier runs, or else in the filter.
    pub known: usize,
    /// Memory of the filter.
    pub memory_bytes: usize,
    pub state: Option<String>,
    /// Whether the lines were saved to the state. --count and --repeated only read it.
    pub saved: bool,
    /// Whether the state was left as it was, because no line was new.
    pub unchanged: bool,
    pub seconds: f64,
    pub end: &'a str,
}

/// The summary of `koel query`, `koel add` and `koel forget`.
#[derive(Serialize)]
pub struct Asked<'a> {
    pub lines: u64,
    /// Lines that were added, found or removed.
    #[serde(flatten)]
    pub answer: Answer,
    pub bytes: u64,
    pub not_urls: Option<u64>,
    pub without_field: Option<u64>,
    pub unreadable: u64,
    pub rate: f64,
    pub rate_exceeded: Option<bool>,
    pub known: usize,
    pub memory_bytes: usize,
    pub state: String,
    /// Whether add or forget left the state as it was, because no line changed it.
    pub unchanged: bool,
    pub seconds: f64,
    pub end: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Added(u64),
    Seen(u64),
    Forgotten(u64),
}

/// Returns the JSON name of how a run ended.
pub fn name_of(end: &End) -> &'static str {
    match end {
        End::Reached => "complete",
        End::Enough => "limit",
        End::Signal(signal_hook::consts::SIGINT) => "SIGINT",
        End::Signal(signal_hook::consts::SIGHUP) => "SIGHUP",
        End::Signal(_) => "SIGTERM",
        End::BrokenPipe => "broken pipe",
        End::Failed(_) => "failed",
    }
}

/// Returns the number of lines that are not URLs, if lines are compared as URLs.
pub fn not_urls(hash: &LineHash, number: u64) -> Option<u64> {
    hash.comparison().expects_urls().then_some(number)
}

/// Returns the number of lines without the field by which lines are compared, if there is one.
pub fn without_field(rules: Rules, number: u64) -> Option<u64> {
    rules.field.map(|_| number)
}

/// Rounds to milliseconds.
pub fn seconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1e3).round() / 1e3
}

impl Display for Deduplicated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [new, repeated] = [self.new, self.repeated].map(HumanCount);
        write!(f, "{}, {new} new, {repeated} repeated; ", lines(self.lines))?;
        match self.recovered {
            // Without what is equal, this would claim more than a reader may take it for.
            Some(0) => write!(f, "none dropped by mistake; compared {}", self.compared)?,
            Some(recovered) => write!(
                f,
                "{} recovered in the second pass; compared {}",
                HumanCount(recovered),
                self.compared
            )?,
            None => f.write_str(&drops(self.expected_drops))?,
        }
        f.write_str(&besides(self.not_urls, self.without_field))?;
        if let Some(state) = self.state.as_ref().filter(|_| self.saved) {
            write!(f, "; {}", holds(state, self.known, self.unchanged))?;
        }
        write!(f, "; {}{}", took(self.seconds), ended(self.end))
    }
}

impl Display for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = |lines| HumanCount(self.lines - lines);
        write!(f, "{}, ", lines(self.lines))?;
        match self.answer {
            Answer::Added(added) => write!(f, "{} added", HumanCount(added))?,
            Answer::Seen(seen) => {
                write!(f, "{} seen, {} not seen", HumanCount(seen), others(seen))?;
            }
            Answer::Forgotten(gone) => {
                write!(f, "{} forgotten, {} not found", HumanCount(gone), others(gone))?;
            }
        }
        f.write_str(&besides(self.not_urls, self.without_field))?;
        if self.end != "failed" {
            write!(f, "; {}", holds(&self.state, self.known, self.unchanged))?;
        }
        write!(f, "; {}{}", took(self.seconds), ended(self.end))
    }
}

/// Returns the name of a state and the number of its lines, and whether it was left as it was.
pub fn holds(state: &str, known: usize, unchanged: bool) -> String {
    format!("{state} {}has {}", if unchanged { "still " } else { "" }, lines(known as u64))
}

pub fn took(seconds: f64) -> String {
    format!("{seconds:.1} s")
}

/// Returns the numbers of lines that are not what the options expect.
fn besides(not_urls: Option<u64>, without_field: Option<u64>) -> String {
    let some = |number: Option<u64>, one: &str, more: &str| match number {
        None | Some(0) => String::new(),
        Some(1) => format!("; 1 {one}"),
        Some(lines) => format!("; {} {more}", HumanCount(lines)),
    };
    some(not_urls, "is not a URL", "are not URLs")
        + &some(without_field, "does not have the field", "do not have the field")
}

fn ended(end: &str) -> String {
    match end {
        signal if signal.starts_with("SIG") => format!("; ended by {signal}"),
        "limit" => "; ended by --limit".into(),
        "failed" => "; failed".into(),
        _ => String::new(),
    }
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
