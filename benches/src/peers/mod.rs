//! koel and its peers as threads share them: `sets` → `workloads` → `report` and `plot`. This file runs all
//! combinations of size, threads, repetition and peer.

pub mod plot;
mod report;
pub mod sets;
mod workloads;

use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::{median, publish, read_csv, write, write_csv};
use crate::kit::machine::{MACHINE, about, share};
use crate::kit::memory;
use report::{LIMIT, Row, size_name};
use sets::{AtomicBloom, AtomicCuckoo, Autoscale, BloomLib, CuckooClock, Cuckoofilter};
use sets::{DashSet, InFile, KOEL, Koel, Locked, Quotient, Shared};
use std::hint::black_box;
use std::time::Instant;
use workloads::{Checks, Plan, Sample, Streams, WORKLOADS};

/// A peer without its type, so that different ones fit one list.
struct Entry {
    name: String,
    rate: f64,
    run: fn(&Plan, &Streams) -> (Vec<Sample>, usize),
}

fn all() -> Vec<Entry> {
    fn entry<P: Shared>() -> Entry {
        Entry { name: P::name(), rate: P::RATE, run: workloads::run::<P> }
    }
    vec![
        entry::<Koel<false>>(),
        entry::<Koel<true>>(),
        entry::<AtomicBloom>(),
        entry::<AtomicCuckoo>(),
        entry::<CuckooClock>(),
        entry::<InFile>(),
        entry::<DashSet>(),
        entry::<Locked<Cuckoofilter, 64>>(),
        entry::<Locked<Autoscale, 64>>(),
        entry::<Locked<BloomLib, 64>>(),
        entry::<Locked<Quotient, 64>>(),
        entry::<Locked<Cuckoofilter, 1>>(),
        entry::<Locked<Autoscale, 1>>(),
        entry::<Locked<BloomLib, 1>>(),
        entry::<Locked<Quotient, 1>>(),
        Entry { name: LIMIT.into(), rate: 0.0, run: limit },
    ]
}

/// The limit of the memory: reads of one random line for each lookup, in as many bytes as the table of a filter has.
fn limit(plan: &Plan, _: &Streams) -> (Vec<Sample>, usize) {
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

/// What is measured, and how long.
struct Choice {
    sizes: Vec<u64>,
    threads: Vec<u64>,
    reps: Option<u64>,
    minutes: u64,
    peers: Vec<Entry>,
    workloads: Vec<&'static str>,
    test: bool,
}

impl Choice {
    fn of(arguments: &mut Arguments) -> Result<Choice> {
        let test = arguments.test;
        let usual = |usual: &[u64], tiny: &[u64]| if test { tiny.to_vec() } else { usual.to_vec() };
        let sizes = arguments.numbers("--sizes", 8_192)?;
        let sizes = sizes.map(|sizes| sizes.iter().map(|size| size << 20).collect());
        let mut choice = Choice {
            sizes: sizes
                .unwrap_or_else(|| usual(&[2 << 20, 32 << 20, 128 << 20], &[64 << 10, 256 << 10])),
            threads: arguments
                .numbers("--threads", 1_024)?
                .unwrap_or_else(|| usual(&MACHINE.counts(), &[1, 2, 3])),
            reps: arguments.number("--reps", 10_000)?,
            minutes: arguments.number("--minutes", 10_000)?.unwrap_or(60),
            peers: all(),
            workloads: WORKLOADS.to_vec(),
            test,
        };
        if let Some(name) = arguments.value("--only")? {
            if choice.peers.iter().any(|peer| peer.name.contains(&name)) {
                choice.peers.retain(|peer| peer.name.contains(&name));
            } else {
                choice.workloads.retain(|workload| workload.contains(&name));
            }
            if choice.workloads.is_empty() {
                return Err(format!("--only {name}: neither a peer nor a workload").into());
            }
        }
        Ok(choice)
    }

    /// Returns whether some peers or workloads of the fixed filters are left out.
    fn is_part(&self) -> bool {
        self.workloads.len() < WORKLOADS.len() || self.peers.len() < all().len()
    }
}

pub fn run(mut arguments: Arguments) -> Result<()> {
    let (out, draws) = (arguments.out("peers")?, arguments.flag("--draw"));
    let choice = Choice::of(&mut arguments)?;
    arguments.end()?;
    let [csv, table] = ["results.csv", "table.txt"].map(|name| out.join(name));
    let mut rows: Vec<Row> = read_csv(&csv)?;
    let (mut note, mut wrong) = (about(), 0);
    if draws {
        let text = std::fs::read_to_string(&table)?;
        note = text.lines().next().unwrap_or_default().into();
    } else {
        let new = measure(&choice);
        wrong = new.iter().filter(|row| row.peer.starts_with(KOEL)).map(Row::bad).sum();
        if choice.is_part() {
            note += " Not all is of this run.";
        } else {
            rows.clear();
        }
        rows = merged(rows, new);
        write_csv(&csv, &[], &rows)?;
    }
    publish(&table, &report::text(&note, &rows))?;
    plot::all(&rows).into_iter().try_for_each(|(name, svg)| write(&out.join(name), svg))?;
    if wrong == 0 { Ok(()) } else { Err(format!("koel gave {wrong} wrong answers").into()) }
}

fn measure(choice: &Choice) -> Vec<Row> {
    let mut rows = Vec::new();
    let combinations = (choice.sizes.len() * choice.threads.len()) as f64;
    for &size in &choice.sizes {
        for &threads in &choice.threads {
            let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); choice.peers.len()];
            let mut bytes = vec![0; choice.peers.len()];
            let reps = match size >> 20 {
                _ if choice.test => 1,
                0..=7 => 9,
                8..=63 => 2,
                _ => 1,
            };
            for rep in within(choice, reps, 60.0 * choice.minutes as f64 / combinations) {
                eprint!("\r{}, {threads} threads, repetition {} ", size_name(size), rep + 1);
                let plan = Plan::of(choice.test, size, threads, rep);
                let crawl = Streams::crawl(&plan);
                for (at, peer) in choice.peers.iter().enumerate() {
                    let (of_run, held) = (peer.run)(&plan, &crawl);
                    samples[at].extend(of_run);
                    bytes[at] = bytes[at].max(held);
                }
            }
            for ((peer, bytes), samples) in choice.peers.iter().zip(bytes).zip(&samples) {
                let bits = bytes as f64 * 8.0 / workloads::items(size) as f64;
                for &workload in &choice.workloads {
                    let of = samples.iter().filter(|one| one.workload == workload).collect();
                    rows.extend(row(peer, workload, (size, threads), bits, of));
                }
            }
        }
    }
    eprintln!();
    rows
}

