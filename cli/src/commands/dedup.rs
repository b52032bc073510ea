//! `koel dedup`, `koel query`, `koel add` and `koel forget`: the commands that read lines, from their inputs to their
//! summary.

use crate::arguments::common::{Files, Input, Making, Output, Reporting};
use crate::arguments::dedup::Dedup;
use crate::arguments::membership::{Add, Forget, Query};
use crate::commands::report::{Answer, DONE, Ending, FAILED, NONE, Report};
use crate::failure::{End, Failure};
use crate::lines::aside::{AT_ONCE, Aside};
use crate::lines::input::{self, Source};
use crate::lines::output::Sink;
use crate::lines::replacement::Replacement;
use crate::lines::rules::{Field, Rules};
use crate::lines::streams::{check_output, is_standard_output};
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
    let (state, reporting) = (options.state.as_deref(), &options.output.reporting);
    let mut job = Job::new(&options.files, &options.input, state, reporting)?;
    if is_standard_output(options.output.output.as_deref()) {
        // Lines that go nowhere must not be saved as seen.
        check_output()?;
    }
    // New lines that are not written must not be saved as seen.
    let writes_new = !options.output.count && !options.repeated;
    let claimed = state.filter(|_| writes_new).map(|state| unsaved::claim(state, &options.waiting));
    let (mut keeper, taken_in) = claimed.transpose()?.unzip();
    job.notes.extend(taken_in.flatten());
    let (seen, ignored) = match (&mut keeper, state) {
        (Some(keeper), _) => keeper.load_or_make(&options.making)?,
        (None, Some(state)) => {
            job.notes.extend(unsaved::note(state));
            load_to_read(state, &options.making)?
        }
        (None, None) => {
            let bytes = input::total_bytes(&job.sources).unwrap_or(0);
            (options.making.build(bytes)?, None)
        }
    };
    job.notes.extend(ignored);
    let checkpoint = (options.checkpoint > 0.0)
        .then(|| Duration::from_secs_f64(options.checkpoint).max(SHORTEST_PERIOD));
    let job = Job {
        making: Some(&options.making),
        select: !options.repeated,
        is_lossless: options.lossless,
        limit: options.limit,
        checkpoint,
        output: Some(&options.output),
        ..job
    };
    job.run(Operation::Add(seen), keeper)
}

pub fn query(options: &Query) -> Result<Ending, Failure> {
    let (state, reporting) = (&options.state, &options.output.reporting);
    let mut job = Job::new(&options.files, &options.input, Some(state), reporting)?;
    job.notes.extend(unsaved::note(state));
    let operation = Operation::Find(Box::new(Lookups::open(state)?));
    let (select, output) = (!options.invert, Some(&options.output));
    Job { select, output, ..job }.run(operation, None)
}

pub fn add(options: &Add) -> Result<Ending, Failure> {
    let state = &options.state;
    let mut job = Job::new(&options.files, &options.input, Some(state), &options.reporting)?;
    let (mut keeper, taken_in) = unsaved::claim(state, &options.waiting)?;
    let (seen, ignored) = keeper.load_or_make(&options.making)?;
    job.notes.extend(taken_in.into_iter().chain(ignored));
    let making = Some(&options.making);
    Job { making, ..job }.run(Operation::Add(seen), Some(keeper))
}

pub fn forget(options: &Forget) -> Result<Ending, Failure> {
    let state = &options.state;
    let mut job = Job::new(&options.files, &options.input, Some(state), &options.reporting)?;
    let (keeper, taken_in) = unsaved::claim(state, &options.waiting)?;
    job.notes.extend(taken_in);
    job.run(Operation::Remove(load(state)?), Some(keeper))
}

/// A command whose inputs and rules are in order, before its state is opened or made.
struct Job<'a> {
    began: Instant,
    sources: Vec<Source>,
    rules: Rules,
    threads: Option<usize>,
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

