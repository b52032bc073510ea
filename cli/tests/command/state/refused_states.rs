//! Missing states, files that are not states, and states that do not fit the options are refused
//! and left unchanged.

use crate::common::*;
use koel::{ConcurrentCuckooFilter, Prehashed, SnapshotErrorKind, StableHash};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn what_is_no_state_or_is_not_there_is_refused() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    fs::create_dir(place.path("folder")).unwrap();
    place.write("empty.koel", b"");
    let none = "no such state; koel add or koel dedup --state creates one";
    place.assert_refused(&[
        ("{dedup -s,add,query,info} empty.koel", "empty.koel: it is empty, and a state never is"),
        ("{query,forget,info} missing.koel", &format!("koel: missing.koel: {none}\n")),
        ("{dedup -s,add,forget} no/seen.koel", "no: No such file or directory"),
        ("{dedup --state,add,forget} -", "a state must be a file"),
        (
            "{dedup -s,dedup -c -s,add,forget,query,info} {pipe,/dev/null}",
            ": it is not a regular file, and a state must be a regular file",
        ),
        (
            "{dedup -s,dedup -c -s,add,forget,query,info} {folder,new/}",
            ": it is a folder, and a state must be a regular file",
        ),
    ]);
    // Where it is only read, it may be a mistake.
    let said = format!("koel: missing.koel: {none} (this run does without)\n");
    place.row("dedup --count --state missing.koel", "a\n", 0, "1\n", &said);
    place.row("dedup -d --state missing.koel", "a\n", 0, "", &said);
    // No field of the summary tells it.
    place.ok("dedup --count --json --state missing.koel", "a\n").has(said.trim_end());
    fs::remove_dir(place.path("folder")).unwrap();
    place.ok("add seen.koel", "a\n");
    let said = "this is a state, not lines";
    place.row("dedup{, -, seen.koel}", place.read("seen.koel"), 2, "", said);
}

/// Checks that these commands refuse a state, and do not change it.
#[track_caller]
fn assert_refused(place: &Place, state: &str, why: &str, commands: &str) {
    let words = format!("{{{commands}}} {state}");
    place.assert_refused(&[(&words, why), (&words, &format!("koel: {state}: "))]);
    assert!(place.names().iter().all(|name| !name.ends_with("-claim")));
}

const ALL: &str = "dedup --state,add,forget,query,info";
const CHANGES: &str = "dedup --state,add,forget";

#[test]
fn files_that_are_no_whole_state_are_refused_and_left_alone() {
    let place = Place::new();
    place.koel_on("add seen.koel", &numbered(0..1_000));
    let state = place.read("seen.koel");
    let mut damaged = state.clone();
    damaged[5_000] ^= 4;
    let mut later = state.clone();
    later[8] = 9;
    let sum = StableHash::with_seed(0).hash_bytes(&later[..248]);
    later[248..256].copy_from_slice(&sum.to_le_bytes());
    for (bytes, why) in [
        (&b"https://a.example/\nhttps://b.example/\n"[..], "use a state saved by dedup or add"),
        (&state[..state.len() / 2], "or move it away and make a new one"),
        (&damaged, "or move it away and make a new one"),
        (&later, "version"),
    ] {
        place.write("other", bytes);
        assert_refused(&place, "other", why, ALL);
    }
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
        let info = place.info(name);
        has(&info, json!({ "items": 1, "grows": grows, "hasher": "XXH3-64" }));
    }
    assert_refused(&place, "fixed.koel", "use a state saved by dedup or add", CHANGES);
    place.row("query {fixed,growing}.koel", "another\nan item\n", 0, "an item\n", "");
    place.row("dedup --state growing.koel", "an item\nanother\n", 0, "another\n", "");
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
    place.row("query seen.koel", "another\nnew\n", 0, "another\n", "");
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
    assert_refused(&place, "seen.koel", "it is read-only", CHANGES);
    // It can be queried.
    place.row("query seen.koel", "a\n", 0, "a\n", "");
    place.ok("info seen.koel", "");
}
