//! A process that is killed at any moment loses nothing that it has answered.

use crate::common::{SplitMix, rounds};
use crate::process::{again, task};
use koel::{ConcurrentCuckooFilter, DurableFilter, StableHash, SyncPolicy};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const THREADS: u64 = 4;

fn open(path: &Path, kind: u64) -> DurableFilter {
    let builder = ConcurrentCuckooFilter::builder().hasher(StableHash::with_seed(7));
    let builder = builder.false_positive_rate(1e-6).capacity(rounds(400_000, 1_000_000));
    let builder = if kind & 1 == 1 { builder.capacity(1_000).growing() } else { builder };
    let builder = if kind & 2 == 2 { builder.remembers(60) } else { builder };
    DurableFilter::open_with(path, SyncPolicy::Never, || builder.build()).expect("a filter")
}

/// Adds and removes items of its own, and notes each operation before it is begun, and when it is answered.
fn work(seen: &DurableFilter, thread: u64, round: u64, notes: &mut File) {
    let mut random = SplitMix(thread << 32 | round);
    let mut own = Vec::new();
    let mut next = thread << 48 | round << 32;
    loop {
        let adds = own.is_empty() || !random.next().is_multiple_of(3);
        let item = if adds { next } else { own.swap_remove(random.next() as usize % own.len()) };
        let what = if adds { 1u64 } else { 2 };
        notes.write_all(&[item.to_le_bytes(), what.to_le_bytes()].concat()).expect("a note");
        if adds {
            assert!(seen.insert_if_absent(&item).expect("room"));
            own.push(item);
            next += 1;
        } else {
            assert!(seen.remove(&item).expect("a change"), "{item:x}");
        }
        notes.write_all(&[item.to_le_bytes(), (what + 2).to_le_bytes()].concat()).expect("a note");
        // So few that nothing expires.
        let is_time = thread == 0 && next as u32 == 1_024;
        if is_time && seen.filter().remembers().is_some() {
            seen.tick().expect("a tick");
        }
    }
}

#[test]
#[ignore = "a child process of the test below"]
fn worker() {
    let Some(task) = task() else { return };
    let [folder, kind, round] = &task[..] else { panic!("three words") };
    let (kind, round): (u64, u64) = (kind.parse().unwrap(), round.parse().unwrap());
    let folder = Path::new(folder);
    let seen = Arc::new(open(&folder.join("seen.koel"), kind));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let seen = Arc::clone(&seen);
            let path = folder.join(format!("notes-{thread}"));
            let mut notes = OpenOptions::new().append(true).create(true).open(path).unwrap();
            std::thread::spawn(move || work(&seen, thread, round, &mut notes))
        })
        .collect();
    println!("ready");
    loop {
        seen.checkpoint().expect("a checkpoint");
        assert!(threads.iter().all(|thread| !thread.is_finished()));
    }
}

#[test]
fn a_killed_process_loses_nothing_that_it_has_answered() {
    // In the long run, a thousand kills. Each filter has seen twenty-five of them at the end.
    for (filter, kind) in
        (0..rounds(1, 10)).flat_map(|filter| (0..4).map(move |kind| (filter, kind)))
    {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("seen.koel");
        let mut random = SplitMix(filter << 8 | kind);
        let mut shadow: BTreeMap<u64, Option<bool>> = BTreeMap::new();
        for round in 0..rounds(5, 25) {
            let words = [folder.path().to_str().unwrap(), &kind.to_string(), &round.to_string()];
            let mut child = again("kills::worker", &words);
            let mut child = child.stdout(std::process::Stdio::piped()).spawn().expect("a child");
            let mut seen = Vec::new();
            let mut out = child.stdout.take().expect("its output");
            while !seen.ends_with(b"ready\n") {
                let mut byte = [0];
                assert_eq!(out.read(&mut byte).expect("output"), 1, "it ended");
                seen.push(byte[0]);
            }
            std::thread::sleep(Duration::from_micros(random.next() % 60_000));
            child.kill().expect("a child");
            child.wait().expect("a child");
            for thread in 0..THREADS {
                let name = folder.path().join(format!("notes-{thread}"));
                let notes = std::fs::read(&name).unwrap_or_default();
                for note in notes.as_chunks::<16>().0 {
                    let item = u64::from_le_bytes(note[..8].try_into().unwrap());
                    let state = match note[8] {
                        1 | 2 => None,
                        what => Some(what == 3),
                    };
                    shadow.insert(item, state);
                }
                let _ = std::fs::remove_file(&name);
            }
            let seen = open(&path, kind);
            assert_eq!(seen.lost_changes(), 0);
            for (item, state) in &shadow {
                if let Some(state) = state {
                    assert_eq!(seen.contains(item), *state, "kind {kind} round {round}: {item:x}");
                }
            }
            // What was not answered may or may not be there, and is left alone.
            let unsure = shadow.values().filter(|state| state.is_none()).count();
            let sure = shadow.values().filter(|state| **state == Some(true)).count();
            let length = seen.filter().len();
            assert!((sure..=sure + unsure).contains(&length), "{length}, {sure}, {unsure}");
        }
        println!("kind {kind}: {} items", shadow.len());
    }
}
