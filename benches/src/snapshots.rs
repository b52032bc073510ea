//! The speed of saves and loads, and how long other operations wait during a save.
//!
//! * *files*: a filter of 1 GiB, fixed and growing, is saved and loaded, and the system's own tools copy and read the
//!   same file, in turn. Whatever is written is on the disk at the end.
//! * *pieces*: the same filters are sent in pieces of 1 MiB.
//! * *open*: the same filters answer from their files, beside a load: when the first answer comes, how many come a
//!   second, and how much memory eight processes take that have one filter.
//! * *waits*: single operations on a quarter of that are timed, alone and during a save.

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{Rounds, rate};
use crate::kit::machine::{about, cpu_time};
use crate::kit::waits::{Time, watch};
use koel::{ConcurrentCuckooFilter, Prehashed, SnapshotFile, StableHash};
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Filter = ConcurrentCuckooFilter<StableHash>;
type Opened = SnapshotFile<StableHash>;

/// How many processes have one filter, and how many lookups each makes.
const PROCESSES: usize = 8;
const LOOKUPS: u64 = 1 << 20;

/// The first key that is in no filter.
const ABSENT: u64 = 1 << 40;

pub fn run(mut arguments: Arguments) -> Result<()> {
    let test = arguments.test;
    let bytes = arguments.number("--mib", 1 << 20)?.unwrap_or(if test { 2 } else { 1_024 }) << 20;
    let turns = if test { 1 } else { 7 };
    let folder = arguments.value("--folder")?.map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(folder)?;
    let held = arguments.value("--hold")?;
    let parts = arguments.parts(&["files", "pieces", "open", "waits"]);
    arguments.end()?;
    if let Some(held) = held {
        return hold(&held);
    }
    println!("{}", about());
    type Make = fn(usize) -> Filter;
    let makers: [(&str, Make); 2] = [("fixed", fixed), ("growing", growing)];
    for part in parts {
        match part {
            "files" => makers.iter().try_for_each(|(name, make)| {
                files(name, &make(bytes as usize), folder.path(), turns)
            })?,
            "pieces" => {
                makers.iter().for_each(|(name, make)| pieces(name, &make(bytes as usize), turns))
            }
            "open" => {
                // The filters go before processes take as much memory.
                let saved = folder.path().join("opened.koel");
                makers.iter().try_for_each(|(name, make)| {
                    let items = {
                        let filter = make(bytes as usize);
                        filter.save(&saved)?;
                        filter.len() as u64
                    };
                    open(name, &saved, items, turns.min(3))
                })?;
            }
            _ => {
                let pause = Duration::from_millis(if test { 5 } else { 1_000 });
                waits(&fixed(bytes as usize / 4), folder.path(), turns, pause);
            }
        }
    }
    Ok(())
}

