//! `koel query`, `koel add` and `koel forget`: look up, add or remove the lines of a state.

use crate::arguments::common::{Input, Making, Output, Reporting};
use crate::arguments::membership::{Add, Forget, Query};
use crate::commands::closing::{Closing, Ending};
use crate::commands::report::{self, Answer, Asked};
use crate::failure::Failure;
use crate::lines::input::{self, Source};
use crate::lines::output::{Before, Sink};
use crate::lines::replacement::Replacement;
use crate::run::coordinator::End;
use crate::run::screen::Screen;
use crate::run::shared::Operation;
use crate::run::{self, Run};
use crate::state::keeper::Keeper;
use crate::state::lookups::Lookups;
use crate::unsaved;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub fn query(options: &Query) -> Result<Ending, Failure> {
    let began = Instant::now();
    let sources = input::sources(&options.files.files)?;
    options.output.reporting.note(&plain(), unsaved::note(&options.state));
    let job = Job {
        operation: Operation::Find(Box::new(Lookups::open(&options.state)?)),
        refreshes: false,
        select: !options.invert,
        yes_is: "seen",
        answer: Answer::Seen,
        making: None,
        state: &options.state,
        began,
    };
    ask(job, None, sources, &options.input, Some(&options.output), &options.output.reporting)
}

pub fn add(options: &Add) -> Result<Ending, Failure> {
    let began = Instant::now();
    // Before a state is created.
    options.input.rules()?;
    let sources = input::sources(&options.files.files)?;
    let (mut keeper, taken_in) = unsaved::claim(&options.state, &options.waiting)?;
    options.reporting.note(&plain(), taken_in);
    let (seen, ignored) = keeper.load_or_make(&options.making)?;
    options.reporting.note(&plain(), ignored);
    let job = Job {
        operation: Operation::Add(seen),
        refreshes: options.making.forgetting.refresh,
        select: true,
        yes_is: "added",
        answer: Answer::Added,
        making: Some(&options.making),
        state: &options.state,
        began,
    };
    ask(job, Some(keeper), sources, &options.input, None, &options.reporting)
}

pub fn forget(options: &Forget) -> Result<Ending, Failure> {
    let began = Instant::now();
    let sources = input::sources(&options.files.files)?;
    let (keeper, taken_in) = unsaved::claim(&options.state, &options.waiting)?;
    options.reporting.note(&plain(), taken_in);
    let seen = keeper.load()?;
    let job = Job {
        operation: Operation::Remove(seen),
        refreshes: false,
        select: true,
        yes_is: "forgotten",
        answer: Answer::Forgotten,
        making: None,
        state: &options.state,
        began,
    };
    ask(job, Some(keeper), sources, &options.input, None, &options.reporting)
}

/// A screen without a progress bar.
fn plain() -> Screen {
    Screen::new(false, false, None)
}

struct Job<'a> {
    operation: Operation,
    /// Whether a line that is seen again is remembered from then on.
    refreshes: bool,
    select: bool,
    yes_is: &'static str,
    answer: fn(u64) -> Answer,
    state: &'a Path,
    /// How the state was to be made, if lines are added.
    making: Option<&'a Making>,
    /// When the command began, before the state was loaded.
    began: Instant,
}

fn ask(
    job: Job<'_>,
    keeper: Option<Keeper>,
    sources: Vec<Source>,
    input: &Input,
    output: Option<&Output>,
    reporting: &Reporting,
) -> Result<Ending, Failure> {
    let rules = input.rules()?;
    let mut sink = Sink::default();
    // Where the number of lines goes, at the end.
    let mut counted = None;
    let (mut replacement, mut is_input) = (None, false);
    if let Some(output) = output {
        let (path, state) = (output.output.as_deref(), Some(job.state));
        let (opened, later) = Sink::open(path, Before::Replaced, &sources, state)?;
        let old = later.as_ref().and_then(Replacement::old);
        is_input = old.is_some_and(|old| input::that_is(&sources, old).is_some());
        replacement = later;
        match output.count {
            true => counted = Some(opened),
            false => sink = opened,
        }
    }
    let is_shown = output.is_some_and(Output::is_shown);
    let screen = Screen::new(reporting.wants_bar(), is_shown, input::total_bytes(&sources));
    let screen = Arc::new(screen);
    let (mut outcome, _watch) = run::run(Run {
        operation: job.operation,
        refreshes: job.refreshes,
        select: job.select,
        sources,
        rules,
        limit: None,
        threads: input.threads,
        sink,
        aside: None,
        keeper,
        checkpoint: None,
        screen: Arc::clone(&screen),
        yes_is: job.yes_is,
    })?;
    if let (Some(mut sink), End::Reached) = (counted, &outcome.end) {
        let written = sink.write(format!("{}\n", outcome.tally.selected).as_bytes());
        outcome.end = written.err().map_or(End::Reached, End::from);
    }

    let path = output.and_then(|output| output.output.as_deref());
    reporting.settle(&screen, &mut outcome, replacement.zip(path), is_input);

    let exceeded = job.making.and_then(|making| making.exceeded(&outcome.stats));
    reporting.note(&screen, exceeded.clone());
    let tally = &outcome.tally;
    let report = Asked {
        lines: tally.lines,
        answer: (job.answer)(tally.yes),
        bytes: tally.bytes,
        not_urls: report::not_urls(&outcome.hash, tally.not_urls),
        without_field: report::without_field(rules, tally.without_field),
        unreadable: tally.unreadable,
        rate: outcome.stats.false_positive_rate,
        rate_exceeded: job.making.map(|_| exceeded.is_some()),
        known: outcome.known(),
        memory_bytes: outcome.stats.size_in_bytes,
        state: job.state.display().to_string(),
        unchanged: outcome.is_unchanged(),
        seconds: report::seconds(job.began.elapsed()),
        end: report::name_of(&outcome.end),
    };
    let none_is_1 = !matches!(report.answer, Answer::Added(_));
    Closing { reporting, screen: &screen, none_is_1 }.close(&report, &outcome)
}
