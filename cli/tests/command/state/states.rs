//! The commands that use a state: their output, exit codes and summaries.

use crate::common::*;
use std::fs;

#[test]
fn query_writes_what_was_seen_or_was_not_each_time_and_says_so_by_its_exit_code() {
    let place = Place::new();
    place.ok("add seen.koel", "a\nb\n");
    let before = place.all();
    let lines = "c\na\r\nd\na\nb";
    for (words, lines, code, output) in [
        ("query seen.koel {,--quiet}", lines, 0, "a\r\na\nb\n"),
        ("query seen.koel --invert", lines, 0, "c\nd\n"),
        ("query seen.koel -v --count", lines, 0, "2\n"),
        ("query seen.koel --count", lines, 0, "3\n"),
        ("query seen.koel", "x\n", 1, ""),
        ("query seen.koel", "", 1, ""),
        ("query seen.koel --count", "x\n", 1, "0\n"),
        ("query seen.koel --invert --count", "", 1, "0\n"),
        ("query seen.koel --invert", "x\n", 0, "x\n"),
        ("query seen.koel --invert", "a\n", 1, ""),
    ] {
        place.row(words, lines, code, output, "");
    }
    place.row("query seen.koel - missing", "a\n", 2, "a\n", "missing: No such file");
    assert!(place.all() == before);
    place.row("query --output out seen.koel", lines, 0, "", "");
    assert_eq!(place.read("out"), b"a\r\na\nb\n");
    let said = "koel: 5 lines, 3 seen, 2 not seen; seen.koel has 2 lines; ";
    place.shows("query seen.koel", lines, 0, said);
}

#[test]
fn json_of_all_commands_has_every_field() {
    let place = Place::new();
    let all = "bytes end known lines memory_bytes not_urls rate rate_exceeded seconds state too_long \
        unchanged unreadable without_field";
    let of_dedup = "compared expected_drops new recovered repeated saved";
    for (words, own, output, fields_of_it) in [
        ("add", "added", "", json!({ "added": 2, "known": 2 })),
        ("query", "seen", "a\nb\na\n", json!({ "seen": 3, "known": 2 })),
        ("forget", "forgotten kept", "", json!({ "forgotten": 2, "kept": 0, "known": 0 })),
        ("dedup -s", of_dedup, "a\nb\n", json!({ "new": 2, "repeated": 1, "recovered": null })),
    ] {
        let ran = place.ok(&format!("{words} seen.koel --json"), "a\nb\na\n");
        assert_eq!((ran.stderr.lines().count(), ran.text()), (1, output), "{words}");
        let summary = json(&ran);
        let mut names: Vec<&str> = own.split(' ').chain(all.split_whitespace()).collect();
        names.sort_unstable();
        assert_eq!(fields(&summary), names.join(" "), "{words}");
        has(&summary, fields_of_it);
        has(&summary, json!({ "lines": 3, "bytes": 6, "state": "seen.koel", "unreadable": 0 }));
        has(&summary, json!({ "not_urls": null, "without_field": null, "end": "complete" }));
    }
}

#[test]
fn what_is_added_is_seen_and_what_is_forgotten_is_new_again() {
    let place = Place::new();
    place.ok("add added.koel", "a\nb\na\n");
    place.make_state("seen.koel");
    place.ok("dedup --state seen.koel", numbered(0..40_000));
    let forgotten = place.json("forget seen.koel", numbered(10_000..20_000));
    has(&forgotten, json!({ "forgotten": 10_000, "known": 30_000 }));
    place.row("dedup --state seen.koel", numbered(0..40_000), 0, numbered(10_000..20_000), "");
    place.row("forget seen.koel missing", "", 2, "", "missing");
    for (words, code, said) in [
        ("add added.koel", 0, "koel: 1 line, 0 added; added.koel still has 2 lines; "),
        ("forget seen.koel", 1, "koel: 1 line, 0 forgotten, 1 not found; "),
    ] {
        place.shows(words, "a\n", code, said);
    }
    place.row("dedup --state added.koel", "a\nb\nc\n", 0, "c\n", "");
}

/// A state that has grown far beyond its plan cannot tell its oldest lines from others any more.
#[test]
fn lines_that_cannot_be_forgotten_are_counted_and_stay_seen() {
    let place = Place::new();
    let lines = numbered(0..300_000);
    place.ok("add --capacity 1 --rate 0.1 seen.koel", &lines);
    let forgotten = place.json("forget seen.koel", &lines);
    let [lines_of_all, yes, kept] =
        ["lines", "forgotten", "kept"].map(|name| forgotten[name].as_u64());
    let (yes, kept) = (yes.unwrap(), kept.unwrap());
    assert!(kept > 1_000 && yes > 250_000 && Some(yes + kept) <= lines_of_all, "{forgotten}");
    place.row("query --count seen.koel", &lines, 0, format!("{kept}\n"), "");
    place.shows("forget seen.koel", &lines, 1, " are too old to be forgotten; ");
}

