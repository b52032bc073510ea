//! How long an add takes while a checkpoint is made.

use super::sets::item;
use crate::kit::arguments::Result;
use crate::kit::waits::{Time, watch};
use koel::{ConcurrentCuckooFilter, DurableFilter, StableHash, SyncPolicy};
use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

const THREADS: u64 = 2;

pub fn waits(folder: &Path, test: bool) -> Result<String> {
    let scratch = tempfile::tempdir_in(folder)?;
    let path = scratch.path().join("seen.koel");
    let (items, checkpoints) = if test { (100_000, 1) } else { (233_000_000, 5) };
    let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    let builder = builder.false_positive_rate(1e-6).capacity(items as usize).growing();

    // In memory, and while it is saved, which copies its shards, too.
    let memory = builder.clone().build()?;
    let half = items / 2;
    for start in (0..half).step_by(1 << 20) {
        let hashes: Vec<u64> = (start..half.min(start + (1 << 20))).map(item).collect();
        memory.par_insert_many(&hashes).into_iter().try_for_each(|added| added)?;
    }
    let size = memory.size_in_bytes();
    let mut text = format!(
        "{} MiB, {half} items to begin with, {THREADS} threads that add new items one by one, {} cores\n  {:40}{:>12}{:>11}{:>11}{:>11}{:>11}{:>11}\n",
        size >> 20,
        std::thread::available_parallelism()?,
        "",
        "adds",
        "50 %",
        "99 %",
        "99.99 %",
        "99.9999 %",
        "longest"
    );
    let pause = Duration::from_millis(if test { 20 } else { 2_000 });
    let mut next = half;
    let mut row = |name: &str, adds: &(dyn Fn(u64) + Sync), meanwhile: &dyn Fn() -> Result<()>| {
        eprintln!("{name}");
        let start = Instant::now();
        let (waits, beyond, done) = watch((THREADS, next), adds, meanwhile);
        next = beyond;
        let _ = write!(text, "  {name:40}{:12}", waits.count());
        for share in [0.5, 0.99, 0.9999, 0.999_999, 1.0] {
            let _ = write!(text, "{:>11}", Time(waits.within(share)));
        }
        let _ = writeln!(text, "   in {:.1} s", start.elapsed().as_secs_f64());
        done
    };
    let rest = || {
        std::thread::sleep(pause);
        Ok(())
    };
    let add = |number| {
        black_box(memory.insert_if_absent(&item(number))).expect("room");
    };
    row("in memory", &add, &rest)?;
    let other = scratch.path().join("other.koel");
    let save = || (0..checkpoints).try_for_each(|_| Ok(memory.save(&other).map(|_| ())?));
    row(&format!("in memory, during {checkpoints} saves"), &add, &save)?;

    std::fs::rename(&other, &path)?;
    drop(memory);
    let durable = DurableFilter::open_with(&path, SyncPolicy::default(), || builder.build())?;
    let add = |number| {
        black_box(durable.insert_if_absent(&item(number))).expect("room and disk");
    };
    row("durable, synced every second", &add, &rest)?;
    let checkpoint = || (0..checkpoints).try_for_each(|_| Ok(durable.checkpoint()?));
    row(&format!("the same, during {checkpoints} checkpoints"), &add, &checkpoint)?;
    Ok(text)
}
