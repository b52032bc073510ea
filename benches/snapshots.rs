//! The speed of saves and loads, and how long other operations wait during a save.
//!
//! ```text
//! cargo bench -p koel-benches --bench snapshots [-- --mib 1024] [--folder DIR] \
//!     [-- files | pieces | waits | hashes]
//! ```
//!
//! * *files*: a filter of 1 GiB, fixed and growing, is saved and loaded, and the system's own tools
//!   process the same bytes. A save is compared with `cp` and `cat` to another file, both synced. A
//!   load is compared with `cat` to `/dev/null`, and with reading the same bytes to fresh memory.
//!   All of these run in turn, several times. Figures are medians, and ratios are medians of the
//!   ratios within a turn. Files are in the system's cache when they are read, except in the lines
//!   that say *from disk*.
//! * *pieces*: the same filters, sent in pieces of 1 MiB: the time to make a piece, to push it to a
//!   loader, and to finish the filter.
//! * *waits*: single lookups and inserts are timed, while another thread saves the filter and while
//!   none does.
//! * *hashes*: the time per hash of a `StableHash`, which is the same in every process, beside
//!   ahash.

mod common;

use common::{ABSENT, median};
use koel::{ConcurrentCuckooFilter, Prehashed, RandomState, StableHash};
use std::fs::{self, File};
use std::hash::{BuildHasher, Hash};
use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

type Filter = ConcurrentCuckooFilter<StableHash>;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let after = |flag| args.iter().position(|arg| arg == flag).and_then(|at| args.get(at + 1));
    let test = args.iter().any(|arg| arg == "--test");
    let mib = after("--mib").and_then(|mib| mib.parse().ok()).unwrap_or(1_024);
    let (mib, turns) = if test { (2, 1) } else { (mib, 7) };
    let all = !["files", "pieces", "waits", "hashes"]
        .iter()
        .any(|part| args.iter().any(|arg| arg == part));
    let chosen = |part: &str| all || args.iter().any(|arg| arg == part);
    let folder = after("--folder").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(folder).expect("a folder for files");
    if chosen("files") {
        files("fixed", &fixed(mib << 20), folder.path(), turns);
        files("growing", &growing(mib << 20), folder.path(), turns);
    }
    if chosen("pieces") {
        pieces("fixed", &fixed(mib << 20), turns);
        pieces("growing", &growing(mib << 20), turns);
    }
    if chosen("waits") {
        waits(&fixed(mib << 20 >> 2), folder.path(), turns, test);
    }
    if chosen("hashes") {
        hashes(if test { 1_000 } else { 10_000_000 }, turns);
    }
}

/// Builds a fixed filter of this many bytes, filled to 90 % of its capacity.
fn fixed(bytes: usize) -> Filter {
    let capacity = (bytes as f64 / 2.0 * 0.93) as usize;
    let builder = ConcurrentCuckooFilter::builder().capacity(capacity);
    let filter = builder.hasher(StableHash::with_seed(1)).build().expect("memory");
    filled(filter, capacity / 10 * 9)
}

fn growing(bytes: usize) -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(bytes / 256);
    let builder = builder.hasher(StableHash::with_seed(1)).growing().false_positive_rate(0.002);
    let mut filter = builder.build().expect("memory");
    let mut items = 0;
    while filter.size_in_bytes() < bytes / 100 * 95 {
        filter = filled_from(filter, items, bytes / 100);
        items += bytes / 100;
    }
    filter
}