/// Builds a fixed filter of this many bytes, filled to 90 % of its capacity.
fn fixed(bytes: usize) -> Filter {
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

fn files(kind: &str, filter: &Filter, folder: &Path, turns: usize) -> Result<()> {
    let [saved, copy, stale] = ["saved.koel", "copy", "stale"].map(|name| folder.join(name));
    let report = filter.save(&saved)?;
    fs::copy(&saved, &stale)?;
    let (mib, memory) = (report.bytes as f64 / f64::from(1 << 20), filter.size_in_bytes());
    println!("a {kind} filter of {report}, {memory} in memory; {turns} turns");
    let synced = || File::open(&copy)?.sync_all();
    let nowhere = || run_tool(Command::new("cat").arg(&saved).stdout(Stdio::null()));
    let save = || {
        assert_eq!(filter.save(&saved)?, report);
        Ok(())
    };
    let load = || check(Filter::load(&saved)?, filter.len());
    let stream = || check(Filter::read_from(File::open(&saved)?.take(u64::MAX))?, filter.len());
    let read = || {
        black_box(fs::read(&saved)?);
        Ok(())
    };
    let cp = || run_tool(Command::new("cp").arg(&stale).arg(&copy)).and_then(|()| Ok(synced()?));
    let cat = || {
        run_tool(Command::new("cat").arg(&stale).stdout(File::create(&copy)?))?;
        Ok(synced()?)
    };
    // A row, whether the file has to come from the disk, and what it is compared with.
    type Row<'a> = (&'a str, bool, &'a dyn Fn() -> Result<()>, &'a [&'a str]);
    let rows: [Row<'_>; 10] = [
        ("save", false, &save, &["cp, synced", "cat, synced"]),
        ("cp, synced", false, &cp, &[]),
        ("cat, synced", false, &cat, &[]),
        ("load", false, &load, &["cp, synced", "cat, to nowhere", "read to fresh memory"]),
        ("cat, to nowhere", false, &nowhere, &[]),
        ("read to fresh memory", false, &read, &[]),
        ("load, from disk", true, &load, &["cat, from disk", "read to fresh, from disk"]),
        ("cat, from disk", true, &nowhere, &[]),
        ("read to fresh, from disk", true, &read, &[]),
        ("read_from", false, &stream, &["load"]),
    ];
    let mut seconds = Rounds::new();
    for _ in 0..turns {
        for (name, from_disk, act, _) in rows {
            // Earlier writes reach the disk now, not during the measurement.
            run_tool(&mut Command::new("sync"))?;
            if from_disk {
                forget(&saved)?;
            }
            let start = Instant::now();
            act()?;
            seconds.note(name, start.elapsed().as_secs_f64());
        }
    }
    println!("  {:24} {:>8} {:>8}   as fast as", "", "seconds", "MiB/s");
    for (name, _, _, others) in rows {
        let ratio = |other: &&str| format!("{:.2} × {other}", seconds.ratio(other, &name));
        let ratios: Vec<String> = others.iter().map(ratio).collect();
        let taken = seconds.median(&name);
        println!("  {name:24} {taken:8.3} {:8.0}   {}", mib / taken, ratios.join(", "));
    }
    Ok(())
}

/// Checks some items of a filter that was loaded, which takes no time beside the load.
fn check(filter: Filter, items: usize) -> Result<()> {
    let mut some = (0..items as u64).step_by(1 + items / 1_000);
    let is_whole = filter.len() == items && some.all(|key| filter.contains(&Prehashed(key)));
    if is_whole { Ok(()) } else { Err("what was loaded is not what was saved".into()) }
}

/// Runs one of the system's tools.
fn run_tool(command: &mut Command) -> Result<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

/// Drops the file from the system's cache.
fn forget(path: &Path) -> Result<()> {
    let mut of = std::ffi::OsString::from("of=");
    of.push(path);
    let options = ["oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"];
    run_tool(Command::new("dd").arg(of).args(options))
}

/// Sends a filter in pieces of 1 MiB.
fn pieces(name: &str, filter: &Filter, turns: usize) {
    let (mut times, mut count, mut bytes) = (Rounds::new(), 0, 0);
    for _ in 0..turns {
        let mut loader = Filter::loader();
        let mut timed = |what, start: Instant| {
            times.note(what, 1e3 * start.elapsed().as_secs_f64());
        };
        (count, bytes) = (0, 0);
        while let Some(cursor) = loader.next() {
            let start = Instant::now();
            let piece = filter.piece_at(cursor, 1 << 20).expect("memory");
            timed("made", start);
            let start = Instant::now();
            loader.push(piece.as_bytes()).expect("the next piece");
            timed("pushed", start);
            (count, bytes) = (count + 1, bytes + piece.as_bytes().len());
        }
        let start = Instant::now();
        let again = loader.finish().expect("all pieces");
        timed("finished", start);
        assert_eq!(again.len(), filter.len());
    }
    println!("{name} filter, {} MiB in {count} pieces, milliseconds", bytes >> 20);
    println!("  {:10} {:>8} {:>8} {:>8}", "", "each", "longest", "in all");
    for name in ["made", "pushed", "finished"] {
        let all = times.all(&name);
        let (longest, sum) = (all.iter().copied().fold(0.0, f64::max), all.iter().sum::<f64>());
        let each = times.median(&name);
        println!("  {name:10} {each:8.2} {longest:8.2} {:8.0}", sum / turns as f64);
    }
}

/// A filter that answers: loaded, or in its file, which is mapped or not.
enum Answers {
    Loaded(Box<Filter>),
    Opened(Box<Opened>),
}

const WAYS: [&str; 3] = ["open", "open, unmapped", "load"];

/// Whether the file comes from the disk, in each measurement of a way. Without a mapping, every lookup is slow.
fn from_disk(way: &str) -> &'static [bool] {
    if way == "open, unmapped" { &[false] } else { &[true, false] }
}

impl Answers {
    fn of(way: &str, path: &Path) -> Result<Self> {
        Ok(match way {
            "load" => Answers::Loaded(Box::new(Filter::load(path)?)),
            "open" => Answers::Opened(Box::new(Opened::open(path)?)),
            _ => Answers::Opened(Box::new(Opened::open_unmapped(path)?)),
        })
    }

    /// Looks the items up one by one, or in batches of 4,096.
    fn find(&self, keys: &[Prehashed], in_batches: bool) -> Result<usize> {
        let mut found = 0;
        match (self, in_batches) {
            (Answers::Loaded(filter), false) => {
                found += keys.iter().filter(|key| filter.contains(*key)).count();
            }
            (Answers::Opened(file), false) => {
                for key in keys {
                    found += usize::from(file.contains(key)?);
                }
            }
            (_, true) => {
                for keys in keys.chunks(4_096) {
                    let answers = match self {
                        Answers::Loaded(filter) => filter.contains_many(keys),
                        Answers::Opened(file) => file.contains_many(keys)?,
                    };
                    found += answers.into_iter().filter(|found| *found).count();
                }
            }
        }
        Ok(found)
    }
}

/// Some of the keys of a filter in a random order.
fn random_keys(items: u64, count: u64, seed: u64) -> Vec<Prehashed> {
    let random = |number: u64| (number ^ seed << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    (0..count).map(|number| Prehashed(random(number) % items)).collect()
}

fn open(kind: &str, saved: &Path, items: u64, turns: usize) -> Result<()> {
    let bytes = fs::metadata(saved)?.len();
    println!("a {kind} filter of {items} items in {bytes} bytes; {turns} turns");
    let lookups = LOOKUPS.min(items);
    let (mut seconds, mut rates) = (Rounds::new(), Rounds::new());
    for turn in 0..turns as u64 {
        let keys = random_keys(items, lookups, turn);
        for way in WAYS {
            for &from_disk in from_disk(way) {
                run_tool(&mut Command::new("sync"))?;
                if from_disk {
                    forget(saved)?;
                }
                let mut start = (Instant::now(), cpu_time());
                let answers = Answers::of(way, saved)?;
                let mut timed = |part: &[Prehashed], name: &'static str, in_batches| {
                    if answers.find(part, in_batches)? != part.len() {
                        return Err("an item is missing".into());
                    }
                    let (time, work) = (start.0.elapsed(), cpu_time() - start.1);
                    seconds.note((way, from_disk, name), time.as_secs_f64());
                    rates.note((way, from_disk, name), rate(part.len() as u64, work));
                    start = (Instant::now(), cpu_time());
                    Result::Ok(())
                };
                timed(&keys[..1], "first", false)?;
                timed(&keys[1..11.min(keys.len())], "ten", false)?;
                timed(&keys, "all", true)?;
                timed(&keys, "one by one", false)?;
                timed(&keys, "batches", true)?;
            }
        }
    }
    println!(
        "  {:32} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "", "first", "ten more", "2^20 more", "one by one", "batches"
    );
    println!("  {:32} {:>10} {:>10} {:>10} {:>10} {:>10}", "", "ms", "ms", "ms", "M/s", "M/s");
    for way in WAYS {
        for &from_disk in from_disk(way) {
            let name = format!("{way}{}", if from_disk { ", from disk" } else { "" });
            print!("  {name:32}");
            for part in ["first", "ten", "all"] {
                print!(" {:>10.3}", 1e3 * seconds.median(&(way, from_disk, part)));
            }
            for part in ["one by one", "batches"] {
                print!(" {:>10.2}", rates.median(&(way, from_disk, part)));
            }
            println!();
        }
    }
    println!("  MiB of memory, of all processes together, after {lookups} lookups in each");
    println!("  {:32} {:>10} {:>10} {:>10}", "", "processes", "theirs", "shared");
    for way in WAYS {
        for count in [1, PROCESSES] {
            let [own, shared] = memory(way, saved, items, lookups, count)?;
            println!("  {way:32} {count:>10} {own:>10.1} {shared:>10.1}");
        }
    }
    Ok(())
}

/// Returns the memory of processes that have the filter, in MiB: what is theirs alone, and what they share.
fn memory(way: &str, saved: &Path, items: u64, lookups: u64, count: usize) -> Result<[f64; 2]> {
    let mut processes = Vec::new();
    for number in 0..count {
        let held = format!("{way}:{items}:{lookups}:{number}:{}", saved.display());
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["snapshots", "--hold", &held]).stdin(Stdio::piped()).stdout(Stdio::piped());
        processes.push(Holding(command.spawn()?));
    }
    for Holding(process) in &mut processes {
        let mut said = String::new();
        let output = process.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut said)?;
        if said != "ready\n" {
            return Err(format!("a process that has the filter said {said:?}").into());
        }
    }
    let mut sums = [0.0; 2];
    for Holding(process) in &processes {
        let about = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.id()))?;
        let kib = |name: &str| -> Result<f64> {
            let line = about.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next());
            Ok(number.ok_or(format!("no {name}"))?.parse()?)
        };
        let (own, proportional) = (kib("Anonymous:")?, kib("Pss:")?);
        sums = [sums[0] + own / 1_024.0, sums[1] + (proportional - own).max(0.0) / 1_024.0];
    }
    Ok(sums)
}

