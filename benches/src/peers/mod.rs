//! koel and its peers as threads share them: `sets` → `workloads`. This file runs all combinations of size, threads,
//! repetition and peer.

pub mod sets;
mod workloads;

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::Figures;
use crate::kit::machine::{MACHINE, share};
use crate::kit::memory;
use sets::{GROWING_RATE, KOEL, KOEL_GROWING, Koel, LIMIT, Locked, Peer, RATE, Sequential};
use std::hint::black_box;
use workloads::{Checks, Plan, Sample, Streams, WORKLOADS};

/// A peer without its type, so that different ones fit one list.
struct Entry {
    name: String,
    /// The supported false-positive rate that is nearest to [`RATE`].
    rate: f64,
    run: Run,
}

/// Runs the workloads, and returns the samples, and the bytes that the set held at most.
type Run = Box<dyn Fn(&Plan, &Streams) -> (Vec<Sample>, usize)>;

/// A peer that is built for a number of items.
fn entry<P: Peer + Sync>(name: &str, rate: f64, build: impl Fn(u64) -> P + 'static) -> Entry {
    let run = Box::new(move |plan: &Plan, crawl: &Streams| workloads::run(plan, crawl, &build));
    Entry { name: name.into(), rate, run }
}

/// koel, which has batches as well.
fn koel(name: &str, rate: f64, build: fn(u64) -> Koel) -> Entry {
    let Entry { name, rate, run } = entry(name, rate, build);
    let run = Box::new(move |plan: &Plan, crawl: &Streams| {
        let (mut samples, bytes) = run(plan, crawl);
        samples.extend(workloads::in_bulk(plan, &build(plan.items)));
        (samples, bytes)
    });
    Entry { name, rate, run }
}

/// A single-threaded filter behind one mutex, or in shards behind one each.
fn locked<F>(shards: usize, name: &str, rate: f64, build: fn(u64) -> F) -> Entry
where
    F: Sequential + Send + 'static,
{
    let lock = if shards == 1 { "mutex".into() } else { format!("{shards} shards") };
    let build = move |items| Locked::new(shards, items, build);
    entry(&format!("{name} ({lock})"), rate, build)
}

fn all() -> Vec<Entry> {
    let mut all = vec![
        koel(KOEL, RATE, Koel::tight),
        koel(KOEL_GROWING, GROWING_RATE, Koel::growing),
        entry("fastbloom", RATE, sets::atomic_bloom),
        entry("atomic-cuckoo-filter", RATE, sets::atomic_cuckoo),
        entry("cuckoo-clock", RATE, sets::cuckoo_clock),
        entry("DashSet", 0.0, sets::dash_set),
    ];
    for shards in [64, 1] {
        all.extend([
            locked(shards, "cuckoofilter", 0.03, sets::cuckoofilter),
            locked(shards, "autoscale_cuckoo_filter", RATE, sets::autoscale),
            locked(shards, "bloom-lib", RATE, sets::bloom_lib),
            locked(shards, "qfilter", RATE, sets::quotient),
        ]);
    }
    all.push(Entry { name: LIMIT.into(), rate: 0.0, run: Box::new(|plan, _| limit(plan)) });
    all
}

/// The limit of the memory: reads of one random line for each lookup, in as many bytes as the table of a filter has.
fn limit(plan: &Plan) -> (Vec<Sample>, usize) {
    let words = memory::words(plan.size as usize, true);
    let reads = plan.lookups.max(1 << 22);
    let sample = |workload| {
        plan.measure(workload, reads, |thread| {
            let own = share(reads, plan.threads, thread);
            black_box(memory::read_lines::<1>(&words, own.start, own.end - own.start));
            Checks::default()
        })
    };
    (["hit", "miss"].map(sample).into(), 0)
}