/// Sends a filter in pieces of 1 MiB.
fn pieces(name: &str, filter: &Filter, turns: usize) {
    let (mut making, mut pushing, mut longest, mut finishing) = (vec![], vec![], vec![], vec![]);
    let mut bytes = 0;
    for _ in 0..turns {
        let mut loader = Filter::loader();
        let mut most = 0.0f64;
        bytes = 0;
        while let Some(cursor) = loader.next() {
            let start = Instant::now();
            let piece = filter.piece_at(cursor, 1 << 20).expect("memory");
            making.push(start.elapsed().as_secs_f64());
            let start = Instant::now();
            loader.push(piece.as_bytes()).expect("the next piece");
            let took = start.elapsed().as_secs_f64();
            pushing.push(took);
            most = most.max(took);
            bytes += piece.as_bytes().len();
        }
        let start = Instant::now();
        let again = loader.finish().expect("all pieces");
        finishing.push(start.elapsed().as_secs_f64());
        longest.push(most);
        assert_eq!(again.len(), filter.len());
    }
    let count = making.len() / turns;
    let of = |times: &[f64]| times.iter().sum::<f64>() / turns as f64;
    println!("{name} filter, {:.0} MiB in {count} pieces", bytes as f64 / f64::from(1 << 20));
    println!("  all made in {:.2} s, all pushed in {:.2} s", of(&making), of(&pushing));
    let [made, pushed, longest, finished] =
        [making, pushing, longest, finishing].map(|times| 1e3 * median(times.into_iter()));
    println!("  a piece made in {made:.2} ms, pushed in {pushed:.2} ms (longest {longest:.2} ms)");
    println!("  finished in {finished:.2} ms");
}

fn filled(filter: Filter, items: usize) -> Filter {
    filled_from(filter, 0, items)
}

fn filled_from(filter: Filter, first: usize, items: usize) -> Filter {
    let hashes: Vec<_> = (first as u64..(first + items) as u64).map(Prehashed).collect();
    for hashes in hashes.chunks(1 << 20) {
        assert!(filter.par_insert_many(hashes).iter().all(Result::is_ok));
    }
    filter
}

// Files.

