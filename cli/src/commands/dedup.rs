//! `koel dedup`, `koel query`, `koel add` and `koel forget`: the commands that read lines, from their inputs to their
//! summary.

use crate::arguments::dedup::Dedup;
use crate::arguments::membership::{Add, Forget, Query};
use crate::commands::report::{DONE, Ending, FAILED, NONE, of_lines};
use crate::failure::{End, Failure};
use crate::lines::aside::AT_ONCE;
use crate::lines::folder::Folder;
use crate::lines::input;
use crate::lines::output::Sink;
use crate::lines::replacement::Replacement;
use crate::lines::rules::Field;
use crate::lines::streams::{check_output, is_standard_output};
use crate::run::plan::{Plan, Verb};
use crate::run::{self, Outcome};
use crate::state::keeper::{Filter, Keeper, load, load_to_read};
use crate::unsaved;
use std::sync::Arc;
use std::time::Duration;

/// What is said of a signal in the second pass of `--lossless`.
const IN_THE_SECOND_PASS: &str =
    "ended in the second pass: lines dropped by mistake may be missing";

/// The shortest interval between checkpoints.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

pub fn dedup(options: &Dedup) -> Result<Ending, Failure> {
    let Dedup { files, input, making, output, .. } = options;
    let state = options.state.as_deref();
    let mut plan = Plan::new(Verb::Dedup, files, input, state, &output.reporting)?;
    plan.making = Some(making.clone());
    plan.select = !options.repeated;
    plan.is_lossless = options.lossless;
    plan.limit = options.limit;
    plan.checkpoint = (options.checkpoint > 0.0)
        .then(|| Duration::from_secs_f64(options.checkpoint).max(SHORTEST_PERIOD));
    plan.output = Some(output.clone());
    plan.annotate = options.annotate;
    if let Some(path) = options.text {
        plan.rules.field = Some(Field::Paragraphs(path));
    }
    let folder = options.output_dir.as_deref();
    if folder.is_none() && is_standard_output(output.output.as_deref()) {
        // Lines that go nowhere must not be saved as seen.
        check_output()?;
    }
    // New lines that are not written must not be saved as seen.
    let writes_new = !output.count && !options.repeated;
    let mut keeper = None;
    let seen = match state {
        Some(state) if writes_new => {
            let claimed = unsaved::claim(state, &options.waiting, &mut plan.notes)?;
            keeper.insert(claimed).load_or_make(making, &mut plan.notes)?
        }
        Some(state) => {
            plan.notes.extend(unsaved::note(state));
            load_to_read(state, making, &mut plan.notes)?
        }
        None => making.build(input::total_bytes(&plan.sources).unwrap_or(0))?,
    };
    if let Some(folder) = folder {
        let kept = keeper.as_ref().map(|_| plan.rules.terminator);
        let opened = Folder::open(folder, kept, &plan.sources, state, plan.workers());
        plan.folder = Some(opened.inspect_err(|_| keeper.iter().for_each(Keeper::discard_new))?);
    }
    run(plan, Filter::Loaded(seen), keeper)
}

pub fn query(options: &Query) -> Result<Ending, Failure> {
    let Query { state, files, input, output, .. } = options;
    let mut plan = Plan::new(Verb::Query, files, input, Some(state), &output.reporting)?;
    plan.select = !options.invert;
    plan.output = Some(output.clone());
    plan.notes.extend(unsaved::note(state));
    run(plan, Filter::open(state)?, None)
}

pub fn add(options: &Add) -> Result<Ending, Failure> {
    let Add { state, files, input, making, reporting, .. } = options;
    let mut plan = Plan::new(Verb::Add, files, input, Some(state), reporting)?;
    plan.making = Some(making.clone());
    let mut keeper = unsaved::claim(state, &options.waiting, &mut plan.notes)?;
    let seen = keeper.load_or_make(making, &mut plan.notes)?;
    run(plan, Filter::Loaded(seen), Some(keeper))
}

pub fn forget(options: &Forget) -> Result<Ending, Failure> {
    let Forget { state, files, input, reporting, .. } = options;
    let mut plan = Plan::new(Verb::Forget, files, input, Some(state), reporting)?;
    let keeper = unsaved::claim(state, &options.waiting, &mut plan.notes)?;
    run(plan, Filter::Loaded(load(state)?), Some(keeper))
}

