//! What a power failure may leave of a durable filter that threads change.
//!
//! The program has its own `fsync`, `fdatasync`, `rename` and `unlink`, which the standard library calls. So it knows
//! which bytes of which files, and which names, a disk has to have: those of the last sync. An *image* has these, and
//! any part of what was written since, by sectors of 512 or 4,096 bytes, and of the names that were changed since. It
//! is opened as after a power failure, and must have every change that was answered and synced, and none that was not
//! begun.

use crate::disk::{Disk, Image};
use crate::history::{Crew, History, Kind, THREADS, notes_of};
use koel::SyncPolicy;
use reliability::common::rounds::chosen_rounds;
use reliability::common::{SplitMix, alone, rounds};
use reliability::seeds;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tempfile::TempDir;

/// Images of a filter between two openings, and openings of a filter.
const IMAGES: u64 = 12;
const GENERATIONS: u64 = 4;

fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// One of each thread.
type Each<T> = [T; THREADS as usize];

fn notes(folder: &Path) -> Each<PathBuf> {
    std::array::from_fn(|thread| notes_of(folder, thread as u64))
}

fn lengths(notes: &Each<PathBuf>) -> Each<usize> {
    notes.each_ref().map(|path| path.metadata().map_or(0, |about| about.len() as usize))
}

#[test]
fn a_power_failure_takes_nothing_that_was_synced() {
    let _alone = alone();
    let images = chosen_rounds(rounds(150, 100_000));
    let (mut made, mut events, mut filters) = (0, 0, 0);
    for number in seeds("power") {
        if made >= images {
            break;
        }
        if filters > 0 && filters % 100 == 0 {
            println!("{made} images");
        }
        let (of_filter, changes) = live(number, images - made);
        (made, events, filters) = (made + of_filter, events + changes, filters + 1);
    }
    println!(
        "checked: {made} images of {filters} filters, {events} changes: 0 synced answers lost, 0 items that nobody \
         added, 0 items with two winners, 0 states that did not open"
    );
}

/// Lets a filter live through some power failures. Returns how many images were checked, and how many changes they had.
fn live(number: u64, most: u64) -> (u64, usize) {
    let mut random = SplitMix(number);
    // One filter in eight is large: an image of it takes as long as seven of others.
    let is_large = number / 4 % 8 == 7;
    let kind = Kind::of(number & 3 | u64::from(is_large) << 2);
    let policy = match number / 4 % 3 {
        0 => SyncPolicy::Each,
        1 => SyncPolicy::Every(Duration::from_millis(3)),
        _ => SyncPolicy::Never,
    };
    let (mut base, mut place) = (History::default(), folder());
    let (mut made, mut changes) = (0, 0);
    for generation in 0..GENERATIONS {
        let own_notes = folder();
        let paths = notes(own_notes.path());
        Disk::insert(place.path());
        let told =
            format!("KOEL_SEED={number}, opened {generation} times before, {kind:?}, {policy:?}");
        let seen = kind
            .open(&place.path().join("seen.koel"), policy)
            .unwrap_or_else(|error| panic!("{told}: {error}"));
        let crew = Crew::new(&seen, kind, number << 8 | generation, generation);
        let mut images = Vec::new();
        std::thread::scope(|scope| {
            let _stop = crew.stop_at_end();
            for thread in 0..THREADS {
                let (crew, path) = (&crew, &paths[thread as usize]);
                scope.spawn(move || crew.work(thread, path, 4_000));
            }
            let (crew, mut random_too) = (&crew, SplitMix(number ^ 1 << 40 ^ generation));
            scope.spawn(move || {
                while !crew.stop.load(SeqCst) {
                    std::thread::sleep(Duration::from_micros(random_too.less_than(12_000)));
                    match random_too.less_than(4) {
                        0 => crew.fail_checkpoint(),
                        _ => crew.seen.checkpoint().expect("a checkpoint"),
                    }
                }
            });
            let mut synced = [0; THREADS as usize];
            for _ in 0..IMAGES.min(most - made) {
                std::thread::sleep(Duration::from_micros(random.less_than(4_000)));
                if policy != SyncPolicy::Each && random.less_than(2) == 0 {
                    let before = lengths(&paths);
                    crew.seen.sync().expect("a sync");
                    synced = before;
                    std::thread::sleep(Duration::from_micros(random.less_than(2_000)));
                }
                let (image, answered) = Disk::fail(&mut random, || match policy {
                    SyncPolicy::Each => lengths(&paths),
                    _ => synced,
                });
                images.push((image, answered, lengths(&paths)));
                made += 1;
            }
        });
        Disk::remove();
        drop(seen);
        // They are opened when the threads have ended, which would go on making changes meanwhile.
        let mut next = None;
        let all_notes = paths.each_ref().map(|path| std::fs::read(path).unwrap_or_default());
        for (number, (image, answered, noted)) in images.into_iter().enumerate() {
            let mut history = base.clone();
            for (thread, notes) in all_notes.iter().enumerate() {
                history.add(&notes[..noted[thread]], answered[thread]);
            }
            changes += history.events();
            let told = format!("{told}, image {number}");
            next = Some(opened(image, history, kind, generation, &told, &mut random));
        }
        let Some((folder, history)) = next else { break };
        (place, base) = (folder, history);
    }
    (made, changes)
}

/// Opens what a power failure has left, and checks it.
fn opened(
    image: Image,
    mut history: History,
    kind: Kind,
    generation: u64,
    told: &str,
    random: &mut SplitMix,
) -> (TempDir, History) {
    let place = folder();
    image.write(place.path());
    let open = || kind.open(&place.path().join("seen.koel"), SyncPolicy::Never);
    let check = |history: &History| -> Result<u64, String> {
        let seen = open().map_err(|error| error.to_string())?;
        history.check(&seen, kind)?;
        Ok(seen.present_tick().unwrap_or(0))
    };
    let fail = |error: String| -> ! {
        let kept = folder();
        image.write(kept.path());
        panic!("{told}, {}, in {}: {error}", image.about, kept.keep().display());
    };
    let tick = check(&history).unwrap_or_else(|error| fail(error));
    // Another one, while it is opened and closed.
    if random.less_than(8) == 0 {
        for second in while_opened(&image, kind, random) {
            let place = folder();
            second.write(place.path());
            let seen = kind.open(&place.path().join("seen.koel"), SyncPolicy::Never);
            let checked = seen.map_err(|error| error.to_string());
            let checked = checked.and_then(|seen| history.check(&seen, kind));
            checked.unwrap_or_else(|error| {
                fail(format!("a second power failure, {}: {error}", second.about))
            });
        }
    }
    history.end_process(generation, tick, kind);
    // What was there once is there again.
    if random.less_than(4) == 0 {
        check(&history).unwrap_or_else(|error| fail(format!("opened again: {error}")));
    }
    (place, history)
}

/// Returns images of power failures while what another one has left is opened and closed.
fn while_opened(image: &Image, kind: Kind, random: &mut SplitMix) -> Vec<Image> {
    let place = folder();
    image.write(place.path());
    Disk::insert(place.path());
    let (seed, end) = (random.less_than(1 << 60), random.less_than(4));
    let images = Disk::images_of(seed, || {
        let seen = kind.open(&place.path().join("seen.koel"), SyncPolicy::Never);
        let seen = seen.expect("it was opened before");
        if end & 1 == 1 {
            seen.checkpoint().expect("a checkpoint");
        }
        if end & 2 == 2 { seen.close().expect("a state") } else { drop(seen) }
    });
    Disk::remove();
    images
}
