//! Sets that outlive their process: koel's durable filter, and what people use instead.
//!
//! Reading order: `sets` → this file: it starts child processes, watches and kills them; then what they do: fill a set,
//! open it again, or add to it until they are killed; then the figures as a table.

mod sets;

pub use sets::item;

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{Rounds, Table, median, publish, read_csv, write_csv};
use crate::kit::machine::about;
use crate::kit::memory::of_process;
use crate::kit::waits::watch;
use crate::kit::worker::{self, Figures, Worker};
use serde::{Deserialize, Serialize};
use sets::{EVERYTHING, GROUPS, KINDS, Kind, Maker, Set, redis_server};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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
    let measured = arguments.flag("table");
    let plan = if arguments.test {
        Plan { items: 2_000, rounds: 1, kills: 1, longest: Duration::from_millis(30) }
    } else {
        Plan { items: 1_000_000, rounds: 5, kills: 3, longest: Duration::from_millis(700) }
    };
    arguments.end()?;
    let csv = out.join("figures.csv");
    if !measured {
        let (about, figures) = beside(&plan, scratch.path())?;
        write_csv(&csv, &about, &figures)?;
    }
    let (about, figures) = read_csv(&csv)?;
    let found = Found { about, figures };
    publish(&out.join("table.md"), &found.table())?;
    found.lost_by_koel().map_or(Ok(()), |loss| Err(loss.into()))
}

struct Plan {
    items: u64,
    rounds: u64,
    /// How often each is killed while it adds, in each round, and after how long at most.
    kills: u64,
    longest: Duration,
}

/// Measures the sets in rounds: each kind in turn, each measurement in a process of its own.
fn beside(plan: &Plan, folder: &Path) -> Result<(String, Vec<Figure>)> {
    let (kinds, absent): (Vec<&Kind>, Vec<&Kind>) =
        KINDS.iter().partition(|kind| match kind.maker {
            Maker::Scrapy => python().is_some(),
            Maker::Redis => redis_server().is_some(),
            _ => true,
        });
    let (about, mut all) = (about(), Rounds::new());
    for round in 0..plan.rounds {
        for kind in &kinds {
            eprint!("\rround {} of {}: {:50}", round + 1, plan.rounds, kind.label);
            let scratch = tempfile::tempdir_in(folder)?;
            let failed = |error| format!("{}: {error}", kind.name);
            for (name, figure) in plan.life(kind, scratch.path()).map_err(failed)? {
                if name != "process" {
                    all.note((kind.label.to_string(), name), figure);
                }
            }
        }
    }
    eprintln!();
    let mut about = format!(
        "{about}\n{} items of 8 bytes, or 20 in Scrapy's set; medians of {} rounds.",
        plan.items, plan.rounds
    );
    absent.iter().for_each(|kind| about += &format!("\n{} is not here.", kind.label));
    Ok((about, figures(all)))
}

