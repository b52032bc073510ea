//! koel and its peers as threads share them: `sets` → `workloads` → `report`. This file runs all
//! combinations of size, threads, repetition and peer.

pub mod report;
pub mod sets;
mod workloads;

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{Rounds, median, publish, read_csv, write_csv};
use crate::kit::machine::{MACHINE, about, share};
use crate::kit::memory;
use report::{LIMIT, Row, size_name};
use sets::{GROWING_RATE, KOEL, KOEL_GROWING, Koel, Locked, Peer, RATE, Sequential};
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
    let (out, measured) = (arguments.out("peers")?, arguments.flag("table"));
    let (test, unit) = (arguments.test, if arguments.test { 10 } else { 20 });
    let sizes = arguments.numbers("--sizes", 8_192, [vec![2, 32, 128], vec![64, 256]])?;
    let sizes: Vec<u64> = sizes.into_iter().map(|size| size << unit).collect();
    let threads = arguments.numbers("--threads", 1_024, [MACHINE.counts(), vec![1, 2, 3]])?;
    let reps = arguments.number("--reps", 10_000, [0, 1])?;
    arguments.end()?;
    let csv = out.join("results.csv");
    if !measured {
        let mut rows = Vec::new();
        for &size in &sizes {
            for &threads in &threads {
                rows.extend(measure(size, threads, reps, test));
            }
        }
        eprintln!();
        write_csv(&csv, &about(), &rows)?;
    }
    let (note, rows) = read_csv::<Row>(&csv)?;
    publish(&out.join("table.txt"), &report::text(&note, &rows))?;
    match rows.iter().filter(|row| row.peer.starts_with(KOEL)).map(Row::bad).sum::<u64>() {
        0 => Ok(()),
        wrong => Err(format!("koel gave {wrong} wrong answers").into()),
    }
}

/// Measures all peers in turns. Zero repetitions are as many as suit the size.
fn measure(size: u64, threads: u64, reps: u64, test: bool) -> Vec<Row> {
    let reps = match size >> 20 {
        _ if reps > 0 => reps,
        0..=7 => 9,
        8..=63 => 2,
        _ => 1,
    };
    let peers = all();
    let mut runs: Vec<(Rounds<&str, Sample>, usize)> =
        peers.iter().map(|_| (Rounds::new(), 0)).collect();
    for rep in 0..reps {
        eprint!("\r{}, {threads} threads, repetition {} ", size_name(size), rep + 1);
        let plan = Plan::of(test, size, threads, rep);
        let crawl = Streams::crawl(&plan);
        for (peer, (samples, bytes)) in peers.iter().zip(&mut runs) {
            let (of_run, held) = (peer.run)(&plan, &crawl);
            of_run.into_iter().for_each(|one| samples.note(one.workload, one));
            *bytes = held.max(*bytes);
        }
    }
    let mut rows = Vec::new();
    for (peer, (samples, bytes)) in peers.iter().zip(runs) {
        for (workload, samples) in samples.0 {
            // Only samples that had all cores count, unless there are none.
            let short_of_cores = !samples.iter().any(|sample| sample.all_cores);
            let counted = samples.iter().filter(|sample| sample.all_cores || short_of_cores);
            let rates = counted.map(|sample| sample.operations as f64 / sample.seconds / 1e6);
            let checks: Checks = samples.iter().map(|sample| sample.checks).sum();
            let false_positives = checks.false_positives as f64 / checks.absent as f64;
            rows.push(Row {
                peer: peer.name.clone(),
                workload: workload.into(),
                size,
                threads,
                median: median(rates),
                short_of_cores,
                bits_per_item: bytes as f64 * 8.0 / workloads::items(size) as f64,
                false_positive_rate: (checks.absent > 0).then_some(false_positives),
                two_winners: checks.two_winners,
                lost: checks.lost,
                refused: checks.refused,
                wrong: samples.iter().map(|sample| sample.checks.wrong(peer.rate)).sum(),
            });
        }
    }
    rows
}
