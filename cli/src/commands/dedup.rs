//! `koel dedup`, `koel query`, `koel add` and `koel forget`: the commands that read lines, from their inputs to their
//! summary.

use crate::arguments::common::{Files, Input, Making, Output, Reporting};
use crate::arguments::dedup::Dedup;
use crate::arguments::membership::{Add, Forget, Query};
use crate::commands::report::{Answer, DONE, Ending, FAILED, NONE, Report};
use crate::failure::{Failure, Trouble};
use crate::lines::aside::{AT_ONCE, Aside};
use crate::lines::input::{self, Source};
use crate::lines::output::Sink;
use crate::lines::replacement::Replacement;
use crate::lines::rules::{Field, Rules};
use crate::lines::streams::{check_output, is_standard_output};
use crate::run::monitor::End;
use crate::run::screen::Screen;
use crate::run::shared::{Operation, Task};
use crate::run::{self, Needs, Outcome};
use crate::state::keeper::{Keeper, Lookups, load, load_to_read};
use crate::unsaved;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is said of a signal in the second pass of `--lossless`.
const IN_THE_SECOND_PASS: &str =
    "ended in the second pass: lines dropped by mistake may be missing";

/// The shortest interval between checkpoints.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

pub fn dedup(options: &Dedup) -> Result<Ending, Failure> {
    let begun = Begun::new(&options.files, &options.input)?;
    if is_standard_output(options.output.output.as_deref()) {
        // Lines that go nowhere must not be saved as seen.
        check_output()?;
    }
    // New lines that are not written must not be saved as seen.
    let writes_new = !options.output.count && !options.repeated;
    let state = options.state.as_deref();
    let claimed = state.filter(|_| writes_new).map(|state| unsaved::claim(state, &options.waiting));
    let (mut keeper, taken_in) = claimed.transpose()?.unzip();
    let mut notes: Vec<String> = taken_in.flatten().into_iter().collect();
    let (seen, ignored) = match (&mut keeper, state) {
        (Some(keeper), _) => keeper.load_or_make(&options.making)?,
        (None, Some(state)) => {
            notes.extend(unsaved::note(state));
            load_to_read(state, &options.making)?
        }
        (None, None) => {
            (options.making.build_for(input::total_bytes(&begun.sources).unwrap_or(0), 0)?, None)
        }
    };
    notes.extend(ignored);
    let checkpoint = (options.checkpoint > 0.0)
        .then(|| Duration::from_secs_f64(options.checkpoint).max(SHORTEST_PERIOD));
    let job = Job {
        making: Some(&options.making),
        select: !options.repeated,
        is_lossless: options.lossless,
        limit: options.limit,
        checkpoint,
        output: Some(&options.output),
        notes,
        ..begun.job(Operation::Add(seen), keeper, state, &options.output.reporting)
    };
    job.run()
}

pub fn query(options: &Query) -> Result<Ending, Failure> {
    let begun = Begun::new(&options.files, &options.input)?;
    let notes = Vec::from_iter(unsaved::note(&options.state));
    let operation = Operation::Find(Box::new(Lookups::open(&options.state)?));
    let job = begun.job(operation, None, Some(&options.state), &options.output.reporting);
    Job { select: !options.invert, output: Some(&options.output), notes, ..job }.run()
}

pub fn add(options: &Add) -> Result<Ending, Failure> {
    let begun = Begun::new(&options.files, &options.input)?;
    let (mut keeper, taken_in) = unsaved::claim(&options.state, &options.waiting)?;
    let (seen, ignored) = keeper.load_or_make(&options.making)?;
    let notes = taken_in.into_iter().chain(ignored).collect();
    let operation = Operation::Add(seen);
    let job = begun.job(operation, Some(keeper), Some(&options.state), &options.reporting);
    Job { making: Some(&options.making), notes, ..job }.run()
}

pub fn forget(options: &Forget) -> Result<Ending, Failure> {
    let begun = Begun::new(&options.files, &options.input)?;
    let (keeper, taken_in) = unsaved::claim(&options.state, &options.waiting)?;
    let operation = Operation::Remove(load(&keeper.path)?);
    let job = begun.job(operation, Some(keeper), Some(&options.state), &options.reporting);
    Job { notes: Vec::from_iter(taken_in), ..job }.run()
}

/// A command whose inputs and rules are in order, before its state is opened or made.
struct Begun {
    began: Instant,
    sources: Vec<Source>,
    rules: Rules,
    threads: Option<usize>,
}

