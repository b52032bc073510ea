//! Failing system calls and the order of system calls: the output is synced before a state is
//! saved, and a state that cannot be saved is unchanged.
//!
//! `strace` injects the failures and logs the calls. Without it, these tests are skipped with a
//! message, or fail if `KOEL_STRACE=required`.

#![cfg(target_os = "linux")]

use crate::common::*;
use std::env;
use std::fs::File;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Returns the command under strace with these options, logging to `log`.
fn strace(place: &Place, options: &[&str], words: &str) -> Option<Command> {
    let there = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        let required = env::var_os("KOEL_STRACE").is_some_and(|value| value == "required");
        assert!(!required, "KOEL_STRACE=required, and there is no strace that works");
        println!("SKIPPED: there is no strace that works, so NOTHING WAS TESTED here; install it");
        return None;
    }
    let words: Vec<&str> = words.split_whitespace().collect();
    let koel = place.command(&words);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-s", "300", "-o"]).arg(place.path("log")).args(options);
    strace.arg(koel.get_program()).args(koel.get_args());
    strace.current_dir(koel.get_current_dir().unwrap());
    Some(strace)
}

/// Runs the command under strace to its end.
fn straced(place: &Place, options: &[&str], words: &str) -> Option<Ran> {
    strace(place, options, words).map(|mut command| run(&mut command, b""))
}

/// Checks in a log of strace that every save follows a sync. Returns the number of writes to `out`
/// and of saves.
fn assert_saved_when_synced(log: &str) -> (u32, u32) {
    let (mut writes, mut saves, mut is_synced) = (0, 0, true);
    for line in log.lines() {
        let of_output = line.contains("/out>");
        if of_output && line.contains(" write(") {
            (writes, is_synced) = (writes + 1, false);
        } else if of_output && (line.contains("fdatasync(") || line.contains("fsync(")) {
            is_synced = true;
        } else if line.contains(" rename") && line.contains("seen.koel\"") {
            saves += 1;
            assert!(is_synced, "saved before what was written is safe:\n{line}");
        }
    }
    (writes, saves)
}

const CALLS: [&str; 2] = ["-e", "trace=write,fsync,fdatasync,rename,renameat,renameat2"];

#[test]
fn an_output_is_synced_before_its_lines_are_saved_as_seen() {
    let place = Place::new();
    place.write("lines", padded(0..150_000));
    place.make_state("seen.koel");
    let words = "dedup --state seen.koel --output out --checkpoint 0.02 lines";
    let Some(ran) = straced(&place, &CALLS, words) else { return };
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let log = String::from_utf8(place.read("log")).unwrap();
    let (writes, saves) = assert_saved_when_synced(&log);
    assert!(writes > 4 && saves >= 1, "{writes} writes, {saves} saves:\n{log}");
}

#[test]
fn nothing_is_written_while_a_state_is_saved() {
    let place = Place::new();
    place.make_state("seen.koel");
    let words = "dedup --state seen.koel --output out --checkpoint 0.02 -";
    // Slow enough for lines to arrive meanwhile.
    let slow = [&CALLS[..], &["-e", "inject=fdatasync:delay_exit=200000"]].concat();
    let Some(mut command) = strace(&place, &slow, words) else { return };
    let mut going = Going::start(&mut command);
    let blocks = rounds(30, 150);
    for block in 0..blocks {
        going.feed(&numbered(100 * block..100 * block + 100));
        thread::sleep(Duration::from_millis(10));
    }
    drop(going.stdin.take());
    let (status, stderr) = going.wait();
    assert_eq!(status.code(), Some(0), "{stderr}");
    let log = String::from_utf8(place.read("log")).unwrap();
    let (writes, saves) = assert_saved_when_synced(&log);
    println!("{writes} writes, {saves} saves");
    assert_same(&place.read("out"), &numbered(0..100 * blocks), "the output");
}

