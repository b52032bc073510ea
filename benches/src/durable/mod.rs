//! Sets that outlive their process: koel's durable filter, and what people use instead.
//!
//! Reading order: `sets` → this file: it starts child processes, watches and kills them; then what they do: fill a set,
//! open it again, or add to it until they are killed.

mod sets;

pub use sets::item;

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::Figures;
use crate::kit::memory::in_proc;
use crate::kit::waits::watch;
use crate::kit::worker::{self, Said, Worker};
use sets::{EVERYTHING, KINDS, Kind, Maker, Set, redis_server};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub fn run(mut arguments: Arguments) -> Result<()> {
    if let Some(words) = arguments.value("--work")? {
        // A set, a task, a number of items, and a folder.
        let words: Vec<&str> = words.splitn(4, ':').collect();
        let [kind, task, items, folder] = words[..] else { return Err("no work".into()) };
        let kind = KINDS.iter().find(|it| it.name == kind).ok_or("there is no such set")?;
        return work(kind, task, Path::new(folder), items.parse()?);
    }
    let (out, scratch) = (arguments.out("durable")?, arguments.scratch()?);
    let plan = if arguments.test {
        Plan { items: 2_000, rounds: 1, kills: 1, longest: Duration::from_millis(30) }
    } else {
        Plan { items: 1_000_000, rounds: 3, kills: 3, longest: Duration::from_millis(700) }
    };
    arguments.end()?;
    let found = beside(&plan, scratch.path())?;
    found.write(&out.join("figures.csv"))
}

struct Plan {
    items: u64,
    rounds: u64,
    /// How often each is killed while it adds, in each round, and after how long at most.
    kills: u64,
    longest: Duration,
}

/// Measures the sets in rounds: each kind in turn, each measurement in a process of its own. The place of a figure is what
/// a power failure takes.
fn beside(plan: &Plan, folder: &Path) -> Result<Figures> {
    let (kinds, absent): (Vec<&Kind>, Vec<&Kind>) =
        KINDS.iter().partition(|kind| match kind.maker {
            Maker::Scrapy => PYTHON.is_some(),
            Maker::Redis => redis_server().is_some(),
            _ => true,
        });
    let mut found = Figures::new("durable");
    found.say(
        "plan",
        format!(
            "{} items of 8 bytes, or 20 in Scrapy's set; medians of {} rounds.",
            plan.items, plan.rounds
        ),
    );
    absent.iter().for_each(|kind| found.say(kind.name, format!("{} is not here.", kind.name)));
    for round in 0..plan.rounds {
        for kind in &kinds {
            eprint!("\rround {} of {}: {:50}", round + 1, plan.rounds, kind.name);
            let scratch = tempfile::tempdir_in(folder)?;
            let failed = |error| format!("{}: {error}", kind.name);
            for (what, figure) in plan.life(kind, scratch.path()).map_err(failed)? {
                let unit = match &*what {
                    "process" => continue,
                    "add" | "present" | "hit" | "miss" => "items/s",
                    "open" | "open after a kill" => "s",
                    "answered" | "lost" | "lost after the fill" | "taken" => "items",
                    _ => "bytes/item",
                };
                let row = found.note(kind.name, &what, kind.group, unit, figure);
                row.note = if kind.of == 1 { "" } else { "of a part of the items" };
            }
        }
    }
    eprintln!();
    Ok(found)
}