/// Runs a plan to its summary.
fn run(mut plan: Plan, filter: Filter, keeper: Option<Keeper>) -> Result<Ending, Failure> {
    let path = plan.output.as_ref().and_then(|output| output.output.clone());
    let (sink, replacement) = match plan.output {
        Some(_) if plan.folder.is_none() => {
            // Lines are appended if the state knows those that are there.
            let kept = keeper.as_ref().map(|_| plan.rules.terminator);
            Sink::open(path.as_deref(), kept, &plan.sources, plan.state.as_deref())
                .inspect_err(|_| keeper.iter().for_each(Keeper::discard_new))?
        }
        _ => (Sink::default(), None),
    };
    let old = replacement.as_ref().and_then(|replacement| replacement.old.as_ref());
    let is_input = old.is_some_and(|old| input::that_is(&plan.sources, old).is_some());
    let takes_all = !plan.counts() && plan.limit.is_none();
    if let Some(path) = path.as_ref().filter(|_| is_input && !takes_all) {
        let what = "this is an input, and its lines would be lost; write to another file";
        return Err(Failure::about(path, what));
    }
    let is_shown =
        plan.output.is_some() && path.is_none() && !plan.counts() && plan.folder.is_none();
    plan.screen.add_bar(is_shown, input::total_bytes(&plan.sources));
    plan.notes.iter().for_each(|note| plan.screen.warn(note));
    // Lines are written immediately, unless they are only counted, or it is not yet certain which
    // are repeated.
    let select = plan.select;
    if !(plan.counts() || plan.is_lossless && !select) {
        plan.sink = sink.clone();
    }
    plan.select |= plan.is_lossless;
    let plan = Arc::new(plan);
    // The filter goes before the second pass takes memory.
    let (mut outcome, watch) = run::run(&plan, filter, keeper)?;
    if outcome.end.is_whole() {
        if plan.is_lossless {
            let target = replacement.as_ref().map(Replacement::target);
            let unfinished = target.and_then(Replacement::unfinished_beside);
            watch.end_at_once(IN_THE_SECOND_PASS, unfinished);
        }
        if let Err(end) = write_the_rest(&plan, select, &sink, &mut outcome) {
            outcome.end = end;
        }
        watch.go_on();
    }
    if let Some((replacement, path)) = replacement.zip(path) {
        // An input that is replaced must have been read as a whole.
        let is_whole = outcome.end.is_whole() && !(outcome.tally.lacks_lines() && is_input);
        if is_whole && outcome.tally.opened > 0 {
            if let Err(failure) = replacement.finish() {
                outcome.end = End::Failed(failure);
            }
        } else if replacement.old.is_some() {
            plan.screen.note(format_args!("{}: left as it was", path.display()));
        }
    }
    sum_up(&plan, &outcome)
}

/// Writes what can only be known at the end: the lines of the second pass, or the number of lines.
fn write_the_rest(
    plan: &Plan,
    select: bool,
    sink: &Sink,
    outcome: &mut Outcome,
) -> Result<(), End> {
    let mut number = outcome.tally.counts.selected;
    if let Some(aside) = outcome.aside.take() {
        let settled = aside.settle(AT_ONCE, plan.rules, outcome.hash)?;
        let recovered = settled.mistaken.len() as u64;
        outcome.recovered = Some(recovered);
        number += recovered;
        if !plan.counts() {
            settled.for_each(select, plan.rules, |lines| sink.write(lines))?;
        } else if !select {
            number = outcome.tally.counts.lines - number;
        }
    }
    if plan.counts() { sink.write(format!("{number}\n").as_bytes()) } else { Ok(()) }
}

/// Prints the summary of a run, and returns how the command ends.
fn sum_up(plan: &Plan, outcome: &Outcome) -> Result<Ending, Failure> {
    let (screen, tally) = (&plan.screen, &outcome.tally);
    let exceeded = plan.making.as_ref().and_then(|making| making.exceeded(&outcome.stats));
    if outcome.recovered.is_none() {
        exceeded.iter().for_each(|note| screen.note(note));
    }
    if tally.counts.lines > 0 && tally.counts.without_field == tally.counts.lines {
        screen.note(match plan.rules.field {
            Some(Field::Numbered { .. }) => {
                "no line has that --field, so whole lines were compared; --delimiter says what is between fields"
            }
            Some(Field::Paragraphs(_)) => "no record has a paragraph in that --text, so whole records were compared",
            _ => "no line has that --json-field, so whole lines were compared",
        });
    }
    let report = of_lines(plan, outcome, plan.making.as_ref().map(|_| exceeded.is_some()));
    if !matches!(outcome.end, End::BrokenPipe) || screen.is_json {
        screen.sum_up(&report)?;
    }
    let none_is_1 = matches!(plan.verb, Verb::Query | Verb::Forget);
    Ok(match &outcome.end {
        End::Failed(failure) => {
            screen.say(failure);
            FAILED
        }
        End::Signal(signal) => Ending::Signal(*signal),
        _ if tally.lacks_lines() => FAILED,
        // After a broken pipe, some line was selected, even if it was not read.
        End::Reached if none_is_1 && tally.counts.selected == 0 => NONE,
        _ => DONE,
    })
}
