//! The coordinator, on the calling thread: saves the state, shows progress, and ends the run.

use crate::failure::{Failure, Trouble};
use crate::lines::output::Syncer;
use crate::run::monitor::{Event, Idle};
use crate::run::shared::{Operation, Shared, locked};
use crate::run::tally::Changes;
use crate::state::keeper::Keeper;
use crate::state::seen::Seen;
use indicatif::HumanCount;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How a run ended.
pub enum End {
    /// All lines have been processed.
    Reached,
    Signal(i32),
    /// As many lines have been written as were asked for.
    Enough,
    /// The reader of the output has closed it.
    BrokenPipe,
    Failed(Failure),
}

impl From<Trouble> for End {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::BrokenPipe => End::BrokenPipe,
            Trouble::Signal(signal) => End::Signal(signal),
            Trouble::Failed(failure) => End::Failed(failure),
        }
    }
}

/// What the file of a state has at the end of a run.
pub struct Saved {
    /// The number of its lines.
    pub known: usize,
    /// The number of lines that were added or removed, but not in the file.
    pub not_saved: u64,
    /// Whether it was left as it was, because no line changed it.
    pub is_unchanged: bool,
}

/// How long a run that has to end waits for a writer that makes no progress.
const GRACE: Duration = Duration::from_secs(1);

/// The interval between updates of the progress bar.
const TICK: Duration = Duration::from_millis(100);

pub struct Coordinator<'a> {
    shared: &'a Shared,
    keeping: Option<Keeping>,
    yes_is: &'static str,
    /// The number of lines that were added, not written, and removed again.
    pub taken_back: u64,
}

/// When and how the state is saved.
pub struct Keeping {
    keeper: Keeper,
    syncer: Syncer,
    period: Option<Duration>,
    next: Option<Instant>,
    /// What was done in this run and is in the file.
    saved: Changes,
    /// Whether the file was written in this run.
    has_saved: bool,
    /// The number of lines that the file has.
    known: usize,
}

impl<'a> Coordinator<'a> {
    pub fn new(shared: &'a Shared, keeping: Option<Keeping>, yes_is: &'static str) -> Self {
        Coordinator { shared, keeping, yes_is, taken_back: 0 }
    }

    /// Waits until the run ends. Meanwhile, saves checkpoints and shows progress.
    pub fn wait(&mut self) -> End {
        loop {
            let now = Instant::now();
            let tick = if self.shared.screen.has_bar() {
                now + TICK
            } else {
                now + Duration::from_secs(3_600)
            };
            let due = self.keeping.as_ref().and_then(|keeping| keeping.next);
            match self.shared.monitor.wait(due.map_or(tick, |due| due.min(tick))) {
                Event::Finished => return End::Reached,
                Event::Enough => return End::Enough,
                Event::Signal(signal) => return End::Signal(signal),
                Event::Trouble(trouble) => return End::from(trouble),
                Event::Time => self.show(),
            }
            if due.is_some_and(|due| due <= Instant::now()) {
                self.checkpoint();
            }
        }
    }

    fn show(&self) {
        let tally = locked(&self.shared.so_far.tally);
        let read = self.shared.so_far.read.load(Relaxed);
        self.shared.screen.progress(read, tally.lines, tally.yes, self.yes_is);
    }

    /// Holds the reader, waits until every chunk handed in has been written, and saves the state.
    /// Gives up if a signal or an error comes first.
    fn checkpoint(&mut self) {
        let Shared { monitor, screen, operation, .. } = self.shared;
        let changes = self.changes();
        let Some(seen) = operation.changes() else { return };
        if self.keeping.as_ref().is_none_or(|keeping| keeping.saved == changes) {
            return self.postpone(Duration::ZERO);
        }
        monitor.hold();
        let idle = loop {
            match monitor.wait_until_idle(Instant::now() + TICK) {
                Idle::Late => self.show(),
                idle => break idle,
            }
        };
        if idle == Idle::Reached
            && let Some(keeping) = &mut self.keeping
        {
            let start = Instant::now();
            match keeping.syncer.sync() {
                // The lines written may be lost, so the state must not be saved any more.
                Err(failure) => monitor.trouble(Trouble::Failed(failure)),
                Ok(()) => {
                    let changes = locked(&self.shared.so_far.tally).changes();
                    if let Err(failure) = keeping.save_synced(seen, changes) {
                        screen.say(format!("{failure} (will be tried again)"));
                    }
                }
            }
            self.postpone(start.elapsed());
        }
        monitor.go_on();
    }

