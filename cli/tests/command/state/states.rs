//! The commands that use a state: their output, exit codes and summaries.

use crate::common::*;
use std::fs;

fn text(ran: &Ran) -> &str {
    std::str::from_utf8(&ran.stdout).unwrap()
}

#[test]
fn a_second_run_writes_what_the_first_has_not() {
    let place = Place::new();
    place.make_state("seen.koel");
    let run = |lines: std::ops::Range<u32>, threads| {
        let words = format!("dedup --state seen.koel --threads {threads}");
        place.koel_on(&words, &numbered(lines)).stdout
    };
    assert_same(&run(0..30_000, 2), &numbered(0..30_000), "the first run");
    assert_same(&run(20_000..50_000, 8), &numbered(30_000..50_000), "the second run");
    assert_same(&run(0..50_001, 1), &numbered(50_000..50_001), "the third run");
    assert_eq!(place.names(), ["seen.koel"]);
}

#[test]
fn a_state_that_is_not_there_is_made_even_if_there_are_no_lines() {
    let place = Place::new();
    assert_eq!(place.koel("dedup --state seen.koel").code, Some(0));
    assert_eq!(place.koel("query --invert --count seen.koel").stdout, b"0\n");
    assert_eq!(place.koel("add added.koel").code, Some(0));
    assert_eq!(place.names(), ["added.koel", "seen.koel"]);
}

#[test]
fn query_writes_what_was_seen_or_was_not_each_time() {
    let place = Place::new();
    place.koel_on("add seen.koel", b"a\nb\n");
    let query =
        |words: &str| place.koel_on(&format!("query {words} seen.koel"), b"c\na\r\nd\na\nb");
    assert_eq!(text(&query("")), "a\r\na\nb\n");
    assert_eq!(text(&query("--invert")), "c\nd\n");
    assert_eq!(text(&query("-v --count")), "2\n");
    assert_eq!(text(&query("--count")), "3\n");
    assert_eq!(text(&query("--output out")), "");
    assert_eq!(place.read("out"), b"a\r\na\nb\n");
    // A query changes nothing.
    assert_eq!(text(&query("--invert")), "c\nd\n");
    let Some(ran) = place.shown_on("query seen.koel", b"c\na\r\nd\na\nb") else { return };
    assert!(ran.stderr.starts_with("koel: 5 lines, 3 seen, 2 not seen; seen.koel has 2 lines; "));
    assert_eq!(query("--quiet").stderr, "");
}

#[test]
fn json_of_all_commands_has_every_field() {
    let place = Place::new();
    for (command, answer, yes) in
        [("add", "added", 2), ("query", "seen", 3), ("forget", "forgotten", 2)]
    {
        let ran = place.koel_on(&format!("{command} --json seen.koel"), b"a\nb\na\n");
        assert_eq!((ran.code, ran.stderr.lines().count()), (Some(0), 1), "{command}");
        let summary = json(&ran);
        let expected = "bytes end known lines memory_bytes not_urls rate rate_exceeded seconds state \
            unchanged unreadable without_field";
        assert_eq!(fields(&summary).replace(&format!("{answer} "), ""), expected, "{command}");
        assert_eq!(
            (&summary["lines"], &summary[answer], &summary["bytes"]),
            (&3.into(), &yes.into(), &6.into())
        );
        let known = if command == "forget" { 0 } else { 2 };
        assert_eq!((&summary["known"], &summary["state"]), (&known.into(), &"seen.koel".into()));
        assert_eq!((&summary["unreadable"], &summary["end"]), (&0.into(), &"complete".into()));
    }
}

#[test]
fn query_keeps_the_order_with_all_threads() {
    let place = Place::new();
    place.make_state("seen.koel");
    let (even, odd): (Vec<_>, Vec<_>) =
        (0..60_000).map(|n| numbered(n..n + 1)).enumerate().partition(|(at, _)| at % 2 == 0);
    let join = |lines: Vec<(usize, Vec<u8>)>| -> Vec<u8> {
        lines.into_iter().flat_map(|(_, line)| line).collect()
    };
    let (even, odd) = (join(even), join(odd));
    place.koel_on("add seen.koel", &even);
    for threads in &[8, 1, 2][..rounds(1, 3)] {
        let words = format!("query --threads {threads} seen.koel");
        assert_same(&place.koel_on(&words, &numbered(0..60_000)).stdout, &even, "seen");
        let words = words + " --invert";
        assert_same(&place.koel_on(&words, &numbered(0..60_000)).stdout, &odd, "not seen");
    }
}

#[test]
fn query_says_by_its_exit_code_whether_there_were_some() {
    let place = Place::new();
    place.koel_on("add seen.koel", b"a\n");
    for (words, lines, code) in [
        ("query seen.koel", "a\nb\n", 0),
        ("query seen.koel", "b\n", 1),
        ("query seen.koel", "", 1),
        ("query --count seen.koel", "b\n", 1),
        ("query --count seen.koel", "a\n", 0),
        ("query --invert seen.koel", "b\n", 0),
        ("query --invert seen.koel", "a\n", 1),
        ("query seen.koel - missing", "a\n", 2),
        ("query missing.koel", "a\n", 2),
    ] {
        assert_eq!(place.koel_on(words, lines.as_bytes()).code, Some(code), "{words} < {lines:?}");
    }
}

