//! `--limit`: the next new lines of a file, run after run.

use crate::common::*;

#[test]
fn each_run_writes_the_next_lines() {
    let place = Place::new();
    let count = rounds(24_000, 60_000);
    let lines = numbered(0..count);
    // Each line comes three times, far apart and close together.
    let doubled: Vec<u8> = lines_of(&lines).into_iter().flat_map(|line| line.repeat(2)).collect();
    place.write("lines", [&doubled[..], &lines].concat());
    for threads in [1, 3] {
        place.make_state("seen.koel");
        let words = format!("dedup --json --threads {threads} --state seen.koel --limit");
        let mut all = Vec::new();
        let limits = [1, 2, 100, 7_000, 20_000, 25_000, 30_000, 1];
        for limit in rounds([1, 2, 100, 2_800, 8_000, 10_000, 12_000, 1], limits) {
            let ran = place.ok(&format!("{words} {limit} lines"), "");
            let written = lines_of(&ran.stdout).len();
            let left = count as usize - lines_of(&all).len();
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
    let fields =
        json!({ "lines": 5, "new": 3, "repeated": 2, "bytes": 10, "known": 3, "end": "limit" });
    place.tells("dedup --limit 3 lines", "", "a\nb\nc\n", fields);
    // Into a file, as a whole.
    place.write("out", b"before\n");
    place.row("dedup --limit 2 lines -o out", "", 0, "", "");
    assert_eq!(place.read("out"), b"a\nb\n");
    place.assert_refused(&[("dedup --limit {0,1 --count} lines", "")]);
}

#[test]
fn a_run_that_reaches_its_limit_says_so_wherever_the_input_ends() {
    let place = Place::new();
    place.write("lines", b"a\nb\na\nc\nb\na\n");
    place.write("cut.gz", &b"\x1F\x8B"[..]);
    // With 3, nothing new is cut off; with 4, the limit is not reached.
    for (limit, end, code) in [(2, "limit", 0), (3, "limit", 0), (4, "complete", 2)] {
        for round in 0..rounds(8, 300) {
            let words = format!("dedup --limit {limit} --json lines");
            has(&json(&place.ok(&words, "")), json!({ "end": end }));
            // What could not be read after the limit does not matter.
            let next = ["nosuch", "cut.gz"][round % 2];
            let ran = place.koel(&format!("{words} {next}"));
            assert_eq!(ran.code, Some(code), "--limit {limit}: {}", ran.stderr);
        }
    }
    has(&place.json("dedup --limit 1", "a\n"), json!({ "end": "limit" }));
}

#[test]
fn a_state_is_not_written_if_nothing_changes() {
    let place = Place::new();
    let age = |name: &str| place.path(name).metadata().unwrap().modified().unwrap();
    // A state that is made in this run has nothing *still*.
    has(&place.json("dedup --state new.koel", ""), json!({ "unchanged": false, "known": 0 }));
    place.ok("add seen.koel", "a\nb\n");
    let before = (place.read("seen.koel"), age("seen.koel"));
    for (words, input, code) in [
        ("forget seen.koel", &b"nosuch\n"[..], 1),
        ("add seen.koel", b"a\n", 0),
        ("dedup --state seen.koel", b"b\na\n", 0),
        ("dedup --state seen.koel", b"", 0),
    ] {
        place.shows(words, input, code, "seen.koel still has 2 lines");
        assert!((place.read("seen.koel"), age("seen.koel")) == before, "{words}");
    }
    has(&place.json("forget seen.koel", "a\n"), json!({ "unchanged": false }));
    assert!(age("seen.koel") > before.1);
}

#[test]
fn options_of_a_state_that_is_there_are_kept_ignored_with_a_note_or_refused() {
    let ignored = "s.koel: --rate and --capacity are for new states, and this one keeps those that it was made with\n";
    let rates = ["2e-8", "0.9", "1e-6", "1e-7", "1e-4", "0.01", "0.3"];
    for rate in &rates[..rounds(1, 7)] {
        for capacity in ["", "--capacity 1", "--capacity 100_000", "--capacity 3_000_000"] {
            assert_next(
                &format!("--rate {rate} {capacity}"),
                &[(&format!("--rate {rate} {capacity}"), 0, "")],
            );
        }
    }
    let lowered = "s.koel: it was made for a higher rate, which cannot be lowered; omit --rate, or use another state\n";
    // What is the default may be given as well.
    assert_next("", &[("--rate 1e-6", 0, ""), ("--rate 2.1e-8", 2, lowered)]);
    assert_next(
        "--rate 1e-4 --capacity 5000",
        &[("--rate 1e-4 --capacity 5000", 0, ""), ("", 0, "")],
    );
    assert_next("--rate 1e-5 --forget-after 1d", &[("--rate 1e-5 --forget-after 1d", 0, "")]);
    assert_next(
        "--rate 0.001",
        &[("--rate 0.001", 0, ""), ("--rate 0.1", 0, ignored), ("--rate 1e-6", 2, lowered)],
    );
    let rows = [("--capacity 1e6", 0, ignored), ("--capacity 1e6 --rate 0.01 --quiet", 0, "")];
    assert_next("--rate 1e-6 --capacity 10", &rows);
}

/// Makes a state with some options, and gives others to commands that change it.
#[track_caller]
fn assert_next(first: &str, rows: &[(&str, i32, &str)]) {
    let place = Place::new();
    place.ok(&format!("dedup --state s.koel {first}"), "a\n");
    for (options, code, said) in rows {
        place.row(&format!("{{dedup --state,add}} s.koel {options}"), "a\n", *code, "", said);
    }
}
