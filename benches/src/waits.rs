//! How long single operations take, while a filter grows, is saved, or makes a checkpoint.
//!
//! * *growth*: one thread inserts, and another one looks up present items. A growing filter is compared with one behind
//!   a lock, which is rebuilt at twice the capacity whenever it is full.
//! * *saves*: lookups, and pairs of an insert and a removal, in a filter of 256 MiB, alone and during a save.
//! * *journal*: two threads add new items, to a filter in memory of about 1 GiB and to the same filter with its
//!   journal, alone, and while it is saved or makes checkpoints.
//!
//! Times are medians over repetitions. The machine may be shared, and waits that are no longer than those of a loop
//! that only reads the clock say nothing about the filter.

use crate::durable::item;
use crate::kit::arguments::{Arguments, Result};
use crate::kit::figures::Figures;
use crate::kit::waits::{Waits, watch};
use crate::kit::{ABSENT, scattered};
use crate::snapshots::{Filter, fixed};
use koel::{ConcurrentCuckooFilter, DurableFilter, Prehashed, StableHash};
use parking_lot::RwLock;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The shares of all operations of which it is told within which time they were done.
const SHARES: [(&str, f64); 6] = [
    ("50 %", 0.5),
    ("99 %", 0.99),
    ("99.9 %", 0.999),
    ("99.99 %", 0.9999),
    ("99.9999 %", 0.999_999),
    ("longest", 1.0),
];

/// What is measured at a place: what is done to a filter meanwhile.
struct Scenes<'a>(&'a mut Figures, String);

impl Scenes<'_> {
    fn note(&mut self, name: &str, waits: Waits) {
        let Scenes(figures, at) = self;
        figures.note(name, "times", at, "times", waits.count() as f64);
        for (what, share) in SHARES {
            figures.note(name, what, at, "ns", waits.within(share) as f64);
        }
    }
}

pub fn run(mut arguments: Arguments) -> Result<()> {
    let (out, test) = (arguments.out("")?, arguments.test);
    let power = if test { 17 } else { 24 };
    let (scratch, part) = (arguments.scratch()?, arguments.part(&["growth", "saves", "journal"]));
    arguments.end()?;
    let reps = if test { 1 } else { 3 };
    let pause = Duration::from_millis(if test { 20 } else { 2_000 });
    let mut figures = Figures::new("waits");
    if ["", "growth"].contains(&part) {
        let mut scenes = Scenes(&mut figures, format!("2^{power} items are inserted"));
        (0..reps).for_each(|_| growth(&mut scenes, 1 << power, pause));
    }
    if ["", "saves"].contains(&part) {
        let filter = fixed(if test { 1 << 19 } else { 256 << 20 });
        let title = format!("a filter of {} MiB", filter.size_in_bytes() >> 20);
        let mut scenes = Scenes(&mut figures, title);
        (0..reps).try_for_each(|_| saves(&mut scenes, &filter, scratch.path(), pause))?;
    }
    if ["", "journal"].contains(&part) {
        journal(&mut figures, scratch.path(), test, pause)?;
    }
    figures.write(&out.join("waits.csv"))
}

fn growth(scenes: &mut Scenes<'_>, items: u64, pause: Duration) {
    scenes.note("(the clock alone)", watch((1, 0), |_| {}, || sleep(pause)).0);
    let builder = ConcurrentCuckooFilter::builder().capacity(1 << 14).growing();
    let grown = builder.false_positive_rate(0.002).build().expect("memory for the filter");
    let insert = |key| grown.insert(&Prehashed(key)).expect("memory to grow");
    beside(scenes, "grows", items, insert, |key| grown.contains(&Prehashed(key)));

    let with_capacity = |items| RwLock::new(ConcurrentCuckooFilter::with_capacity(items));
    let rebuilt = with_capacity(1 << 14);
    let insert = |key| {
        let refused = rebuilt.read().insert(&Prehashed(key)).is_err();
        if refused {
            let mut filter = rebuilt.write();
            let larger = with_capacity(2 * filter.capacity()).into_inner();
            (0..=key).for_each(|key| larger.insert(&Prehashed(key)).expect("twice the room"));
            *filter = larger;
        }
    };
    beside(scenes, "is rebuilt", items, insert, |key| rebuilt.read().contains(&Prehashed(key)));
}

