//! Failing system calls, and the order of system calls: an output is noted before it is written,
//! the output is synced before a state is saved, and a state that cannot be saved is unchanged.
//!
//! `strace` injects the failures and logs the calls. Without it, these tests are skipped with a
//! message, or fail if `KOEL_STRACE=required`.

use crate::common::*;
use std::env;
use std::fs;
use std::path::Path;
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
    let koel = place.command(words);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-s", "300", "-o"]).arg(place.path("log")).args(options);
    strace.arg(koel.get_program()).args(koel.get_args());
    strace.current_dir(koel.get_current_dir().unwrap());
    Some(strace)
}

/// Runs the command under strace to its end.
pub fn straced(place: &Place, options: &[&str], words: &str) -> Option<Ran> {
    strace(place, options, words).map(|mut command| Going::start(&mut command).run(b""))
}

/// Runs the command under strace to its end while a call fails, or is ended by a signal: all of its kind, or as
/// `how` says. Of a path, only the calls on that file.
pub fn injected(
    place: &Place,
    path: Option<&Path>,
    call: &str,
    how: &str,
    words: &str,
) -> Option<Ran> {
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:{how}"));
    let path = path.map(|path| ["-P", path.to_str().unwrap()]);
    let options =
        [path.as_ref().map_or(&[][..], |path| path), &["-e", &trace, "-e", &inject]].concat();
    straced(place, &options, words)
}

/// What a log of strace has of a run with checkpoints.
#[derive(Debug, Default)]
struct Seen {
    writes: usize,
    saves: usize,
    /// Saves during which lines were written.
    overtaken: usize,
}

/// Checks in a log of strace the order of what is noted, written, synced and saved.
fn assert_in_order(log: &str) -> Seen {
    let mut seen = Seen::default();
    // The number of writes when the last sync of the output began, and when the new state was begun.
    let (mut synced, mut begun) = (0, None);
    let (mut is_noted, mut may_note) = (false, true);
    for line in log.lines().filter(|line| !line.contains(" resumed>")) {
        let of = |name: &str| line.contains(name);
        let is_sync = of("fdatasync(") || of("fsync(");
        if of(" write(") && of("/out>") {
            assert!(is_noted, "written before it was noted:\n{line}");
            seen.writes += 1;
        } else if of(" write(") && of(".koel-output>") {
            assert!(may_note, "noted before it was saved:\n{line}");
            may_note = false;
        } else if is_sync && of(".koel-output>") {
            is_noted = true;
        } else if of("/out>") && is_sync {
            synced = seen.writes;
        } else if of("openat(") && of(".koel-saving\"") {
            begun = Some(seen.writes);
        } else if of("rename") && of("seen.koel\"") {
            let begun = begun.take().expect("a new state");
            assert!(synced >= begun, "saved before what was written is safe:\n{line}");
            may_note = true;
            seen.saves += 1;
            seen.overtaken += usize::from(seen.writes > begun);
        }
    }
    seen
}

const CALLS: [&str; 2] = ["-e", "trace=write,fsync,fdatasync,openat,rename,renameat,renameat2"];

#[test]
fn an_output_is_noted_then_written_then_synced_then_the_state_is_saved_and_lines_go_on() {
    let place = Place::new();
    place.make_state("seen.koel");
    let words = "dedup --state seen.koel --output out --checkpoint 0.02 -";
    // Slow enough for lines to arrive meanwhile.
    let slow = [&CALLS[..], &["-e", "inject=fsync,fdatasync:delay_exit=300000"]].concat();
    let Some(mut command) = strace(&place, &slow, words) else { return };
    let mut going = Going::start(&mut command);
    let blocks = rounds(40, 150);
    for block in 0..blocks {
        going.feed(&numbered(100 * block..100 * block + 100));
        thread::sleep(Duration::from_millis(20));
    }
    going.end();
    let log = String::from_utf8(place.read("log")).unwrap();
    let seen = assert_in_order(&log);
    println!("{seen:?}");
    assert!(seen.saves > 1 && seen.overtaken > 0, "{seen:?}:\n{log}");
    assert_same(&place.read("out"), &numbered(0..100 * blocks), "the output");
}

/// Kills a run at one of its calls. Returns `false` if it had no such call, or `None` if there is no strace.
pub fn killed_at(place: &Place, call: &str, number: u32, words: &str) -> Option<bool> {
    let ran = injected(place, None, call, &format!("signal=KILL:when={number}"), words)?;
    assert!(ran.code == Some(0) || ran.code.is_none(), "{call} {number}: {}", ran.stderr);
    Some(ran.code.is_none())
}

