//! The tasks of the child process that strace watches.

use crate::common::bytes_of;
use crate::kind::{Kind, Saved};
use crate::process::{again, names};
use crate::scene::{CAPACITY, NAME, NEW, OLD};
use crate::short::fill_but;
use koel::{SnapshotError, SnapshotErrorKind};
use std::fs;
use std::path::Path;
use std::process::{Command, exit};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// A path that does not exist. The child looks it up to mark in the trace where the save or load
/// begins; [`END`] marks where it ends.
pub const BEGIN: &str = "/koel begins";
pub const END: &str = "/koel ends";

/// Returns a process that saves a filter with the old and the new items, while other threads insert
/// and remove further items.
pub fn saving(kind: Kind, path: &Path) -> Command {
    of(kind, "save", path)
}

/// Returns a process that loads a filter, and checks that it has the old items.
pub fn loading(kind: Kind, path: &Path) -> Command {
    of(kind, "load", path)
}

/// Returns a process that saves to a disk on which it has left too little room.
pub fn filling(kind: Kind, folder: &Path) -> Command {
    of(kind, "fill", folder)
}

fn of(kind: Kind, what: &str, path: &Path) -> Command {
    again("", &[what, kind.name(), path.to_str().expect("a path in UTF-8")])
}

/// Runs the task of this process on the main thread, the only one that strace watches.
pub fn run(task: &[String]) -> ! {
    let path = Path::new(&task[2]);
    let kind = Kind::named(&task[1]);
    let result = match &*task[0] {
        "save" => save(kind, path),
        "fill" => fill(kind, path),
        "load" => load(path),
        _ => panic!("unknown task: {task:?}"),
    };
    match result {
        Ok(()) => println!("OUTCOME done"),
        Err(error) => {
            println!("OUTCOME {:?}, in place: {}: {error}", error.kind(), error.is_in_place());
        }
    }
    exit(0);
}

fn save(kind: Kind, path: &Path) -> Result<(), SnapshotError> {
    let filter: Saved = kind.filter(CAPACITY);
    for item in OLD.start..NEW.end {
        filter.insert(&item).expect("room");
    }
    let (busy, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for thread in 1..=2u64 {
            let (filter, busy, stop) = (&filter, &busy, &stop);
            scope.spawn(move || {
                for item in (thread << 40..).take_while(|_| !stop.load(Relaxed)) {
                    filter.insert(&item).expect("room");
                    assert!(item % 100 == 0 || filter.remove(&item));
                    busy.fetch_add(1, Relaxed);
                }
            });
        }
        while busy.load(Relaxed) < 100 {
            thread::sleep(Duration::from_micros(100));
        }
        let result = marked(|| filter.save(path).map(|_| ()));
        stop.store(true, Relaxed);
        result
    })
}

fn load(path: &Path) -> Result<(), SnapshotError> {
    let filter = marked(|| Saved::load(path))?;
    assert!(OLD.clone().all(|item| filter.contains(&item)), "an old item is lost");
    Ok(())
}

/// Fills the disk, and then saves repeatedly with a little more room each time, until a save
/// succeeds.
fn fill(kind: Kind, folder: &Path) -> ! {
    let (path, filler) = (folder.join(NAME), folder.join("filler"));
    let filter: Saved = kind.filter(CAPACITY);
    OLD.for_each(|item| filter.insert(&item).expect("room"));
    filter.save(&path).expect("room on the disk");
    let old = fs::read(&path).expect("the file");
    NEW.for_each(|item| filter.insert(&item).expect("room"));
    let bytes = bytes_of(&filter);
    let length = bytes.len() as u64;

    let (mut full, mut pages) = (0, 0);
    loop {
        let room = pages * 4_096;
        fill_but(&filler, pages);
        match filter.save(&path) {
            Ok(_) if room >= length => break,
            Ok(_) => panic!("{room} bytes were enough for {length}"),
            Err(error) => {
                assert!(error.to_string().contains("cannot write: No space left"), "{error}");
                assert_eq!(error.kind(), SnapshotErrorKind::Io);
                assert!(!error.is_in_place());
            }
        }
        assert!(fs::read(&path).expect("the file") == old, "the old file has changed");
        assert_eq!(names(folder), ["filler", NAME]);
        full += 1;
        pages += 1 + pages / 8;
    }
    assert!(fs::read(&path).expect("the file") == bytes);
    println!("checked: {full} saves that filled a disk: 0 files that are neither old nor new");
    exit(0);
}

fn marked<T>(work: impl FnOnce() -> T) -> T {
    let mark = |path| fs::metadata(path).expect_err("nothing");
    // On the first call, the standard library also probes which system calls it can use.
    mark("/koel");
    mark(BEGIN);
    let result = work();
    mark(END);
    result
}
