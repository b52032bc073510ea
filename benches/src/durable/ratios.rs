//! koel with its journal beside koel in memory: both sides of each ratio are measured in the same round, in turn.

use super::sets::{Filter, builder, item};
use crate::kit::arguments::Result;
use crate::kit::figures::{Rounds, median, rate};
use crate::kit::machine::{share, timed};
use koel::{DurableFilter, SyncPolicy};
use std::fmt::Write;
use std::hint::black_box;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

const OPERATIONS: [&str; 5] =
    ["add, new", "add, present", "look up, present", "look up, absent", "add 10,000 a call, new"];

/// Million items a second, of an operation on so many threads, with a journal or in memory.
type Rates = Rounds<(usize, u64, bool)>;

/// Items that are added at least, in a small table again and again.
const SMALL: u64 = 1_000_000;
/// Changes in the longest journal that does not lead to a checkpoint: 64 MiB, but for a little.
const JOURNAL: u64 = 4_000_000;

pub fn ratios(folder: &Path, test: bool) -> Result<String> {
    let mut text = String::new();
    let rounds = if test { 1 } else { 7 };
    for items in if test { [20_000, 2_000] } else { [8_000_000, 100_000] } {
        // A small table is over soon.
        let rounds = if items < SMALL { rounds * 3 } else { rounds };
        let mut rates = Rates::new();
        for round in 0..rounds {
            eprint!("\r{items} items: round {} of {rounds}   ", round + 1);
            for threads in [1, 2] {
                self::round(folder, items, (threads, round), &mut rates)?;
            }
        }
        eprintln!();
        let _ = writeln!(text, "{items} items, {rounds} rounds, million items a second, medians");
        let _ = writeln!(text, "  {:36}{:>9}{:>9}{:>8}", "", "memory", "durable", "ratio");
        for &(operation, threads, _) in rates.names().filter(|(.., is_durable)| !is_durable) {
            let [memory, durable] = [false, true].map(|it| (operation, threads, it));
            let ratio = rates.ratio(&durable, &memory);
            let plural = if threads > 1 { "s" } else { "" };
            let name = format!("{}, {threads} thread{plural}", OPERATIONS[operation]);
            let [memory, durable] = [memory, durable].map(|it| rates.median(&it));
            let _ = writeln!(text, "  {name:36}{memory:9.2}{durable:9.2}{ratio:8.2}");
        }
    }
    let speeds = (0..rounds).map(|_| replay(folder, if test { 20_000 } else { JOURNAL }));
    let speed = median(speeds.collect::<Result<Vec<f64>>>()?);
    let cores = std::thread::available_parallelism()?;
    let _ =
        writeln!(text, "replay at the start: {speed:.1} million changes a second on {cores} cores");
    Ok(text)
}

fn round(folder: &Path, items: u64, (threads, round): (u64, u64), rates: &mut Rates) -> Result<()> {
    let scratch = tempfile::tempdir_in(folder)?;
    let memory = builder(items).build()?;
    let path = scratch.path().join("seen.koel");
    let durable = DurableFilter::open_with(&path, SyncPolicy::Never, || builder(items).build())?;
    let hashes: Vec<u64> = (items..2 * items).map(item).collect();
    for operation in 0..OPERATIONS.len() {
        // Both begin first in turn.
        for turn in 0..2 {
            let is_durable = (turn + round) % 2 == 1;
            let run = (operation, items, threads, &*hashes);
            let speed = match is_durable {
                true => measured(&durable, || durable.clear().expect("a record"), run),
                false => measured(&memory, || memory.clear(), run),
            };
            rates.note((operation, threads, is_durable), speed);
        }
    }
    // Both have all items, but for what two in a million are taken for.
    let mut items = if passes(items) > 1 { items..2 * items } else { 0..2 * items };
    let count = items.end - items.start;
    let least = count - count / 500_000 - 10;
    for length in [memory.len() as u64, durable.len() as u64] {
        assert!((least..=count).contains(&length), "{length} of {count} items");
    }
    assert!(items.all(|it| memory.has(item(it)) && durable.has(item(it))), "an item is lost");
    Ok(())
}

/// A small table is filled again and again, so that the first space of the journal does not count.
fn passes(items: u64) -> u64 {
    (SMALL / items).max(1)
}

/// Measures an operation with all items, on threads.
#[inline(always)]
fn measured<F: Filter>(
    filter: &F,
    clear: impl Fn(),
    (operation, items, threads, hashes): (usize, u64, u64, &[u64]),
) -> f64 {
    let all = |clears: bool, work: &(dyn Fn(Range<u64>) + Sync)| {
        let mut sum = Duration::ZERO;
        for _ in 0..passes(items) {
            if clears && passes(items) > 1 {
                clear();
            }
            sum += timed(threads, |thread| work(share(items, threads, thread))).0;
        }
        rate(passes(items) * items, sum)
    };
    let add = |share: Range<u64>| {
        for number in share {
            black_box(filter.add(item(number))).expect("room and disk");
        }
    };
    let find = |from: u64| {
        all(false, &move |share: Range<u64>| {
            for number in share {
                black_box(filter.has(item(from + number)));
            }
        })
    };
    match operation {
        0 => all(true, &add),
        1 => all(false, &add),
        2 => find(0),
        3 => find(1 << 40),
        _ => all(true, &|share: Range<u64>| {
            for batch in hashes[share.start as usize..share.end as usize].chunks(10_000) {
                black_box(filter.add_many(batch)).expect("room and disk");
            }
        }),
    }
}

/// Returns how many million changes a second a start replays, on all cores.
fn replay(folder: &Path, changes: u64) -> Result<f64> {
    let scratch = tempfile::tempdir_in(folder)?;
    let path = scratch.path().join("seen.koel");
    let open = || DurableFilter::open_with(&path, SyncPolicy::Never, || builder(changes).build());
    let seen = open()?;
    (0..changes).try_for_each(|number| seen.insert_if_absent(&item(number)).map(drop))?;
    let length = seen.len();
    drop(seen);
    let start = Instant::now();
    let seen = open()?;
    let took = start.elapsed();
    match seen.len() {
        same if same == length => Ok(rate(length as u64, took)),
        other => Err(format!("{other} items of {length}").into()),
    }
}
