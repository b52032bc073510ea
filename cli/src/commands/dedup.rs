//! `koel dedup`: writes each line the first time it is seen.

use crate::arguments::dedup::Dedup;
use crate::commands::closing::{Closing, Ending};
use crate::commands::compared::Compared;
use crate::commands::report::{self, Deduplicated};
use crate::failure::Failure;
use crate::lines::aside::Aside;
use crate::lines::input;
use crate::lines::output::{Before, Sink};
use crate::lines::replacement::Replacement;
use crate::lines::streams::{self, Stream};
use crate::run::coordinator::End;
use crate::run::screen::Screen;
use crate::run::shared::Operation;
use crate::run::{self, Run};
use crate::state::keeper::{self, Keeper};
use crate::unsaved;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest interval between checkpoints.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

/// What is said of a signal there.
const IN_THE_SECOND_PASS: &str =
    "ended in the second pass: lines dropped by mistake may be missing";

pub fn dedup(options: &Dedup) -> Result<Ending, Failure> {
    let began = Instant::now();
    let sources = input::sources(&options.files.files)?;
    let rules = options.input.rules()?;
    let path = options.output.output.as_deref();
    if Stream::at(path) == Some(Stream::Output) {
        // Lines that go nowhere must not be saved as seen.
        streams::check_output()?;
    }
    let total_bytes = input::total_bytes(&sources);
    // New lines that are not written must not be saved as seen.
    let writes_new = !options.output.count && !options.repeated;
    let kept = options.state.as_deref().filter(|_| writes_new);
    let claimed = kept.map(|state| unsaved::claim(state, &options.waiting)).transpose()?;
    let (mut keeper, mut taken_in) =
        claimed.map_or((None, None), |(keeper, note)| (Some(keeper), note));
    let (seen, ignored) = match (&mut keeper, options.state.as_deref()) {
        (Some(keeper), _) => keeper.load_or_make(&options.making)?,
        (None, Some(state)) => {
            taken_in = unsaved::note(state);
            keeper::load_to_read(state, &options.making)?
        }
        (None, None) => (options.making.build_for(total_bytes.unwrap_or(0))?, None),
    };
    let before = match keeper {
        Some(_) => Before::Kept { terminator: rules.terminator },
        None => Before::Replaced,
    };
    let state = options.state.as_deref();
    let (opened, replacement) = Sink::open(path, before, &sources, state)
        .inspect_err(|_| keeper.iter().for_each(Keeper::discard_new))?;
    let mut output = Some(opened);

    let old = replacement.as_ref().and_then(Replacement::old);
    let is_input = old.is_some_and(|old| input::that_is(&sources, old).is_some());

    // Lines are written immediately, unless they are only counted, or it is not yet certain which
    // are repeated.
    let direct = !(options.output.count || options.lossless && options.repeated);
    let sink = output.take_if(|_| direct).unwrap_or_else(Sink::default);
    let aside = match options.lossless {
        true => Some(Aside::new(!sink.can_be_read_again())?),
        false => None,
    };
    let reporting = &options.output.reporting;
    let screen = Arc::new(Screen::new(
        reporting.wants_bar(),
        options.output.is_shown() && path.is_none(),
        total_bytes,
    ));
    reporting.note(&screen, taken_in);
    reporting.note(&screen, ignored);
    let state = state.map(|path| path.display().to_string());
    let checkpoint = (options.checkpoint > 0.0)
        .then(|| Duration::from_secs_f64(options.checkpoint).max(SHORTEST_PERIOD));
    let (mut outcome, watch) = run::run(Run {
        operation: Operation::Add(seen),
        refreshes: options.making.forgetting.refresh,
        select: options.lossless || !options.repeated,
        sources,
        rules,
        limit: options.limit,
        threads: options.input.threads,
        sink,
        aside,
        keeper,
        checkpoint,
        screen: Arc::clone(&screen),
        yes_is: "new",
    })?;

    let (mut new, mut recovered) = (outcome.tally.yes, None);
    if let Some((sink, aside)) = outcome.written.take() {
        let mut output = output.take().unwrap_or(sink);
        if let Some(aside) = aside {
            let unfinished = replacement.as_ref().and_then(Replacement::unfinished);
            watch.end_at_once(IN_THE_SECOND_PASS, unfinished);
            let pass = || {
                let settled = aside.settle(output.read_again()?, rules, outcome.hash)?;
                recovered = Some(settled.mistaken());
                new += settled.mistaken();
                let mistaken = !options.repeated;
                match options.output.count {
                    true => Ok(()),
                    false => settled.for_each(mistaken, rules, |lines| output.write(lines)),
                }
            };
            if let Err(trouble) = pass() {
                outcome.end = End::from(trouble);
            }
            watch.go_on();
        }
        if options.output.count && matches!(outcome.end, End::Reached) {
            let number = if options.repeated { outcome.tally.lines - new } else { new };
            if let Err(trouble) = output.write(format!("{number}\n").as_bytes()) {
                outcome.end = End::from(trouble);
            }
        }
    }

    reporting.settle(&screen, &mut outcome, replacement.zip(path), is_input);

    let exceeded = options.making.exceeded(&outcome.stats);
    if recovered.is_none() {
        reporting.note(&screen, exceeded.clone());
    }
    let tally = &outcome.tally;
    let report = Deduplicated {
        lines: tally.lines,
        new,
        repeated: tally.lines - new,
        bytes: tally.bytes,
        expected_drops: if recovered.is_some() {
            0.0
        } else {
            tally.doubt.expected(tally.lines - new)
        },
        recovered,
        compared: Compared { comparison: outcome.hash.comparison(), rules }.to_string(),
        not_urls: report::not_urls(&outcome.hash, tally.not_urls),
        without_field: report::without_field(rules, tally.without_field),
        unreadable: tally.unreadable,
        rate: outcome.stats.false_positive_rate,
        rate_exceeded: exceeded.is_some(),
        known: outcome.known(),
        memory_bytes: outcome.stats.size_in_bytes,
        state,
        unchanged: outcome.is_unchanged(),
        saved: outcome.saved.is_some() && !matches!(outcome.end, End::Failed(_)),
        seconds: report::seconds(began.elapsed()),
        end: report::name_of(&outcome.end),
    };
    Closing { reporting, screen: &screen, none_is_1: false }.close(&report, &outcome)
}
