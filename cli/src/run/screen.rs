//! Standard error: errors, the summary and, on a terminal, a progress bar.

use crate::failure::Failure;
use indicatif::{
    BinaryBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle,
};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// Returns a number of lines in words.
pub fn lines(number: u64) -> String {
    if number == 1 { "1 line".into() } else { format!("{} lines", HumanCount(number)) }
}

/// What a command reports: in words, and as the fields of a JSON object.
pub struct Report {
    pub text: String,
    pub fields: Vec<(&'static str, Value)>,
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields.iter().map(|(name, value)| (name, value)))
    }
}

pub struct Screen {
    /// `None` unless it is visible: drawing takes a lock, and may block for long.
    bar: Option<ProgressBar>,
    is_quiet: bool,
    pub is_json: bool,
}

impl Screen {
    /// Creates a screen without a bar.
    pub fn new(is_quiet: bool, is_json: bool) -> Screen {
        Screen { bar: None, is_quiet, is_json }
    }

    /// Adds a bar, if standard error is a terminal to which no lines are written, and unless the user asks for quiet.
    pub fn add_bar(&mut self, writes_lines: bool, total_bytes: Option<u64>) {
        let mixed = writes_lines && io::stdout().is_terminal();
        if self.is_quiet || mixed || !io::stderr().is_terminal() {
            return;
        }
        let bar =
            ProgressBar::with_draw_target(total_bytes, ProgressDrawTarget::stderr_with_hz(10));
        let template = match total_bytes {
            // Some millions of lines fit besides it into 40 columns.
            Some(_) => "{bar:9} {wide_msg}",
            None => "{spinner} {wide_msg}",
        };
        let style = ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar());
        self.bar = Some(bar.with_style(style).with_message("0 lines"));
    }

    /// Prints a summary: as JSON if that is asked for, or else to a terminal, unless the user asks for quiet.
    pub fn sum_up(&self, report: &Report) -> Result<(), Failure> {
        if self.is_json {
            self.say_plainly(serde_json::to_string(report).map_err(Failure::new)?);
        } else if !self.is_quiet && io::stderr().is_terminal() {
            self.say(&report.text);
        }
        Ok(())
    }

    /// Prints what the user should know and no field of the summary tells, unless the user asks for quiet.
    pub fn warn(&self, what: impl Display) {
        if !self.is_quiet {
            self.say(what);
        }
    }

    /// Prints what a field of the summary tells as well, unless the user asks for quiet or for JSON.
    pub fn note(&self, what: impl Display) {
        if !self.is_json {
            self.warn(what);
        }
    }

    pub fn has_bar(&self) -> bool {
        self.bar.is_some()
    }

    pub fn progress(&self, bytes: u64, lines: u64, new: u64, what: &str) {
        let Some(bar) = &self.bar else { return };
        let read = BinaryBytes(bytes);
        let read = match bar.length() {
            Some(all) => {
                format!("{read}/{}, {:#} left", BinaryBytes(all), HumanDuration(bar.eta()))
            }
            None => format!("{read}, {}/s", BinaryBytes(bar.per_sec() as u64)),
        };
        // What a narrow terminal has no room for is at the end. The message first: the bar is drawn after either.
        let lines = HumanCount(lines);
        bar.set_message(format!("{lines} lines, {} {what}; {read}", HumanCount(new)));
        bar.set_position(bytes);
    }

    /// Removes the bar.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Prints a line that begins with the name of the command. Errors of writing are ignored.
    pub fn say(&self, what: impl Display) {
        self.say_plainly(format_args!("koel: {what}"));
    }

    /// Prints a line.
    fn say_plainly(&self, what: impl Display) {
        // A single write, because other processes may write to standard error as well.
        let line = format!("{what}\n");
        let say = || {
            let _ = io::stderr().write_all(line.as_bytes());
        };
        match &self.bar {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }
}