#[test]
fn what_is_added_is_seen_and_nothing_is_written() {
    let place = Place::new();
    let ran = place.koel_on("add --json seen.koel", b"a\nb\na\n");
    assert_eq!((ran.code, &ran.stdout[..]), (Some(0), &b""[..]));
    let summary = json(&ran);
    assert_eq!((summary["lines"].as_u64(), summary["added"].as_u64()), (Some(3), Some(2)));
    let Some(ran) = place.shown_on("add seen.koel", b"a\n") else { return };
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr.starts_with("koel: 1 line, 0 added; seen.koel still has 2 lines; "),
        "{}",
        ran.stderr
    );
    assert_eq!(place.koel_on("dedup --state seen.koel", b"a\nb\nc\n").stdout, b"c\n");
}

#[test]
fn what_is_forgotten_is_new_again() {
    let place = Place::new();
    place.make_state("seen.koel");
    place.koel_on("dedup --state seen.koel", &numbered(0..40_000));
    let ran = place.koel_on("forget --json seen.koel", &numbered(10_000..20_000));
    assert_eq!((ran.code, &ran.stdout[..]), (Some(0), &b""[..]));
    let summary = json(&ran);
    assert_eq!((&summary["forgotten"], &summary["known"]), (&10_000.into(), &30_000.into()));
    let ran = place.koel_on("dedup --state seen.koel", &numbered(0..40_000));
    assert_same(&ran.stdout, &numbered(10_000..20_000), "what was forgotten");

    let Some(ran) = place.shown_on("forget seen.koel", b"never seen\n") else { return };
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with("koel: 1 line, 0 forgotten, 1 not found; "), "{}", ran.stderr);
    assert_eq!(place.koel_on("forget seen.koel missing", b"").code, Some(2));
}

#[test]
fn one_missing_file_does_not_keep_the_others_from_being_read() {
    let place = Place::new();
    place.write("one", b"a\n");
    place.write("two", b"b\n");
    fs::create_dir(place.path("folder")).unwrap();
    let ran = place.koel("dedup --state seen.koel one missing folder two");
    assert_eq!((ran.code, text(&ran)), (Some(2), "a\nb\n"));
    assert!(ran.stderr.contains("koel: missing: No such file or directory\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("koel: folder: Is a directory\n"), "{}", ran.stderr);
    let ran = place.koel("query seen.koel missing one two");
    assert_eq!((ran.code, text(&ran)), (Some(2), "a\nb\n"));
    assert_eq!(place.koel("add seen.koel missing one").code, Some(2));
    assert_eq!(place.koel("forget seen.koel missing one").code, Some(2));
    let ran = place.koel("query seen.koel one two");
    assert_eq!((ran.code, text(&ran)), (Some(0), "b\n"));
}

#[test]
fn info_describes_a_state() {
    let place = Place::new();
    place.make_state("seen.koel");
    place.koel_on("add seen.koel", &numbered(0..20_345));
    let ran = place.koel("info seen.koel");
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    let info = text(&ran);
    assert!(info.starts_with("seen.koel\n  items      20,345\n  file       "), "{info}");
    for line in ["  memory     ", "  stores     ", "  rate       ", "  hasher     XXH3-64\n"] {
        assert!(info.contains(line), "{line}: {info}");
    }
    assert!(info.contains("  compares   lines, byte by byte\n"), "{info}");
    assert!(info.contains("  built for  10,000 items, growing up to 8,192 times"), "{info}");

    let ran = place.koel("info --json seen.koel");
    let info: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let expected = "capacity compares expected_growth file_bytes fingerprint_bits forgets grows \
        growth hasher items load memory_bytes rate rate_expected splits state \
        unsaved_bytes";
    assert_eq!(fields(&info), expected);
    assert_eq!((&info["state"], &info["items"]), (&"seen.koel".into(), &20_345.into()));
    assert_eq!(info["file_bytes"].as_u64(), Some(place.read("seen.koel").len() as u64));
    assert_eq!((&info["capacity"], &info["expected_growth"]), (&10_000.into(), &8_192.0.into()));
    assert_eq!((&info["compares"], &info["grows"]), (&"lines, byte by byte".into(), &true.into()));
    let between = |name: &str, low: f64, high: f64| {
        let number = info[name].as_f64().unwrap();
        assert!((low..=high).contains(&number), "{name}: {number}");
    };
    between("load", 0.05, 1.0);
    between("fingerprint_bits", 8.0, 32.0);
    between("rate", 1e-12, 1e-6);
    between("rate_expected", 1e-9, 1e-6);
    between("memory_bytes", 1e4, 1e7);
    between("growth", 0.5, 2.0);
}
