//! Syncs the output and the journal, once a second and before the state is saved.

use crate::failure::{Failure, Trouble};
use crate::lines::output::Syncer;
use crate::run::shared::{Shared, locked};
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What a power failure may take.
const INTERVAL: Duration = Duration::from_secs(1);

/// The syncs of a run. They end when it is dropped.
pub struct Syncing {
    syncer: Arc<Mutex<Syncer>>,
    _end: Sender<()>,
}

impl Syncing {
    /// Syncs from now on, if the run has journals: without them, what a run has added is lost anyway.
    pub fn start(shared: &Arc<Shared>, syncer: Syncer) -> Result<Syncing, Failure> {
        let syncer = Arc::new(Mutex::new(syncer));
        let (_end, ended) = bounded::<()>(0);
        if shared.journaling.is_some() {
            let (shared, syncer) = (Arc::clone(shared), Arc::clone(&syncer));
            let keep_synced = move || {
                let mut synced = 0;
                while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    let written = shared.monitor.written();
                    if written == synced {
                        continue;
                    }
                    let result = locked(&syncer).sync().and_then(|()| {
                        shared.journaling.as_ref().map_or(Ok(()), |journaling| journaling.sync())
                    });
                    if let Err(failure) = result {
                        return shared.monitor.trouble(Trouble::Failed(failure));
                    }
                    synced = written;
                }
            };
            let cannot = |error| Failure::of("cannot start a thread; use fewer --threads", &error);
            thread::Builder::new().spawn(keep_synced).map_err(cannot)?;
        }
        Ok(Syncing { syncer, _end })
    }

    /// Whether the output was removed during the run, and the lines with it.
    pub fn has_lost_output(&self) -> bool {
        locked(&self.syncer).has_lost_file()
    }

    /// Syncs the output.
    pub fn sync(&self) -> Result<(), Failure> {
        locked(&self.syncer).sync()
    }
}
