//! The closing line, in words or as JSON.

use crate::run::coordinator::End;
use crate::state::comparison::{Comparison, LineHash};
use indicatif::HumanCount;
use serde::Serialize;
use std::fmt::{self, Display};
use std::time::Duration;

/// What is said of a run of dedup. The names are those of the JSON.
#[derive(Serialize)]
pub struct Deduplicated<'a> {
    pub lines: u64,
    pub new: u64,
    pub repeated: u64,
    /// Bytes of the lines, unpacked.
    pub bytes: u64,
    /// New lines that may have been dropped by mistake: how many are expected.
    pub expected_drops: f64,
    /// Lines that had been dropped by mistake and were written after all, by `--lossless`.
    pub recovered: Option<u64>,
    /// Lines that are compared as they are, though they should be URLs.
    pub not_urls: Option<u64>,
    /// Inputs that could not be read, or not to their end.
    pub unreadable: u64,
    /// How often a new line would be taken for one that was seen now.
    pub rate: f64,
    /// Lines that are known, those of earlier runs included.
    pub known: usize,
    /// Memory for what was seen.
    pub memory_bytes: usize,
    pub state: Option<String>,
    /// Whether the state knows all that is known. It does not after --count or --repeated, which only read it.
    pub saved: bool,
    pub seconds: f64,
    pub end: &'a str,
}

/// What is said of the other commands.
#[derive(Serialize)]
pub struct Asked<'a> {
    pub lines: u64,
    /// Lines that were added, found or taken out.
    #[serde(flatten)]
    pub answer: Answer,
    pub bytes: u64,
    pub not_urls: Option<u64>,
    pub unreadable: u64,
    pub rate: f64,
    pub known: usize,
    pub memory_bytes: usize,
    pub state: String,
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

/// How a run ended, for programs.
pub fn name_of(end: &End) -> &'static str {
    match end {
        End::Reached => "complete",
        End::Signal(signal_hook::consts::SIGINT) => "SIGINT",
        End::Signal(signal_hook::consts::SIGHUP) => "SIGHUP",
        End::Signal(_) => "SIGTERM",
        End::BrokenPipe => "broken pipe",
        End::Failed(_) => "failed",
    }
}

/// How many lines were compared as they are, if that is of interest.
pub fn not_urls(hash: &LineHash, number: u64) -> Option<u64> {
    matches!(hash.comparison(), Comparison::Urls(_)).then_some(number)
}

/// Of as many digits as mean something.
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
            Some(0) => f.write_str("; none was dropped by mistake")?,
            Some(1) => f.write_str("; of the new ones, 1 was recovered")?,
            Some(recovered) => write!(f, "; of the new ones, {} were recovered", count(recovered))?,
            None => write!(f, "; {}", Drops(self.expected_drops))?,
        }
        NotUrls(self.not_urls).fmt(f)?;
        if let Some(state) = &self.state
            && self.saved
        {
            write!(f, "; {state} knows {}", count(self.known as u64))?;
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
                write!(f, "{} seen, {} not", count(seen), count(self.lines - seen))?;
            }
            Answer::Forgotten(forgotten) => {
                write!(
                    f,
                    "{} forgotten, {} not there",
                    count(forgotten),
                    count(self.lines - forgotten)
                )?;
            }
        }
        NotUrls(self.not_urls).fmt(f)?;
        if self.end != "failed" {
            write!(f, "; {} knows {}", self.state, count(self.known as u64))?;
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

struct NotUrls(Option<u64>);

impl Display for NotUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None | Some(0) => Ok(()),
            Some(1) => f.write_str("; 1 was no URL"),
            Some(lines) => write!(f, "; {} were no URLs", HumanCount(lines)),
        }
    }
}

struct Took(f64);

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
            "failed" => f.write_str("; failed"),
            _ => Ok(()),
        }
    }
}

/// How many lines may have been dropped by mistake, in words.
struct Drops(f64);

impl Display for Drops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0.0 => f.write_str("none can have been dropped by mistake"),
            expected if expected < 0.001 => {
                f.write_str("none dropped by mistake, but for a chance below 0.1 %")
            }
            expected if expected < 0.5 => {
                write!(
                    f,
                    "perhaps one dropped by mistake, a chance of {:.1} %",
                    100.0 * (1.0 - (-expected).exp())
                )
            }
            expected => write!(
                f,
                "some {} dropped by mistake",
                HumanCount(expected.round().max(1.0) as u64)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_told_in_words() {
        for (expected, words) in [
            (0.0, "none can have been dropped by mistake"),
            (1e-9, "none dropped by mistake, but for a chance below 0.1 %"),
            (0.01, "perhaps one dropped by mistake, a chance of 1.0 %"),
            (0.7, "some 1 dropped by mistake"),
            (1234.4, "some 1,234 dropped by mistake"),
        ] {
            assert_eq!(Drops(expected).to_string(), words);
        }
    }
}
