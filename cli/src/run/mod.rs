//! A run: sends the lines of the input through the filter, on several threads.
//!
//! ```text
//!            work                  done
//! reader ──────────▶ worker × n ──────────▶ writer
//!    ▲    chunks                    chunks    │
//!    └───────────────── pool ◀────────────────┘
//! ```
//!
//! The reader cuts the input into chunks of whole lines. Workers compare the lines and ask the
//! filter. They do so in [turns], so that the first of several equal lines is the one that is new.
//! The writer restores the order of the chunks and writes them. A fixed number of chunks
//! circulates, which bounds the memory of a run and gives back-pressure.
//!
//! The calling thread is the [coordinator]. When it saves the state, lines go on, and it waits until
//! every chunk of which the filter had something then has been written. If the run ends early, it removes from the
//! filter the lines that were added but not written. A line is therefore never saved as seen unless it was written. If
//! the output is a pipe whose reader has gone, that holds for the lines that stayed
//! [in the pipe](crate::lines::pipe), too.
//!
//! What a kill leaves of a run, [`crate::unsaved`] explains.

pub mod coordinator;
pub mod crew;
pub mod monitor;
pub mod recent;
pub mod screen;
pub mod shared;
pub mod signals;
pub mod tally;
pub mod turns;
pub mod worker;

use crate::failure::Failure;
use crate::lines::aside::Aside;
use crate::lines::input::Source;
use crate::lines::output::Sink;
use crate::lines::rules::Rules;
use crate::run::coordinator::{Coordinator, End, Keeping, Saved};
use crate::run::monitor::Monitor;
use crate::run::screen::Screen;
use crate::run::shared::{Operation, Shared, SoFar, locked};
use crate::run::signals::Watch;
use crate::run::tally::Tally;
use crate::state::comparison::LineHash;
use crate::state::keeper::Keeper;
use crate::unsaved::output::Noting;
use koel_state::window::Window;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The parameters of a run.
pub struct Run {
    pub operation: Operation,
    /// Whether a line that is seen again is remembered from then on.
    pub refreshes: bool,
    /// The answer that selects a line to be written.
    pub select: bool,
    pub sources: Vec<Source>,
    pub rules: Rules,
    /// The number of selected lines after which the run ends.
    pub limit: Option<u64>,
    /// The number of workers. `None` is one for each core.
    pub threads: Option<usize>,
    pub sink: Sink,
    /// Where the lines that are not selected go, if they are kept.
    pub aside: Option<Aside>,
    pub keeper: Option<Keeper>,
    /// The interval between saves of the state.
    pub checkpoint: Option<Duration>,
    pub screen: Arc<Screen>,
    /// What the progress bar calls lines whose answer is yes.
    pub yes_is: &'static str,
}

/// The result of a run.
pub struct Outcome {
    /// What the filter is at the end of the run.
    pub stats: koel::Stats,
    pub hash: LineHash,
    pub tally: Tally,
    pub end: End,
    /// Where the lines were written to, if the run came to its end undisturbed.
    pub written: Option<(Sink, Option<Aside>)>,
    /// The number of lines that were added and not written or not read, and so removed again.
    pub taken_back: u64,
    /// What was saved of the state, if there is one.
    pub saved: Option<Saved>,
}

/// Processes all lines, saves the state, and watches for signals.
pub fn run(run: Run) -> Result<(Outcome, Watch), Failure> {
    let monitor = Arc::new(Monitor::default());
    let watch = Watch::start(&monitor)?;
    let threads =
        run.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let window = run.operation.changes().and_then(|seen| Window::of(seen).ok().flatten());
    let hash = run.operation.hasher();
    let note = |keeper| Noting::new(keeper, hash, &run.sink, run.rules);
    let noting = run.keeper.as_ref().and_then(note);
    let pipe = run.keeper.as_ref().and_then(|_| run.sink.pipe(run.rules, *hash)).map(Mutex::new);
    let shared = Arc::new(Shared {
        operation: run.operation,
        window,
        refreshes: run.refreshes,
        select: run.select,
        rules: run.rules,
        limit: run.limit,
        sets_aside: run.aside.is_some(),
        writes: run.sink.is_somewhere() || run.aside.is_some(),
        records: run.keeper.is_some(),
        pipe,
        noting,
        screen: run.screen,
        monitor,
        so_far: SoFar::default(),
    });
    // What has been forgotten since the state was saved is not known any more.
    shared.pass_time();
    let keeping = match run.keeper {
        None => None,
        Some(keeper) => {
            let known = shared.operation.stats().items;
            Some(Keeping::new(keeper, run.sink.syncer()?, run.checkpoint, known))
        }
    };
    let writer = crew::start(&shared, run.sources, threads, run.sink, run.aside)?;
    let mut coordinator = Coordinator::new(&shared, keeping, run.yes_is);
    let end = coordinator.wait();
    // After an early end, the writer may block for ever, so it is not joined.
    let written = matches!(end, End::Reached | End::Enough).then(|| writer.join().ok()).flatten();
    let is_there = written.as_ref().map_or(Ok(()), |(sink, _)| sink.check_there());
    let end = match (coordinator.finish(end), is_there) {
        (End::Reached | End::Enough, Err(failure)) => End::Failed(failure),
        (end, _) => end,
    };
    shared.screen.clear();
    let tally = locked(&shared.so_far.tally).clone();
    let (stats, hash) = (shared.operation.stats(), *shared.operation.hasher());
    let (saved, taken_back) = (coordinator.saved(), coordinator.taken_back);
    Ok((Outcome { stats, hash, tally, end, written, taken_back, saved }, watch))
}