pub fn run(mut arguments: Arguments) -> Result<()> {
    let out = arguments.out("peers")?;
    let (test, unit) = (arguments.test, if arguments.test { 10 } else { 20 });
    let sizes = arguments.numbers("--sizes", 8_192, [vec![2, 32, 128], vec![64, 256]])?;
    let threads = arguments.numbers("--threads", 1_024, [MACHINE.counts(), vec![1, 2, 3]])?;
    let reps = arguments.number("--reps", 10_000, [0, 1])?;
    let mut peers = all();
    if arguments.flag("koel") {
        peers.retain(|peer| peer.name.starts_with(KOEL));
    }
    arguments.end()?;
    let mut figures = Figures::new("peers");
    let mut wrong = 0;
    for size in sizes.into_iter().map(|size| size << unit) {
        for &threads in &threads {
            wrong += measure(&peers, (size, threads, reps), test, &mut figures);
        }
    }
    eprintln!();
    figures.write(&out.join("results.csv"))?;
    if wrong == 0 { Ok(()) } else { Err(format!("koel gave {wrong} wrong answers").into()) }
}

/// Measures all peers in turns. Zero repetitions are as many as suit the size. Returns the number of faults that koel
/// must not have: wrong answers, and refusals although there has to be room.
fn measure(
    peers: &[Entry],
    (size, threads, reps): (u64, u64, u64),
    test: bool,
    figures: &mut Figures,
) -> u64 {
    let reps = match size >> 20 {
        _ if reps > 0 => reps,
        0..=7 => 9,
        8..=63 => 5,
        _ => 3,
    };
    let mut runs: Vec<(Vec<Sample>, usize)> = peers.iter().map(|_| (Vec::new(), 0)).collect();
    let table =
        if size < 1 << 20 { format!("{} KiB", size >> 10) } else { format!("{} MiB", size >> 20) };
    let at = format!("{table}, {threads} thread{}", if threads == 1 { "" } else { "s" });
    for rep in 0..reps {
        eprint!("\r{at}, repetition {} ", rep + 1);
        let plan = Plan::of(test, size, threads, rep);
        let crawl = Streams::crawl(&plan);
        for (peer, (samples, bytes)) in peers.iter().zip(&mut runs) {
            let (of_run, held) = (peer.run)(&plan, &crawl);
            samples.extend(of_run);
            *bytes = held.max(*bytes);
        }
    }
    let mut wrong_of_koel = 0;
    for (Entry { name, rate, .. }, (samples, bytes)) in peers.iter().zip(runs) {
        for workload in WORKLOADS {
            let samples = || samples.iter().filter(|sample| sample.workload == workload);
            // Only samples that had all cores count, unless there are none.
            let short_of_cores = !samples().any(|sample| sample.all_cores);
            for sample in samples().filter(|sample| sample.all_cores || short_of_cores) {
                let speed = sample.operations as f64 / sample.seconds / 1e6;
                let row = figures.note(name, workload, &at, "M/s", speed);
                row.note = if short_of_cores { "short of cores" } else { "" };
            }
            let checks: Checks = samples().map(|sample| sample.checks).sum();
            let wrong = samples().map(|sample| sample.checks.wrong(*rate)).sum();
            let mut note = |what, unit, figure| {
                _ = figures.note(name, &format!("{workload}: {what}"), &at, unit, figure);
            };
            if checks.absent > 0 {
                let rate = checks.false_positives as f64 / checks.absent as f64;
                note("false positives", "share", rate);
            }
            let Checks { two_winners, lost, refused, .. } = checks;
            for (what, count) in [
                ("two winners", two_winners),
                ("lost", lost),
                ("refused", refused),
                ("wrong", wrong),
            ] {
                if count > 0 {
                    note(what, "answers", count as f64);
                }
            }
            wrong_of_koel += if name.starts_with(KOEL) { wrong + refused } else { 0 };
        }
        if name != LIMIT {
            let bits = bytes as f64 * 8.0 / workloads::items(size) as f64;
            figures.note(name, "bits an item", &at, "bits", bits);
        }
    }
    wrong_of_koel
}
