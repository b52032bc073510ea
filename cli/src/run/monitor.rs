//! The phases of a run, and the only place where its threads wait for each other, apart from
//! channels and [turns](crate::run::turns).
//!
//! The reader *hands in* chunks, and the writer *writes* them in the same order. The coordinator
//! can wait until a number of them has been written. Once there is a reason to end the run early, no chunk is handed in.

use crate::failure::{End, locked};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Monitor {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    phase: Phase,
    handed: u64,
    written: u64,
    is_writing: bool,
}

#[derive(Default)]
enum Phase {
    /// The input is being read.
    #[default]
    Running,
    /// The input has been read to its end.
    Read,
    /// There is a reason to end the run early. Chunks that were handed in are still written.
    Ending(End),
    /// No chunk is written any more.
    Final,
}

impl Progress {
    /// Returns why the run ends, if it does.
    fn end(&self) -> Option<&End> {
        match &self.phase {
            Phase::Read if self.written == self.handed => Some(&End::Reached),
            Phase::Ending(end) => Some(end),
            _ => None,
        }
    }

    fn end_early(&mut self, end: End) {
        match &self.phase {
            Phase::Final => {}
            Phase::Ending(known) if !end.overtakes(known) => {}
            _ => self.phase = Phase::Ending(end),
        }
    }

    fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending(_))
    }
}

impl Monitor {
    fn change(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut locked(&self.progress));
        self.changed.notify_all();
    }

    /// Calls `hand` with the number of the next chunk. Returns `false` without calling it if the run is ending.
    pub fn hand_in(&self, hand: impl FnOnce(u64)) -> bool {
        let mut progress = locked(&self.progress);
        if !matches!(progress.phase, Phase::Running) {
            return false;
        }
        // Still under the lock: in a later phase, it is certain whether this chunk was handed in.
        hand(progress.handed);
        progress.handed += 1;
        true
    }

    /// Records that all of the input was handed in.
    pub fn read_to_the_end(&self) {
        self.change(|progress| {
            if let Phase::Running = progress.phase {
                progress.phase = Phase::Read;
            }
        });
    }

    /// Begins to write a chunk. Returns `false` if no chunk is written any more.
    pub fn begin_write(&self) -> bool {
        let mut progress = locked(&self.progress);
        progress.is_writing = !matches!(progress.phase, Phase::Final);
        progress.is_writing
    }

    /// Records that a chunk has been written, and whether no more lines are to be written. Both at
    /// once: otherwise a run whose input ends at the limit could seem finished in between.
    pub fn wrote(&self, is_enough: bool) {
        self.change(|progress| {
            progress.written += 1;
            progress.is_writing = false;
            if is_enough {
                progress.end_early(End::Enough);
            }
        });
    }

    /// Reports that a chunk could not be written.
    pub fn wrote_not(&self, why: End) {
        self.change(|progress| {
            progress.is_writing = false;
            progress.end_early(why);
        });
    }

    /// Lets no chunk be written any more. Returns `false` if one is still being written at the deadline.
    pub fn end_writes(&self, until: Instant) -> bool {
        self.change(|progress| progress.phase = Phase::Final);
        self.wait_for(until, |progress| !progress.is_writing)
    }

    /// Reports a reason to end the run early. It counts if it [overtakes](End::overtakes) the one that is known.
    pub fn end_early(&self, end: End) {
        self.change(|progress| progress.end_early(end));
    }

    /// Waits for a reason to end the run, or until a deadline.
    pub fn wait(&self, until: Instant) -> Option<End> {
        self.wait_for(until, |progress| progress.end().is_some());
        locked(&self.progress).end().cloned()
    }

    /// Waits until a number of chunks has been written. Returns `false` if the run is to end early first.
    pub fn wait_until_written(&self, chunks: u64) -> bool {
        let is_over = |progress: &Progress| progress.is_ending() || progress.written >= chunks;
        while !self.wait_for(Instant::now() + LONG, is_over) {}
        !self.is_ending()
    }

    /// Waits until all chunks that were handed in have been written, as long as there is no worse reason to end the run
    /// than a signal, and one more is written within this time.
    pub fn drain(&self, grace: Duration) {
        let is_over = |progress: &Progress| {
            let is_signal = matches!(progress.phase, Phase::Ending(End::Signal(_)));
            !is_signal || progress.written == progress.handed
        };
        loop {
            let before = locked(&self.progress).written;
            let goes_on = |progress: &Progress| progress.written > before || is_over(progress);
            if !self.wait_for(Instant::now() + grace, goes_on) || is_over(&locked(&self.progress)) {
                return;
            }
        }
    }

    /// Whether there is a reason to end the run early.
    pub fn is_ending(&self) -> bool {
        locked(&self.progress).is_ending()
    }

    fn wait_for(&self, until: Instant, is_there: impl Fn(&Progress) -> bool) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let woken = self
            .changed
            .wait_timeout_while(locked(&self.progress), left, |progress| !is_there(progress));
        !woken.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// Longer than anything is waited for.
pub const LONG: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;
    use std::thread;

    fn end_of(monitor: &Monitor) -> Option<&'static str> {
        monitor.wait(Instant::now()).map(|end| end.name())
    }

    #[test]
    fn a_failure_overtakes_a_limit_and_that_a_signal_and_the_first_failure_stays() {
        let failed = || End::Failed(Failure::new("no space"));
        let ends = [End::Signal(2), End::Enough, End::BrokenPipe, failed()];
        for (one, first) in ends.iter().enumerate() {
            for (other, then) in ends.iter().enumerate() {
                let monitor = Monitor::default();
                monitor.end_early(first.clone());
                monitor.end_early(then.clone());
                let counts = if other > one && one < 2 { then } else { first };
                assert_eq!(end_of(&monitor), Some(counts.name()), "{one} {other}");
            }
        }
        let monitor = Monitor::default();
        assert!(monitor.end_writes(Instant::now()));
        monitor.end_early(failed());
        assert!(!monitor.begin_write() && end_of(&monitor).is_none());
    }

    #[test]
    fn a_run_has_reached_its_end_when_all_that_was_read_is_written() {
        let monitor = Monitor::default();
        for number in 0..2 {
            assert!(monitor.hand_in(|handed| assert_eq!(handed, number)));
        }
        monitor.read_to_the_end();
        for _ in 0..2 {
            assert!(end_of(&monitor).is_none());
            assert!(monitor.begin_write());
            monitor.wrote(false);
        }
        assert_eq!(end_of(&monitor), Some("complete"));
    }

    #[test]
    fn what_was_handed_in_before_a_signal_is_written_and_nothing_is_handed_in_after_it() {
        let monitor = Monitor::default();
        assert!(monitor.hand_in(|_| {}));
        monitor.end_early(End::Signal(2));
        assert!(!monitor.hand_in(|_| panic!("the run is ending")));
        monitor.read_to_the_end();
        assert_eq!(end_of(&monitor), Some("SIGINT"));
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(20));
                assert!(monitor.begin_write());
                monitor.wrote(false);
            });
            monitor.drain(Duration::from_secs(60));
            assert_eq!(locked(&monitor.progress).written, 1);
        });
        // A writer that makes no progress is not waited for, nor one that has failed.
        let monitor = Monitor::default();
        assert!(monitor.hand_in(|_| {}) && monitor.begin_write());
        monitor.end_early(End::Signal(2));
        monitor.drain(Duration::from_millis(1));
        monitor.wrote_not(End::BrokenPipe);
        monitor.drain(Duration::from_secs(3_600));
        assert!(!monitor.wait_until_written(1));
    }
}
