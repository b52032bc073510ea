//! koel with its journal beside koel in memory: both sides of each ratio are measured in the same run, in turn.

use crate::set::{Result, item};
use crate::sets::koel::builder;
use crate::timing::{median, share, timed};
use koel::{ConcurrentCuckooFilter, DurableFilter, StableHash, SyncPolicy};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hint::black_box;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

type Memory = ConcurrentCuckooFilter<StableHash>;

/// Million operations a second in memory and with a journal, in each round: of an operation on so many threads.
type Rates = BTreeMap<(usize, u64), Vec<[f64; 2]>>;

const OPERATIONS: [&str; 5] =
    ["add, new", "add, present", "look up, present", "look up, absent", "add 10,000 a call, new"];

/// Items that are added at least, in a small table again and again.
const SMALL: u64 = 1_000_000;

/// Changes in the longest journal that does not lead to a checkpoint: 64 MiB, but for a little.
const JOURNAL: u64 = 4_000_000;

pub fn ratios(folder: &Path, test: bool) -> Result<String> {
    let mut text = String::new();
    let rounds = if test { 1 } else { 7 };
    let sizes = if test { [20_000, 2_000] } else { [8_000_000, 100_000] };
    for items in sizes {
        // A small table is over soon.
        let rounds = if items < 1_000_000 { rounds * 3 } else { rounds };
        let mut rates = Rates::new();
        for round in 0..rounds {
            eprint!("\r{items} items: round {} of {rounds}   ", round + 1);
            for threads in [1, 2] {
                self::round(folder, items, threads, round, &mut rates)?;
            }
        }
        eprintln!();
        let _ = writeln!(text, "{items} items, {rounds} rounds, million items a second, medians");
        let _ = writeln!(text, "  {:36}{:>9}{:>9}{:>8}", "", "memory", "durable", "ratio");
        for ((operation, threads), rates) in rates {
            let of = |side: usize| median(rates.iter().map(|rate| rate[side]));
            let ratio = median(rates.iter().map(|rate| rate[1] / rate[0]));
            let plural = if threads > 1 { "s" } else { "" };
            let name = format!("{}, {threads} thread{plural}", OPERATIONS[operation]);
            let _ = writeln!(text, "  {name:36}{:9.2}{:9.2}{ratio:8.2}", of(0), of(1));
        }
    }
    let speeds = (0..rounds).map(|_| replay(folder, if test { 20_000 } else { JOURNAL }));
    let speeds: Vec<f64> = speeds.collect::<Result<_>>()?;
    let cores = std::thread::available_parallelism()?.get();
    let _ = writeln!(
        text,
        "replay at the start: {:.1} million changes a second on {cores} cores",
        median(speeds)
    );
    Ok(text)
}

/// Does something with one and the other, in an order that alternates.
fn both(round: u64, mut work: impl FnMut(bool) -> f64) -> [f64; 2] {
    let mut rates = [0.0; 2];
    for turn in 0..2 {
        let durable = (turn + round) % 2 == 1;
        rates[usize::from(durable)] = work(durable);
    }
    rates
}

fn round(folder: &Path, items: u64, threads: u64, round: u64, rates: &mut Rates) -> Result<()> {
    let scratch = tempfile::tempdir_in(folder)?;
    let memory = builder(items).build()?;
    let path = scratch.path().join("seen.koel");
    let durable = DurableFilter::open_with(&path, SyncPolicy::Never, || builder(items).build())?;
    // A small table is filled again and again, so that the first space of the journal does not count.
    let passes = (SMALL / items).max(1);
    let is_small = passes > 1;
    let clear = |is_durable| match is_durable {
        true => durable.clear().expect("a record"),
        false => memory.clear(),
    };
    let rate = |is_durable: bool, clears: bool, work: &(dyn Fn(Range<u64>) + Sync)| {
        let mut sum = Duration::ZERO;
        for _ in 0..passes {
            if clears && is_small {
                clear(is_durable);
            }
            sum += timed(threads, |thread| work(share(items, threads, thread))).0;
        }
        (passes * items) as f64 / sum.as_secs_f64() / 1e6
    };
    let add = |is_durable: bool, clears: bool| match is_durable {
        true => rate(true, clears, &|share| {
            for number in share {
                black_box(durable.insert_if_absent(&item(number))).expect("room and disk");
            }
        }),
        false => rate(false, clears, &|share| {
            for number in share {
                black_box(memory.insert_if_absent(&item(number))).expect("room");
            }
        }),
    };
    let find = |from: u64, is_durable: bool| match is_durable {
        true => rate(true, false, &|share| {
            for number in share {
                black_box(durable.contains(&item(from + number)));
            }
        }),
        false => rate(false, false, &|share| {
            for number in share {
                black_box(memory.contains(&item(from + number)));
            }
        }),
    };
    let mut note =
        |operation, figures| rates.entry((operation, threads)).or_default().push(figures);
    note(0, both(round, |is_durable| add(is_durable, true)));
    note(1, both(round, |is_durable| add(is_durable, false)));
    note(2, both(round, |is_durable| find(0, is_durable)));
    note(3, both(round, |is_durable| find(1 << 40, is_durable)));
    let hashes: Vec<u64> = (items..2 * items).map(item).collect();
    let batches = |is_durable: bool| {
        rate(is_durable, true, &|share| {
            let hashes = &hashes[share.start as usize..share.end as usize];
            for batch in hashes.chunks(10_000) {
                many(&memory, &durable, is_durable, batch);
            }
        })
    };
    note(4, both(round, batches));
    check(&memory, &durable, if is_small { items..2 * items } else { 0..2 * items });
    Ok(())
}

fn many(memory: &Memory, durable: &DurableFilter, is_durable: bool, batch: &[u64]) {
    match is_durable {
        true => drop(black_box(durable.insert_if_absent_many(batch)).expect("room and disk")),
        false => drop(black_box(memory.insert_if_absent_many(batch))),
    }
}

/// Both have all items, but for what two in a million are taken for.
fn check(memory: &Memory, durable: &DurableFilter, mut items: Range<u64>) {
    let count = items.end - items.start;
    let least = count - count / 500_000 - 10;
    for length in [memory.len() as u64, durable.filter().len() as u64] {
        assert!((least..=count).contains(&length), "{length} of {count} items");
    }
    let has_both = |hash| memory.contains(&hash) && durable.contains(&hash);
    assert!(items.all(|number| has_both(item(number))), "an item is lost");
}

/// Returns how many million changes a second a start replays, on all cores.
fn replay(folder: &Path, changes: u64) -> Result<f64> {
    let scratch = tempfile::tempdir_in(folder)?;
    let path = scratch.path().join("seen.koel");
    let open = || DurableFilter::open_with(&path, SyncPolicy::Never, || builder(changes).build());
    let seen = open()?;
    (0..changes).try_for_each(|number| seen.insert_if_absent(&item(number)).map(drop))?;
    let length = seen.filter().len();
    drop(seen);
    let start = Instant::now();
    let seen = open()?;
    let took = start.elapsed();
    if seen.filter().len() != length {
        return Err(format!("{} items of {length}", seen.filter().len()).into());
    }
    Ok(length as f64 / took.as_secs_f64() / 1e6)
}
