//! `koel compact`: gives back the memory that states do not need any more.

use crate::arguments::tools::Compact;
use crate::commands::report::{DONE, Ending, FAILED, holds, seconds, took};
use crate::failure::Failure;
use crate::run::screen::Screen;
use crate::state::keeper::{load, open};
use crate::unsaved;
use indicatif::BinaryBytes;
use serde::Serialize;
use std::fmt::{self, Display};
use std::path::Path;
use std::time::Instant;

/// The field names are those of the JSON.
#[derive(Serialize)]
struct Report {
    known: usize,
    rate: f64,
    memory_bytes: usize,
    memory_bytes_before: usize,
    state: String,
    unchanged: bool,
    seconds: f64,
}

pub fn compact(options: &Compact) -> Result<Ending, Failure> {
    let screen = Screen::new(options.quiet, options.json);
    let mut ending = DONE;
    for state in &options.states {
        match compact_one(state, options, &screen) {
            Ok(report) => screen.sum_up(&report)?,
            Err(failure) => {
                screen.say(failure);
                ending = FAILED;
            }
        }
    }
    Ok(ending)
}

fn compact_one(state: &Path, options: &Compact, screen: &Screen) -> Result<Report, Failure> {
    let began = Instant::now();
    let mut notes = Vec::new();
    let keeper = unsaved::claim(state, &options.waiting, &mut notes)?;
    notes.iter().for_each(|note| screen.warn(note));
    let seen = load(&keeper.path)?;
    // To load it gives memory back, too, and so does a tick.
    let before = open(state)?.info().stats.clone();
    seen.keep_up();
    seen.shrink();
    let (bytes, known) = (seen.size_in_bytes(), seen.len());
    let unchanged = (seen.stats().shards, known) == (before.shards, before.items);
    if !unchanged {
        keeper.save(&seen)?;
    }
    Ok(Report {
        known,
        rate: seen.false_positive_rate(),
        memory_bytes: bytes,
        memory_bytes_before: if unchanged { bytes } else { before.size_in_bytes },
        state: state.display().to_string(),
        unchanged,
        seconds: seconds(began.elapsed()),
    })
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [now, before] =
            [self.memory_bytes, self.memory_bytes_before].map(|bytes| BinaryBytes(bytes as u64));
        write!(f, "{}; {now} of memory", holds(&self.state, self.known, self.unchanged))?;
        if self.memory_bytes != self.memory_bytes_before {
            write!(f, ", {before} before")?;
        }
        write!(f, "; {}", took(self.seconds))
    }
}
