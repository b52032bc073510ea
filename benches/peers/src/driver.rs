//! Runs all combinations of size, threads, repetition and peer, and summarises repetitions in rows.

use crate::arguments::Arguments;
use crate::csv::{Grown, Held, Row};
use crate::growth::{self, Steps};
use crate::peers::{self, Entry, GrowingEntry, KOEL_GROWING};
use crate::plan::{Checks, Plan, Sample};
use crate::report::size_name;
use crate::timing::median;
use crate::workloads::{self, CRAWL, WORKLOADS};
use std::time::Instant;

/// The number of capacities per power of ten at which memory is measured. It is large enough to
/// show tables that grow in powers of two.
const CAPACITIES_PER_DECADE: i32 = 14;

/// The number of repetitions for sets that grow.
const GROWTHS: u64 = 3;

pub fn measure(arguments: &Arguments) -> Vec<Row> {
    let peers = chosen(arguments);
    let mut rows = Vec::new();
    let combinations = arguments.sizes.len() * arguments.threads.len();
    for &size in &arguments.sizes {
        for &threads in &arguments.threads {
            let start = Instant::now();
            let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); peers.len()];
            let mut bytes = vec![0; peers.len()];
            let reps = arguments.reps.unwrap_or(repetitions(arguments.test, size));
            // Sets that grow get a fifth of the time.
            let most = 48.0 * arguments.minutes as f64 / combinations as f64;
            for rep in within(arguments, reps, most) {
                eprint!(
                    "\r{}, {threads} threads, repetition {} of {reps} ",
                    size_name(size),
                    rep + 1
                );
                let plan = plan(arguments.test, size, threads, rep);
                let streams = workloads::streams(&plan);
                for (at, peer) in peers.iter().enumerate() {
                    // The crawl alone takes a few minutes, and can be measured often.
                    let run =
                        if arguments.workloads == [CRAWL] { peer.only_crawl } else { peer.run };
                    let run = run(&plan, &streams);
                    samples[at].extend(run.samples);
                    bytes[at] = bytes[at].max(run.bytes);
                }
            }
            eprintln!("took {:.0} s", start.elapsed().as_secs_f64());
            for (at, peer) in peers.iter().enumerate() {
                let bits = bytes[at] as f64 * 8.0 / items(size) as f64;
                let of = |workload| samples[at].iter().filter(move |one| one.workload == workload);
                let done = WORKLOADS.into_iter().filter(|name| arguments.workloads.contains(name));
                let done = done.filter(|&name| of(name).next().is_some());
                rows.extend(done.map(|name| row(peer, name, size, threads, bits, of(name))));
            }
        }
    }
    rows
}

fn row<'a>(
    peer: &Entry,
    workload: &str,
    size: u64,
    threads: u64,
    bits_per_item: f64,
    samples: impl Iterator<Item = &'a Sample> + Clone,
) -> Row {
    // Only samples that had all cores count, unless there are none.
    let some_had = samples.clone().any(|sample| sample.all_cores);
    let counted = samples.clone().filter(move |sample| sample.all_cores || !some_had);
    let rates = counted.clone().map(|sample| sample.operations as f64 / sample.seconds / 1e6);
    let checks: Checks = samples.clone().map(|sample| sample.checks).sum();
    Row {
        peer: peer.name.clone(),
        workload: workload.into(),
        size,
        threads,
        median: median(rates.clone()),
        min: rates.clone().fold(f64::INFINITY, f64::min),
        max: rates.fold(0.0, f64::max),
        reps: counted.count() as u64,
        short_of_cores: !some_had,
        bits_per_item,
        false_positive_rate: checks.false_positives as f64 / checks.absent as f64,
        two_winners: checks.two_winners,
        no_winner: checks.no_winner,
        lost: checks.lost,
        refused: checks.refused,
        wrong: samples.map(|sample| sample.checks.wrong(peer.rate)).sum(),
        is_earlier: false,
    }
}

/// Returns the new rows and those of the old ones that were not measured again, in the order of
/// the tables.
pub fn merged(old: Vec<Row>, new: Vec<Row>) -> Vec<Row> {
    let same = |a: &Row, b: &Row| {
        (&a.peer, &a.workload, a.size, a.threads) == (&b.peer, &b.workload, b.size, b.threads)
    };
    let kept = old.into_iter().filter(|row| !new.iter().any(|newer| same(row, newer)));
    let mut rows: Vec<Row> = kept.collect();
    rows.extend(new);
    let peers: Vec<String> = peers::all().into_iter().map(|peer| peer.name).collect();
    rows.sort_by_cached_key(|row| {
        let peer = peers.iter().position(|name| *name == row.peer);
        let workload = WORKLOADS.iter().position(|name| *name == row.workload);
        (row.size, row.threads, peer, workload)
    });
    rows
}