/// Fills a set on one thread, with keys from 0 on, while another one looks up what is there.
fn beside(
    scenes: &mut Scenes<'_>,
    name: &str,
    items: u64,
    insert: impl Fn(u64),
    contains: impl Fn(u64) -> bool + Sync,
) {
    let filled = AtomicU64::new(0);
    let look_up = |number: u64| {
        let random = u128::from(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let filled = filled.load(Ordering::Acquire);
        let key = ((random * u128::from(filled)) >> 64) as u64;
        assert!(filled == 0 || contains(key), "what is in is found");
    };
    let (lookups, _, inserts) = watch((1, 1), look_up, || {
        let (mut waits, mut last) = (Waits::new(), Instant::now());
        for key in 0..items {
            insert(key);
            last = waits.since(last);
            filled.store(key + 1, Ordering::Release);
        }
        waits
    });
    assert!((0..items).all(contains), "all that was inserted is found");
    scenes.note(&format!("{name}: insert"), inserts);
    scenes.note(&format!("{name}: lookup"), lookups);
}

fn saves(scenes: &mut Scenes<'_>, filter: &Filter, folder: &Path, pause: Duration) -> Result<()> {
    let (path, items) = (folder.join("waits.koel"), filter.len() as u64);
    let look_up = |number| assert!(filter.contains(&Prehashed(scattered(number) % items)));
    let insert = |number| {
        let key = Prehashed(ABSENT + scattered(number));
        filter.insert(&key).expect("room");
        assert!(filter.remove(&key));
    };
    let operations: [(&str, &(dyn Fn(u64) + Sync)); 2] =
        [("lookup", &look_up), ("insert and removal", &insert)];
    for (name, operation) in operations {
        scenes.note(&format!("{name}, alone"), watch((1, 0), operation, || sleep(pause)).0);
        let (waits, _, saved) = watch((1, 0), operation, || filter.save(&path));
        saved?;
        scenes.note(&format!("{name}, during a save"), waits);
    }
    Ok(())
}

fn journal(figures: &mut Figures, folder: &Path, test: bool, pause: Duration) -> Result<()> {
    let path = folder.join("seen.koel");
    let (items, checkpoints) = if test { (100_000, 1) } else { (233_000_000, 5) };
    let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::random());
    let builder = builder.false_positive_rate(1e-6).capacity(items as usize).growing();
    let memory = builder.clone().build()?;
    let mut next = items / 2;
    for start in (0..next).step_by(1 << 20) {
        let hashes: Vec<u64> = (start..next.min(start + (1 << 20))).map(item).collect();
        memory.par_insert_many(&hashes).into_iter().try_for_each(|added| added)?;
    }
    let title = format!("two threads add to {next} items in {} MiB", memory.size_in_bytes() >> 20);
    let mut scenes = Scenes(figures, title);
    let mut scene =
        |name: &str, adds: &(dyn Fn(u64) + Sync), meanwhile: &dyn Fn() -> Result<()>| {
            eprintln!("{name}");
            let (waits, beyond, done) = watch((2, next), adds, meanwhile);
            next = beyond;
            scenes.note(name, waits);
            done
        };
    let rest = || {
        sleep(pause);
        Ok(())
    };
    let times = |act: &dyn Fn() -> Result<()>| (0..checkpoints).try_for_each(|_| act());
    let add = |number| _ = black_box(memory.insert_if_absent(&item(number))).expect("room");
    scene("in memory", &add, &rest)?;
    let save = || times(&|| Ok(memory.save(&path).map(drop)?));
    scene(&format!("in memory, during {checkpoints} saves"), &add, &save)?;
    drop(memory);
    let durable = DurableFilter::open(&path, builder)?;
    let add =
        |number| _ = black_box(durable.insert_if_absent(&item(number))).expect("room and disk");
    scene("with a journal, synced every second", &add, &rest)?;
    let checkpoint = || times(&|| Ok(durable.checkpoint()?));
    scene(&format!("the same, during {checkpoints} checkpoints"), &add, &checkpoint)
}
