//! A process that is killed at any moment loses nothing that it has answered.

use crate::history::{Crew, History, Kind, THREADS, notes_of};
use koel::SyncPolicy;
use reliability::common::rounds::chosen_rounds;
use reliability::common::{SplitMix, alone, rounds};
use reliability::process::{again, task};
use reliability::seeds;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

#[test]
#[ignore = "a child process of the test below"]
fn worker() {
    let Some(task) = task() else { return };
    let [folder, kind, seed, round] = &task[..] else { panic!("four words") };
    let [kind, seed, round] =
        [kind, seed, round].map(|word| word.parse::<u64>().expect("a number"));
    let (folder, kind) = (Path::new(folder), Kind::of(kind));
    // A panic of any thread ends the process, and so the test.
    std::panic::set_hook(Box::new(|about| {
        eprintln!("{about}");
        std::process::abort();
    }));
    let mut random = SplitMix(seed);
    let is_early = random.next().is_multiple_of(4);
    if is_early {
        println!("ready");
    }
    let seen = kind.open(&folder.join("seen.koel"), SyncPolicy::Never).expect("a filter");
    let crew = Crew::new(&seen, kind, seed, round);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let crew = &crew;
            scope.spawn(move || crew.work(thread, &notes_of(folder, thread), u64::MAX));
        }
        if !is_early {
            println!("ready");
        }
        while !crew.stop.load(SeqCst) {
            std::thread::sleep(Duration::from_micros(random.next() % 8_000));
            match random.next() % 4 {
                0 => crew.fail_checkpoint(),
                _ => seen.checkpoint().expect("a checkpoint"),
            }
        }
    });
}

/// Kills of a filter in its life.
const KILLS: u64 = 25;

#[test]
fn a_killed_process_loses_nothing_that_it_has_answered() {
    let _alone = alone();
    let kills = chosen_rounds(rounds(40, 1_000));
    let short = rounds(5, KILLS);
    let (mut events, mut longest) = (0, Duration::ZERO);
    for (filter, number) in (0..kills.div_ceil(short)).zip(seeds("kills")) {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a folder");
        let path = folder.path().join("seen.koel");
        let mut history = History::default();
        let kind = Kind::of(number);
        for round in 0..short.min(kills - filter * short) {
            let seed = number << 16 | round;
            let words = [
                folder.path().to_str().expect("text"),
                &(number & 7).to_string(),
                &seed.to_string(),
                &round.to_string(),
            ];
            let mut child =
                again("kills::worker", &words).stdout(Stdio::piped()).spawn().expect("a child");
            let (mut said, mut out) = (Vec::new(), child.stdout.take().expect("its output"));
            while !said.ends_with(b"ready\n") {
                let mut byte = [0];
                assert_eq!(out.read(&mut byte).expect("output"), 1, "it ended");
                said.push(byte[0]);
            }
            std::thread::sleep(Duration::from_micros(SplitMix(!seed).next() % 40_000));
            child.kill().expect("a child");
            let status = child.wait().expect("a child");
            assert_eq!(status.signal(), Some(9), "it has failed: KOEL_SEED={number}, kill {round}");
            for thread in 0..THREADS {
                let notes = notes_of(folder.path(), thread);
                let bytes = std::fs::read(&notes).unwrap_or_default();
                history.add(&bytes, bytes.len());
                events += bytes.len() / 64;
                let _ = std::fs::remove_file(&notes);
            }
            let told = format!("KOEL_SEED={number}, kill {round} of {kind:?}");
            let begin = Instant::now();
            let seen = kind
                .open(&path, SyncPolicy::Never)
                .unwrap_or_else(|error| panic!("{told}: {error}"));
            longest = longest.max(begin.elapsed());
            assert_eq!(seen.lost_changes(), 0, "{told}");
            history.check(&seen, kind).unwrap_or_else(|error| panic!("{told}: {error}"));
            history.end_process(round, seen.present_tick().unwrap_or(0), kind);
        }
    }
    println!(
        "checked: {kills} kills, {events} changes: 0 answers lost, 0 items that nobody added, 0 items with two \
         winners, 0 states that did not open; the longest took {} ms",
        longest.as_millis()
    );
}