#[test]
fn one_missing_file_does_not_keep_the_others_from_being_read() {
    let place = Place::new();
    place.write("one", b"a\n");
    place.write("two", b"b\n");
    fs::create_dir(place.path("folder")).unwrap();
    let missing = "koel: missing: No such file or directory\n";
    for (words, code, output, said) in [
        ("dedup --state seen.koel one missing folder two", 2, "a\nb\n", missing),
        ("dedup --count one folder two", 2, "2\n", "koel: folder: Is a directory\n"),
        ("query seen.koel missing one two", 2, "a\nb\n", missing),
        ("{add,forget} seen.koel missing one", 2, "", missing),
        ("query seen.koel one two", 0, "b\n", ""),
    ] {
        place.row(words, "", code, output, said);
    }
}

#[test]
fn info_describes_a_state() {
    let place = Place::new();
    place.make_state("seen.koel");
    place.ok("add seen.koel", numbered(0..20_345));
    let text = place.ok("info seen.koel", "");
    let info = place.info("seen.koel");
    for line in [
        "seen.koel\n  items      20,345\n  file       ",
        "\n  memory     ",
        "\n  stores     ",
        "\n  rate       ",
        "\n  hasher     XXH3-64\n  compares   lines, byte by byte\n",
        "\n  built for  10,000 items, growing up to 8,192 times",
    ] {
        assert!(text.text().contains(line), "{line}: {}", text.text());
    }
    let expected = "capacity compares expected_growth file_bytes fingerprint_bits forgets grows \
        growth hasher items load memory_bytes rate rate_expected splits state \
        unsaved_bytes";
    assert_eq!(fields(&info), expected);
    has(&info, json!({ "state": "seen.koel", "items": 20_345, "compares": "lines, byte by byte" }));
    has(&info, json!({ "file_bytes": place.read("seen.koel").len(), "grows": true }));
    has(&info, json!({ "capacity": 10_000, "expected_growth": 8_192.0 }));
    for (name, range) in [("load", 0.05..=1.0), ("rate", 1e-12..=1e-6), ("growth", 0.5..=2.0)] {
        assert!(range.contains(&info[name].as_f64().unwrap()), "{name}: {info}");
    }
}

#[test]
fn counting_or_writing_what_is_repeated_leaves_a_state_as_it_is() {
    let place = Place::new();
    place.make_state("seen.koel");
    place.ok("add seen.koel", "a\nb\n");
    let before = place.all();
    for (options, output) in [("{--count,-c -d}", "2\n"), ("--repeated", "b\nc\n")] {
        let words = format!("dedup --state seen.koel {options}");
        place.row(&words, "b\nc\nc\nd\n", 0, output, "");
    }
    has(&place.json("dedup -c --state seen.koel", "b\nc\n"), json!({ "saved": false, "known": 3 }));
    // Nor is a state created.
    place.row("dedup --count --state other.koel", "a\n", 0, "1\n", "no such state");
    assert!(place.all() == before, "the state has changed");
    place.row("dedup --state seen.koel", "b\nc\n", 0, "c\n", "");
}

#[test]
fn a_large_state_is_asked_in_its_file_and_damage_is_told_where_an_answer_depends_on_it() {
    let place = Place::new();
    place.ok("add --rate 1e-7 large.koel", numbered(0..600_000));
    let (before, new) = (numbered(0..100_000), numbered(1_000_000..1_100_000));
    place.row("query large.koel", numbered(7..9), 0, numbered(7..9), "");
    place.row("query large.koel", numbered(1_000_000..1_000_001), 1, "", "");
    let mixed = [new, before.clone()].concat();
    // One of the new lines may be taken for a seen one.
    let seen = place.koel_on("query large.koel", &mixed).stdout;
    assert!(seen.ends_with(&before) && seen.len() < before.len() + 5 * b"1000000\n".len());
    let mut damaged = place.read("large.koel");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    place.write("damaged.koel", damaged);
    place.row("query damaged.koel", before, 2, "", "damaged.koel: it is damaged at byte");
    let codes =
        (0..30).map(|line| place.koel_on("query damaged.koel", &numbered(line..line + 1)).code);
    assert!(codes.filter(|code| *code == Some(0)).count() > 3);
}
