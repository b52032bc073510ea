//! A state that has lost most of its lines becomes small again.

use crate::common::*;
use crate::ends::kills::that_has_written;
use koel::{ConcurrentCuckooFilter, StableHash};
use koel_state::window::Window;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

const ALL: u32 = 300_000;
const LEFT: u32 = 20_000;

/// Makes a state of many lines that has lost most of them.
fn make_roomy_state(place: &Place, name: &str) {
    place.make_state(name);
    let ran = place.koel_on(&format!("add -q {name}"), &numbered(0..ALL));
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    let ran = place.koel_on(&format!("forget -q {name}"), &numbered(LEFT..ALL));
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
}

fn memory(place: &Place, state: &str) -> u64 {
    let ran = place.koel(&format!("info --json {state}"));
    let info: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    info["memory_bytes"].as_u64().expect("a number")
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
    let ran = place.koel("compact --json seen.koel");
    assert_eq!((ran.code, ran.stdout.len()), (Some(0), 0), "{}", ran.stderr);
    let report = json(&ran);
    let of = |field: &str| report[field].as_u64().expect("a number");
    assert!(of("memory_bytes") < of("memory_bytes_before") / 2, "{report}");
    assert_eq!((&report["known"], &report["unchanged"]), (&LEFT.into(), &false.into()));
    assert!(report["rate"].as_f64().is_some_and(|rate| rate < 1e-6), "{report}");
    assert!(memory(&place, "seen.koel") < before / 2);
    assert!(place.read("seen.koel").len() < file / 2);
    assert_eq!(place.names(), ["seen.koel"]);

    // A line that was forgotten may be taken for another one, which is rare.
    assert_eq!(place.known("seen.koel", &numbered(0..LEFT)), numbered(0..LEFT));
    let of_others = place.known("seen.koel", &numbered(LEFT..ALL));
    assert!(lines_of(&of_others).len() <= 2, "{}", String::from_utf8_lossy(&of_others));

    // It goes on as any other state, and grows again.
    let ran = place.koel_on("add -q seen.koel", &numbered(0..ALL));
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    assert_eq!(place.known("seen.koel", &numbered(0..ALL)), numbered(0..ALL));
}

#[test]
fn a_state_that_is_small_already_is_left_as_it_is() {
    let place = Place::new();
    make_roomy_state(&place, "seen.koel");
    place.make_state("empty.koel");
    let Some(ran) = place.shown("compact seen.koel") else { return };
    assert_eq!((ran.code, ran.stdout.len()), (Some(0), 0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("koel: seen.koel has 20,000 lines; "), "{}", ran.stderr);
    assert!(ran.stderr.contains(" of memory, ") && ran.stderr.contains(" before; "));
    let before = ["seen.koel", "empty.koel"].map(|name| identity(&place, name));
    let Some(ran) = place.shown("compact seen.koel empty.koel") else { return };
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said: Vec<_> = ran.stderr.lines().collect();
    assert!(said[0].starts_with("koel: seen.koel still has 20,000 lines; "), "{said:?}");
    assert!(said[1].starts_with("koel: empty.koel still has 0 lines; "), "{said:?}");
    assert!(said.iter().all(|line| line.contains(" of memory; ")), "{said:?}");
    let ran = place.koel("compact --quiet --json seen.koel");
    assert_eq!(json(&ran)["unchanged"], true);
    let ran = place.koel("compact --quiet seen.koel empty.koel");
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    assert!(["seen.koel", "empty.koel"].map(|name| identity(&place, name)) == before);
}

#[test]
fn a_state_that_is_emptied_is_small() {
    let place = Place::new();
    make_roomy_state(&place, "seen.koel");
    let before = memory(&place, "seen.koel");
    let ran = place.koel_on("forget -q seen.koel", &numbered(0..LEFT));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = place.koel("compact --json seen.koel");
    // To forget the last lines has made it small already.
    assert_eq!((&json(&ran)["unchanged"], &json(&ran)["known"]), (&true.into(), &0.into()));
    // It stays a table, if a small one.
    assert!(memory(&place, "seen.koel") < before / 10);
    assert!(place.read("seen.koel").len() < 200_000);
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
    let ran = place.koel("compact --quiet missing.koel");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.starts_with("koel: missing.koel: no such state"), "{}", ran.stderr);
    assert_eq!(place.koel("compact").code, Some(2));
}

#[test]
fn a_state_that_another_process_uses_is_refused_or_waited_for() {
    let place = Place::new();
    place.make_state("seen.koel");
    let mut first = that_has_written(&place, "dedup --state seen.koel", &[b"a\n"]);
    let process = format!("process {} is using it", first.child.id());
    let ran = place.koel("compact seen.koel");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains(&process), "{}", ran.stderr);
    let second = place.start("compact --json --wait 60 seen.koel");
    std::thread::sleep(std::time::Duration::from_millis(200));
    drop(first.stdin.take());
    assert_eq!(first.wait().0.code(), Some(0));
    let (status, stderr) = second.wait();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(stderr.starts_with(r#"{"known":1,"#), "{stderr}");
    assert!(stderr.contains(r#""unchanged":true"#), "{stderr}");
}

#[test]
fn what_a_killed_run_has_left_is_taken_in() {
    let place = Place::new();
    make_roomy_state(&place, "seen.koel");
    let going = that_has_written(&place, "dedup -s seen.koel -o out", &[b"a\n", b"b\n"]);
    going.signal(Signal::KILL);
    going.wait();
    assert!(is_there(&place.path(".seen.koel.koel-output")));
    let ran = place.koel("compact --json seen.koel");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(json(&ran)["known"], LEFT + 2);
    assert_eq!(place.names(), ["out", "seen.koel"]);
    assert_eq!(place.known("seen.koel", b"a\nb\nc\n"), b"a\nb\n");
}

#[test]
fn lines_that_are_due_go_first() {
    let place = Place::new();
    // A tick is of two days.
    let window = Window::of_seconds(28 * 86_400);
    let builder = ConcurrentCuckooFilter::builder().capacity(10_000).false_positive_rate(1e-6);
    let builder = builder.hasher(StableHash::with_seed(7)).remembers(window.ticks());
    let filter = builder.growing().expected_growth(128.0).build().expect("a filter");
    let present = window.number_now();
    filter.tick_to(present - 17);
    let insert = |lines: std::ops::Range<u32>| {
        for line in lines {
            filter.insert(&format!("line number {line}")).expect("memory");
        }
    };
    insert(LEFT..ALL);
    filter.tick_to(present - 4);
    insert(0..LEFT);
    // These came while the older ones were still there.
    filter.save(place.path("seen.koel")).expect("a state");
    let ran = place.koel("compact --json seen.koel");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report = json(&ran);
    let of = |field: &str| report[field].as_u64().expect("a number");
    assert_eq!(of("known"), u64::from(LEFT), "{report}");
    assert!(of("memory_bytes") < of("memory_bytes_before") / 2, "{report}");
    assert_eq!(place.known("seen.koel", &numbered(0..LEFT)), numbered(0..LEFT));
    let before = identity(&place, "seen.koel");
    assert_eq!(json(&place.koel("compact --json seen.koel"))["unchanged"], true);
    assert!(identity(&place, "seen.koel") == before);
}