fn row(
    peer: &Entry,
    workload: &str,
    (size, threads): (u64, u64),
    bits_per_item: f64,
    samples: Vec<&Sample>,
) -> Option<Row> {
    // Only samples that had all cores count, unless there are none.
    let short_of_cores = !samples.iter().any(|sample| sample.all_cores);
    let counted = samples.iter().filter(|sample| sample.all_cores || short_of_cores);
    let rates = counted.map(|sample| sample.operations as f64 / sample.seconds / 1e6);
    let checks: Checks = samples.iter().map(|sample| sample.checks).sum();
    let rate = checks.false_positives as f64 / checks.absent as f64;
    (!samples.is_empty()).then(|| Row {
        peer: peer.name.clone(),
        workload: workload.into(),
        size,
        threads,
        median: median(rates.clone()),
        min: rates.clone().fold(f64::INFINITY, f64::min),
        max: rates.clone().fold(0.0, f64::max),
        reps: rates.count() as u64,
        short_of_cores,
        bits_per_item,
        false_positive_rate: (checks.absent > 0).then_some(rate),
        two_winners: checks.two_winners,
        no_winner: checks.no_winner,
        lost: checks.lost,
        refused: checks.refused,
        wrong: samples.iter().map(|sample| sample.checks.wrong(peer.rate)).sum(),
    })
}

/// Returns the new rows and those of the old ones that were not measured again, in the order of the tables.
fn merged(old: Vec<Row>, new: Vec<Row>) -> Vec<Row> {
    let (peers, unknown) = (all(), usize::MAX);
    let key = |row: &Row| {
        let peer = peers.iter().position(|peer| peer.name == row.peer).unwrap_or(unknown);
        let workload = WORKLOADS.iter().position(|name| *name == row.workload).unwrap_or(unknown);
        (row.size, row.threads, peer, workload)
    };
    // The sort is stable, so the new one of two rows is the first.
    let mut rows: Vec<Row> = new.into_iter().chain(old).collect();
    rows.sort_by_key(key);
    rows.dedup_by_key(|row| key(row));
    rows
}

/// Counts repetitions: as many as asked for, or else the first, and others as long as they are likely to end within
/// `most` seconds from now.
fn within(choice: &Choice, usual: u64, most: f64) -> impl Iterator<Item = u64> + use<> {
    let (start, asked) = (Instant::now(), choice.reps);
    (0..asked.unwrap_or(usual)).take_while(move |&rep| {
        let spent = start.elapsed().as_secs_f64();
        asked.is_some() || rep == 0 || spent + spent / rep as f64 <= most
    })
}
