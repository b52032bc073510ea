//! Measures sets that remember what was seen lately: koel and what people use instead.
//!
//! ```text
//! cargo run --release -p koel-windows            the tables and the picture
//! cargo run --release -p koel-windows -- soak    a billion operations over two hundred windows
//! cargo run --release -p koel-windows -- ticks   the speed of a tick
//! cargo run --release -p koel-windows -- plot    the picture again, from its figures
//! ```
//!
//! A window has seven ticks. Reading order: `peer` → `peers` → `stream`, then `report` and `plot`; `soak`
//! is by itself, and so is `ticks`. What counts bytes, times threads and draws curves is shared with
//! `benches/peers`.

#[path = "../../peers/src/memory.rs"]
#[allow(dead_code)] // not all of it is needed here
mod memory;
mod peer;
mod peers;
mod plot;
mod report;
mod soak;
mod stream;
mod ticks;
#[path = "../../peers/src/timing.rs"]
#[allow(dead_code)]
mod timing;

use peer::{Forgetful, WINDOW};
use peers::{CuckooClock, Koel, Moka, RemovedByKey, Rotated, Stamps};
use report::{Line, Row};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use stream::{History, Speed, Stream};

const HELP: &str = "\
usage: cargo run --release -p koel-windows -- [FLAGS] [soak | ticks | burst | plot]

  soak              a billion operations of four threads over two hundred windows, on koel alone
  ticks             the speed of a tick through a gigabyte, beside a plain pass
  burst             the picture and its figures alone
  plot              the picture again, from window.csv in the directory
  --keys 500000     new keys in a tick
  --out DIRECTORY   where results go (default: benches/windows/results)
  --test            a tiny run, into a scratch directory
";

/// What is measured.
#[derive(Clone, Copy)]
enum Part {
    Beside,
    Soak,
    Ticks,
    Burst,
    Plot,
}

struct Arguments {
    keys: u64,
    out: PathBuf,
    part: Part,
    test: bool,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Arguments>, String> {
    let results = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/results"));
    let mut parsed =
        Arguments { keys: 500_000, out: results.clone(), part: Part::Beside, test: false };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match &*word {
            "soak" => parsed.part = Part::Soak,
            "ticks" => parsed.part = Part::Ticks,
            "burst" => parsed.part = Part::Burst,
            "plot" => parsed.part = Part::Plot,
            "--keys" => {
                let keys = value()?;
                let number = keys.parse().ok().filter(|keys| (1_000..=100_000_000).contains(keys));
                parsed.keys = number.ok_or(format!("--keys {keys}: a number from 1000 to 1e8"))?;
            }
            "--out" => parsed.out = PathBuf::from(value()?),
            "--test" => parsed.test = true,
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("unknown flag {word}")),
        }
    }
    if parsed.test {
        parsed.keys = 10_000;
        if parsed.out == results {
            parsed.out = std::env::temp_dir().join("koel-windows-test");
        }
    }
    Ok(Some(parsed))
}

fn main() -> ExitCode {
    let run = match parse(std::env::args().skip(1)) {
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Ok(Some(arguments)) => {
            let (name, text) = match arguments.part {
                Part::Beside => ("table.txt", measure(&arguments)),
                Part::Soak => ("soak.txt", soak::soak(arguments.test)),
                Part::Ticks => ("ticks.txt", Ok(ticks::ticks(arguments.test))),
                Part::Burst => ("window.svg", burst(&arguments)),
                Part::Plot => ("window.svg", draw(&arguments.out)),
            };
            text.map(|text| (arguments, name, text))
        }
        Err(message) => {
            eprintln!("koel-windows: {message}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    let written = run.and_then(|(arguments, name, text)| {
        if name.ends_with(".txt") {
            print!("{text}");
        }
        write(&arguments.out, name, &text)
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("koel-windows: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Draws the picture of the figures in a folder.
fn draw(folder: &Path) -> Result<String, String> {
    let path = folder.join("window.csv");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    report::lines_from(&text).map(|lines| plot::window(&lines))
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let path = folder.join(name);
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// What is done with each peer.
struct Entry {
    name: &'static str,
    history: fn(&Stream) -> History,
    speed: fn(&Stream, u64) -> Speed,
    own_clock: bool,
}

fn entry<P: Forgetful>() -> Entry {
    Entry {
        name: P::NAME,
        history: Stream::history::<P>,
        speed: Stream::speed::<P>,
        own_clock: P::OWN_CLOCK,
    }
}

fn entries() -> Vec<Entry> {
    vec![
        entry::<Koel<false>>(),
        entry::<Koel<true>>(),
        entry::<RemovedByKey>(),
        entry::<Rotated<2, WINDOW>>(),
        entry::<Rotated<3, { WINDOW.div_ceil(2) }>>(),
        entry::<Rotated<8, 1>>(),
        entry::<CuckooClock>(),
        entry::<Stamps>(),
        entry::<Moka>(),
    ]
}

/// Those in the picture.
const DRAWN: [&str; 5] = [
    "koel, growing",
    "fastbloom, 2 rotated",
    "fastbloom, 3 rotated",
    "fastbloom, 8 rotated",
    "DashMap of time stamps",
];

/// Twenty windows with a burst in the tenth, and their picture.
fn burst(arguments: &Arguments) -> Result<String, String> {
    let burst = 9 * WINDOW..10 * WINDOW;
    let tick = Duration::ZERO;
    let stream = Stream { keys: arguments.keys / 10, ticks: 20 * WINDOW, burst, tick };
    let drawn = entries().into_iter().filter(|entry| DRAWN.contains(&entry.name));
    let lines: Vec<Line> = drawn
        .map(|entry| Line { name: entry.name.into(), moments: (entry.history)(&stream).moments })
        .collect();
    write(&arguments.out, "window.csv", &report::csv(&lines))?;
    let picture = plot::window(&lines);
    write(&arguments.out, "window.svg", &picture)?;
    Ok(picture)
}

/// How often speed is measured, of peers without a clock of their own.
const REPETITIONS: usize = 5;

fn measure(arguments: &Arguments) -> Result<String, String> {
    let tick = Duration::from_millis(if arguments.test { 40 } else { 1_000 });
    let steady = |entry: &Entry| {
        let keys = if entry.own_clock { arguments.keys / 10 } else { arguments.keys };
        Stream { keys, ticks: 6 * WINDOW, burst: 0..0, tick }
    };
    let mut rows = Vec::new();
    let entries = entries();
    for entry in &entries {
        eprint!("\r{:32}", entry.name);
        rows.push(Row::of(entry.name, (entry.history)(&steady(entry))));
    }
    for repetition in 0..REPETITIONS {
        for (entry, row) in entries.iter().zip(&mut rows) {
            if entry.own_clock && repetition > 0 {
                continue;
            }
            eprint!("\rrepetition {repetition}: {:32}", entry.name);
            for threads in [1, 2] {
                row.speeds.push((threads, (entry.speed)(&steady(entry), threads)));
            }
        }
    }
    eprintln!();

    burst(arguments)?;
    let wrong = rows.iter().filter(|row| row.name.starts_with("koel") && row.missed > 0.0).count();
    let text = report::text(&timing::machine(), arguments.keys, &rows);
    if wrong == 0 { Ok(text) } else { Err(format!("koel missed keys of the window\n{text}")) }
}
