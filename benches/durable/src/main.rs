//! Measures sets that outlive their process: koel's durable filter, and what people use instead.
//!
//! ```text
//! cargo run --release -p koel-durable              the table and the picture
//! cargo run --release -p koel-durable -- ratios    koel with its journal beside koel in memory
//! cargo run --release -p koel-durable -- waits     how long an add takes during a checkpoint
//! cargo run --release -p koel-durable -- draw      the table and the picture again, from their figures
//! ```
//!
//! Reading order: `set` → `sets` → `worker`, which is what a child process does; then `process`, `measure`, `report`
//! and `plot`. `ratios` and `waits` are by themselves. What times threads is shared with the command.

mod measure;
mod plot;
mod process;
mod ratios;
mod report;
mod set;
mod sets;
#[path = "../../peers/src/timing.rs"]
#[allow(dead_code)] // not all of it is needed here
mod timing;
mod waits;
mod worker;

use measure::Plan;
use report::Found;
use set::{Kind, Maker, Result};
use sets::{KINDS, named, redis};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

const HELP: &str = "\
usage: cargo run --release -p koel-durable -- [FLAGS] [ratios | waits | draw]

  ratios              koel with its journal beside koel in memory
  waits               how long an add takes during a checkpoint of 1 GiB
  draw                the table and the picture again, from figures.csv in the directory of results
  --items 1000000     items that a set gets; slow ones get fewer
  --rounds 5          how often each set is measured
  --only sqlite       only sets whose names begin so
  --folder DIRECTORY  where the sets are, on the disk that is to be measured (default: the present one)
  --out DIRECTORY     where results go (default: benches/durable/results)
  --test              a tiny run, into a scratch directory

KOEL_SERVERS is a folder with redis-server, and KOEL_PYTHON a Python that has Scrapy. Without them, the two are left out.
";

enum Part {
    Beside,
    Ratios,
    Waits,
    Draw,
}

struct Arguments {
    part: Part,
    items: u64,
    rounds: u64,
    only: String,
    folder: PathBuf,
    out: Option<PathBuf>,
    test: bool,
}

fn parse(
    mut words: impl Iterator<Item = String>,
) -> std::result::Result<Option<Arguments>, String> {
    let mut parsed = Arguments {
        part: Part::Beside,
        items: 1_000_000,
        rounds: 5,
        only: String::new(),
        folder: PathBuf::from("."),
        out: None,
        test: false,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: String, most: u64| {
            let number = text.parse().ok().filter(|number| (1..=most).contains(number));
            number.ok_or(format!("{text}: a number from 1 to {most}"))
        };
        match &*word {
            "ratios" => parsed.part = Part::Ratios,
            "waits" => parsed.part = Part::Waits,
            "draw" => parsed.part = Part::Draw,
            "--items" => parsed.items = number(value()?, 1_000_000_000)?,
            "--rounds" => parsed.rounds = number(value()?, 1_000)?,
            "--only" => parsed.only = value()?,
            "--folder" => parsed.folder = PathBuf::from(value()?),
            "--out" => parsed.out = Some(PathBuf::from(value()?)),
            "--test" => parsed.test = true,
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("unknown flag {word}")),
        }
    }
    Ok(Some(parsed))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match &words[..] {
        [worker, kind, task, folder, items] if worker == "worker" => {
            work(kind, task, Path::new(folder), items)
        }
        _ => match parse(words.into_iter()) {
            Ok(Some(arguments)) => run(&arguments),
            Ok(None) => {
                print!("{HELP}");
                Ok(())
            }
            Err(message) => {
                eprintln!("koel-durable: {message}\n\n{HELP}");
                return ExitCode::from(2);
            }
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("koel-durable: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The work of a child process.
fn work(kind: &str, task: &str, folder: &Path, items: &str) -> Result<()> {
    let kind = named(kind).ok_or("there is no such set")?;
    worker::work(kind, task, folder, items.parse()?)
}

fn run(arguments: &Arguments) -> Result<()> {
    let results = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/results"));
    let scratch = std::env::temp_dir().join("koel-durable-test");
    let out = arguments.out.clone();
    let out = out.unwrap_or_else(|| if arguments.test { scratch } else { results() });
    fs::create_dir_all(&out)?;
    let about = about();
    let (name, text) = match arguments.part {
        Part::Beside => {
            let found = beside(arguments, about)?;
            draw(&found, &out)?;
            return found.lost_by_koel().map_or(Ok(()), |loss| Err(loss.into()));
        }
        Part::Draw => {
            return draw(&Found::read(&fs::read_to_string(out.join("figures.csv"))?)?, &out);
        }
        Part::Ratios => ("ratios.txt", ratios::ratios(&arguments.folder, arguments.test)?),
        Part::Waits => ("waits.txt", waits::waits(&arguments.folder, arguments.test)?),
    };
    let text = format!("{about}\n{text}");
    print!("{text}");
    Ok(fs::write(out.join(name), text)?)
}

/// Writes the figures, the table and the picture.
fn draw(found: &Found, out: &Path) -> Result<()> {
    print!("{}", found.table());
    fs::write(out.join("figures.csv"), found.csv())?;
    fs::write(out.join("table.md"), found.table())?;
    Ok(fs::write(out.join("adds.svg"), plot::picture(found))?)
}

/// When and where.
fn about() -> String {
    let date = Command::new("date").args(["-u", "+%F %R UTC"]).output();
    let date = date.map_or(String::new(), |date| String::from_utf8_lossy(&date.stdout).into());
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(", ");
    format!("{}, {}; load average {load}.", date.trim(), timing::machine())
}

fn beside(arguments: &Arguments, about: String) -> Result<Found> {
    let plan = Plan {
        items: if arguments.test { 2_000 } else { arguments.items },
        rounds: if arguments.test { 1 } else { arguments.rounds },
        kills: if arguments.test { 1 } else { 3 },
        longest: Duration::from_millis(if arguments.test { 30 } else { 700 }),
        folder: arguments.folder.clone(),
    };
    let chosen = |kind: &&Kind| kind.name.starts_with(&arguments.only);
    let (kinds, absent): (Vec<&Kind>, Vec<&Kind>) =
        KINDS.iter().filter(chosen).partition(|kind| match kind.maker {
            Maker::Scrapy => process::python().is_some(),
            Maker::Here(_) => !kind.name.starts_with("redis") || redis::program().is_some(),
        });
    if kinds.is_empty() {
        return Err("there is no such set".into());
    }
    let (items, rounds) = (plan.items, plan.rounds);
    let how =
        format!("{items} items of 8 bytes, or 20 in Scrapy's set; medians of {rounds} rounds.");
    let absent = absent.iter().map(|kind| format!("{} is not here.", kind.label));
    let about = [about, how].into_iter().chain(absent).collect();
    Ok(Found::of(about, plan.run(&kinds)?))
}
