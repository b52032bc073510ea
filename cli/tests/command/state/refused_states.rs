//! Missing states, files that are not states, and states that do not fit the options are refused
//! and left unchanged.

use crate::common::*;
use koel::{ConcurrentCuckooFilter, Prehashed, SnapshotErrorKind, StableHash};
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn text(ran: &Ran) -> &str {
    std::str::from_utf8(&ran.stdout).unwrap()
}

#[test]
fn an_empty_file_is_said_to_be_empty() {
    let place = Place::new();
    place.write("seen.koel", b"");
    for words in ["dedup -s seen.koel", "add seen.koel", "query seen.koel", "info seen.koel"] {
        let ran = place.koel_on(words, b"a\n");
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{words}");
        let said = "koel: seen.koel: it is empty; remove it, and dedup makes one\n";
        assert_eq!(ran.stderr, said, "{words}");
    }
}

#[test]
fn only_a_state_that_is_there_can_be_asked() {
    let place = Place::new();
    for words in ["query missing.koel", "forget missing.koel", "info missing.koel"] {
        let ran = place.koel_on(words, b"a\n");
        assert_eq!((ran.code, text(&ran)), (Some(2), ""), "{words}");
        let said =
            "koel: missing.koel: no such state; koel add or koel dedup --state creates one\n";
        assert_eq!(ran.stderr, said, "{words}");
    }
    // Where it is only read, it may be a mistake.
    for words in ["dedup --count --state missing.koel", "dedup -d --state missing.koel"] {
        let ran = place.koel_on(words, b"a\n");
        assert_eq!(ran.code, Some(0));
        let said = "koel: missing.koel: no such state; koel add or koel dedup --state creates one (this run does without)\n";
        assert!(ran.stderr.starts_with(said), "{words}: {}", ran.stderr);
    }
    assert!(place.names().is_empty());
}

#[test]
fn a_state_in_a_folder_that_is_not_there_is_refused() {
    let place = Place::new();
    for words in ["dedup --state no/seen.koel", "add no/seen.koel", "forget no/seen.koel"] {
        let ran = place.koel_on(words, b"a\n");
        assert_eq!((ran.code, text(&ran)), (Some(2), ""), "{words}");
        assert!(ran.stderr.contains("no: No such file or directory"), "{words}: {}", ran.stderr);
    }
    assert!(place.names().is_empty());
}

/// Checks that these commands refuse a state, and do not change it.
#[track_caller]
fn assert_refused(place: &Place, state: &str, why: &str, commands: &[&str]) {
    let before = place.read(state);
    for command in commands {
        let ran = place.koel_on(&format!("{command} {state}"), b"a\n");
        assert_eq!((ran.code, text(&ran)), (Some(2), ""), "{command} {state}");
        assert!(ran.stderr.starts_with(&format!("koel: {state}: ")), "{}", ran.stderr);
        assert!(ran.stderr.contains(why), "{command} {state}: {}", ran.stderr);
        for internal in ["panicked", "`", "os error"] {
            assert!(!ran.stderr.contains(internal), "{command} {state}: {}", ran.stderr);
        }
    }
    assert!(place.read(state) == before, "{state} has changed");
    assert!(place.names().iter().all(|name| !name.ends_with("-claim")));
}

const ALL: [&str; 5] = ["dedup --state", "add", "forget", "query", "info"];

#[test]
fn files_that_are_no_whole_state_are_refused_and_left_alone() {
    let place = Place::new();
    place.koel_on("add seen.koel", &numbered(0..1_000));
    let state = place.read("seen.koel");
    place.write("text.txt", b"https://a.example/\nhttps://b.example/\n");
    assert_refused(&place, "text.txt", "", &ALL);
    place.write("empty", b"");
    assert_refused(&place, "empty", "", &ALL);
    for length in [100, state.len() / 2, state.len() - 1] {
        place.write("cut", &state[..length]);
        assert_refused(&place, "cut", "or move it away and make a new one", &ALL);
    }
    for at in [20, 100, 5_000, state.len() / 2, state.len() - 1] {
        let mut damaged = state.clone();
        damaged[at] ^= 4;
        place.write("damaged", damaged);
        assert_refused(&place, "damaged", "or move it away and make a new one", &ALL);
    }
}

#[test]
fn a_state_of_a_later_version_is_refused_as_that() {
    let place = Place::new();
    place.koel_on("add seen.koel", b"a\n");
    let mut state = place.read("seen.koel");
    state[8] = 9;
    let sum = StableHash::with_seed(0).hash_bytes(&state[..200]);
    state[200..208].copy_from_slice(&sum.to_le_bytes());
    place.write("later.koel", state);
    assert_refused(&place, "later.koel", "version", &ALL);
}

