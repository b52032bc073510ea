//! What the commands that read lines have in common: rules, output, and how they end.

use crate::arguments::common::{Input, Output, Reporting};
use crate::failure::Failure;
use crate::lines::replacement::Replacement;
use crate::lines::rules::{Field, LONGEST, Rules};
use crate::run::Outcome;
use crate::run::coordinator::End;
use crate::run::screen::Screen;
use crate::run::tally::Tally;
use indicatif::HumanCount;
use serde::Serialize;
use std::fmt::Display;
use std::path::Path;

/// How the process ends.
pub enum Ending {
    Code(u8),
    Signal(i32),
}

pub const DONE: Ending = Ending::Code(0);
pub const NONE: Ending = Ending::Code(1);
pub const FAILED: Ending = Ending::Code(2);

impl Input {
    /// Returns the rules for lines.
    pub fn rules(&self) -> Result<Rules, Failure> {
        let terminator = if self.zero { 0 } else { b'\n' };
        let delimiter = self.delimiter;
        if self.field.is_some() && delimiter == terminator {
            let what = if self.zero { "a NUL byte" } else { "a newline" };
            return Err(Failure::new(format!(
                "--delimiter is {what}, which ends the lines here; fields need another byte between \
                 them"
            )));
        }
        Ok(Rules {
            terminator,
            folds_cr: !self.zero && !self.keep_cr,
            field: match self.json_field {
                Some(path) => Some(Field::Json(path)),
                None => self.field.map(|number| Field::Numbered { number, delimiter }),
            },
            longest: LONGEST,
        })
    }
}

impl Output {
    /// Returns `true` if lines are written to standard output.
    pub fn is_shown(&self) -> bool {
        self.output.is_none() && !self.count
    }
}

impl Reporting {
    pub fn wants_bar(&self) -> bool {
        !self.quiet
    }

    /// Replaces the output file at `path`, if the run came to its end and read something; if the file
    /// is the input, only if everything was read.
    pub fn settle(
        &self,
        screen: &Screen,
        outcome: &mut Outcome,
        replacement: Option<(Replacement, &Path)>,
        is_input: bool,
    ) {
        let Some((replacement, path)) = replacement else { return };
        let has_ended = matches!(outcome.end, End::Reached | End::Enough);
        let Tally { opened, unreadable, .. } = outcome.tally;
        if has_ended && opened > 0 && (unreadable == 0 || !is_input) {
            if let Err(failure) = replacement.finish() {
                outcome.end = End::Failed(failure);
            }
        } else if replacement.old().is_some() {
            self.note(screen, Some(format!("{}: left as it was", path.display())));
        }
    }

    /// Prints something that is worth knowing.
    pub fn note(&self, screen: &Screen, what: Option<String>) {
        if let (Some(what), false) = (what, self.quiet || self.json) {
            screen.say(what);
        }
    }
}

/// The end of a command: the summary, and the exit code.
pub struct Closing<'a> {
    pub reporting: &'a Reporting,
    pub screen: &'a Screen,
    /// Whether the exit code is 1 if no line was selected.
    pub none_is_1: bool,
}

impl Closing<'_> {
    /// Prints the summary and the error, if any, and returns how the process ends.
    pub fn close(
        self,
        report: &(impl Display + Serialize),
        outcome: &Outcome,
    ) -> Result<Ending, Failure> {
        let Closing { reporting, screen, none_is_1 } = self;
        let reader_has_gone = matches!(outcome.end, End::BrokenPipe);
        let shows = Screen::shows_summaries(reporting.quiet);
        if reporting.json {
            let json = serde_json::to_string(report).map_err(Failure::new)?;
            screen.say_plainly(json);
        } else if shows && !reader_has_gone {
            screen.say(report);
        } else if shows && outcome.taken_back > 0 && outcome.saved.is_some() {
            screen.say(format_args!(
                "the output was closed before {} new lines were written, so they are not saved as seen; to \
                 get only the next lines, use --limit",
                HumanCount(outcome.taken_back)
            ));
        }
        let tally = &outcome.tally;
        Ok(match &outcome.end {
            End::Failed(failure) => {
                screen.say(failure);
                FAILED
            }
            End::Signal(signal) => Ending::Signal(*signal),
            _ if tally.unreadable > 0 => FAILED,
            // After a broken pipe, some line was selected, even if it was not read.
            End::Reached if none_is_1 && tally.selected == 0 => NONE,
            End::Reached | End::Enough | End::BrokenPipe => DONE,
        })
    }
}
