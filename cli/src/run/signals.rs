//! SIGINT, SIGTERM and SIGHUP: the first ends the run in order, a second one at once. What whoever started the
//! process had it ignore, as nohup does, stays ignored.
//!
//! Some who send one send it twice: `timeout`, for example, to the process and to its group. So a second one counts only
//! a moment later.

use crate::failure::Failure;
use crate::run::monitor::Monitor;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::fs;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Signals that come closer to the first one are the same.
const MOMENT: Duration = Duration::from_millis(200);

/// From here on, signals are told to the monitor.
pub struct Watch {
    last_words: Arc<OnceLock<&'static str>>,
    /// The first that came.
    first: Arc<OnceLock<i32>>,
}

impl Watch {
    pub fn start(monitor: &Arc<Monitor>) -> Result<Watch, Failure> {
        let cannot = |error| Failure::of("cannot wait for signals", &error);
        let caught = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal));
        let mut signals = Signals::new(caught).map_err(cannot)?;
        // A file that may not be as large is an error of writing, which is told, and ends the run in order.
        flag::register(SIGXFSZ, Arc::default()).map_err(cannot)?;
        let last_words = Arc::new(OnceLock::new());
        let first = Arc::new(OnceLock::new());
        let (monitor, words) = (Arc::clone(monitor), Arc::clone(&last_words));
        let came = Arc::clone(&first);
        let watch = move || {
            let mut first: Option<Instant> = None;
            for signal in &mut signals {
                let again = first.is_some_and(|first| first.elapsed() >= MOMENT);
                if again || words.get().is_some() {
                    let words = words.get().unwrap_or(&"ended at once: nothing more was saved");
                    die_saying(words, signal);
                }
                let _ = came.set(signal);
                if first.is_none() {
                    first = Some(Instant::now());
                    monitor.signal(signal);
                }
            }
        };
        let cannot = |error| Failure::of("cannot start a thread", &error);
        thread::Builder::new().spawn(watch).map_err(cannot)?;
        Ok(Watch { last_words, first })
    }

    /// From here on, the first one ends the process at once, too, with these words.
    pub fn end_at_once(&self, last_words: &'static str) {
        let _ = self.last_words.set(last_words);
        // If one came when the run had ended already, nobody has looked at it.
        if let Some(signal) = self.first.get() {
            die_saying(last_words, *signal);
        }
    }
}

/// Whether the process was started with this signal ignored, where the system tells.
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

/// Ends the process as the signal would have.
pub fn die(signal: i32) -> ! {
    let _ = emulate_default_handler(signal);
    std::process::exit(128 + signal)
}
