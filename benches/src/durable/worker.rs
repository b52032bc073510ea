//! What a child process does with a set: fill it, open it again, or add to it until it is killed.
//!
//! Figures go to the standard output, a name and a number in each line. `seen.py` does the same for Scrapy.

use super::sets::{self, Kind, Set};
use crate::kit::arguments::Result;
use crate::kit::memory::of_process;
use crate::kit::worker;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// In the folder above that of the set: how many items were answered, and how many of these were taken for others.
pub const ANSWERED: &str = "answered";

/// The work of this process, as the command line tells it.
pub fn work(kind: &Kind, task: &str, folder: &Path, items: u64) -> Result<()> {
    let open = || sets::open(kind, folder, items);
    match task {
        "fill" => fill(kind, &open, items),
        "open" => again(&open, items),
        "settle" => open()?.settle(),
        "add" => add(kind, &open, folder),
        _ => Err(format!("there is no task {task}").into()),
    }
}

fn say(name: &str, figure: f64) {
    println!("{name} {figure}");
}

fn status(process: u32, field: &str) -> Result<f64> {
    of_process(process, "status", field)
}

fn fill(kind: &Kind, open: &dyn Fn() -> Result<Box<dyn Set>>, items: u64) -> Result<()> {
    let own = status(std::process::id(), "VmRSS")?;
    let mut set = open()?;
    let process = set.process();
    let before = if process == std::process::id() { own } else { status(process, "VmRSS")? };
    let mut timed = |name, work: &mut dyn FnMut(&mut dyn Set) -> Result<u64>| -> Result<u64> {
        let start = Instant::now();
        let count = work(&mut *set)?;
        say(name, items as f64 / start.elapsed().as_secs_f64());
        Ok(count)
    };
    // At least a few, so that a tiny run does not fail by chance.
    let most =
        (kind.false_positives() * items).div_ceil(1_000_000) + 3 * kind.false_positives().min(1);
    let new = timed("add", &mut |set| set.add(0..items))?;
    let after = status(process, "VmRSS")?;
    let anonymous = status(process, "RssAnon")?;
    let again = timed("present", &mut |set| set.add(0..items))?;
    let hits = timed("hit", &mut |set| set.look_up(0..items))?;
    let misses = timed("miss", &mut |set| set.look_up(1 << 40..(1 << 40) + items))?;
    // These were not added, and may be new a moment later.
    let taken = items.saturating_sub(new);
    say("taken", taken as f64);
    say("memory", (after - before) / items as f64);
    say("anonymous", (anonymous.min(after - before)) / items as f64);
    if new > items || taken > most || again > taken || hits + taken < items || misses > most {
        let counts = format!("{new} new, {again} new again, {hits} hits, {misses} misses found");
        return Err(format!("wrong answers for {items} items: {counts}").into());
    }
    worker::wait(process)
}

/// Opens the set, and tells how long that took until its first answer, and how many items it lacks.
fn again(open: &dyn Fn() -> Result<Box<dyn Set>>, items: u64) -> Result<()> {
    let start = Instant::now();
    let mut set = open()?;
    set.look_up(0..1)?;
    say("open", start.elapsed().as_secs_f64());
    say("lost", (items - set.look_up(0..items)?) as f64);
    Ok(())
}

/// Adds items, and notes how many were answered, until the process with the set is killed.
fn add(kind: &Kind, open: &dyn Fn() -> Result<Box<dyn Set>>, folder: &Path) -> Result<()> {
    let notes = File::create(folder.with_file_name(ANSWERED))?;
    let mut set = open()?;
    worker::name(set.process())?;
    let (mut number, mut taken) = (0, 0);
    loop {
        taken += kind.step - set.add(number..number + kind.step)?;
        number += kind.step;
        notes.write_all_at([number, taken].map(u64::to_le_bytes).as_flattened(), 0)?;
    }
}
