//! A state that has lost most of its lines becomes small again.

use crate::common::*;
use koel::{ConcurrentCuckooFilter, StableHash};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

const ALL: u32 = 300_000;
const LEFT: u32 = 20_000;

/// Makes a state of many lines that has lost most of them.
fn make_roomy_state(place: &Place, name: &str) {
    place.make_state(name);
    place.row(&format!("add -q {name}"), numbered(0..ALL), 0, "", "");
    place.row(&format!("forget -q {name}"), numbered(LEFT..ALL), 0, "", "");
}

fn memory(place: &Place, state: &str) -> u64 {
    place.info(state)["memory_bytes"].as_u64().expect("a number")
}

/// What a file is, down to the time of its last change.
fn identity(place: &Place, name: &str) -> (Vec<u8>, u64, SystemTime) {
    let about = fs::metadata(place.path(name)).expect(name);
    (place.read(name), about.ino(), about.modified().expect("a time"))
}

#[test]
fn a_state_that_has_lost_most_of_its_lines_becomes_small() {
    let place = Place::new();
    make_roomy_state(&place, "seen.koel");
    let (file, before) = (place.read("seen.koel").len(), memory(&place, "seen.koel"));
    let report = place.json("compact seen.koel", "");
    let of = |field: &str| report[field].as_u64().expect("a number");
    assert!(of("memory_bytes") < of("memory_bytes_before") / 2, "{report}");
    has(&report, json!({ "known": LEFT, "unchanged": false }));
    assert!(report["rate"].as_f64().is_some_and(|rate| rate < 1e-6), "{report}");
    assert!(memory(&place, "seen.koel") < before / 2);
    assert!(place.read("seen.koel").len() < file / 2);
    assert_eq!(place.names(), ["seen.koel"]);

    // A line that was forgotten may be taken for another one, which is rare.
    assert_eq!(place.known("seen.koel", &numbered(0..LEFT)), numbered(0..LEFT));
    let of_others = place.known("seen.koel", &numbered(LEFT..ALL));
    assert!(lines_of(&of_others).len() <= 2, "{}", String::from_utf8_lossy(&of_others));

    // What is small already is left as it is.
    place.make_state("empty.koel");
    let before = ["seen.koel", "empty.koel"].map(|name| identity(&place, name));
    has(&place.json("compact --quiet seen.koel", ""), json!({ "unchanged": true }));
    place.row("compact --quiet seen.koel empty.koel", "", 0, "", "");
    place.shows("compact seen.koel", "", 0, "koel: seen.koel still has 20,000 lines; ");
    place.shows("compact empty.koel seen.koel", "", 0, "koel: empty.koel still has 0 lines; ");
    assert!(["seen.koel", "empty.koel"].map(|name| identity(&place, name)) == before);

    // To forget the last lines has made it small already. It stays a table, if a small one.
    place.ok("forget -q seen.koel", numbered(0..LEFT));
    has(&place.json("compact seen.koel", ""), json!({ "unchanged": true, "known": 0 }));
    assert!(memory(&place, "seen.koel") < 200_000 && place.read("seen.koel").len() < 200_000);
}

#[test]
fn of_several_states_each_is_reported_and_what_is_none_does_not_stop_the_others() {
    let place = Place::new();
    make_roomy_state(&place, "seen.koel");
    place.write("text.koel", b"not a state");
    fs::create_dir(place.path("folder")).expect("a folder");
    let builder = ConcurrentCuckooFilter::builder().capacity(10).hasher(StableHash::with_seed(7));
    builder.build().expect("a filter").save(place.path("fixed.koel")).expect("a file");
    let before = place.read("seen.koel").len();
    let ran = place.koel("compact --json missing.koel text.koel folder fixed.koel - seen.koel");
    assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{}", ran.stderr);
    let said: Vec<_> = ran.stderr.lines().collect();
    for (line, start) in said.iter().zip([
        "koel: missing.koel: no such state; ",
        "koel: text.koel: ",
        "koel: folder: it is a folder, ",
        "koel: fixed.koel: it holds a filter of fixed size, ",
        "koel: a state must be a file, ",
        "{\"known\":20000,",
    ]) {
        assert!(line.starts_with(start), "{line}");
    }
    assert_eq!(said.len(), 6, "{said:?}");
    assert!(place.read("seen.koel").len() < before / 2);
    assert_eq!(place.read("text.koel"), b"not a state");
    assert_eq!(place.names(), ["fixed.koel", "folder", "seen.koel", "text.koel"]);
    place.assert_refused(&[
        ("compact --quiet missing.koel", "koel: missing.koel: no such state"),
        ("compact", ""),
    ]);
}

#[test]
fn lines_that_are_due_go_first() {
    let place = Place::new();
    let line = |age| move |line| (age, format!("line number {line}"));
    // The later ones came while the older ones were still there.
    place.make_aged_state("seen.koel", (LEFT..ALL).map(line(17)).chain((0..LEFT).map(line(4))));
    let report = place.json("compact seen.koel", "");
    let of = |field: &str| report[field].as_u64().expect("a number");
    assert_eq!(of("known"), u64::from(LEFT), "{report}");
    assert!(of("memory_bytes") < of("memory_bytes_before") / 2, "{report}");
    assert_eq!(place.known("seen.koel", &numbered(0..LEFT)), numbered(0..LEFT));
    let before = identity(&place, "seen.koel");
    has(&place.json("compact seen.koel", ""), json!({ "unchanged": true }));
    assert!(identity(&place, "seen.koel") == before);
}
