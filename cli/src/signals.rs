//! SIGINT and SIGTERM: the first ends the run in order, a second one at once.
//!
//! Some who send one send it twice: `timeout`, for example, to the process and to its group. So a second one counts only
//! a moment later.

use crate::failure::Failure;
use crate::monitor::Monitor;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Signals that come closer to the first one are the same.
const MOMENT: Duration = Duration::from_millis(200);

/// From here on, signals are told to the monitor.
pub struct Watch {
    at_once: Arc<AtomicBool>,
}

impl Watch {
    pub fn start(monitor: &Arc<Monitor>) -> Result<Watch, Failure> {
        let cannot = |error| Failure::of("cannot wait for signals", &error);
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(cannot)?;
        // A file that may not be as large is an error of writing, which is told, and ends the run in order.
        flag::register(SIGXFSZ, Arc::default()).map_err(cannot)?;
        let at_once = Arc::new(AtomicBool::new(false));
        let (monitor, ends_at_once) = (Arc::clone(monitor), Arc::clone(&at_once));
        thread::spawn(move || {
            let mut first: Option<Instant> = None;
            for signal in &mut signals {
                let again = first.is_some_and(|first| first.elapsed() >= MOMENT);
                if again || ends_at_once.load(Relaxed) {
                    die(signal);
                }
                if first.is_none() {
                    first = Some(Instant::now());
                    monitor.signal(signal);
                }
            }
        });
        Ok(Watch { at_once })
    }

    /// From here on, the first one ends the process at once, too.
    pub fn stop_watching(&self) {
        self.at_once.store(true, Relaxed);
    }
}

/// Ends the process as the signal would have.
pub fn die(signal: i32) -> ! {
    let _ = emulate_default_handler(signal);
    std::process::exit(128 + signal)
}
