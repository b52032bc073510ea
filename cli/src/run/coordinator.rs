//! The coordinator, on the calling thread: saves the state, shows progress, and ends the run.

use crate::failure::{End, Failure, locked};
use crate::lines::chunk::Counts;
use crate::lines::output::Sink;
use crate::run::monitor::LONG;
use crate::run::plan::{Plan, Verb};
use crate::run::screen::lines;
use crate::run::shared::Shared;
use crate::run::tally::Changes;
use crate::state::keeper::Keeper;
use crate::state::seen::Seen;
use crate::unsaved::output::Noting;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What the file of a state has at the end of a run.
pub struct Saved {
    /// The number of its lines.
    pub known: usize,
    /// Whether it was left as it was, because no line changed it.
    pub is_unchanged: bool,
}

/// How long a run that has to end waits for a writer that makes no progress.
const GRACE: Duration = Duration::from_secs(1);

/// The interval between updates of the progress bar.
const TICK: Duration = Duration::from_millis(100);

pub struct Coordinator<'a> {
    pub shared: &'a Shared,
    pub keeping: Option<Checkpointer>,
}

/// When and how the state is saved.
pub struct Checkpointer {
    keeper: Keeper,
    period: Option<Duration>,
    next: Option<Instant>,
    /// What was done in this run and is in the file.
    saved: Changes,
    /// Whether the file was written, or created, in this run.
    has_saved: bool,
    /// Whether the file stays in place after a power failure.
    is_safe: bool,
    /// The number of lines that the file has.
    known: usize,
}

impl Coordinator<'_> {
    /// Waits until the run ends. Meanwhile, saves checkpoints and shows progress.
    pub fn wait(&mut self) -> End {
        let Shared { plan, monitor, tally, read, .. } = self.shared;
        let screen = &plan.screen;
        loop {
            let tick = Instant::now() + if screen.has_bar() { TICK } else { LONG };
            let due = self.keeping.as_ref().and_then(|keeping| keeping.next);
            if let Some(end) = monitor.wait(due.map_or(tick, |due| due.min(tick))) {
                return end;
            }
            let Counts { lines, yes, .. } = locked(tally).counts;
            screen.progress(read.load(Relaxed), lines, yes, plan.verb.done());
            if due.is_some_and(|due| due <= Instant::now()) {
                self.checkpoint();
            }
        }
    }

    /// Saves the state while lines go on. Gives up if the run is to end first.
    fn checkpoint(&mut self) {
        let Shared { plan, monitor, turns, noting, .. } = self.shared;
        // What is counted is written, and the filter has all of it.
        let changes = self.changes();
        let written = noting.as_ref().map(Noting::written);
        let (Some(seen), Some(keeping)) = (self.shared.changes(), &mut self.keeping) else {
            return;
        };
        if keeping.saved == changes {
            return keeping.postpone(Duration::ZERO);
        }
        let start = Instant::now();
        let mut waited = Duration::ZERO;
        let last = || {
            let start = Instant::now();
            // The copy may have parts of the chunks that had started before it ended.
            let is_written = turns.begun().is_some_and(|begun| monitor.wait_until_written(begun));
            waited = start.elapsed();
            // After a failure, the lines written may be lost, so the state must not be saved any more.
            let fail = |failure: &Failure| monitor.end_early(End::Failed(failure.clone()));
            is_written && plan.sink.sync().inspect_err(fail).is_ok()
        };
        let result = keeping.keeper.save_beside(seen, || !monitor.is_ending(), last);
        keeping.postpone(start.elapsed().saturating_sub(waited));
        match result {
            Ok(Some((known, is_safe))) => {
                keeping.has(changes, known, is_safe);
                if let (Some(noting), Some(written), true) = (noting, written, is_safe)
                    && let Err(failure) = noting.saved(written)
                {
                    plan.screen.say(failure);
                }
            }
            Ok(None) => {}
            Err(failure) => plan.screen.say(format_args!("{failure} (will be tried again)")),
        }
    }

    fn changes(&self) -> Changes {
        locked(&self.shared.tally).changes()
    }

    /// What was saved of a state, if there is one.
    pub fn saved(&self) -> Option<Saved> {
        let Checkpointer { saved, has_saved, known, .. } = self.keeping.as_ref()?;
        Some(Saved { known: *known, is_unchanged: !has_saved && self.changes() == *saved })
    }

    /// Says what becomes of the lines that were processed since the last save, after one that failed.
    fn in_vain(&self, saved: u64) -> String {
        let Shared { plan, noting, .. } = self.shared;
        let number = self.changes().lines.saturating_sub(saved);
        if number == 0 {
            return String::new();
        }
        if let Some(output) = noting.as_ref().and_then(Noting::output) {
            let output = output.display();
            return format!("; the next run takes in the new lines that {output} has");
        }
        let what = match plan.verb {
            Verb::Dedup => "saved as seen, so the next run writes them again",
            verb => verb.done(),
        };
        format!("; {} could not be {what}", lines(number))
    }

    /// Removes from the filter what was not written, and saves the state.
    pub fn finish(&mut self, end: End) -> End {
        let Shared { plan, monitor, turns, tally, noting, .. } = self.shared;
        let Plan { sink, screen, .. } = &**plan;
        if let End::Signal(_) = end {
            monitor.drain(GRACE);
            // The error that kept the remaining chunks from being written is reported as well.
            if let Some(End::Failed(failure)) = monitor.wait(Instant::now()) {
                screen.say(failure);
            }
        }
        if !turns.halt() {
            return end;
        }
        // The chunk that a stuck pipe has in part is new again as a whole. A file that takes its place is not stuck.
        let grace = match (&plan.folder, noting) {
            (Some(_), _) => LONG,
            (None, Some(_)) => GRACE,
            (None, None) => Duration::ZERO,
        };
        let is_stuck = !monitor.end_writes(Instant::now() + grace);
        if let Some(output) = noting.as_ref().and_then(Noting::output).filter(|_| is_stuck) {
            // How much of the chunk is there is not known. So everything stays as after a kill: the next run looks.
            screen.say(format!(
                "the output takes no more lines, so the state is not saved; the next run takes in the \
                 lines that {} has",
                output.display()
            ));
            return end;
        }
        if let Some(folder) = &plan.folder {
            folder.discard();
            let mut tally = locked(tally);
            tally.counts = tally.placed;
        }
        if let Some(seen) = self.shared.adds() {
            // Some of them may have expired. A line that equals one of those was added later, so it is not written
            // either, and its removal is right.
            seen.remove_many(&turns.added());
            let mut tally = locked(tally);
            let added = tally.counts.yes;
            tally.doubt.update(seen, added, true);
        }
        let changes = self.changes();
        let (Some(keeping), Some(seen)) = (&mut self.keeping, self.shared.changes()) else {
            return end;
        };
        match keeping.save(seen, changes, sink, noting.as_ref()) {
            Ok(()) => end,
            // Only one error is reported. A failed save has precedence.
            Err(failure) => {
                let saved = keeping.saved.lines;
                End::Failed(Failure::new(format!("{failure}{}", self.in_vain(saved))))
            }
        }
    }
}