/// A process that has a filter until this is dropped.
struct Holding(Child);

impl Drop for Holding {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Has a filter, and looks items up, until standard input ends.
fn hold(held: &str) -> Result<()> {
    let [way, items, lookups, number, path] =
        held.splitn(5, ':').collect::<Vec<_>>().try_into().map_err(|_| "what is to be held?")?;
    let answers = Answers::of(way, Path::new(path))?;
    let keys = random_keys(items.parse()?, lookups.parse()?, number.parse()?);
    if answers.find(&keys, true)? != keys.len() {
        return Err("an item is missing".into());
    }
    drop(keys);
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

fn waits(filter: &Filter, folder: &Path, turns: usize, pause: Duration) {
    let path = folder.join("waits.koel");
    let items = filter.len() as u64;
    let random = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let look_up = |number| assert!(filter.contains(&Prehashed(random(number) % items)));
    let insert = |number| {
        let key = Prehashed(ABSENT + random(number));
        filter.insert(&key).expect("room");
        assert!(filter.remove(&key));
    };
    let saves = || assert!(filter.save(&path).expect("room on the disk").bytes > 0);
    let rests = || std::thread::sleep(pause);
    println!("waits, with a filter of {} MiB", filter.size_in_bytes() >> 20);
    println!(
        "  {:20} {:>10} {:>11} {:>11} {:>11} {:>11} {:>11}",
        "", "", "median", "p99", "p99.9", "p99.99", "longest"
    );
    let operations: [(&str, &(dyn Fn(u64) + Sync)); 2] =
        [("contains", &look_up), ("insert and remove", &insert)];
    let kinds: [(&str, &dyn Fn()); 2] = [("alone", &rests), ("saving", &saves)];
    for (name, operation) in operations {
        let mut times = Rounds::new();
        for _ in 0..turns {
            for (kind, meanwhile) in kinds {
                let (waits, ..) = watch((1, 0), operation, meanwhile);
                for (at, part) in [0.5, 0.99, 0.999, 0.9999, 1.0].into_iter().enumerate() {
                    times.note((kind, at), waits.within(part) as f64);
                }
            }
        }
        for (kind, _) in kinds {
            print!("  {name:20} {kind:>10}");
            (0..5).for_each(|at| print!(" {:>11}", Time(times.median(&(kind, at)) as u64)));
            println!();
        }
    }
}