#[test]
fn filters_of_other_programs_are_shown_and_asked_and_added_to_if_they_grow() {
    let place = Place::new();
    let builder = || {
        let builder = ConcurrentCuckooFilter::builder().capacity(1_000);
        builder.false_positive_rate(1e-4).hasher(StableHash::with_seed(7))
    };
    let fixed = builder().build().unwrap();
    fixed.insert("an item").unwrap();
    fixed.save(place.path("fixed.koel")).unwrap();
    let growing = builder().growing().build().unwrap();
    growing.insert("an item").unwrap();
    growing.save(place.path("growing.koel")).unwrap();
    for (name, grows) in [("fixed.koel", false), ("growing.koel", true)] {
        let ran = place.koel(&format!("info --json {name}"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let info: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
        assert_eq!((&info["items"], &info["grows"]), (&1.into(), &grows.into()));
        assert_eq!(info["hasher"], "XXH3-64");
    }
    assert_refused(&place, "fixed.koel", "use a state saved by dedup or add", &ALL[..3]);
    for name in ["fixed.koel", "growing.koel"] {
        let ran = place.koel_on(&format!("query {name}"), b"another\nan item\n");
        assert_eq!((ran.code, &ran.stdout[..]), (Some(0), &b"an item\n"[..]), "{}", ran.stderr);
    }
    let ran = place.koel_on("dedup --state growing.koel", b"an item\nanother\n");
    assert_eq!((ran.code, &ran.stdout[..]), (Some(0), &b"another\n"[..]), "{}", ran.stderr);
}

#[test]
fn programs_load_states_of_lines_and_find_them_as_strings_and_as_bytes() {
    let place = Place::new();
    place.koel_on("dedup --state seen.koel", b"a line\n\xFF\xFE\n");
    let seen = ConcurrentCuckooFilter::<StableHash>::load(place.path("seen.koel")).unwrap();
    assert!(seen.contains("a line") && seen.contains(&b"a line"[..]));
    assert!(seen.contains(&b"\xFF\xFE"[..]) && !seen.contains("another"));
    assert!(seen.contains(&Prehashed(seen.hasher().hash_bytes(b"a line"))));
    seen.insert(&String::from("another")).unwrap();
    seen.save(place.path("seen.koel")).unwrap();
    assert_eq!(place.koel_on("query seen.koel", b"another\nnew\n").stdout, b"another\n");
    // URLs are another matter: what a URL is equal to is not known to the library.
    place.koel_on("dedup --url --state urls.koel", b"https://a.example\n");
    let error = ConcurrentCuckooFilter::<StableHash>::load(place.path("urls.koel")).unwrap_err();
    assert_eq!(error.kind(), SnapshotErrorKind::WrongHasher);
}

#[test]
fn a_read_only_state_is_not_replaced() {
    let place = Place::new();
    place.koel_on("add seen.koel", b"a\n");
    fs::set_permissions(place.path("seen.koel"), fs::Permissions::from_mode(0o444)).unwrap();
    assert_refused(&place, "seen.koel", "it is read-only", &ALL[..3]);
    // It can be queried.
    assert_eq!(place.koel_on("query seen.koel", b"a\n").code, Some(0));
    assert_eq!(place.koel("info seen.koel").code, Some(0));
}

#[test]
fn the_rate_of_a_state_cannot_be_lowered() {
    let place = Place::new();
    place.koel_on("dedup --rate 0.001 --state seen.koel", b"a\n");
    assert_refused(&place, "seen.koel", "cannot be lowered", &["dedup --rate 1e-6 --state"]);
    assert_refused(&place, "seen.koel", "omit --rate", &["add --rate 1e-6"]);
    for options in ["", "--rate 0.001", "--rate 0.1"] {
        let ran = place.koel_on(&format!("dedup --state seen.koel {options}"), b"a\n");
        assert_eq!((ran.code, text(&ran)), (Some(0), ""), "{options}: {}", ran.stderr);
    }
}

#[test]
fn the_same_options_can_be_given_in_the_next_run() {
    let place = Place::new();
    let rates = ["2e-8", "0.9", "1e-6", "1e-7", "1e-4", "0.01", "0.3"];
    for rate in &rates[..rounds(1, 7)] {
        for capacity in ["", "--capacity 1", "--capacity 100_000", "--capacity 3_000_000"] {
            let words = format!("dedup --rate {rate} {capacity} --state seen.koel");
            for _ in 0..2 {
                let ran = place.koel_on(&words, b"a\n");
                assert_eq!(ran.code, Some(0), "{words}: {}", ran.stderr);
            }
            fs::remove_file(place.path("seen.koel")).unwrap();
        }
    }
}
