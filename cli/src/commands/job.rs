//! What the commands that read lines do: from their inputs to their summary.

use crate::arguments::common::{Files, Input, Making, Output, Reporting};
use crate::commands::report::{Answer, DONE, Ending, FAILED, NONE, Report, sum_up};
use crate::failure::{Failure, Trouble};
use crate::lines::aside::{AT_ONCE, Aside};
use crate::lines::input::{self, Source};
use crate::lines::output::Sink;
use crate::lines::replacement::Replacement;
use crate::lines::rules::{Field, Rules};
use crate::run::coordinator::End;
use crate::run::screen::{Screen, lines};
use crate::run::shared::Operation;
use crate::run::{self, Outcome, Run};
use crate::state::keeper::Keeper;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is said of a signal in the second pass of `--lossless`.
const IN_THE_SECOND_PASS: &str =
    "ended in the second pass: lines dropped by mistake may be missing";

/// A command whose inputs and rules are in order, before its state is opened or made.
pub struct Begun {
    pub began: Instant,
    pub sources: Vec<Source>,
    pub rules: Rules,
    threads: Option<usize>,
}

pub struct Job<'a> {
    pub begun: Begun,
    pub operation: Operation,
    pub keeper: Option<Keeper>,
    pub state: Option<&'a Path>,
    /// How the filter was to be made, if lines are added.
    pub making: Option<&'a Making>,
    /// The answer that selects a line to be written or counted.
    pub select: bool,
    pub is_lossless: bool,
    /// The number of selected lines after which the run ends.
    pub limit: Option<u64>,
    /// The interval between saves of the state.
    pub checkpoint: Option<Duration>,
    /// Where selected lines go, if anywhere.
    pub output: Option<&'a Output>,
    /// The byte that ends the lines that the output has, if lines are appended to them.
    pub kept: Option<u8>,
    pub reporting: &'a Reporting,
    /// What the user should know beforehand.
    pub notes: Vec<String>,
    /// What the progress bar calls lines whose answer is yes.
    pub yes_is: &'static str,
    pub answer: Answering,
}

/// Sums up the outcome of the lines; `recovered` is the number that a second pass gave back.
type Answering = fn(&Outcome, Rules, Option<u64>) -> Answer;

impl Begun {
    pub fn new(files: &Files, input: &Input) -> Result<Self, Failure> {
        let (began, threads) = (Instant::now(), input.threads);
        Ok(Begun { began, sources: input::sources(&files.files)?, rules: input.rules()?, threads })
    }

    /// Returns the job of a command that writes nothing.
    pub fn job<'a>(
        self,
        operation: Operation,
        keeper: Option<Keeper>,
        state: Option<&'a Path>,
        reporting: &'a Reporting,
    ) -> Job<'a> {
        let (yes_is, answer): (_, Answering) = match operation {
            Operation::Add(_) => ("added", |outcome, _, _| Answer::Added(outcome.tally.yes)),
            Operation::Find(_) => ("seen", |outcome, _, _| Answer::Seen(outcome.tally.yes)),
            Operation::Remove(_) => {
                ("forgotten", |outcome, _, _| Answer::Forgotten(outcome.tally.yes))
            }
        };
        Job {
            begun: self,
            operation,
            keeper,
            state,
            making: None,
            select: true,
            is_lossless: false,
            limit: None,
            checkpoint: None,
            output: None,
            kept: None,
            reporting,
            notes: Vec::new(),
            yes_is,
            answer,
        }
    }
}

impl Input {
    /// Returns the rules for lines.
    fn rules(&self) -> Result<Rules, Failure> {
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
        })
    }
}