/// Measures the bytes that each peer holds, at many capacities. Sharded peers are left out: they
/// hold 64 times what one of their tables does.
pub fn sweep_memory(arguments: &Arguments) -> Vec<Held> {
    if arguments.workloads.len() < WORKLOADS.len() {
        return Vec::new();
    }
    let decades = if arguments.test { 1 } else { 3 };
    let steps = decades * CAPACITIES_PER_DECADE;
    let capacities = (0..=steps)
        .map(|step| 10_f64.powf(4.0 + f64::from(step) / f64::from(CAPACITIES_PER_DECADE)));
    let capacities: Vec<u64> = capacities.map(|items| items.round() as u64).collect();
    eprintln!("memory at {} capacities", capacities.len());
    let peers = chosen(arguments).into_iter();
    let peers = peers.filter(|peer| !peer.name.contains("shards") && peer.name != KOEL_GROWING);
    peers
        .flat_map(|Entry { name, held, .. }| {
            let held = |&items| Held { peer: name.clone(), items, bytes: held(items) as u64 };
            capacities.iter().map(held).collect::<Vec<Held>>()
        })
        .collect()
}

/// Measures the sets that grow: their speed and errors at each doubling, and their memory in
/// between.
pub fn measure_growth(arguments: &Arguments) -> (Vec<Grown>, Vec<Held>) {
    let (mut grown, mut all_held) = (Vec::new(), Vec::new());
    let test = arguments.test;
    let reps = arguments.reps.unwrap_or(if test { 1 } else { GROWTHS });
    let steps = |rep| Steps::to(arguments.grow_to, test, rep);
    let peers = peers::all_growing();
    let mut runs: Vec<Vec<_>> = peers.iter().map(|_| Vec::new()).collect();
    let start = Instant::now();
    for rep in within(arguments, reps, 12.0 * arguments.minutes as f64) {
        eprint!("\rgrowth to 2^{}, repetition {} of {reps} ", arguments.grow_to, rep + 1);
        for (runs, peer) in runs.iter_mut().zip(&peers) {
            runs.push((peer.run)(&steps(rep)));
        }
    }
    for (runs, GrowingEntry { name, held, .. }) in runs.iter().zip(&peers) {
        let held = held(&steps(0));
        grown.extend(growth::rows(name, runs, &held));
        all_held.extend(held);
    }
    eprintln!("took {:.0} s", start.elapsed().as_secs_f64());
    (grown, all_held)
}

fn chosen(arguments: &Arguments) -> Vec<Entry> {
    let peers = peers::all().into_iter().enumerate();
    peers.filter(|(at, _)| arguments.peers.contains(at)).map(|(_, peer)| peer).collect()
}

/// Counts repetitions: as many as asked for, or else the first, and others as long as they are likely to end within
/// `most` seconds from now.
fn within(arguments: &Arguments, reps: u64, most: f64) -> impl Iterator<Item = u64> {
    let (start, are_asked_for) = (Instant::now(), arguments.reps.is_some());
    (0..reps).take_while(move |&rep| {
        let spent = start.elapsed().as_secs_f64();
        are_asked_for || rep == 0 || spent + spent / rep as f64 <= most
    })
}

/// Returns the number of items that fill a table of 16-bit slots of this size to 94 %.
fn items(size: u64) -> u64 {
    (size as f64 / 2.0 * 0.94) as u64
}

fn repetitions(test: bool, size: u64) -> u64 {
    match size >> 20 {
        _ if test => 1,
        0..=7 => 9,
        8..=63 => 2,
        _ => 1,
    }
}

fn plan(test: bool, size: u64, threads: u64, rep: u64) -> Plan {
    Plan {
        items: items(size),
        threads,
        first: rep << 48,
        lookups: if test { 20_000 } else { 1 << 21 },
        changes: 1 << 22,
        crawled: 1 << 24,
        // Large tables have few repetitions.
        looks: if size >= 8 << 20 { 3 } else { 1 },
        tries: if test { 1 } else { 6 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::tests::row;

    #[test]
    fn names_are_cells_of_a_table_with_commas() {
        assert!(peers::all().iter().all(|peer| !peer.name.contains([',', '"'])));
    }

    #[test]
    fn rows_that_are_not_measured_again_stay() {
        let at = |workload: &str, median| Row { workload: workload.into(), median, ..row() };
        let rows =
            merged(vec![at("hit", 1.0), at("miss", 2.0)], vec![at("crawl", 3.0), at("hit", 4.0)]);
        let medians: Vec<f64> = rows.iter().map(|row| row.median).collect();
        assert_eq!(medians, [4.0, 2.0, 3.0]);
    }
}
