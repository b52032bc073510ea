//! `koel compact`: gives back the memory that states do not need any more.

use crate::arguments::tools::Compact;
use crate::commands::report::{DONE, Ending, FAILED, holds, seconds};
use crate::failure::Failure;
use crate::run::screen::{Report, Screen};
use crate::state::keeper::{load, open};
use crate::unsaved;
use indicatif::BinaryBytes;
use serde_json::json;
use std::path::Path;
use std::time::Instant;

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
    let bytes_before = if unchanged { bytes } else { before.size_in_bytes };
    let memory = |bytes: usize| BinaryBytes(bytes as u64);
    let mut text = format!("{}; {} of memory", holds(state, known, unchanged), memory(bytes));
    if bytes != bytes_before {
        text += &format!(", {} before", memory(bytes_before));
    }
    let seconds = seconds(began);
    text += &format!("; {seconds:.1} s");
    let fields = vec![
        ("known", json!(known)),
        ("rate", json!(seen.false_positive_rate())),
        ("memory_bytes", json!(bytes)),
        ("memory_bytes_before", json!(bytes_before)),
        ("state", json!(state.display().to_string())),
        ("unchanged", json!(unchanged)),
        ("seconds", json!(seconds)),
    ];
    Ok(Report { text, fields })
}