impl Plan {
    /// Fills a set, kills its process, opens it twice, and then kills it in the middle of adds.
    fn life(&self, kind: &Kind, scratch: &Path) -> Result<Figures> {
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

        let open = |items| -> Result<Figures> {
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

/// Returns a Python that has Scrapy, if `KOEL_PYTHON` is one.
fn python() -> Option<PathBuf> {
    let python = PathBuf::from(std::env::var_os("KOEL_PYTHON")?);
    let mut command = Command::new(&python);
    command.args(["-c", "import scrapy"]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success()).then_some(python)
}

fn start(kind: &Kind, task: &str, folder: &Path, items: u64) -> Result<Worker> {
    if let Maker::Scrapy = kind.maker {
        let mut command = Command::new(python().ok_or("no Python with Scrapy")?);
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

/// The median of a figure of a set, its least and its most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Figure {
    group: String,
    set: String,
    figure: String,
    median: f64,
    least: f64,
    most: f64,
}

/// All that was found in a run.
struct Found {
    /// How, where and when.
    about: String,
    figures: Vec<Figure>,
}

/// Returns the figures of all rounds, by groups, sets and names.
fn figures(rounds: Rounds<(String, String)>) -> Vec<Figure> {
    let figure = |((set, figure), all): ((String, String), Vec<f64>)| {
        let group =
            KINDS.iter().find(|kind| kind.label == set).map_or("", |kind| kind.group).into();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Figure { group, set, figure, median: median(all), least, most }
    };
    let mut figures: Vec<Figure> = rounds.0.into_iter().map(figure).collect();
    figures.sort_by_key(|figure| GROUPS.iter().position(|group| *group == figure.group));
    figures
}

impl Found {
    fn get(&self, kind: &Kind, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.set == kind.label && figure.figure == name)
    }

    /// Returns the kinds that were measured, in their order.
    fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        KINDS.iter().filter(|kind| self.get(kind, "add").is_some())
    }

    /// Returns what koel has lost of what it had answered, which has to be nothing.
    fn lost_by_koel(&self) -> Option<String> {
        let mut losses = self.figures.iter().filter(|figure| {
            let is_loss = ["lost", "lost after the fill"].contains(&&*figure.figure);
            is_loss && figure.set.starts_with("koel") && figure.most > 0.0
        });
        losses.next().map(|loss| format!("{} has lost {} items", loss.set, loss.most))
    }

    /// The tables, in Markdown.
    fn table(&self) -> String {
        let cell = |kind: &Kind, name: &str, show: &dyn Fn(f64) -> String| {
            self.get(kind, name).map_or("–".into(), |figure| show(figure.median))
        };
        let columns = ["add, new", "add, present", "look up, present", "look up, absent"];
        let mut speeds = Table::new("items a second", &columns);
        for kind in self.kinds() {
            let names = ["add", "present", "hit", "miss"];
            speeds.row(kind.label, names.map(|name| cell(kind, name, &rate)));
        }
        let columns = [
            ("resident memory", "memory", 1.0),
            ("of it, of no file", "anonymous", 1.0),
            ("on disk", "on disk", 1.0),
            ("on disk, at most", "most on disk", 1.0),
            ("opened after a kill, ms", "open after a kill", 1e3),
            ("after it was closed, ms", "open", 1e3),
        ];
        let mut room = Table::new("bytes an item", &columns.map(|column| column.0));
        for kind in self.kinds().filter(|kind| kind.tells_room()) {
            let cell = |(_, name, scale)| cell(kind, name, &|figure| short(figure * scale));
            room.row(kind.label, columns.map(cell));
        }
        let mut losses = Table::new("what is lost", &["`kill -9` takes", "what else may be lost"]);
        for kind in self.kinds().filter(|kind| kind.threads == 1) {
            let kill = match (self.get(kind, "lost"), self.get(kind, "answered")) {
                (Some(lost), _) if lost.most > 0.0 => {
                    format!("up to {} of the last adds", lost.most)
                }
                (Some(_), Some(all)) => format!("nothing (of {} a round)", rate(all.median)),
                _ => "everything".into(),
            };
            losses.row(kind.label, [kill, kind.group.into()]);
        }
        let about = &self.about;
        let [speeds, room] = [speeds, room].map(|table| table.markdown("---:"));
        let losses = losses.markdown("---");
        format!(
            "# Sets that outlive their process\n\n{about}\n[What each figure means](../../durable.md).\n\n\
             {speeds}\n{room}\n{losses}"
        )
    }
}

/// A number of operations a second.
fn rate(figure: f64) -> String {
    match figure {
        1e6.. => format!("{} M", short(figure / 1e6)),
        1e3.. => format!("{} k", short(figure / 1e3)),
        _ => short(figure),
    }
}

/// Three digits.
fn short(figure: f64) -> String {
    match figure.abs() {
        100.0.. => format!("{figure:.0}"),
        10.0.. => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_koel_loses_is_told() {
        let mut rounds = Rounds::new();
        for (set, lost) in [("koel-each", 0.0), ("redis", 9.0), ("koel-each", 3.0)] {
            rounds.note((set.into(), "lost".into()), lost);
        }
        let found = Found { about: String::new(), figures: figures(rounds) };
        assert_eq!(found.lost_by_koel().unwrap(), "koel-each has lost 3 items");
    }
}
