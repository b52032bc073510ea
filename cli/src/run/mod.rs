//! Lines through the filter, as fast as they come.
//!
//! ```text
//!            work                  done
//! reader ──────────▶ worker × n ──────────▶ writer
//!    ▲    chunks                    chunks    │
//!    └───────────────── pool ◀────────────────┘
//! ```
//!
//! The reader cuts the input into chunks of whole lines. Workers compare the lines and ask the filter, which they do in
//! [turns](crate::run::turns), so that of two lines that are the same the first one is new. The writer puts the chunks
//! into their order again and writes. There are a few chunks, which go round.
//!
//! The thread that calls is the coordinator. It saves the state, for which it lets everything that was handed in be
//! written first; and when the run has to end early, it takes back what was added for lines that were not
//! written. So a line is never saved as seen without having been written.

pub mod coordinator;
pub mod crew;
pub mod monitor;
pub mod screen;
pub mod signals;
pub mod tally;
pub mod turns;

use crate::failure::Failure;
use crate::lines::aside::Aside;
use crate::lines::chunk::Rules;
use crate::lines::input::Source;
use crate::lines::output::Sink;
use crate::run::coordinator::{Coordinator, End, Keeping};
use crate::run::crew::{Act, Shared, SoFar, locked};
use crate::run::monitor::Monitor;
use crate::run::screen::Screen;
use crate::run::tally::Tally;
use crate::state::comparison::LineHash;
use crate::state::keeper::Keeper;
use crate::state::seen::Seen;
use koel::Stats;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// What is to be done.
pub struct Run {
    pub seen: Seen,
    pub act: Act,
    /// Which answer makes a line one to be written.
    pub select: bool,
    pub sources: Vec<Source>,
    pub rules: Rules,
    pub threads: Option<usize>,
    pub sink: Sink,
    /// Where lines go that are not selected, if they are to be kept.
    pub aside: Option<Aside>,
    pub keeper: Option<Keeper>,
    /// How often the state is saved.
    pub checkpoint: Option<Duration>,
    pub screen: Arc<Screen>,
    /// What the bar calls lines with the answer yes.
    pub yes_is: &'static str,
}

/// What became of it.
pub struct Outcome {
    /// Of the filter, which is gone.
    pub stats: Stats,
    pub hash: LineHash,
    pub tally: Tally,
    pub end: End,
    /// If all has been written.
    pub written: Option<(Sink, Option<Aside>)>,
    pub took: Duration,
}

/// Goes through all lines, and saves the state.
pub fn run(run: Run, monitor: &Arc<Monitor>) -> Result<Outcome, Failure> {
    let start = Instant::now();
    let threads =
        run.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let shared = Arc::new(Shared {
        seen: Arc::new(run.seen),
        act: run.act,
        select: run.select,
        rules: run.rules,
        puts_aside: run.aside.is_some(),
        writes: run.sink.is_somewhere() || run.aside.is_some(),
        notes: run.keeper.is_some(),
        screen: run.screen,
        monitor: Arc::clone(monitor),
        so_far: SoFar::default(),
    });
    let keeping = match run.keeper {
        None => None,
        Some(keeper) => Some(Keeping::new(keeper, run.sink.syncer()?, run.checkpoint)),
    };
    let writer = crew::start(&shared, run.sources, threads, run.sink, run.aside)?;
    let mut coordinator = Coordinator::new(&shared, keeping, run.yes_is);
    let end = coordinator.wait();
    // If something has gone wrong, it may wait for ever.
    let written = matches!(end, End::Reached).then(|| writer.join().ok()).flatten();
    let end = coordinator.finish(end);
    shared.screen.clear();
    let tally = locked(&shared.so_far.tally).clone();
    let (stats, hash) = (shared.seen.stats(), *shared.seen.hasher());
    Ok(Outcome { stats, hash, tally, end, written, took: start.elapsed() })
}