fn files(kind: &str, filter: &Filter, folder: &Path, turns: usize) {
    let (saved, copy) = (folder.join("saved.koel"), folder.join("copy"));
    let report = filter.save(&saved).expect("room on the disk");
    let (mib, memory) = (report.bytes as f64 / f64::from(1 << 20), filter.size_in_bytes());
    println!("a {kind} filter of {report}, {memory} in memory; {turns} turns");
    let stale = folder.join("stale");
    fs::copy(&saved, &stale).expect("room on the disk");
    let rows: [(&str, &dyn Fn() -> Duration); 9] = [
        ("save", &|| timed(|| assert_eq!(filter.save(&saved).expect("room on the disk"), report))),
        ("cp, synced", &|| {
            timed(|| {
                run(Command::new("cp").arg(&stale).arg(&copy));
                File::open(&copy).and_then(|file| file.sync_all()).expect("a synced copy");
            })
        }),
        ("cat, synced", &|| {
            timed(|| {
                let file = File::create(&copy).expect("a file");
                let to = file.try_clone().expect("a handle");
                run(Command::new("cat").arg(&stale).stdout(Stdio::from(to)));
                file.sync_all().expect("a synced copy");
            })
        }),
        ("load", &|| timed_load(&saved, filter.len())),
        ("cat, to nowhere", &|| {
            timed(|| run(Command::new("cat").arg(&saved).stdout(Stdio::null())))
        }),
        ("read to fresh memory", &|| timed(|| drop(black_box(fs::read(&saved).expect("memory"))))),
        ("load, from disk", &|| {
            forget(&saved);
            timed_load(&saved, filter.len())
        }),
        ("cat, from disk", &|| {
            forget(&saved);
            timed(|| run(Command::new("cat").arg(&saved).stdout(Stdio::null())))
        }),
        ("read to fresh, from disk", &|| {
            forget(&saved);
            timed(|| drop(black_box(fs::read(&saved).expect("memory"))))
        }),
    ];
    let mut seconds = vec![Vec::new(); rows.len()];
    for _ in 0..turns {
        for ((_, row), seconds) in rows.iter().zip(&mut seconds) {
            // Earlier writes reach the disk now, not during the measurement.
            run(&mut Command::new("sync"));
            seconds.push(row().as_secs_f64());
        }
    }
    println!("  {:24} {:>8} {:>8}   as fast as", "", "seconds", "MiB/s");
    for ((name, _), taken) in rows.iter().zip(&seconds) {
        let beside = match *name {
            "save" => &[1, 2][..],
            "load" => &[1, 2, 4, 5],
            "load, from disk" => &[7, 8],
            _ => &[],
        };
        let ratio = |other: usize| {
            let ratios = seconds[other].iter().zip(taken).map(|(other, own)| other / own);
            format!("{:.2} × {}", median(ratios), rows[other].0)
        };
        let ratios: Vec<String> = beside.iter().map(|other| ratio(*other)).collect();
        let taken = median(taken.iter().copied());
        println!("  {name:24} {taken:8.3} {:8.0}   {}", mib / taken, ratios.join(", "));
    }
    let stream = || read_from(&saved, filter.len());
    println!("  {:24} {:8.3}", "read_from", median((0..turns.min(3)).map(|_| stream())));
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn timed_load(path: &Path, items: usize) -> Duration {
    let start = Instant::now();
    let filter = Filter::load(path).expect("what was saved");
    let taken = start.elapsed();
    assert_eq!(filter.len(), items);
    assert!(
        (0..items as u64).step_by(1 + items / 100_000).all(|key| filter.contains(&Prehashed(key)))
    );
    taken
}

fn read_from(path: &Path, items: usize) -> f64 {
    let file = File::open(path).expect("what was saved");
    let start = Instant::now();
    let filter = Filter::read_from(file.take(u64::MAX)).expect("what was saved");
    let taken = start.elapsed();
    assert_eq!(filter.len(), items);
    taken.as_secs_f64()
}

fn run(command: &mut Command) {
    assert!(command.status().expect("one of the system's tools").success(), "{command:?}");
}

/// Drops the file from the system's cache.
fn forget(path: &Path) {
    let mut of = std::ffi::OsString::from("of=");
    of.push(path);
    let options = ["oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"];
    run(Command::new("dd").arg(of).args(options));
}

// Waits.

/// A histogram of an operation's times, with eight steps to a doubling.
#[derive(Clone)]
struct Times {
    counts: Vec<u64>,
    longest: u64,
}

impl Times {
    fn new() -> Self {
        Times { counts: vec![0; 64 * 8], longest: 0 }
    }

    fn add(&mut self, nanoseconds: u64) {
        let doublings = nanoseconds.max(8).ilog2();
        let eighth = (nanoseconds.max(8) >> (doublings - 3)) & 7;
        self.counts[(doublings * 8) as usize + eighth as usize] += 1;
        self.longest = self.longest.max(nanoseconds);
    }

    /// Returns the time that this part of the operations did not exceed.
    fn quantile(&self, part: f64) -> f64 {
        let all: u64 = self.counts.iter().sum();
        let mut left = (all as f64 * part) as u64;
        for (at, count) in self.counts.iter().enumerate() {
            if *count > left {
                return 2f64.powi(at as i32 / 8) * (1.0 + (at % 8 + 1) as f64 / 8.0);
            }
            left -= count;
        }
        self.longest as f64
    }
}

fn waits(filter: &Filter, folder: &Path, turns: usize, test: bool) {
    let path = folder.join("waits.koel");
    let items = filter.len() as u64;
    let look_up = |key: u64| assert!(filter.contains(&Prehashed(key % items)));
    let insert = |key: u64| {
        filter.insert(&Prehashed(ABSENT + key)).expect("room");
        assert!(filter.remove(&Prehashed(ABSENT + key)));
    };
    let operations: [(&str, &(dyn Fn(u64) + Sync)); 2] =
        [("contains", &look_up), ("insert and remove", &insert)];
    println!("waits, in nanoseconds, with a filter of {} MiB", filter.size_in_bytes() >> 20);
    println!(
        "  {:20} {:>10} {:>9} {:>9} {:>9} {:>10} {:>12}",
        "", "", "median", "p99", "p99.9", "p99.99", "longest"
    );
    for (name, operation) in operations {
        let mut kinds = [("alone", Vec::new()), ("saving", Vec::new())];
        for _ in 0..turns {
            for (kind, turns) in &mut kinds {
                let save = (*kind == "saving").then_some(&*path);
                turns.push(one_turn(filter, save, operation, test));
            }
        }
        for (kind, turns) in kinds {
            let of = |part| median(turns.iter().map(|times: &Times| times.quantile(part)));
            let longest = median(turns.iter().map(|times| times.longest as f64));
            println!(
                "  {name:20} {kind:>10} {:9.0} {:9.0} {:9.0} {:10.0} {longest:12.0}",
                of(0.5),
                of(0.99),
                of(0.999),
                of(0.9999),
            );
        }
    }
}

/// Times an operation for as long as a save takes, or for a fixed time without a save.
fn one_turn(
    filter: &Filter,
    save: Option<&Path>,
    operation: &(dyn Fn(u64) + Sync),
    test: bool,
) -> Times {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let measured = scope.spawn(|| {
            let (mut times, mut key) = (Times::new(), 1u64);
            let mut before = Instant::now();
            while !done.load(Ordering::Relaxed) {
                key = key.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                operation(key >> 20);
                let now = Instant::now();
                times.add((now - before).as_nanos() as u64);
                before = now;
            }
            times
        });
        match save {
            Some(path) => assert!(filter.save(path).expect("room on the disk").bytes > 0),
            None => std::thread::sleep(Duration::from_millis(if test { 5 } else { 1_000 })),
        }
        done.store(true, Ordering::Relaxed);
        measured.join().expect("no bench panics")
    })
}

