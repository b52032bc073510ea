//! SIGINT, SIGTERM and SIGHUP: the first signal ends the run in order, a second one immediately. A
//! signal that was ignored when the process started, as with nohup, stays ignored.
//!
//! Some programs send a signal twice. `timeout`, for example, sends it to the process and to its
//! group. A second signal therefore counts only after a moment.

use crate::failure::{Failure, Trouble};
use crate::run::monitor::Monitor;
use crate::run::shared::locked;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::fs;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Signals within this time after the first count as one.
const MOMENT: Duration = Duration::from_millis(200);

/// How long the second pass may take to end in order.
const GRACE: Duration = Duration::from_secs(1);

/// Watches for signals, and reports them to the monitor.
pub struct Watch {
    last_words: Arc<Mutex<Option<&'static str>>>,
    /// The first signal.
    first: Arc<OnceLock<i32>>,
}

impl Watch {
    pub fn start(monitor: &Arc<Monitor>) -> Result<Watch, Failure> {
        let cannot = |error| Failure::of("cannot wait for signals", &error);
        let caught = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal));
        let mut signals = Signals::new(caught).map_err(cannot)?;
        // Without this, a write beyond the file size limit would kill the process. Now it is an
        // error of writing, which is reported and ends the run in order.
        flag::register(SIGXFSZ, Arc::default()).map_err(cannot)?;
        let last_words = Arc::<Mutex<Option<&'static str>>>::default();
        let first = Arc::new(OnceLock::new());
        let (monitor, last) = (Arc::clone(monitor), Arc::clone(&last_words));
        let came = Arc::clone(&first);
        let watch = move || {
            let mut first: Option<Instant> = None;
            for signal in &mut signals {
                if first.is_some_and(|first| first.elapsed() >= MOMENT) {
                    let words = *locked(&last);
                    let words = words.unwrap_or("ended immediately: nothing more was saved");
                    die_saying(words, signal);
                }
                let _ = came.set(signal);
                if first.is_none() {
                    first = Some(Instant::now());
                    monitor.signal(signal);
                    // A reader that is stuck must not keep the process from ending.
                    if locked(&last).is_some() {
                        thread::sleep(GRACE);
                        if let Some(words) = *locked(&last) {
                            die_saying(words, signal);
                        }
                    }
                }
            }
        };
        let cannot = |error| Failure::of("cannot start a thread", &error);
        thread::Builder::new().spawn(watch).map_err(cannot)?;
        Ok(Watch { last_words, first })
    }

    /// Lets a signal end the process with these words a moment later, unless it ends before. With
    /// `None`, that is over.
    pub fn end_soon(&self, last_words: Option<&'static str>) {
        *locked(&self.last_words) = last_words;
    }

    /// Returns the first signal as trouble, once it has come.
    pub fn check(&self) -> Result<(), Trouble> {
        self.first.get().map_or(Ok(()), |signal| Err(Trouble::Signal(*signal)))
    }
}

/// Returns `true` if the process was started with this signal ignored, as far as the system reports
/// it.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

fn die_saying(words: &str, signal: i32) -> ! {
    let _ = io::stderr().write_all(format!("koel: {words}\n").as_bytes());
    die(signal)
}

/// Ends the process as the signal would have done.
pub fn die(signal: i32) -> ! {
    let _ = emulate_default_handler(signal);
    std::process::exit(128 + signal)
}