const RUN: &str = "dedup --state seen.koel --output out lines";

#[test]
fn of_a_limited_run_that_is_killed_only_the_written_lines_count() {
    let place = Place::new();
    let all = numbered(0..10);
    place.write("lines", &all);
    place.make_state("seen.koel");
    let Some(true) = killed_at(&place, "rename", 1, &format!("{RUN} --limit 6")) else { return };
    place.ok("add seen.koel", "");
    assert_same(&place.known("seen.koel", &all), &numbered(0..6), "what is known");
    place.koel(RUN);
    assert_same(&place.read("out"), &all, "the output");
}

#[test]
fn an_output_that_cannot_be_noted_is_not_written() {
    let place = Place::new();
    place.write("lines", padded(0..100_000));
    let note = place.path("").canonicalize().unwrap().join(".seen.koel.koel-output");
    // Each thread counts its calls. The one that writes looks for a note before it creates one.
    for (call, when) in [("openat", "2"), ("write", "1+"), ("fsync", "1+")] {
        place.make_state("seen.koel");
        let how = format!("error=ENOSPC:when={when}");
        let Some(ran) = injected(&place, Some(&note), call, &how, RUN) else { return };
        assert_eq!((ran.code, place.read("out").len()), (Some(2), 0), "{call}: {}", ran.stderr);
        ran.has(".seen.koel.koel-output: cannot note what is written: No space left on device\n");
        assert_eq!(place.names(), ["lines", "log", "out", "seen.koel"], "{call}");
    }
}

#[test]
fn a_state_that_cannot_be_saved_stays_as_it_was_and_the_output_has_the_rest() {
    let place = Place::new();
    place.write("lines", b"a\nb\nc\n");
    place.make_state("seen.koel");
    place.ok("add seen.koel", "a\n");
    let before = place.read("seen.koel");
    let output = "dedup --json --state seen.koel --output out lines";
    for call in ["fdatasync", "rename,renameat,renameat2"] {
        for (words, said) in [
            ("add --json seen.koel lines", "; 2 lines could not be added\n"),
            ("forget --json seen.koel lines", "; 1 line could not be forgotten\n"),
            ("dedup --json --state seen.koel lines", "; 2 lines could not be saved as seen"),
            (output, "; the next run takes in the new lines that "),
        ] {
            let Some(ran) = injected(&place, None, call, "error=ENOSPC", words) else { return };
            if !place.read("log").windows(10).any(|some| some == b"(INJECTED)") {
                // Only an output is synced by this call.
                assert!(call == "fdatasync" && words != output, "{words}: {call}");
                place.write("seen.koel", &before);
                continue;
            }
            assert_eq!(ran.code, Some(2), "{call}: {}", ran.stderr);
            has(&json(&ran), json!({ "known": 1, "unchanged": false }));
            ran.has("No space left");
            ran.has(said);
            assert!(place.read("seen.koel") == before, "{call}: the state has changed");
        }
        // The lines were written.
        place.ok(output, "");
        assert_eq!(place.read("out"), b"b\nc\n", "{call}");
        assert_eq!(place.known("seen.koel", b"a\nb\nc\n"), b"a\nb\nc\n", "{call}");
        assert_eq!(place.names(), ["lines", "log", "out", "seen.koel"], "{call}");
        place.write("seen.koel", &before);
        fs::remove_file(place.path("out")).unwrap();
    }
}

#[test]
fn a_new_state_that_cannot_be_saved_is_reported_before_anything_is_written() {
    let place = Place::new();
    place.write("lines", b"a\nb\n");
    let calls = "rename,renameat,renameat2,link,linkat";
    let Some(ran) = injected(&place, None, calls, "error=EACCES", RUN) else { return };
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("koel: seen.koel: "), "{}", ran.stderr);
    assert_eq!(place.names(), ["lines", "log"]);
}