// Hashes.

/// The hash of an item by ahash, by a `StableHash`, and by its `hash_bytes`.
type Hashes<'a> = [&'a dyn Fn(usize) -> u64; 3];

fn hashes(count: u64, turns: usize) {
    println!("nanoseconds a hash");
    println!("  {:20} {:>8} {:>8} {:>12}", "", "ahash", "stable", "hash_bytes");
    let urls: Vec<String> = (0..1_024)
        .map(|page| format!("https://www.example.org/a/page/of/a/site/{page:024}"))
        .collect();
    let long: Vec<String> = (0..1_024).map(|page| format!("{page:0300}")).collect();
    let (quick, stable) = (RandomState::new(), StableHash::random());
    let each = |hash: &dyn Fn(usize) -> u64| {
        let start = Instant::now();
        for n in 0..count as usize {
            black_box(hash(n & 1_023));
        }
        start.elapsed().as_nanos() as f64 / count as f64
    };
    fn of<T: Hash>(hasher: &impl BuildHasher, items: &[T], n: usize) -> u64 {
        hasher.hash_one(&items[n])
    }
    let numbers: Vec<u64> = (0..1_024).collect();
    let rows: [(&str, Hashes<'_>); 3] = [
        (
            "u64",
            [&|n| of(&quick, &numbers, n), &|n| of(&stable, &numbers, n), &|n| {
                stable.hash_bytes(&numbers[n].to_le_bytes())
            }],
        ),
        (
            "URL of 62 bytes",
            [&|n| of(&quick, &urls, n), &|n| of(&stable, &urls, n), &|n| {
                stable.hash_bytes(urls[n].as_bytes())
            }],
        ),
        (
            "300 bytes",
            [&|n| of(&quick, &long, n), &|n| of(&stable, &long, n), &|n| {
                stable.hash_bytes(long[n].as_bytes())
            }],
        ),
    ];
    for (name, hashes) in rows {
        let mut taken = [const { Vec::new() }; 3];
        for _ in 0..turns {
            for (hash, taken) in hashes.iter().zip(&mut taken) {
                taken.push(each(hash));
            }
        }
        let [quick, stable, bytes] = taken.map(|taken| median(taken.into_iter()));
        println!("  {name:20} {quick:8.1} {stable:8.1} {bytes:12.1}");
    }
}
