//! What the threads of a run share.

use crate::run::monitor::Monitor;
use crate::run::plan::Plan;
use crate::run::tally::Tally;
use crate::run::turns::Turns;
use crate::state::comparison::LineHash;
use crate::state::keeper::Lookups;
use crate::state::seen::Seen;
use crate::unsaved::output::Noting;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The filter, and the operation that is applied to each line.
pub enum Operation {
    Add(Seen),
    Find(Box<Lookups>),
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

pub struct Shared {
    pub plan: Arc<Plan>,
    pub operation: Operation,
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
    /// Lets the ticks pass that are due by the system's clock. Returns the number of the present one.
    pub fn pass_time(&self) -> u64 {
        let Some(seen) = self.operation.changes() else { return 0 };
        seen.keep_up();
        seen.present_tick().unwrap_or(0)
    }
}

/// Locks a mutex, even if a thread panicked while it held it: the run ends then anyway.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
