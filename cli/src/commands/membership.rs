//! `koel query`, `koel add` and `koel forget`: look up, add or remove the lines of a state.

use crate::arguments::common::{Input, Output, Reporting};
use crate::arguments::membership::{Add, Forget, Query};
use crate::commands::closing::{Closing, Ending};
use crate::commands::report::{self, Answer, Asked};
use crate::failure::Failure;
use crate::lines::input;
use crate::lines::output::{Before, Sink};
use crate::run::coordinator::End;
use crate::run::screen::Screen;
use crate::run::shared::Operation;
use crate::run::{self, Run};
use crate::state::keeper::{self, Keeper};
use crate::state::seen::Seen;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub fn query(options: &Query) -> Result<Ending, Failure> {
    let seen = keeper::load(&options.state)?;
    let job = Job {
        operation: Operation::Find,
        select: !options.invert,
        yes_is: "seen",
        state: &options.state,
    };
    ask(
        job,
        seen,
        None,
        &options.files.files,
        &options.input,
        Some(&options.output),
        &options.output.reporting,
    )
}

pub fn add(options: &Add) -> Result<Ending, Failure> {
    let keeper = Keeper::claim(&options.state)?;
    let seen = keeper.load_or_make(&options.making)?;
    let job =
        Job { operation: Operation::Add, select: true, yes_is: "added", state: &options.state };
    ask(job, seen, Some(keeper), &options.files.files, &options.input, None, &options.reporting)
}

pub fn forget(options: &Forget) -> Result<Ending, Failure> {
    let keeper = Keeper::claim(&options.state)?;
    let seen = keeper.load()?;
    let job = Job {
        operation: Operation::Remove,
        select: true,
        yes_is: "forgotten",
        state: &options.state,
    };
    ask(job, seen, Some(keeper), &options.files.files, &options.input, None, &options.reporting)
}

struct Job<'a> {
    operation: Operation,
    select: bool,
    yes_is: &'static str,
    state: &'a Path,
}

fn ask(
    job: Job<'_>,
    seen: Seen,
    keeper: Option<Keeper>,
    files: &[PathBuf],
    input: &Input,
    output: Option<&Output>,
    reporting: &Reporting,
) -> Result<Ending, Failure> {
    let sources = input::sources(files);
    let mut sink = Sink::nowhere();
    // Where the number of lines goes, at the end.
    let mut counted = None;
    if let Some(output) = output {
        let (path, state) = (output.output.as_deref(), Some(job.state));
        let opened = Sink::open(path, Before::Replaced, &sources, state)?;
        match output.count {
            true => counted = Some(opened),
            false => sink = opened,
        }
    }
    let is_shown = output.is_some_and(Output::is_shown);
    let screen = Screen::new(reporting.wants_bar(), is_shown, input::total_bytes(&sources));
    let screen = Arc::new(screen);
    let (mut outcome, _watch) = run::run(Run {
        seen,
        operation: job.operation,
        select: job.select,
        sources,
        rules: input.rules(),
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

    let tally = &outcome.tally;
    let stats = &outcome.stats;
    let report = Asked {
        lines: tally.lines,
        answer: match job.operation {
            Operation::Add => Answer::Added(tally.yes),
            Operation::Find => Answer::Seen(tally.yes),
            Operation::Remove => Answer::Forgotten(tally.yes),
        },
        bytes: tally.bytes,
        not_urls: report::not_urls(&outcome.hash, tally.not_urls),
        unreadable: tally.unreadable,
        rate: stats.false_positive_rate(),
        known: stats.items(),
        memory_bytes: stats.size_in_bytes(),
        state: job.state.display().to_string(),
        seconds: report::seconds(outcome.took),
        end: report::name_of(&outcome.end),
    };
    let none_is_1 = job.operation != Operation::Add;
    Closing { reporting, screen: &screen, none_is_1 }.close(&report, &outcome)
}