#[test]
fn what_an_output_has_no_room_for_is_not_saved_as_seen_and_of_a_line_nothing_stays() {
    let place = Place::new();
    let long = "x".repeat(200);
    let all: Vec<u8> = (0..20_000).flat_map(|n| format!("{n} {long}\n").into_bytes()).collect();
    place.write("lines", &all);
    // 0.5 to 3 MB, depending on the shell: not at the end of a chunk.
    for (blocks, threads) in [(3_000, 2), (1_000, 8), (3_000, 1)] {
        place.make_state("seen.koel");
        let _ = fs::remove_file(place.path("out"));
        let words = format!("{RUN} --threads {threads}");
        let ran = shell(&place, &format!("trap '' XFSZ; ulimit -f {blocks}; koel {words}"));
        ran.has("koel: out: File too large\n");
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        let written = place.read("out");
        assert!(all.starts_with(&written) && written.len() < all.len());
        assert!(written.is_empty() || written.ends_with(b"\n"));
        // The first of all chunks has more.
        assert_eq!(written.is_empty(), blocks == 1_000);
        assert_same(&place.known("seen.koel", &all), &written, "what is saved");
        place.ok(&words, "");
        assert_same(&place.read("out"), &all, "after the second run");
    }
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_lost() {
    let place = Place::new();
    let all = numbered(0..100_000);
    place.write("lines", &all);
    place.make_state("seen.koel");
    let said = "koel: /dev/full: No space left on device\n";
    place.row("dedup --state seen.koel --output /dev/full lines", "", 2, "", said);
    assert!(place.known("seen.koel", &all).is_empty());
    for words in each(
        "{dedup --state seen.koel lines,dedup --count lines,dedup --lossless lines,info seen.koel,sample 10,\
         query -v seen.koel lines,query -v --count seen.koel lines,generate completions bash}",
    ) {
        let ran = shell(&place, &format!("koel {words} > /dev/full"));
        assert_eq!(ran.code, Some(2), "{words}: {}", ran.stderr);
        ran.has("koel: standard output: No space left on device\n");
    }
    place.row("dedup --state seen.koel lines", "", 0, &all, "");
}

/// A run that has to end while the output is stuck cannot know what is there, so it ends as if it was killed.
#[test]
fn a_run_that_is_ended_while_the_output_is_stuck_is_repeated_as_one_that_was_killed() {
    let place = Place::new();
    let lines = numbered(0..5_000);
    place.write("lines", &lines);
    place.make_state("seen.koel");
    if strace(&place, &[], RUN).is_none() {
        return;
    }
    let (out, koel) = (place.path("out"), env!("CARGO_BIN_EXE_koel"));
    let stuck = format!("strace -f -o log -P {} -e inject=write:delay_exit=4000000", out.display());
    let ran = shell(&place, &format!("{stuck} timeout -s TERM 0.5 {koel} {RUN}"));
    assert!(ran.stderr.contains("the next run takes in the lines that "), "{}", ran.stderr);
    place.ok(RUN, "");
    assert_same(&place.read("out"), &lines, "the output");
    assert_eq!(place.known("seen.koel", &lines).len(), lines.len());
}

/// Another file may get the name of a note between two looks at it.
#[test]
fn a_note_is_looked_at_once_and_no_link_is_followed() {
    let place = Place::new();
    let Some(true) = killed_at_first_write(&place) else { return };
    place.write("lines", b"a\nb\n");
    let Some(ran) = straced(&place, &["-e", "trace=file"], RUN) else { return };
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let log = String::from_utf8(place.read("log")).unwrap();
    let mut calls = log.lines().filter(|line| line.contains(".seen.koel.koel-output\"")).peekable();
    assert!(calls.peek().is_some(), "{log}");
    for call in calls {
        let is_safe = ["O_NOFOLLOW", "O_EXCL", " unlink"].iter().any(|part| call.contains(part));
        assert!(is_safe, "{call}");
    }
}

/// Leaves a note and a line.
fn killed_at_first_write(place: &Place) -> Option<bool> {
    place.write("lines", b"a\n");
    place.make_state("seen.koel");
    killed_at(place, "fdatasync", 1, RUN)
}

#[test]
fn a_note_stays_until_the_state_is_known_to_be_safe() {
    let place = Place::new();
    place.make_state("seen.koel");
    let folder = place.path("").canonicalize().unwrap();
    // The folder cannot be synced, so a power failure may bring the old state back.
    let options =
        ["-P", folder.to_str().unwrap(), "-e", "trace=fsync", "-e", "inject=fsync:error=EIO"];
    let words = "dedup --state seen.koel --output out --checkpoint 0.01 -";
    let Some(mut command) = strace(&place, &options, words) else { return };
    let mut going = Going::start(&mut command);
    going.feed(b"a\n");
    wait_until("a checkpoint", || place.info("seen.koel")["items"] == 1);
    // Nothing comes after it.
    thread::sleep(Duration::from_millis(100));
    going.end();
    assert!(is_there(&place.path(".seen.koel.koel-output")), "{:?}", place.names());
    place.ok("add seen.koel", "");
    assert_eq!(place.names(), ["log", "out", "seen.koel"]);
    assert_eq!(place.known("seen.koel", b"a\n"), b"a\n");
}
