//! Sets that remember what was seen lately: koel and what people use instead. A window has seven ticks.
//!
//! Reading order: `sets` → `stream` → `report`.

mod report;
mod sets;
mod stream;

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{publish, read_csv, write, write_csv};
use crate::kit::machine::about;
use sets::{Forgetful, Rotated, Stamps, WINDOW};
use stream::{History, Moment, Speeds, Stream};

/// A set without its type, so that different ones fit one list.
struct Entry {
    name: &'static str,
    is_drawn: bool,
    history: Box<dyn Fn(&Stream) -> History>,
    speed: Speed,
}

type Speed = Box<dyn Fn(&Stream, &mut Speeds)>;

fn entry<P: Forgetful + 'static>(name: &'static str, is_drawn: bool, build: fn(u64) -> P) -> Entry {
    let history = Box::new(move |stream: &Stream| stream.history(name, build));
    let speed = Box::new(move |stream: &Stream, speeds: &mut Speeds| stream.speed(build, speeds));
    Entry { name, is_drawn, history, speed }
}

fn entries() -> [Entry; 8] {
    [
        entry("koel", false, sets::fixed),
        entry("koel, growing", true, sets::growing),
        entry("koel, keys removed one by one", false, sets::removed_by_key),
        entry("fastbloom, 2 rotated", true, |keys| Rotated::new(2, WINDOW, keys)),
        entry("fastbloom, 3 rotated", true, |keys| Rotated::new(3, WINDOW.div_ceil(2), keys)),
        entry("fastbloom, 8 rotated", true, |keys| Rotated::new(8, 1, keys)),
        entry("cuckoo-clock", false, sets::cuckoo_clock),
        entry("DashMap of time stamps", true, Stamps::new),
    ]
}

pub fn run(mut arguments: Arguments) -> Result<()> {
    let (out, test) = (arguments.out("windows")?, arguments.test);
    let keys = if test { 10_000 } else { 500_000 };
    let (part, entries) = (arguments.part(&["burst", "draw"]), entries());
    arguments.end()?;
    if part.is_empty() {
        let rows = measure(&entries, keys, test);
        publish(&out.join("table.txt"), &report::text(&about(), keys, &rows))?;
        if rows.iter().any(|row| row.missed > 0.0 && row.name.starts_with("koel")) {
            return Err("koel missed keys of the window".into());
        }
    }
    let csv = out.join("window.csv");
    if part != "draw" {
        write_csv(&csv, "", &burst(&entries, keys))?;
    }
    write(&out.join("window.svg"), report::picture(&read_csv(&csv)?.1))
}

/// Goes through twenty windows, with a burst in the tenth.
fn burst(entries: &[Entry], keys: u64) -> Vec<Moment> {
    let stream = Stream { keys: keys / 10, ticks: 20 * WINDOW, burst: 9 * WINDOW..10 * WINDOW };
    let drawn = entries.iter().filter(|entry| entry.is_drawn);
    drawn.flat_map(|entry| (entry.history)(&stream).moments).collect()
}

fn measure(entries: &[Entry], keys: u64, test: bool) -> Vec<History> {
    let steady = Stream { keys, ticks: 6 * WINDOW, burst: 0..0 };
    let mut rows: Vec<History> = entries.iter().map(|entry| (entry.history)(&steady)).collect();
    for repetition in 0..if test { 1 } else { 5 } {
        for (entry, row) in entries.iter().zip(&mut rows) {
            eprint!("\rrepetition {repetition}: {:32}", entry.name);
            (entry.speed)(&steady, &mut row.speeds);
        }
    }
    eprintln!();
    rows
}
