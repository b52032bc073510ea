//! Sets that remember what was seen lately: koel and what people use instead. A window has seven ticks.
//!
//! Reading order: `sets` → `stream` → `report`.

mod report;
mod sets;
mod stream;

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{publish, read_csv, write, write_csv};
use crate::kit::machine::about;
use report::Row;
use sets::{CuckooClock, FIXED, Forgetful, GROWING, Koel, REMOVED_BY_KEY, Rotated, Stamps, WINDOW};
use std::path::Path;
use stream::{History, Moment, Speeds, Stream};

/// A set without its type, so that different ones fit one list.
struct Entry {
    name: &'static str,
    history: fn(&Stream) -> History,
    speed: fn(&Stream, u64, &mut Speeds),
    is_drawn: bool,
}

fn entries() -> [Entry; 8] {
    fn entry<P: Forgetful>(is_drawn: bool) -> Entry {
        Entry { name: P::NAME, history: Stream::history::<P>, speed: Stream::speed::<P>, is_drawn }
    }
    [
        entry::<Koel<FIXED>>(false),
        entry::<Koel<GROWING>>(true),
        entry::<Koel<REMOVED_BY_KEY>>(false),
        entry::<Rotated<2, WINDOW>>(true),
        entry::<Rotated<3, { WINDOW.div_ceil(2) }>>(true),
        entry::<Rotated<8, 1>>(true),
        entry::<CuckooClock>(false),
        entry::<Stamps>(true),
    ]
}

pub fn run(mut arguments: Arguments) -> Result<()> {
    let (out, test) = (arguments.out("windows")?, arguments.test);
    let usual = if test { 10_000 } else { 500_000 };
    let keys = arguments.number("--keys", 100_000_000)?.unwrap_or(usual).max(1_000);
    let part = arguments.part(&["burst", "draw"]);
    arguments.end()?;
    match part {
        "burst" => burst(keys, &out),
        "draw" => draw(&read_csv(&out.join("window.csv"))?, &out),
        _ => {
            let rows = measure(keys, test);
            publish(&out.join("table.txt"), &report::text(&about(), keys, &rows))?;
            let mut missed = rows.iter().filter(|row| row.missed > 0.0);
            if missed.any(|row| row.name.starts_with("koel")) {
                return Err("koel missed keys of the window".into());
            }
            burst(keys, &out)
        }
    }
}

/// Twenty windows with a burst in the tenth, and their picture.
fn burst(keys: u64, out: &Path) -> Result<()> {
    let burst = 9 * WINDOW..10 * WINDOW;
    let stream = Stream { keys: keys / 10, ticks: 20 * WINDOW, burst };
    let drawn = entries().into_iter().filter(|entry| entry.is_drawn);
    let moments: Vec<Moment> = drawn.flat_map(|entry| (entry.history)(&stream).moments).collect();
    write_csv(&out.join("window.csv"), &[], &moments)?;
    draw(&moments, out)
}

fn draw(moments: &[Moment], out: &Path) -> Result<()> {
    write(&out.join("window.svg"), report::picture(moments))
}

fn measure(keys: u64, test: bool) -> Vec<Row> {
    let steady = Stream { keys, ticks: 6 * WINDOW, burst: 0..0 };
    let entries = entries();
    let row = |entry: &Entry| Row::of(entry.name, (entry.history)(&steady));
    let mut rows: Vec<Row> = entries.iter().map(row).collect();
    for repetition in 0..if test { 1 } else { 5 } {
        for (entry, row) in entries.iter().zip(&mut rows) {
            eprint!("\rrepetition {repetition}: {:32}", entry.name);
            for threads in [1, 2] {
                (entry.speed)(&steady, threads, &mut row.speeds);
            }
        }
    }
    eprintln!();
    rows
}
