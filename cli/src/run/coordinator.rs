//! The coordinator, on the calling thread: saves the state, shows progress, and ends the run.

use crate::failure::{Failure, Trouble};
use crate::lines::output::Syncer;
use crate::run::monitor::{Event, Idle};
use crate::run::shared::{Operation, Shared, locked};
use crate::run::tally::Changes;
use crate::state::keeper::{Keeper, NotSaved};
use crate::state::seen::Seen;
use crate::unsaved::output::Noting;
use indicatif::HumanCount;
use std::cell::{Cell, RefCell};
use std::sync::TryLockError;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
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
    syncer: RefCell<Syncer>,
    period: Option<Duration>,
    next: Option<Instant>,
    /// What was done in this run and is in the file.
    saved: Changes,
    /// Whether the file was written, or created, in this run.
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

    /// Saves the state while lines go on. Gives up if a signal or an error comes first.
    fn checkpoint(&mut self) {
        let Shared { monitor, screen, operation, so_far, noting, .. } = self.shared;
        let Some(seen) = operation.changes() else { return };
        // What is counted is written, and the filter has all of it.
        let changes = self.changes();
        let written = noting.as_ref().map(Noting::written);
        let start = Instant::now();
        let mut shown = start;
        let mut show = || {
            if shown.elapsed() > TICK {
                shown = Instant::now();
                self.show();
            }
        };
        let goes_on = || {
            show();
            !monitor.is_disturbed()
        };
        let Some(keeping) = self.keeping.as_ref().filter(|keeping| keeping.saved != changes) else {
            return self.postpone(Duration::ZERO);
        };
        let waited = Cell::new(Duration::ZERO);
        let last = || {
            let start = Instant::now();
            // The copy may have parts of these chunks.
            let begun = so_far.turns.begun().ok_or(NotSaved::GivenUp)?;
            while monitor.wait_until_written(begun, Instant::now() + TICK) == Idle::Late {
                self.show();
            }
            waited.set(start.elapsed());
            if monitor.is_disturbed() {
                return Err(NotSaved::GivenUp);
            }
            keeping.syncer.borrow_mut().sync().map_err(|failure| {
                // The lines written may be lost, so the state must not be saved any more.
                monitor.trouble(Trouble::Failed(failure));
                NotSaved::GivenUp
            })
        };
        let result = keeping.keeper.save_beside(seen, goes_on, last);
        self.postpone(start.elapsed().saturating_sub(waited.get()));
        match (result, &mut self.keeping) {
            (Ok((known, is_safe)), Some(keeping)) => {
                keeping.has(changes, known);
                if let (Some(noting), Some(written), true) = (noting, written, is_safe)
                    && let Err(failure) = noting.saved(written)
                {
                    screen.say(failure);
                }
            }
            (Err(NotSaved::Failed(failure)), _) => {
                screen.say(format!("{failure} (will be tried again)"));
            }
            _ => {}
        }
    }

    fn changes(&self) -> Changes {
        locked(&self.shared.so_far.tally).changes()
    }

    /// What was saved of a state, if there is one.
    pub fn saved(&self) -> Option<Saved> {
        let Keeping { saved, has_saved, known, .. } = self.keeping.as_ref()?;
        let changes = self.changes();
        let is_unchanged = !has_saved && changes == *saved;
        Some(Saved {
            known: *known,
            not_saved: changes.lines.saturating_sub(saved.lines),
            is_unchanged,
        })
    }

    /// Says how many lines were processed in vain, after a save that failed.
    fn in_vain(&self) -> String {
        let lines = match self.saved().map_or(0, |saved| saved.not_saved) {
            0 => return String::new(),
            1 => String::from("1 line"),
            lines => format!("{} lines", HumanCount(lines)),
        };
        if let Some(output) = self.shared.noting.as_ref().and_then(Noting::output) {
            return format!("; the next run takes in the new lines that {} has", output.display());
        }
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

    /// Lets no chunk be written any more. Returns `false` if one is being written to a file, and stays unfinished.
    fn close(&self) -> bool {
        let Shared { so_far, noting, .. } = self.shared;
        so_far.is_closed.store(true, Relaxed);
        let until = Instant::now() + GRACE;
        // What is left of a pipe's chunk is new again, whether its reader has it or not.
        while noting.is_some() && matches!(so_far.writing.try_lock(), Err(TryLockError::WouldBlock))
        {
            if Instant::now() > until {
                return false;
            }
            thread::sleep(GRACE / 100);
        }
        true
    }

    /// Removes from the filter what was not written, and saves the state.
    pub fn finish(&mut self, end: End) -> End {
        let Shared { monitor, screen, operation, so_far, noting, .. } = self.shared;
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
        let is_stuck = !self.close();
        if let Some(output) = noting.as_ref().and_then(Noting::output).filter(|_| is_stuck) {
            // How much of the chunk is there is not known. So everything stays as after a kill: the next run looks.
            screen.say(format!(
                "the output takes no more lines, so the state is not saved; the next run takes in the lines that {} has",
                output.display()
            ));
            return end;
        }
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
        let has_lost_output = |keeping: &&Keeping| keeping.syncer.borrow().has_lost_file();
        if let Some(keeping) = self.keeping.as_ref().filter(has_lost_output) {
            noting.as_ref().inspect(|noting| noting.end());
            return End::Failed(keeping.lost(changes));
        }
        let saved = match (&mut self.keeping, operation.changes()) {
            (Some(keeping), Some(seen)) => keeping.save(seen, changes, noting.as_ref()),
            _ => Ok(()),
        };
        match saved {
            // Only one error is reported. A failed save has precedence.
            Err(failure) => End::Failed(Failure::new(format!("{failure}{}", self.in_vain()))),
            Ok(()) => end,
        }
    }
}

impl Keeping {
    /// Keeps a state whose file has `known` lines.
    pub fn new(keeper: Keeper, syncer: Syncer, period: Option<Duration>, known: usize) -> Self {
        let (syncer, saved) = (RefCell::new(syncer), Changes::default());
        let next = period.map(|period| Instant::now() + period);
        let has_saved = keeper.is_new();
        Keeping { keeper, syncer, period, next, saved, has_saved, known }
    }

    /// Syncs the output, then saves the state, unless nothing has changed: a line must be safe before
    /// it is saved as seen. Nothing changes meanwhile, and no note is left.
    fn save(
        &mut self,
        seen: &Seen,
        changes: Changes,
        noting: Option<&Noting>,
    ) -> Result<(), Failure> {
        self.syncer.borrow_mut().sync()?;
        let mut is_safe = true;
        if self.saved != changes {
            is_safe = self.keeper.save(seen)?;
            self.has(changes, seen.len());
        }
        noting.filter(|_| is_safe).inspect(|noting| noting.end());
        Ok(())
    }

    /// Returns the failure of a run whose output was removed. Nothing is saved then.
    fn lost(&self, changes: Changes) -> Failure {
        let failure = self.syncer.borrow_mut().sync().err();
        let failure = failure.map_or(String::from("the output was removed"), |it| it.to_string());
        let lines = changes.lines.saturating_sub(self.saved.lines);
        let lines = format!("{failure}; {} lines are not saved as seen", HumanCount(lines));
        Failure::new(match self.saved.lines {
            0 => lines,
            before => format!("{lines}, but {} had been saved before", HumanCount(before)),
        })
    }

    /// Notes what the file has.
    fn has(&mut self, changes: Changes, known: usize) {
        (self.saved, self.has_saved, self.known) = (changes, true, known);
    }
}