impl Input {
    /// Returns the rules for lines.
    fn rules(&self) -> Result<Rules, Failure> {
        let terminator = if self.zero { 0 } else { b'\n' };
        let delimiter = self.delimiter;
        if self.field.is_some() && delimiter == terminator {
            let what = "--delimiter is what ends the lines; fields need another byte between them";
            return Err(Failure::new(what));
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

impl<'a> Job<'a> {
    /// Returns the job of a command that writes nothing.
    fn new(
        files: &Files,
        input: &Input,
        state: Option<&'a Path>,
        reporting: &'a Reporting,
    ) -> Result<Self, Failure> {
        Ok(Job {
            began: Instant::now(),
            sources: input::sources(&files.files),
            rules: input.rules()?,
            threads: input.threads,
            state,
            making: None,
            select: true,
            is_lossless: false,
            limit: None,
            checkpoint: None,
            output: None,
            reporting,
            notes: Vec::new(),
        })
    }

    fn run(self, operation: Operation, keeper: Option<Keeper>) -> Result<Ending, Failure> {
        let Job { began, sources, rules, state, output, reporting, is_lossless, select, .. } = self;
        let total_bytes = input::total_bytes(&sources);
        let path = output.and_then(|output| output.output.as_deref());
        let counts = output.is_some_and(|output| output.count);
        let (sink, replacement) = match output {
            None => (Sink::default(), None),
            // Lines are appended if the state knows those that are there.
            Some(_) => Sink::open(path, keeper.as_ref().map(|_| rules.terminator), &sources, state)
                .inspect_err(|_| keeper.iter().for_each(Keeper::discard_new))?,
        };
        let old = replacement.as_ref().and_then(|replacement| replacement.old.as_ref());
        let is_input = old.is_some_and(|old| input::that_is(&sources, old).is_some());
        let takes_all = !counts && self.limit.is_none();
        if let Some(path) = path.filter(|_| is_input && !takes_all) {
            let what = "this is an input, and its lines would be lost; write to another file";
            return Err(Failure::new(format!("{}: {what}", path.display())));
        }
        let aside = is_lossless.then(Aside::new).transpose()?;
        let is_shown = output.is_some() && path.is_none() && !counts;
        let screen = Screen::new(reporting.quiet, reporting.json).with_bar(is_shown, total_bytes);
        let screen = Arc::new(screen);
        self.notes.iter().for_each(|note| screen.note(note));
        let (matched_label, answer): (_, Answering) = match operation {
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
            operation,
            refreshes: self.making.is_some_and(|making| making.forgetting.refresh),
            select: is_lossless || select,
            rules,
            limit: self.limit,
            sink: if is_later { Sink::default() } else { sink.clone() },
            screen: Arc::clone(&screen),
            matched_label,
        });
        let (threads, checkpoint) = (self.threads, self.checkpoint);
        let (mut outcome, watch) =
            run::run(&task, Needs { sources, threads, aside, keeper, checkpoint })?;
        // The filter goes before the second pass takes memory.
        drop(task);

        let mut recovered = None;
        if let End::Reached | End::Enough = outcome.end {
            let unfinished = replacement.as_ref().and_then(Replacement::unfinished);
            let aside = outcome.aside.take();
            let pass = || {
                let mut number = outcome.tally.selected;
                if let Some(aside) = aside {
                    watch.end_at_once(IN_THE_SECOND_PASS, unfinished);
                    let settled = aside.settle(AT_ONCE, rules, outcome.hash)?;
                    recovered = Some(settled.mistaken.len() as u64);
                    number += settled.mistaken.len() as u64;
                    if !counts {
                        settled.for_each(select, rules, |lines| sink.write(lines))?;
                    } else if !select {
                        number = outcome.tally.lines - number;
                    }
                }
                if counts { sink.write(format!("{number}\n").as_bytes()) } else { Ok(()) }
            };
            let passed: Result<(), End> = pass();
            watch.go_on();
            if let Err(end) = passed {
                outcome.end = end;
            }
        }

        if let Some((replacement, path)) = replacement.zip(path) {
            // An input that is replaced must have been read as a whole.
            let is_whole = !outcome.tally.lacks_lines() || !is_input;
            if matches!(outcome.end, End::Reached | End::Enough)
                && outcome.tally.opened > 0
                && is_whole
            {
                if let Err(failure) = replacement.finish() {
                    outcome.end = End::Failed(failure);
                }
            } else if replacement.old.is_some() {
                screen.note(format_args!("{}: left as it was", path.display()));
            }
        }
        let exceeded = self.making.and_then(|making| making.exceeded(&outcome.stats));
        let rate_exceeded = self.making.map(|_| exceeded.is_some());
        if recovered.is_none() {
            exceeded.iter().for_each(|note| screen.note(note));
        }
        let (lines, without_field) = (outcome.tally.lines, outcome.tally.without_field);
        if lines > 0 && without_field == lines {
            screen.note(match rules.field {
                Some(Field::Numbered { .. }) => {
                    "no line has that --field, so whole lines were compared; --delimiter says what is between fields"
                }
                _ => "no line has that --json-field, so whole lines were compared",
            });
        }
        let answer = answer(&outcome, rules, recovered);
        let none_is_1 = matches!(answer, Answer::Seen(_) | Answer::Forgotten(_));
        let report = Report::new(&outcome, rules, answer, rate_exceeded, state, began);
        if !matches!(outcome.end, End::BrokenPipe) || reporting.json {
            screen.sum_up(&report)?;
        }
        Ok(match &outcome.end {
            End::Failed(failure) => {
                screen.say(failure);
                FAILED
            }
            End::Signal(signal) => Ending::Signal(*signal),
            _ if outcome.tally.lacks_lines() => FAILED,
            // After a broken pipe, some line was selected, even if it was not read.
            End::Reached if none_is_1 && outcome.tally.selected == 0 => NONE,
            _ => DONE,
        })
    }
}
