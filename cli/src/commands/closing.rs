//! What the commands that read lines have in common.

use crate::arguments::common::{Input, Output, Reporting};
use crate::failure::Failure;
use crate::lines::chunk::Rules;
use crate::run::Outcome;
use crate::run::coordinator::End;
use crate::run::screen::Screen;
use serde::Serialize;
use std::fmt::Display;

/// How the process ends.
pub enum Ending {
    Code(u8),
    Signal(i32),
}

pub const DONE: Ending = Ending::Code(0);
pub const NONE: Ending = Ending::Code(1);
pub const FAILED: Ending = Ending::Code(2);

impl Input {
    pub fn rules(&self) -> Rules {
        Rules { terminator: if self.zero { 0 } else { b'\n' }, longest: self.max_line }
    }
}

impl Output {
    /// Whether lines are written to standard output.
    pub fn is_shown(&self) -> bool {
        self.output.is_none() && !self.count
    }
}

impl Reporting {
    pub fn wants_bar(&self) -> bool {
        !self.quiet
    }
}

/// The end of a command.
pub struct Closing<'a> {
    pub telling: &'a Reporting,
    pub screen: &'a Screen,
    /// Whether the exit code is 1 if no line was selected.
    pub none_is_1: bool,
}

impl Closing<'_> {
    /// Tells of the run, and how it ended.
    pub fn close(
        self,
        report: &(impl Display + Serialize),
        outcome: &Outcome,
    ) -> Result<Ending, Failure> {
        let Closing { telling, screen, none_is_1 } = self;
        let nobody_listens = matches!(outcome.end, End::BrokenPipe);
        if telling.json {
            let json = serde_json::to_string(report).map_err(Failure::new)?;
            screen.say_plainly(json);
        } else if !telling.quiet && !nobody_listens {
            screen.say(report);
        }
        let tally = &outcome.tally;
        Ok(match &outcome.end {
            End::Failed(failure) => {
                screen.say(failure);
                FAILED
            }
            End::Signal(signal) => Ending::Signal(*signal),
            _ if tally.unreadable > 0 => FAILED,
            // Of what nobody read, some was selected.
            End::Reached if none_is_1 && tally.selected == 0 => NONE,
            End::Reached | End::BrokenPipe => DONE,
        })
    }
}
