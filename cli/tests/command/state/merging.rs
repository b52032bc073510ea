//! States that were made with one seed become one.

use crate::common::*;

fn lines(from: u32, to: u32) -> Vec<u8> {
    (from..to).flat_map(|line| format!("line {line}\n").into_bytes()).collect()
}

/// Adds lines to a state that is made with these options.
fn add(place: &Place, state: &str, options: &str, lines: &[u8]) {
    let ran = place.koel_on(&format!("add -q {state} {options}"), lines);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{state}");
}

/// Runs a merge that has to be refused with this message, and changes nothing.
fn refused(place: &Place, words: &str, message: &str) {
    let before: Vec<_> =
        place.names().iter().map(|name| (name.clone(), place.read(name))).collect();
    let ran = place.koel(words);
    assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{words}: {}", ran.stderr);
    assert!(ran.stderr.contains(message), "{words}: {}", ran.stderr);
    for (name, bytes) in before {
        assert_eq!(place.read(&name), bytes, "{words}: {name}");
    }
}

#[test]
fn workers_that_went_apart_know_together_what_either_saw() {
    let place = Place::new();
    // A state of one shard, one of several, and an empty one.
    add(&place, "few.koel", "--seed 7", &lines(0, 2_000));
    add(&place, "many.koel", "--seed 7", &lines(1_000, 120_000));
    add(&place, "none.koel", "--seed 7", b"");
    let ran = place.koel("merge --json seen.koel few.koel many.koel none.koel");
    assert_eq!((ran.code, ran.stdout.len()), (Some(0), 0), "{}", ran.stderr);
    assert_eq!(json(&ran)["states"], 3);
    assert_eq!(place.known("seen.koel", &lines(0, 120_000)), lines(0, 120_000));
    assert_eq!(place.known("seen.koel", &lines(200_000, 201_000)), b"");

    // What is merged already changes nothing.
    let before = place.read("seen.koel");
    let ran = place.koel("merge --json seen.koel many.koel");
    let report: serde_json::Value = serde_json::from_str(&ran.stderr).expect("JSON");
    assert_eq!((&report["added"], &report["unchanged"]), (&0.into(), &true.into()));
    assert_eq!(report["states"], 1);
    assert_eq!(place.read("seen.koel"), before);

    // It is a state like any other.
    let ran = place.koel_on("dedup -q --state seen.koel", &lines(119_990, 120_010));
    assert_eq!(ran.stdout, lines(120_000, 120_010));
    let ran = place.koel("merge -q few.koel seen.koel");
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    assert_eq!(place.known("few.koel", &lines(0, 120_010)), lines(0, 120_010));
}

#[test]
fn states_that_differ_are_refused_with_the_reason() {
    let place = Place::new();
    add(&place, "a.koel", "--seed 7", b"one\n");
    let others = [
        ("--seed 8", "b.koel: this state has another seed than the others"),
        ("", "b.koel: this state has another seed than the others"),
        ("--seed 7 --rate 0.01", "b.koel: this state stores "),
        ("--seed 7 --capacity 100000", "this state was made for 100,000 lines, and the others for"),
        ("--seed 7 --url", "b.koel: this state compares URLs (--url), and the others lines"),
        (
            "--seed 7 --forget-after 30d",
            "b.koel: this state forgets lines after 30d, and the others never",
        ),
    ];
    for (options, message) in others {
        add(&place, "b.koel", options, b"two\n");
        refused(&place, "merge out.koel a.koel b.koel", message);
        refused(&place, "merge a.koel b.koel", "nothing was saved");
        assert_eq!(place.names().iter().filter(|name| *name == "out.koel").count(), 0);
        std::fs::remove_file(place.path("b.koel")).expect("a state");
    }
    add(&place, "day.koel", "--seed 7 --forget-after 1d", b"three\n");
    add(&place, "month.koel", "--seed 7 --forget-after 30d", b"four\n");
    let message = "month.koel: this state forgets lines after 30d, and the others after 1d";
    refused(&place, "merge day.koel month.koel", message);
    refused(&place, "merge out.koel month.koel day.koel", "after 1d, and the others after 30d");
    refused(&place, "merge out.koel a.koel missing.koel", "missing.koel: no such state");
    place.write("text.koel", b"not a state");
    refused(&place, "merge out.koel text.koel", "text.koel");
    refused(&place, "merge - a.koel", "a state must be a file");
    refused(&place, "merge a.koel", "STATE");
    add(&place, "large.koel", "--seed 7", &lines(0, 100_000));
    refused(&place, "merge --max-memory 256K a.koel large.koel", "raise --max-memory");
    refused(&place, "add --seed 8 a.koel", "another seed");
    refused(&place, "add --seed x c.koel", "a number from 0 to");
}

#[test]
fn a_rate_that_is_higher_than_planned_is_told() {
    let place = Place::new();
    // Each is planned for its own lines.
    for worker in 0..6 {
        let lines = lines(40_000 * worker, 40_000 * (worker + 1));
        add(&place, &format!("{worker}.koel"), "--seed 7 --rate 0.01 --capacity 10000", &lines);
    }
    let ran = place.koel("merge all.koel 0.koel 1.koel 2.koel 3.koel 4.koel 5.koel");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("koel: the rate is "), "{}", ran.stderr);
    let ran = place.koel("merge --json all.koel 0.koel");
    assert!(ran.stderr.contains("\"rate_exceeded\":true"), "{}", ran.stderr);
}

#[test]
fn a_line_stays_as_long_as_where_it_was_seen_last() {
    let place = Place::new();
    // A tick is a second.
    let options = "--seed 7 --forget-after 14s";
    add(&place, "a.koel", options, b"one\ntwo\n");
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    add(&place, "b.koel", options, b"two\nthree\n");
    let ran = place.koel("merge -q a.koel b.koel");
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    let info = place.koel("info --json a.koel");
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).expect("JSON");
    let ticks = info["forgets"]["expiring"].as_array().expect("ticks").clone();
    let items: Vec<u64> = ticks.iter().filter_map(|tick| tick["items"].as_u64()).collect();
    let some: Vec<&u64> = items.iter().filter(|items| **items > 0).collect();
    assert_eq!(some, [&1, &2], "{items:?}");
}
