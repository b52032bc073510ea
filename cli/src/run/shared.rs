//! What the threads of a run share.

use crate::run::monitor::Monitor;
use crate::run::plan::{Plan, Verb};
use crate::run::tally::Tally;
use crate::run::turns::Turns;
use crate::state::keeper::Filter;
use crate::state::seen::Seen;
use crate::unsaved::output::Noting;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

pub struct Shared {
    pub plan: Arc<Plan>,
    pub filter: Filter,
    /// Whether added lines are recorded in the ledger until they have been written.
    pub records: bool,
    /// The note of what the output has, if a run that follows a killed one can read it there.
    pub noting: Option<Noting>,
    pub monitor: Arc<Monitor>,
    pub turns: Turns,
    pub tally: Mutex<Tally>,
    /// Bytes read from the input files, before decompression. Relaxed everywhere, because it only feeds the progress
    /// bar.
    pub read: Arc<AtomicU64>,
}

impl Shared {
    /// The filter, if the run changes it.
    pub fn changes(&self) -> Option<&Seen> {
        match &self.filter {
            Filter::Loaded(seen) if self.plan.verb != Verb::Query => Some(seen),
            _ => None,
        }
    }

    /// The filter, if lines are added.
    pub fn adds(&self) -> Option<&Seen> {
        self.changes().filter(|_| self.plan.verb != Verb::Forget)
    }

    /// Lets the ticks pass that are due by the system's clock. Returns the number of the present one.
    pub fn pass_time(&self) -> u64 {
        let Some(seen) = self.changes() else { return 0 };
        seen.keep_up();
        seen.present_tick().unwrap_or(0)
    }
}
