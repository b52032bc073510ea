//! What is said on standard error: errors, a closing line, and, if it is a terminal, how far the run is.

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

pub struct Screen {
    /// Whoever is saying something keeps the others from it, perhaps for long; so there is none if nobody sees it.
    bar: Option<ProgressBar>,
}

impl Screen {
    /// With a bar, unless it is not wanted, or nobody would see it, or lines go to the same terminal.
    pub fn new(wants_bar: bool, writes_lines: bool, total_bytes: Option<u64>) -> Screen {
        let mixed = writes_lines && io::stdout().is_terminal();
        if !wants_bar || mixed || !io::stderr().is_terminal() {
            return Screen { bar: None };
        }
        let bar =
            ProgressBar::with_draw_target(total_bytes, ProgressDrawTarget::stderr_with_hz(10));
        let template = match total_bytes {
            Some(_) => "{bar:12} {bytes}/{total_bytes}, {eta} left, {wide_msg}",
            None => "{spinner} {bytes}, {bytes_per_sec}, {wide_msg}",
        };
        let style = ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar());
        Screen { bar: Some(bar.with_style(style)) }
    }

    pub fn has_bar(&self) -> bool {
        self.bar.is_some()
    }

    pub fn progress(&self, bytes: u64, lines: u64, new: u64, what: &str) {
        let Some(bar) = &self.bar else { return };
        bar.set_position(bytes);
        bar.set_message(format!("{} lines, {} {what}", HumanCount(lines), HumanCount(new)));
    }

    /// The run is over; what is said now stays.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// A line on standard error. That nobody can be told is no reason to stop.
    pub fn say(&self, what: impl Display) {
        self.say_plainly(format_args!("koel: {what}"));
    }

    /// The same, without saying who.
    pub fn say_plainly(&self, what: impl Display) {
        // In one piece, as other processes may say something at the same time.
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
