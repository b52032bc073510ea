//! `--limit`: the next new lines of a file, run after run.

use crate::common::*;
use std::process::Command;

#[test]
fn each_run_writes_the_next_lines() {
    let place = Place::new();
    let count = rounds(24_000, 60_000);
    let lines = numbered(0..count);
    // Each line comes three times, far apart and close together.
    let doubled: Vec<u8> = lines
        .split_inclusive(|byte| *byte == b'\n')
        .flat_map(|line| [line, line].concat())
        .collect();
    place.write("lines", [&doubled[..], &lines].concat());
    for threads in [1, 3] {
        place.make_state("seen.koel");
        let words = format!("dedup --json --threads {threads} --state seen.koel --limit");
        let mut all = Vec::new();
        let limits = [1, 2, 100, 7_000, 20_000, 25_000, 30_000, 1];
        for limit in rounds([1, 2, 100, 2_800, 8_000, 10_000, 12_000, 1], limits) {
            let ran = place.koel(&format!("{words} {limit} lines"));
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let written = ran.stdout.split_inclusive(|byte| *byte == b'\n').count();
            let left = count as usize - all.split_inclusive(|byte| *byte == b'\n').count();
            assert_eq!(written, limit.min(left));
            assert_eq!(json(&ran)["end"] == "limit", limit <= left, "{}", ran.stderr);
            all.extend(ran.stdout);
            // Exactly the lines that were written are known.
            assert_same(&place.known("seen.koel", &lines), &all, "what is known");
        }
        assert_same(&all, &lines, "all that was written");
    }
}

#[test]
fn the_summary_counts_what_was_read_and_written() {
    let place = Place::new();
    place.write("lines", b"a\na\nb\na\nc\nb\nd\n");
    let ran = place.koel("dedup --json --limit 3 lines");
    assert_eq!((ran.code, &*ran.stdout), (Some(0), &b"a\nb\nc\n"[..]));
    let summary: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    let number = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!((number("lines"), number("new"), number("repeated")), (5, 3, 2));
    assert_eq!((number("bytes"), number("known")), (10, 3));
    assert_eq!(summary["end"], "limit");
    // Into a file, as a whole.
    place.write("out", b"before\n");
    assert_eq!(place.koel("dedup --limit 2 lines -o out").code, Some(0));
    assert_eq!(place.read("out"), b"a\nb\n");
    for words in ["dedup --limit 0 lines", "dedup --limit 1 --count lines"] {
        assert_eq!(place.koel(words).code, Some(2), "{words}");
    }
}

#[test]
fn a_run_that_reaches_its_limit_says_so_wherever_the_input_ends() {
    let place = Place::new();
    place.write("lines", b"a\nb\na\nc\nb\na\n");
    // With 3, nothing new is cut off; with 4, the limit is not reached.
    for (limit, end) in [(2, "limit"), (3, "limit"), (4, "complete")] {
        for round in 0..rounds(8, 300) {
            let ran = place.koel(&format!("dedup --json --limit {limit} lines"));
            assert_eq!(json(&ran)["end"], end, "--limit {limit}, round {round}");
        }
    }
    let ran = place.koel_on("dedup --json --limit 1", b"a\n");
    assert_eq!(json(&ran)["end"], "limit");
    // What could not be read after the limit does not matter.
    place.write("cut.gz", &b"\x1F\x8B"[..]);
    for (limit, code) in [(2, 0), (3, 0), (4, 2)] {
        for round in 0..rounds(4, 200) {
            for next in ["nosuch", "cut.gz"] {
                let ran = place.koel(&format!("dedup --limit {limit} lines {next}"));
                assert_eq!(ran.code, Some(code), "--limit {limit}, round {round}: {}", ran.stderr);
            }
        }
    }
}

#[test]
fn a_state_is_not_written_if_nothing_changes() {
    let place = Place::new();
    let age = |name: &str| place.path(name).metadata().unwrap().modified().unwrap();
    // A state that is made in this run has nothing *still*.
    let ran = place.koel_on("dedup --json --state new.koel", b"");
    assert_eq!((&json(&ran)["unchanged"], &json(&ran)["known"]), (&false.into(), &0.into()));
    place.koel_on("add seen.koel", b"a\nb\n");
    let before = (place.read("seen.koel"), age("seen.koel"));
    for (words, input, code) in [
        ("forget seen.koel", &b"nosuch\n"[..], 1),
        ("add seen.koel", b"a\n", 0),
        ("dedup --state seen.koel", b"b\na\n", 0),
        ("dedup --state seen.koel", b"", 0),
    ] {
        let Some(ran) = place.shown_on(words, input) else { return };
        assert_eq!(ran.code, Some(code), "{words}");
        assert!(ran.stderr.contains("seen.koel still has 2 lines"), "{words}: {}", ran.stderr);
        assert!((place.read("seen.koel"), age("seen.koel")) == before, "{words}");
    }
    let ran = place.koel_on("forget --json seen.koel", b"a\n");
    let summary: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(summary["unchanged"], false);
    assert!(age("seen.koel") > before.1);
}

#[test]
fn what_an_existing_state_decides_is_said() {
    let place = Place::new();
    let ran = place.koel_on("dedup --state seen.koel --rate 1e-6 --capacity 10", b"a\n");
    assert!(!ran.stderr.contains("for new states"), "{}", ran.stderr);
    for (options, said) in [
        (
            "--rate 0.01",
            "seen.koel: --rate is for new states, and this one is planned for a rate of",
        ),
        (
            "--capacity 1e6",
            "seen.koel: --capacity is for new states, and this one was made for 10 lines",
        ),
        ("--rate 0.01 --capacity 1e6", "; --capacity is for new states"),
    ] {
        for command in ["dedup --state seen.koel", "add seen.koel"] {
            let ran = place.koel_on(&format!("{command} {options}"), b"b\n");
            assert_eq!(ran.code, Some(0));
            assert!(ran.stderr.contains(said), "{command} {options}: {}", ran.stderr);
            let ran = place.koel_on(&format!("{command} {options} --quiet"), b"b\n");
            assert_eq!(ran.stderr, "");
        }
    }
}

#[test]
fn a_state_that_is_a_pipe_or_an_input_is_refused() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    std::fs::create_dir(place.path("folder")).unwrap();
    for (state, what) in [
        ("pipe", "not a regular file"),
        ("/dev/null", "not a regular file"),
        ("folder", "a folder"),
        ("new/", "a folder"),
    ] {
        for command in ["dedup --state", "dedup --count --state", "add", "forget", "query", "info"]
        {
            let words = format!("{command} {state}");
            let ran = place.koel_on(&words, b"a\n");
            assert_eq!(ran.code, Some(2), "{words}");
            assert!(ran.stderr.contains(&format!(": it is {what}")), "{words}: {}", ran.stderr);
            assert!(ran.stderr.contains("a state must be a regular file"), "{}", ran.stderr);
        }
    }
    std::fs::remove_dir(place.path("folder")).unwrap();
    place.koel_on("add seen.koel", b"a\n");
    let state = place.read("seen.koel");
    for (words, input) in [("dedup seen.koel", &b""[..]), ("dedup", &state), ("dedup -", &state)] {
        let ran = place.koel_on(words, input);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), &b""[..]), "{words}");
        assert!(ran.stderr.contains("this is a state, not lines"), "{words}: {}", ran.stderr);
    }
}