impl Checkpointer {
    /// Keeps a state whose file has `known` lines.
    pub fn new(keeper: Keeper, period: Option<Duration>, known: usize) -> Self {
        let saved = Changes::default();
        let next = period.map(|period| Instant::now() + period);
        let has_saved = keeper.is_new;
        Checkpointer { keeper, period, next, saved, has_saved, is_safe: true, known }
    }

    /// Syncs the output, then saves the state, unless it is safe and nothing has changed: a line must be safe before
    /// it is saved as seen. Nothing changes meanwhile, and no note is left if the state is safe.
    fn save(
        &mut self,
        seen: &Seen,
        changes: Changes,
        sink: &Sink,
        noting: Option<&Noting>,
    ) -> Result<(), Failure> {
        if let Err(failure) = sink.sync() {
            // An output that is gone cannot be read again.
            noting.filter(|_| sink.is_lost()).inspect(|noting| noting.end());
            return Err(failure);
        }
        if self.saved != changes || !self.is_safe {
            let is_safe = self.keeper.save(seen)?;
            self.has(changes, seen.len(), is_safe);
        }
        noting.filter(|_| self.is_safe).inspect(|noting| noting.end());
        Ok(())
    }

    /// Notes what the file has.
    fn has(&mut self, changes: Changes, known: usize, is_safe: bool) {
        (self.saved, self.has_saved, self.known) = (changes, true, known);
        self.is_safe = is_safe;
    }

    /// Schedules the next checkpoint, so that saves take at most a tenth of the time.
    fn postpone(&mut self, took: Duration) {
        self.next = self.period.map(|period| Instant::now() + period.max(9 * took));
    }
}