impl Job<'_> {
    pub fn run(self) -> Result<Ending, Failure> {
        let Begun { began, sources, rules, threads } = self.begun;
        let Job { state, output, reporting, is_lossless, select, .. } = self;
        let total_bytes = input::total_bytes(&sources);
        let path = output.and_then(|output| output.output.as_deref());
        let counts = output.is_some_and(|output| output.count);
        let (opened, replacement) = match output {
            None => (Sink::default(), None),
            Some(_) => Sink::open(path, self.kept, &sources, state)
                .inspect_err(|_| self.keeper.iter().for_each(Keeper::discard_new))?,
        };
        let old = replacement.as_ref().and_then(Replacement::old);
        let is_input = old.is_some_and(|old| input::that_is(&sources, old).is_some());
        let loses = match (counts, self.limit) {
            (true, _) => Some("its lines would be lost; count them elsewhere"),
            (_, Some(_)) => Some("its lines after the limit would be lost; write to another file"),
            _ => None,
        };
        if let (Some(path), Some(loses), true) = (path, loses, is_input) {
            return Err(Failure::new(format!("{}: this is an input, and {loses}", path.display())));
        }
        // Lines are written immediately, unless they are only counted, or it is not yet certain which
        // are repeated.
        let (sink, later) = match counts || is_lossless && !select {
            true => (Sink::default(), Some(opened)),
            false => (opened, None),
        };
        let aside = is_lossless.then(Aside::new).transpose()?;
        let is_shown = output.is_some() && path.is_none() && !counts;
        let screen = Arc::new(Screen::new(!reporting.quiet, is_shown, total_bytes));
        let note = |what: String| {
            if !reporting.quiet && !reporting.json {
                screen.say(what);
            }
        };
        self.notes.into_iter().for_each(note);
        let (mut outcome, watch) = run::run(Run {
            operation: self.operation,
            refreshes: self.making.is_some_and(|making| making.forgetting.refresh),
            select: is_lossless || select,
            sources,
            rules,
            limit: self.limit,
            threads,
            sink,
            aside,
            keeper: self.keeper,
            checkpoint: self.checkpoint,
            screen: Arc::clone(&screen),
            yes_is: self.yes_is,
        })?;

        let mut recovered = None;
        if let Some((sink, aside)) = outcome.written.take() {
            let mut output = later.unwrap_or(sink);
            let unfinished = replacement.as_ref().and_then(Replacement::unfinished);
            let pass = || {
                let mut number = outcome.tally.selected;
                if let Some(aside) = aside {
                    watch.end_at_once(IN_THE_SECOND_PASS, unfinished);
                    let settled = aside.settle(AT_ONCE, rules, outcome.hash)?;
                    recovered = Some(settled.mistaken());
                    number += settled.mistaken();
                    if !counts {
                        settled.for_each(select, rules, |lines| output.write(lines))?;
                    } else if !select {
                        number = outcome.tally.lines - number;
                    }
                }
                match (counts, &outcome.end) {
                    (true, End::Reached) => output.write(format!("{number}\n").as_bytes()),
                    _ => Ok(()),
                }
            };
            let passed: Result<(), Trouble> = pass();
            watch.go_on();
            if let Err(trouble) = passed {
                outcome.end = End::from(trouble);
            }
        }

        if let Some((replacement, path)) = replacement.zip(path) {
            // An input that is replaced must have been read as a whole.
            let is_whole = outcome.tally.unreadable == 0 || !is_input;
            if matches!(outcome.end, End::Reached | End::Enough)
                && outcome.tally.opened > 0
                && is_whole
            {
                if let Err(failure) = replacement.finish() {
                    outcome.end = End::Failed(failure);
                }
            } else if replacement.old().is_some() {
                note(format!("{}: left as it was", path.display()));
            }
        }
        let exceeded = self.making.and_then(|making| making.exceeded(&outcome.stats));
        let rate_exceeded = self.making.map(|_| exceeded.is_some());
        if recovered.is_none() {
            exceeded.into_iter().for_each(note);
        }
        let answer = (self.answer)(&outcome, rules, recovered);
        let none_is_1 = matches!(answer, Answer::Seen(_) | Answer::Forgotten(_));
        let report = Report::new(&outcome, rules, answer, rate_exceeded, state, began);
        let has_gone = matches!(outcome.end, End::BrokenPipe);
        if !has_gone || reporting.json {
            sum_up(&screen, &report, reporting.quiet, reporting.json)?;
        } else if outcome.taken_back > 0
            && outcome.saved.is_some()
            && Screen::shows_summaries(reporting.quiet)
        {
            screen.say(format_args!(
                "the output was closed before {} were read, so they are not saved as seen; to get only the \
                 next lines, use --limit",
                lines(outcome.taken_back)
            ));
        }
        Ok(match &outcome.end {
            End::Failed(failure) => {
                screen.say(failure);
                FAILED
            }
            End::Signal(signal) => Ending::Signal(*signal),
            _ if outcome.tally.unreadable > 0 => FAILED,
            // After a broken pipe, some line was selected, even if it was not read.
            End::Reached if none_is_1 && outcome.tally.selected == 0 => NONE,
            End::Reached | End::Enough | End::BrokenPipe => DONE,
        })
    }
}