    fn changes(&self) -> Changes {
        locked(&self.shared.so_far.tally).changes()
    }

    /// What was saved of a state, if there is one.
    pub fn saved(&self) -> Option<Saved> {
        let Keeping { saved, has_saved, known, .. } = self.keeping.as_ref()?;
        let changes = self.changes();
        let is_unchanged = !has_saved && changes == *saved;
        Some(Saved { known: *known, not_saved: changes.lines - saved.lines, is_unchanged })
    }

    /// Says how many lines were processed in vain, after a save that failed.
    fn in_vain(&self) -> String {
        let lines = match self.saved().map_or(0, |saved| saved.not_saved) {
            0 => return String::new(),
            1 => String::from("1 line"),
            lines => format!("{} lines", HumanCount(lines)),
        };
        match self.shared.operation {
            Operation::Add(_) if self.shared.writes => format!(
                "; {lines} that had been written could not be saved as seen, so the next run writes \
                 them again"
            ),
            Operation::Add(_) => format!("; {lines} could not be added"),
            _ => format!("; {lines} could not be forgotten"),
        }
    }

    /// Schedules the next checkpoint, so that saves take at most a tenth of the time.
    fn postpone(&mut self, took: Duration) {
        if let Some(keeping) = &mut self.keeping {
            keeping.next = keeping.period.map(|period| Instant::now() + period.max(9 * took));
        }
    }

    /// Removes from the filter what was not written, and saves the state.
    pub fn finish(&mut self, end: End) -> End {
        let Shared { monitor, screen, operation, so_far, .. } = self.shared;
        monitor.close();
        if let End::Signal(_) = end {
            let mut written = monitor.written();
            while monitor.wait_until_idle(Instant::now() + GRACE) == Idle::Late {
                if written == monitor.written() {
                    break;
                }
                written = monitor.written();
            }
            // The error that kept the remaining chunks from being written is reported as well.
            if let Event::Trouble(Trouble::Failed(failure)) = monitor.wait(Instant::now()) {
                screen.say(failure);
            }
        }
        let Some(halt) = so_far.turns.halt() else { return end };
        let not_written = halt.added();
        self.taken_back = not_written.len() as u64;
        so_far.stop_adding(&halt);
        if let Operation::Add(seen) = operation {
            // If the output was stuck for long, the filter may have forgotten some of them by itself. There
            // is nothing else that could be removed instead: a line that seems to be the same is only added
            // when the first is gone, so it comes later, and is not written either.
            seen.remove_many(&not_written);
            let mut tally = locked(&self.shared.so_far.tally);
            let added = tally.yes;
            tally.doubt.update(seen, added, true);
        }
        let changes = self.changes();
        let saved = match (&mut self.keeping, operation.changes()) {
            (Some(keeping), Some(seen)) => keeping.save(seen, changes),
            _ => Ok(()),
        };
        let stopped = locked(&self.shared.so_far.stopped).take();
        match (end, saved, stopped) {
            // Only one error is reported. A failed save has precedence.
            (_, Err(failure), _) => {
                End::Failed(Failure::new(format!("{failure}{}", self.in_vain())))
            }
            (End::Reached, Ok(()), Some(failure)) => End::Failed(failure),
            (end, Ok(()), _) => end,
        }
    }
}

impl Keeping {
    /// Keeps a state whose file has `known` lines.
    pub fn new(keeper: Keeper, syncer: Syncer, period: Option<Duration>, known: usize) -> Self {
        let next = period.map(|period| Instant::now() + period);
        Keeping { keeper, syncer, period, next, saved: Changes::default(), has_saved: false, known }
    }

    /// Syncs the output, then saves the state, unless nothing has changed: a line must be safe before
    /// it is saved as seen.
    fn save(&mut self, seen: &Seen, changes: Changes) -> Result<(), Failure> {
        self.syncer.sync()?;
        if self.saved == changes { Ok(()) } else { self.save_synced(seen, changes) }
    }

    fn save_synced(&mut self, seen: &Seen, changes: Changes) -> Result<(), Failure> {
        self.keeper.save(seen)?;
        (self.saved, self.has_saved, self.known) = (changes, true, seen.len());
        Ok(())
    }
}