impl Plan {
    /// Fills a set, kills its process, opens it twice, and then kills it in the middle of adds.
    fn life(&self, kind: &Kind, scratch: &Path) -> Result<Said> {
        // Whole transactions.
        let items = (self.items / kind.of).max(1_000).next_multiple_of(1_000);
        let folder = scratch.join("set");
        fs::create_dir(&folder)?;
        let (filled, most) = watched(&folder, || -> Result<_> {
            let mut work = start(kind, "fill", &folder, items)?;
            let figures = work.figures()?;
            work.kill(&figures)?;
            Ok(figures)
        });
        let mut figures = filled?;
        if kind.group == EVERYTHING {
            return Ok(figures);
        }
        figures.insert("most on disk".into(), most as f64 / items as f64);

        let open = |items| -> Result<Said> {
            let mut work = start(kind, "open", &folder, items)?;
            let figures = work.figures()?;
            work.end()?;
            Ok(figures)
        };
        let killed = open(items)?;
        figures.insert("open after a kill".into(), killed["open"]);
        // What was taken for another item was never added, and may be found to be new now.
        let lost = (killed["lost"] - figures["taken"]).max(0.0);
        figures.insert("lost after the fill".into(), lost);
        start(kind, "settle", &folder, items)?.end()?;
        figures.insert("open".into(), open(items)?["open"]);
        figures.insert("on disk".into(), on_disk(&folder) as f64 / items as f64);

        // On more threads it is the same set.
        if kind.threads > 1 {
            return Ok(figures);
        }
        let (mut answered, mut lost) = (0, 0.0_f64);
        for kill in 0..self.kills {
            fs::remove_dir_all(&folder)?;
            fs::create_dir(&folder)?;
            let mut work = start(kind, "add", &folder, items)?;
            let figures = work.figures()?;
            sleep(self.longest.mul_f64((kill as f64 + 0.7) / self.kills as f64));
            let notes = scratch.join(ANSWERED);
            // Some are slow.
            while fs::metadata(&notes).map_or(0, |about| about.len()) == 0 {
                sleep(Duration::from_millis(1));
            }
            work.kill(&figures)?;
            let noted = fs::read(&notes)?;
            fs::remove_file(&notes)?;
            let [count, taken] = noted.as_chunks().0 else { return Err("no notes".into()) };
            let [count, taken] = [count, taken].map(|note| u64::from_le_bytes(*note));
            lost = lost.max(open(count)?["lost"] - taken as f64);
            answered += count;
        }
        figures.insert("answered".into(), answered as f64);
        figures.insert("lost".into(), lost);
        Ok(figures)
    }
}

/// A Python that has Scrapy, if `KOEL_PYTHON` is one.
static PYTHON: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let python = PathBuf::from(std::env::var_os("KOEL_PYTHON")?);
    let mut command = Command::new(&python);
    command.args(["-c", "import scrapy"]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success()).then_some(python)
});

fn start(kind: &Kind, task: &str, folder: &Path, items: u64) -> Result<Worker> {
    if let Maker::Scrapy = kind.maker {
        let mut command = Command::new(PYTHON.as_ref().ok_or("no Python with Scrapy")?);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/durable/seen.py"));
        return Worker::start(command.arg(task).arg(folder).arg(items.to_string()));
    }
    Worker::of("durable", &format!("{}:{task}:{items}:{}", kind.name, folder.display()))
}

/// Returns the bytes that a folder takes on disk.
fn on_disk(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => on_disk(&entry.path()),
        Ok(about) => about.blocks() * 512,
        // It has just gone.
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

/// Does something while the folder is watched, and returns the most that it took on disk as well.
fn watched<T>(folder: &Path, work: impl FnOnce() -> T) -> (T, u64) {
    let most = AtomicU64::new(0);
    let look = |_| {
        most.fetch_max(on_disk(folder), Relaxed);
        sleep(Duration::from_millis(20));
    };
    let (_, _, done) = watch((1, 0), look, work);
    (done, most.into_inner().max(on_disk(folder)))
}

/// In the folder above that of the set: how many items were answered, and how many of these were taken for others.
const ANSWERED: &str = "answered";

/// Does the work of a child process. Figures go to the standard output, a name and a number in each line. `seen.py`
/// does the same for Scrapy.
fn work(kind: &Kind, task: &str, folder: &Path, items: u64) -> Result<()> {
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
    in_proc(&format!("{process}/status"), field)
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
    // koel was asked for one in a million. A few more, so that a tiny run does not fail by chance.
    let most = if kind.name.starts_with("koel") { 2 * items / 1_000_000 + 5 } else { 0 };
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