struct Job<'a> {
    begun: Begun,
    operation: Operation,
    keeper: Option<Keeper>,
    state: Option<&'a Path>,
    /// How the filter was to be made, if lines are added.
    making: Option<&'a Making>,
    /// The answer that selects a line to be written or counted.
    select: bool,
    is_lossless: bool,
    /// The number of selected lines after which the run ends.
    limit: Option<u64>,
    /// The interval between saves of the state.
    checkpoint: Option<Duration>,
    /// Where selected lines go, if anywhere.
    output: Option<&'a Output>,
    reporting: &'a Reporting,
    /// What the user should know beforehand.
    notes: Vec<String>,
}

/// Sums up the outcome of the lines; `recovered` is the number that a second pass gave back.
type Answering = fn(&Outcome, Rules, Option<u64>) -> Answer;

impl Begun {
    fn new(files: &Files, input: &Input) -> Result<Self, Failure> {
        let (began, threads) = (Instant::now(), input.threads);
        Ok(Begun { began, sources: input::sources(&files.files)?, rules: input.rules()?, threads })
    }

    /// Returns the job of a command that writes nothing.
    fn job<'a>(
        self,
        operation: Operation,
        keeper: Option<Keeper>,
        state: Option<&'a Path>,
        reporting: &'a Reporting,
    ) -> Job<'a> {
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
            reporting,
            notes: Vec::new(),
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
    fn run(self) -> Result<Ending, Failure> {
        let Begun { began, sources, rules, threads } = self.begun;
        let Job { state, output, reporting, is_lossless, select, .. } = self;
        let total_bytes = input::total_bytes(&sources);
        let path = output.and_then(|output| output.output.as_deref());
        let counts = output.is_some_and(|output| output.count);
        let (sink, replacement) = match output {
            None => (Sink::default(), None),
            // Lines are appended if the state knows those that are there.
            Some(_) => {
                Sink::open(path, self.keeper.as_ref().map(|_| rules.terminator), &sources, state)
                    .inspect_err(|_| self.keeper.iter().for_each(Keeper::discard_new))?
            }
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
        let aside = is_lossless.then(Aside::new).transpose()?;
        let is_shown = output.is_some() && path.is_none() && !counts;
        let screen = Screen::new(reporting.quiet, reporting.json).with_bar(is_shown, total_bytes);
        self.notes.iter().for_each(|note| screen.note(note));
        let (yes_is, answer): (_, Answering) = match self.operation {
            Operation::Add(_) if output.is_some() => ("new", Answer::of_dedup),
            Operation::Add(_) => ("added", |outcome, _, _| Answer::Added(outcome.tally.yes)),
            Operation::Find(_) => ("seen", |outcome, _, _| Answer::Seen(outcome.tally.yes)),
            Operation::Remove(_) => {
                ("forgotten", |outcome, _, _| Answer::Forgotten(outcome.tally.yes))
            }
        };
        // Lines are written immediately, unless they are only counted, or it is not yet certain which
        // are repeated.
        let is_later = counts || is_lossless && !select;
        let task = Arc::new(Task {
            operation: self.operation,
            refreshes: self.making.is_some_and(|making| making.forgetting.refresh),
            select: is_lossless || select,
            rules,
            limit: self.limit,
            sink: if is_later { Sink::default() } else { sink.clone() },
            screen,
            yes_is,
        });
        let (keeper, checkpoint) = (self.keeper, self.checkpoint);
        let (mut outcome, watch) =
            run::run(&task, Needs { sources, threads, aside, keeper, checkpoint })?;
        let screen = &task.screen;

        let mut recovered = None;
        if let End::Reached | End::Enough = outcome.end {
            let unfinished = replacement.as_ref().and_then(Replacement::unfinished);
            let aside = outcome.aside.take();
            let pass = || {
                let mut number = outcome.tally.selected;
                if let Some(aside) = aside {
                    watch.end_at_once(IN_THE_SECOND_PASS, unfinished);
                    let settled = aside.settle(AT_ONCE, rules, outcome.hash)?;
                    recovered = Some(settled.mistaken());
                    number += settled.mistaken();
                    if !counts {
                        settled.for_each(select, rules, |lines| sink.write(lines))?;
                    } else if !select {
                        number = outcome.tally.lines - number;
                    }
                }
                if counts { sink.write(format!("{number}\n").as_bytes()) } else { Ok(()) }
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
                screen.note(format_args!("{}: left as it was", path.display()));
            }
        }
        let exceeded = self.making.and_then(|making| making.exceeded(&outcome.stats));
        let rate_exceeded = self.making.map(|_| exceeded.is_some());
        if recovered.is_none() {
            exceeded.iter().for_each(|note| screen.note(note));
        }
        let answer = answer(&outcome, rules, recovered);
        let none_is_1 = matches!(answer, Answer::Seen(_) | Answer::Forgotten(_));
        let report = Report::new(&outcome, rules, answer, rate_exceeded, state, began);
        let has_gone = matches!(outcome.end, End::BrokenPipe);
        if !has_gone || reporting.json {
            screen.sum_up(&report)?;
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