#[test]
fn a_state_that_cannot_be_saved_stays_as_it_was() {
    let place = Place::new();
    place.write("lines", b"a\nb\nc\n");
    for call in ["fsync,fdatasync", "rename,renameat,renameat2"] {
        place.make_state("seen.koel");
        assert_eq!(place.koel_on("add seen.koel", b"a\n").code, Some(0));
        let before = place.read("seen.koel");
        let inject = format!("inject={call}:error=ENOSPC");
        let words = "dedup --state seen.koel lines";
        let Some(ran) = straced(&place, &["-e", &inject], words) else { return };
        assert!(String::from_utf8(place.read("log")).unwrap().contains("(INJECTED)"), "{call}");
        assert_eq!((ran.code, &ran.stdout[..]), (Some(2), &b"b\nc\n"[..]), "{call}");
        assert!(ran.stderr.contains("koel: seen.koel: "), "{call}: {}", ran.stderr);
        assert!(ran.stderr.contains("No space left"), "{call}: {}", ran.stderr);
        let again =
            "2 lines that had been written could not be saved as seen, so the next run writes";
        assert!(ran.stderr.contains(again), "{call}: {}", ran.stderr);
        assert!(place.read("seen.koel") == before, "{call}: the state has changed");
        assert_eq!(place.names(), ["lines", "log", "seen.koel"], "{call}");
        for (words, known, said) in [
            ("dedup --json --state seen.koel lines", 1, again),
            ("add --json seen.koel lines", 1, "; 2 lines could not be added\n"),
            ("forget --json seen.koel lines", 1, "; 1 line could not be forgotten\n"),
        ] {
            let Some(ran) = straced(&place, &["-e", &inject], words) else { return };
            let summary = json(&ran);
            assert!(summary["known"] == known && summary["unchanged"] == false, "{summary}");
            assert!(ran.stderr.contains(said), "{words}: {}", ran.stderr);
        }
        assert!(place.read("seen.koel") == before, "{call}: the state has changed");
        // The lines were written but not saved as seen: better twice than never.
        assert_eq!(place.koel(words).stdout, b"b\nc\n");
    }
}

#[test]
fn a_new_state_that_cannot_be_saved_is_reported_before_anything_is_written() {
    let place = Place::new();
    place.write("lines", b"a\nb\n");
    let inject = "inject=rename,renameat,renameat2,link,linkat:error=EACCES";
    let words = "dedup --state seen.koel --output out lines";
    let Some(ran) = straced(&place, &["-e", inject], words) else { return };
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("koel: seen.koel: "), "{}", ran.stderr);
    assert_eq!(place.names(), ["lines", "log"]);
}

#[test]
fn what_an_output_has_no_room_for_is_not_saved_as_seen() {
    let place = Place::new();
    let all = padded(0..150_000);
    place.write("lines", &all);
    for &(when, threads) in &[(1, 2), (3, 8), (3, 1), (6, 2)][..rounds(1, 4)] {
        place.make_state("seen.koel");
        let _ = std::fs::remove_file(place.path("out"));
        let out = place.path("out");
        let inject = format!("inject=write:error=ENOSPC:when={when}+");
        let options = ["-P", out.to_str().unwrap(), "-e", "trace=write", "-e", &inject];
        let words = format!("dedup --threads {threads} --state seen.koel --output out lines");
        let Some(ran) = straced(&place, &options, &words) else { return };
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("koel: out: No space left on device\n"), "{}", ran.stderr);
        let written = place.read("out");
        assert!(all.starts_with(&written) && written.len() < all.len());
        assert_eq!(written.is_empty(), when == 1);
        assert_same(&place.known("seen.koel", &all), &written, "what is saved");
        assert_eq!(place.koel(&words).code, Some(0));
        assert_same(&place.read("out"), &all, "after the second run");
    }
}

#[test]
fn of_a_line_that_has_no_room_nothing_stays() {
    let place = Place::new();
    let long = "x".repeat(200);
    let all: Vec<u8> = (0..20_000).flat_map(|n| format!("{n} {long}\n").into_bytes()).collect();
    place.write("lines", &all);
    place.make_state("seen.koel");
    // 1.5 or 3 MB, depending on the shell: more than a chunk, and not at the end of one.
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"trap "" XFSZ; ulimit -f 3000; exec "$0" "$@""#]);
    shell.arg(env!("CARGO_BIN_EXE_koel")).args("dedup -s seen.koel -o out lines".split(' '));
    let ran = run(shell.current_dir(place.path("")), b"");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("koel: out: File too large\n"), "{}", ran.stderr);
    let written = place.read("out");
    assert!(all.starts_with(&written) && written.ends_with(b"\n"));
    assert_same(&place.known("seen.koel", &all), &written, "what is saved");
    assert_eq!(place.koel("dedup -s seen.koel -o out lines").code, Some(0));
    assert_same(&place.read("out"), &all, "after the second run");
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_lost() {
    let place = Place::new();
    let all = numbered(0..100_000);
    place.write("lines", &all);
    place.make_state("seen.koel");
    let ran = place.koel("dedup --state seen.koel --output /dev/full lines");
    assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0));
    assert!(ran.stderr.contains("koel: /dev/full: No space left on device\n"), "{}", ran.stderr);
    assert!(place.known("seen.koel", &all).is_empty());

    for words in [
        "dedup --state seen.koel lines",
        "dedup --count lines",
        "dedup --lossless lines",
        "query --invert seen.koel lines",
        "query -v --count seen.koel lines",
        "info seen.koel",
        "sample 10",
        "generate completions bash",
    ] {
        let words: Vec<&str> = words.split_whitespace().collect();
        let full = File::create("/dev/full").unwrap();
        let output = place.command(&words).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains("koel: standard output: No space left on device\n"), "{stderr}");
    }
    let ran = place.koel("dedup --state seen.koel lines");
    assert_same(&ran.stdout, &all, "after all");
}
