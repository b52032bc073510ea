//! The speed of saves and loads, and of filters that answer from their files.
//!
//! * *files*: a filter of 1 GiB, fixed and growing, is saved and loaded, and the system's own tools copy and read the
//!   same file, in turn. Whatever is written is on the disk at the end.
//! * *open*: the same filters answer from their files, beside a load: when the first answer comes, how many come a
//!   second, and how much memory eight processes take that have one filter.

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{Figures, rate};
use crate::kit::memory::in_proc;
use crate::kit::scattered;
use crate::kit::worker::{self, Said, Worker};
use koel::{ConcurrentCuckooFilter, Prehashed, SnapshotFile, StableHash};
use std::fs::{self, File};
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

pub type Filter = ConcurrentCuckooFilter<StableHash>;

/// How many processes have one filter, and how many lookups each makes.
const PROCESSES: usize = 8;
const LOOKUPS: u64 = 1 << 20;

pub fn run(mut arguments: Arguments) -> Result<()> {
    let test = arguments.test;
    let (bytes, turns) = if test { (2 << 20, 1) } else { (1 << 30, 3) };
    if let Some(work) = arguments.value("--work")? {
        return hold(&work);
    }
    let (out, scratch) = (arguments.out("")?, arguments.scratch()?);
    let part = arguments.part(&["files", "open"]);
    arguments.end()?;
    let mut figures = Figures::new("snapshots");
    let saved = scratch.path().join("saved.koel");
    for (kind, make) in [("fixed", fixed as fn(usize) -> Filter), ("growing", growing)] {
        let filter = make(bytes);
        let report = filter.save(&saved)?;
        let memory = filter.size_in_bytes();
        figures.say(kind, format!("A {kind} filter of {report}, {memory} in memory."));
        if part != "open" {
            files(&filter, &saved, (kind, turns), &mut figures)?;
        }
        let items = filter.len() as u64;
        // The filter goes before processes take as much memory.
        drop(filter);
        if part != "files" {
            open(&saved, items, (kind, turns), &mut figures)?;
        }
    }
    figures.write(&out.join("snapshots.csv"))
}

/// Builds a fixed filter of this many bytes, filled to 90 % of its capacity.
pub fn fixed(bytes: usize) -> Filter {
    let capacity = (bytes as f64 / 2.0 * 0.93) as usize;
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity);
    let filter = builder.hasher(StableHash::with_seed(1)).build().expect("memory");
    fill(&filter, 0, capacity / 10 * 9);
    filter
}

fn growing(bytes: usize) -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(bytes / 256);
    let builder = builder.hasher(StableHash::with_seed(1)).growing().false_positive_rate(0.002);
    let filter = builder.build().expect("memory");
    while filter.size_in_bytes() < bytes / 100 * 95 {
        fill(&filter, filter.len(), bytes / 100);
    }
    filter
}

fn fill(filter: &Filter, first: usize, items: usize) {
    let hashes: Vec<_> = (first as u64..(first + items) as u64).map(Prehashed).collect();
    for hashes in hashes.chunks(1 << 20) {
        assert!(filter.par_insert_many(hashes).iter().all(|added| added.is_ok()));
    }
}

fn files(
    filter: &Filter,
    saved: &Path,
    (at, turns): (&str, usize),
    figures: &mut Figures,
) -> Result<()> {
    let [copy, stale] = ["copy", "stale"].map(|name| saved.with_file_name(name));
    let bytes = fs::copy(saved, &stale)?;
    let save =
        || filter.save(saved).map_err(Into::into).map(|report| assert_eq!(report.bytes, bytes));
    let load = || check(&Filter::load(saved)?, filter.len());
    let read = || Ok(_ = black_box(fs::read(saved)?));
    let cp = || {
        run_tool(Command::new("cp").arg(&stale).arg(&copy))?;
        Ok(File::open(&copy)?.sync_all()?)
    };
    // A row, and whether the file has to come from the disk.
    type Row<'a> = (&'a str, bool, &'a dyn Fn() -> Result<()>);
    let rows: [Row<'_>; 6] = [
        ("save", false, &save),
        ("cp, synced", false, &cp),
        ("load", false, &load),
        ("read to fresh memory", false, &read),
        ("load, from disk", true, &load),
        ("read to fresh, from disk", true, &read),
    ];
    for _ in 0..turns {
        for (name, from_disk, act) in rows {
            settle(saved, from_disk)?;
            let start = Instant::now();
            act()?;
            let seconds = start.elapsed().as_secs_f64();
            figures.note(name, "seconds", at, "s", seconds);
            let mib = bytes as f64 / f64::from(1 << 20);
            figures.note(name, "MiB/s", at, "MiB/s", mib / seconds);
        }
    }
    Ok(())
}

/// Checks some items of a filter that was loaded, which takes no time beside the load.
fn check(filter: &Filter, items: usize) -> Result<()> {
    let mut some = (0..items as u64).step_by(1 + items / 1_000);
    let is_whole = filter.len() == items && some.all(|key| filter.contains(&Prehashed(key)));
    if is_whole { Ok(()) } else { Err("what was loaded is not what was saved".into()) }
}

