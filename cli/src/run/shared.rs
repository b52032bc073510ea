//! What the threads of a run share.

use crate::lines::output::Sink;
use crate::lines::rules::Rules;
use crate::run::monitor::Monitor;
use crate::run::screen::Screen;
use crate::run::tally::Tally;
use crate::run::turns::Turns;
use crate::state::comparison::LineHash;
use crate::state::keeper::Lookups;
use crate::state::seen::Seen;
use crate::unsaved::output::Noting;
use koel::Window;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The operation that is applied to each line, which answers yes or no, and to what it is applied.
pub enum Operation {
    /// Adds the line. The answer is yes if it was not there.
    Add(Seen),
    /// Looks the line up. The answer is yes if it is there.
    Find(Box<Lookups>),
    /// Removes the line. The answer is yes if it was there.
    Remove(Seen),
}

impl Operation {
    /// The filter, if the operation changes it.
    pub fn changes(&self) -> Option<&Seen> {
        match self {
            Operation::Add(seen) | Operation::Remove(seen) => Some(seen),
            Operation::Find(_) => None,
        }
    }

    pub fn hasher(&self) -> &LineHash {
        match self {
            Operation::Add(seen) | Operation::Remove(seen) => seen.hasher(),
            Operation::Find(lookups) => lookups.hasher(),
        }
    }

    pub fn stats(&self) -> koel::Stats {
        match self {
            Operation::Add(seen) | Operation::Remove(seen) => seen.stats(),
            Operation::Find(lookups) => lookups.stats(),
        }
    }
}

/// What is done to lines.
pub struct Task {
    pub operation: Operation,
    /// Whether a line that is seen again is remembered from then on.
    pub refreshes: bool,
    /// The answer that selects a line to be written.
    pub select: bool,
    pub rules: Rules,
    /// The number of selected lines after which the run ends.
    pub limit: Option<u64>,
    /// Where selected lines are written.
    pub sink: Sink,
    pub screen: Arc<Screen>,
    /// What the progress bar calls lines whose answer is yes.
    pub matched_label: &'static str,
}

pub struct Shared {
    pub task: Arc<Task>,
    /// For how long the filter remembers lines, if not for ever.
    pub window: Option<Window>,
    /// Whether the lines that are not selected are set aside.
    pub sets_aside: bool,
    /// Whether selected lines, or those set aside, are kept at all.
    pub writes: bool,
    /// Whether added lines are recorded in the ledger until they have been written.
    pub records: bool,
    /// The note of what the output has, if a run that follows a killed one can read it there.
    pub noting: Option<Noting>,
    pub monitor: Arc<Monitor>,
    pub so_far: SoFar,
}

/// Time, in a filter that forgets.
impl Shared {
    /// Lets the ticks pass that are due by the system's clock. Returns the number of the present one.
    pub fn pass_time(&self) -> u64 {
        let (Some(window), Some(seen)) = (self.window, self.task.operation.changes()) else {
            return 0;
        };
        seen.tick_to(window.number_now());
        seen.present_tick().unwrap_or(0)
    }
}

/// The progress of a run.
#[derive(Default)]
pub struct SoFar {
    pub turns: Turns,
    pub tally: Mutex<Tally>,
    /// Bytes read from the input files, before decompression. Relaxed everywhere, because it only feeds the progress
    /// bar.
    pub read: Arc<AtomicU64>,
}

/// Locks a mutex, even if a thread panicked while it held it: the run ends then anyway.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
