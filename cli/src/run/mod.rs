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
//! filter the lines that were added but not written. A line is therefore never saved as seen unless it was written.
//! If a write fails because the reader of a pipe has gone, none of its chunk counts as written.
//!
//! What a kill leaves of a run, [`crate::unsaved`] explains.

pub mod coordinator;
pub mod crew;
pub mod monitor;
pub mod plan;
pub mod screen;
pub mod shared;
pub mod signals;
pub mod tally;
pub mod turns;
pub mod worker;

use crate::failure::{End, Failure, locked};
use crate::lines::aside::Aside;
use crate::run::coordinator::{Checkpointer, Coordinator, Saved};
use crate::run::monitor::Monitor;
use crate::run::plan::Plan;
use crate::run::shared::Shared;
use crate::run::signals::Watch;
use crate::run::tally::Tally;
use crate::run::turns::Turns;
use crate::state::comparison::LineHash;
use crate::state::keeper::{Filter, Keeper};
use crate::unsaved::output::Noting;
use std::sync::{Arc, Mutex};

/// The result of a run.
pub struct Outcome {
    /// What the filter is at the end of the run.
    pub stats: koel::Stats,
    pub hash: LineHash,
    pub tally: Tally,
    pub end: End,
    /// The lines that were set aside, if the run came to its end undisturbed.
    pub aside: Option<Aside>,
    /// The number of lines dropped by mistake that were found among them.
    pub recovered: Option<u64>,
    /// What was saved of the state, if there is one.
    pub saved: Option<Saved>,
}

/// Processes all lines, saves the state, and watches for signals.
pub fn run(
    plan: &Arc<Plan>,
    filter: Filter,
    keeper: Option<Keeper>,
) -> Result<(Outcome, Watch), Failure> {
    let aside = plan.is_lossless.then(Aside::new).transpose()?;
    let monitor = Arc::new(Monitor::default());
    let watch = Watch::start(&monitor)?;
    let noting = match (&keeper, &filter) {
        (Some(keeper), Filter::Loaded(seen)) => {
            Noting::new(keeper, seen, &plan.sink, plan.folder.is_some(), plan.rules)
        }
        _ => None,
    };
    let shared = Arc::new(Shared {
        plan: Arc::clone(plan),
        filter,
        records: keeper.is_some(),
        noting,
        monitor,
        turns: Turns::default(),
        tally: Mutex::default(),
        read: Arc::default(),
    });
    // What has been forgotten since the state was saved is not known any more.
    shared.pass_time();
    let filter = &shared.filter;
    let keep = |keeper| Checkpointer::new(keeper, plan.checkpoint, filter.stats().items);
    let keeping = keeper.map(keep);
    let writer = crew::start(&shared, aside)?;
    let mut coordinator = Coordinator { shared: &shared, keeping };
    let end = coordinator.wait();
    // After an early end, the writer may block for ever, so it is not joined.
    let is_whole = end.is_whole();
    let aside = is_whole.then(|| writer.join().ok()).flatten().flatten();
    let is_there = if is_whole { plan.sink.check_there() } else { Ok(()) };
    let end = match (coordinator.finish(end), is_there) {
        (end, Err(failure)) if end.is_whole() => End::Failed(failure),
        (end, _) => end,
    };
    plan.screen.clear();
    let tally = locked(&shared.tally).clone();
    let (stats, hash, saved) = (filter.stats(), *filter.hasher(), coordinator.saved());
    Ok((Outcome { stats, hash, tally, end, aside, recovered: None, saved }, watch))
}
