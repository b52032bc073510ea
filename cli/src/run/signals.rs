//! SIGINT, SIGTERM and SIGHUP: the first signal ends the run in order, a second one immediately. A
//! signal that was ignored when the process started, as with nohup, stays ignored.
//!
//! Some programs send a signal twice. `timeout`, for example, sends it to the process and to its
//! group. A second signal therefore counts only after a moment.

use crate::failure::{End, Failure, locked};
use crate::run::monitor::Monitor;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Signals within this time after the first count as one.
const MOMENT: Duration = Duration::from_millis(200);

/// Watches for signals, and reports them to the monitor.
pub struct Watch(Arc<Mutex<Watching>>);

#[derive(Default)]
struct Watching {
    /// The first signal, and when it came.
    first: Option<(i32, Instant)>,
    /// What is said if a signal ends the process at once, and the file that is removed then.
    last: Option<(&'static str, Option<PathBuf>)>,
}

impl Watch {
    pub fn start(monitor: &Arc<Monitor>) -> Result<Watch, Failure> {
        let cannot = |error| Failure::of("cannot wait for signals", &error);
        let caught = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal));
        let mut signals = Signals::new(caught).map_err(cannot)?;
        // Without this, a write beyond the file size limit would kill the process. Now it is an
        // error of writing, which is reported and ends the run in order.
        flag::register(SIGXFSZ, Arc::default()).map_err(cannot)?;
        let watching = Arc::<Mutex<Watching>>::default();
        let (monitor, watch) = (Arc::clone(monitor), Watch(Arc::clone(&watching)));
        let body = move || {
            for signal in &mut signals {
                let mut watching = locked(&watching);
                match watching.first {
                    None if watching.last.is_none() => monitor.end_early(End::Signal(signal)),
                    Some((_, first)) if first.elapsed() < MOMENT => continue,
                    _ => watching.die(signal),
                }
                watching.first = Some((signal, Instant::now()));
            }
        };
        let cannot = |error| Failure::of("cannot start a thread", &error);
        thread::Builder::new().spawn(body).map_err(cannot)?;
        Ok(watch)
    }

    /// Lets a signal end the process at once from now on, with these words, and remove a file. One that has come
    /// already does so, too.
    pub fn end_at_once(&self, words: &'static str, remove: Option<PathBuf>) {
        let mut watching = locked(&self.0);
        watching.last = Some((words, remove));
        if let Some((signal, _)) = watching.first {
            watching.die(signal);
        }
    }

    /// Ends what [`Self::end_at_once`] began.
    pub fn go_on(&self) {
        locked(&self.0).last = None;
    }
}

impl Watching {
    fn die(&self, signal: i32) -> ! {
        let (words, remove) =
            self.last.as_ref().map_or((NOTHING_SAVED, &None), |last| (last.0, &last.1));
        remove.iter().for_each(|file| drop(fs::remove_file(file)));
        let _ = io::stderr().write_all(format!("koel: {words}\n").as_bytes());
        die(signal)
    }
}

const NOTHING_SAVED: &str = "ended immediately: nothing more was saved";

/// Returns `true` if the process was started with this signal ignored, as far as the system reports
/// it.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Ends the process as the signal would have done.
pub fn die(signal: i32) -> ! {
    let _ = emulate_default_handler(signal);
    std::process::exit(128 + signal)
}