/// Runs one of the system's tools.
fn run_tool(command: &mut Command) -> Result<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

/// Lets earlier writes reach the disk now, not during the measurement, and drops the file from the system's cache if it
/// has to come from the disk.
fn settle(path: &Path, from_disk: bool) -> Result<()> {
    run_tool(&mut Command::new("sync"))?;
    if !from_disk {
        return Ok(());
    }
    let options = ["oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"];
    run_tool(Command::new("dd").arg(format!("of={}", path.display())).args(options))
}

/// A filter that answers: loaded, or in its file.
enum Answers {
    Loaded(Box<Filter>),
    Opened(Box<SnapshotFile<StableHash>>),
}

impl Answers {
    fn of(way: &str, path: &Path) -> Result<Self> {
        Ok(match way {
            "load" => Answers::Loaded(Box::new(Filter::load(path)?)),
            _ => Answers::Opened(Box::new(SnapshotFile::open(path)?)),
        })
    }

    /// Looks items up that are there, one by one or in batches of 4,096.
    fn find(&self, keys: &[Prehashed], in_batches: bool) -> Result<()> {
        let mut found = 0;
        for part in keys.chunks(if in_batches { 4_096 } else { 1 }) {
            found += match self {
                Answers::Loaded(filter) if in_batches => count(&filter.contains_many(part)),
                Answers::Opened(file) if in_batches => count(&file.contains_many(part)?),
                Answers::Loaded(filter) => usize::from(filter.contains(&part[0])),
                Answers::Opened(file) => usize::from(file.contains(&part[0])?),
            };
        }
        if found == keys.len() { Ok(()) } else { Err("an item is missing".into()) }
    }
}

fn count(answers: &[bool]) -> usize {
    answers.iter().filter(|found| **found).count()
}

/// Some of the keys of a filter in a random order.
fn random_keys(items: u64, count: u64, seed: u64) -> Vec<Prehashed> {
    (0..count).map(|number| Prehashed(scattered(number ^ seed << 40) % items)).collect()
}

fn open(saved: &Path, items: u64, (at, turns): (&str, usize), figures: &mut Figures) -> Result<()> {
    let lookups = LOOKUPS.min(items);
    let ways = [("open", true), ("open", false), ("load", true), ("load", false)];
    for turn in 0..turns as u64 {
        let keys = random_keys(items, lookups, turn);
        for (way, from_disk) in ways {
            settle(saved, from_disk)?;
            let start = Instant::now();
            let answers = Answers::of(way, saved)?;
            answers.find(&keys[..1], false)?;
            let name = format!("{way} and ask{}", if from_disk { ", from disk" } else { "" });
            let mut note = |what, unit, figure| _ = figures.note(&name, what, at, unit, figure);
            note("first, ms", "ms", 1e3 * start.elapsed().as_secs_f64());
            // From then on, each shard of a file has been read and checked.
            answers.find(&keys, true)?;
            for (what, in_batches) in [("one by one, M/s", false), ("batches, M/s", true)] {
                let start = Instant::now();
                answers.find(&keys, in_batches)?;
                note(what, "M/s", rate(lookups, start.elapsed()));
            }
        }
    }
    for way in ["open", "load"] {
        let name = format!("{way}: MiB of {PROCESSES} processes together");
        let [theirs, shared] = memory(way, saved, items, lookups)?;
        figures.note(&name, "theirs", at, "MiB", theirs);
        figures.note(&name, "shared", at, "MiB", shared);
    }
    Ok(())
}

/// Returns the memory of processes that have the filter, in MiB: what is theirs alone, and what they share.
fn memory(way: &str, saved: &Path, items: u64, lookups: u64) -> Result<[f64; 2]> {
    let held = |number| format!("{way}:{items}:{lookups}:{number}:{}", saved.display());
    let workers = (0..PROCESSES).map(|number| Worker::of("snapshots", &held(number)));
    let mut workers = workers.collect::<Result<Vec<Worker>>>()?;
    let figures = workers.iter_mut().map(Worker::figures).collect::<Result<Vec<Said>>>()?;
    let mut sums = [0.0; 2];
    for figures in figures {
        let process = *figures.get("process").ok_or("it has ended too early")? as u32;
        let file = format!("{process}/smaps_rollup");
        let mib = |field| in_proc(&file, field).map(|it| it / 1_048_576.0);
        let (own, proportional) = (mib("Anonymous")?, mib("Pss")?);
        sums = [sums[0] + own, sums[1] + (proportional - own).max(0.0)];
    }
    workers.into_iter().try_for_each(Worker::end)?;
    Ok(sums)
}

/// Has a filter, and looks items up, until standard input ends.
fn hold(held: &str) -> Result<()> {
    let [way, items, lookups, number, path] =
        held.splitn(5, ':').collect::<Vec<_>>().try_into().map_err(|_| "what is to be held?")?;
    let answers = Answers::of(way, Path::new(path))?;
    let keys = random_keys(items.parse()?, lookups.parse()?, number.parse()?);
    answers.find(&keys, true)?;
    drop(keys);
    worker::wait(std::process::id())
}
