//! The summary at the end of a run, as text or JSON.

use crate::lines::rules::Rules;
use crate::run::coordinator::End;
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
    pub rate: Option<f64>,
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
    pub rate: Option<f64>,
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
        let count = HumanCount;
        write!(
            f,
            "{}, {} new, {} repeated",
            Lines(self.lines),
            count(self.new),
            count(self.repeated)
        )?;
        match self.recovered {
            Some(0) => f.write_str("; none dropped by mistake")?,
            Some(1) => f.write_str("; 1 recovered in the second pass")?,
            Some(recovered) => write!(f, "; {} recovered in the second pass", count(recovered))?,
            None => write!(f, "; {}", Drops(self.expected_drops))?,
        }
        // Without this, "none" would claim more than a reader may take it for.
        if self.recovered.is_some() {
            write!(f, "; compared {}", self.compared)?;
        }
        NotUrls(self.not_urls).fmt(f)?;
        WithoutField(self.without_field).fmt(f)?;
        if let Some(state) = &self.state
            && self.saved
        {
            write!(f, "; {}", Holds(state, self.known, self.unchanged))?;
        }
        write!(f, "; {}", Took(self.seconds))?;
        Ended(self.end).fmt(f)
    }
}

impl Display for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = HumanCount;
        write!(f, "{}, ", Lines(self.lines))?;
        match self.answer {
            Answer::Added(added) => write!(f, "{} added", count(added))?,
            Answer::Seen(seen) => {
                write!(f, "{} seen, {} not seen", count(seen), count(self.lines - seen))?;
            }
            Answer::Forgotten(forgotten) => {
                write!(
                    f,
                    "{} forgotten, {} not found",
                    count(forgotten),
                    count(self.lines - forgotten)
                )?;
            }
        }
        NotUrls(self.not_urls).fmt(f)?;
        WithoutField(self.without_field).fmt(f)?;
        if self.end != "failed" {
            write!(f, "; {}", Holds(&self.state, self.known, self.unchanged))?;
        }
        write!(f, "; {}", Took(self.seconds))?;
        Ended(self.end).fmt(f)
    }
}

struct Lines(u64);

impl Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 line"),
            lines => write!(f, "{} lines", HumanCount(lines)),
        }
    }
}

/// A state, the number of its lines, and whether it was left as it was.
pub struct Holds<'a>(pub &'a str, pub usize, pub bool);

impl Display for Holds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Holds(state, known, unchanged) = self;
        let still = if *unchanged { "still " } else { "" };
        write!(f, "{state} {still}has {}", Lines(*known as u64))
    }
}

struct NotUrls(Option<u64>);

impl Display for NotUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None | Some(0) => Ok(()),
            Some(1) => f.write_str("; 1 is not a URL"),
            Some(lines) => write!(f, "; {} are not URLs", HumanCount(lines)),
        }
    }
}

struct WithoutField(Option<u64>);

impl Display for WithoutField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None | Some(0) => Ok(()),
            Some(1) => f.write_str("; 1 does not have the field"),
            Some(lines) => write!(f, "; {} do not have the field", HumanCount(lines)),
        }
    }
}

pub struct Took(pub f64);

impl Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.0)
    }
}

struct Ended<'a>(&'a str);

impl Display for Ended<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            signal if signal.starts_with("SIG") => write!(f, "; ended by {signal}"),
            "limit" => f.write_str("; ended by --limit"),
            "failed" => f.write_str("; failed"),
            _ => Ok(()),
        }
    }
}

/// The expected number of lines dropped by mistake, in words.
struct Drops(f64);

impl Display for Drops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0.0 => f.write_str("none dropped by mistake"),
            expected if expected < 0.001 => {
                f.write_str("below 0.1 % chance of a line dropped by mistake")
            }
            expected if expected < 0.5 => {
                write!(
                    f,
                    "{:.1} % chance of a line dropped by mistake",
                    100.0 * (1.0 - (-expected).exp())
                )
            }
            expected => write!(
                f,
                "about {} dropped by mistake",
                HumanCount(expected.round().max(1.0) as u64)
            ),
        }
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
            assert_eq!(Drops(expected).to_string(), words);
        }
    }
}
