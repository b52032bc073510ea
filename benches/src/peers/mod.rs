//! koel and its peers as threads share them: `sets` → `workloads`. This file runs all combinations of size, threads,
//! repetition and peer.

pub mod sets;
mod workloads;

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::Figures;
use crate::kit::machine::{MACHINE, share};
use crate::kit::memory;
use sets::{GROWING_RATE, KOEL, Koel, Locked, Peer, RATE, Sequential};
use std::hint::black_box;
use workloads::{Checks, Plan, Sample, Streams};

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

/// A single-threaded filter in 64 shards, each behind a mutex, as a user would share it.
fn shards<F>(name: &str, rate: f64, build: fn(u64) -> F) -> Entry
where
    F: Sequential + Send + 'static,
{
    entry(&format!("{name} (64 shards)"), rate, move |items| Locked::new(64, items, build))
}

/// The limit of the memory: reads of so many random lines for each lookup, in as many bytes as the table of a filter has.
fn limit<const LINES: usize>(name: &str) -> Entry {
    let run = Box::new(|plan: &Plan, _: &Streams| {
        let words = memory::words(plan.size as usize);
        let reads = plan.lookups.max(1 << 22);
        let sample = |workload| {
            plan.measure(workload, reads, |thread| {
                let own = share(reads, plan.threads, thread);
                black_box(memory::read_lines::<LINES>(&words, own.start, own.end - own.start));
                Checks::default()
            })
        };
        (["hit", "miss"].map(sample).into(), 0)
    });
    Entry { name: name.into(), rate: 0.0, run }
}

fn all() -> [Entry; 12] {
    [
        koel(KOEL, RATE, Koel::tight),
        koel("koel (growing)", GROWING_RATE, Koel::growing),
        entry("fastbloom", RATE, |items| sets::atomic_bloom(items, RATE)),
        entry("atomic-cuckoo-filter", RATE, sets::atomic_cuckoo),
        entry("cuckoo-clock", RATE, |items| sets::cuckoo_clock(items, None)),
        entry("DashSet", 0.0, sets::dash_set),
        shards("cuckoofilter", 0.03, sets::cuckoofilter),
        shards("autoscale_cuckoo_filter", RATE, sets::autoscale),
        shards("bloom-lib", RATE, sets::bloom_lib),
        shards("qfilter", RATE, sets::quotient),
        limit::<1>("(one random line)"),
        limit::<2>("(two random lines)"),
    ]
}

/// The bytes of a table from where on a repetition takes minutes.
const LARGE: u64 = 8 << 20;

pub fn run(mut arguments: Arguments) -> Result<()> {
    let out = arguments.out("peers")?;
    let (test, unit) = (arguments.test, if arguments.test { 10 } else { 20 });
    let sizes = arguments.numbers("--sizes", 8_192, [vec![2, 32, 128], vec![64, 256]])?;
    let threads = arguments.numbers("--threads", 1_024, [MACHINE.counts(), vec![1, 2, 3]])?;
    let reps = arguments.number("--reps", 10_000, [0, 1])?;
    let only_koel = arguments.flag("koel");
    arguments.end()?;
    let (peers, mut figures) = (all(), Figures::new("peers"));
    for size in sizes.into_iter().map(|size| size << unit) {
        for &threads in &threads {
            let alone = only_koel || threads == 1 && size >= LARGE;
            let is_measured = |Entry { name, .. }: &&Entry| {
                !alone || name.starts_with(KOEL) || name.starts_with('(')
            };
            let peers: Vec<&Entry> = peers.iter().filter(is_measured).collect();
            measure(&peers, (size, threads, reps), test, &mut figures);
        }
    }
    eprintln!();
    figures.write(&out.join("results.csv"))
}

/// Measures all peers in turns. Zero repetitions are as many as suit the size.
fn measure(
    peers: &[&Entry],
    (size, threads, reps): (u64, u64, u64),
    test: bool,
    figures: &mut Figures,
) {
    let table =
        if size < 1 << 20 { format!("{} KiB", size >> 10) } else { format!("{} MiB", size >> 20) };
    let at = format!("{table}, {threads} thread{}", if threads == 1 { "" } else { "s" });
    let usual = if size < LARGE { 5 } else { 3 };
    for rep in 0..if reps > 0 { reps } else { usual } {
        eprint!("\r{at}, repetition {} ", rep + 1);
        let plan = Plan::of(test, size, threads, rep);
        let crawl = Streams::crawl(&plan);
        for peer in peers {
            let (samples, bytes) = (peer.run)(&plan, &crawl);
            samples.iter().for_each(|sample| note(figures, peer, &at, sample));
            if bytes > 0 {
                let bits = bytes as f64 * 8.0 / plan.items as f64;
                figures.note(&peer.name, "bits an item", &at, "bits", bits);
            }
        }
    }
}

/// Notes the speed of a measurement, and its errors, if there are any.
fn note(figures: &mut Figures, Entry { name, rate, .. }: &Entry, at: &str, sample: &Sample) {
    let Sample { workload, operations, seconds, checks, all_cores } = sample;
    let row = figures.note(name, workload, at, "M/s", *operations as f64 / seconds / 1e6);
    if !all_cores {
        row.note = "short of cores";
    }
    if checks.absent > 0 {
        let share = checks.false_positives as f64 / checks.absent as f64;
        figures.note(name, &format!("{workload}: false positives"), at, "share", share);
    }
    for (what, count) in [
        ("two winners", checks.two_winners),
        ("lost", checks.lost),
        ("refused", checks.refused),
        ("wrong", checks.wrong(*rate)),
    ] {
        if count > 0 {
            figures.note(name, &format!("{workload}: {what}"), at, "answers", count as f64);
        }
    }
}
