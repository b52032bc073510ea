//! One process at a time can use a state: a second process is refused, and the first continues.

use crate::common::*;
use std::os::unix::fs::symlink;

/// Starts a run that has claimed the state and written one line.
fn first(place: &Place) -> Going {
    let mut first = place.start("dedup --state seen.koel");
    let line = if is_there(&place.path("seen.koel")) { b"third\n" } else { b"first\n" };
    first.passes(line);
    first
}

#[test]
fn a_second_process_is_refused_and_the_first_continues() {
    let place = Place::new();
    let mut first = first(&place);
    symlink("seen.koel", place.path("link.koel")).unwrap();
    let process = format!("process {} is using it", first.child.id());
    place.assert_refused(&[
        ("dedup --state {seen.koel,./link.koel}", &process),
        ("{add,forget,compact} seen.koel", &process),
    ]);
    // Commands that only read the state are not refused.
    place.row("query seen.koel", "second\n", 1, "", "");
    place.row("dedup --count --state seen.koel", "second\n", 0, "1\n", "");
    place.ok("info seen.koel", "");
    first.passes(b"second\n");
    first.end();
    place.row("dedup --state link.koel", "first\nsecond\n", 0, "", "");
    assert_eq!(place.names(), ["link.koel", "seen.koel"]);
    assert!(place.path("link.koel").is_symlink(), "a link stays a link");
}

#[test]
fn a_second_process_may_wait_for_the_first() {
    let place = Place::new();
    let first_one = first(&place);
    place.assert_refused(&[("add --wait 0.3 seen.koel", "is using it")]);
    let mut second = place.start("dedup --wait 60 --state seen.koel");
    second.feed(b"first\nsecond\n");
    std::thread::sleep(std::time::Duration::from_millis(200));
    first_one.end();
    drop(second.stdin.take());
    assert_eq!(second.next(7), b"second\n");
    second.end();
    assert_eq!(place.known("seen.koel", b"first\nsecond\n"), b"first\nsecond\n");
    let third = first(&place);
    let compact = place.start("compact --json --wait 60 seen.koel");
    std::thread::sleep(std::time::Duration::from_millis(200));
    third.end();
    has(&serde_json::from_str(&compact.end()).unwrap(), json!({ "known": 3, "unchanged": true }));
}

#[test]
fn a_claim_of_a_killed_process_is_taken_over() {
    let place = Place::new();
    let first = first(&place);
    first.is_idle();
    assert_eq!(place.names(), [".seen.koel.koel-claim", "seen.koel"]);
    first.end_by(Signal::KILL);
    assert!(is_there(&place.path(".seen.koel.koel-claim")), "it had no time to remove it");
    place.row("dedup --state seen.koel", "first\nsecond\n", 0, "first\nsecond\n", "");
    assert_eq!(place.names(), ["seen.koel"]);
}

#[test]
fn states_of_several_names_do_not_get_in_each_others_way() {
    let place = Place::new();
    let _first = first(&place);
    // A name that is too long to be extended.
    let long = "x".repeat(250);
    place.row(&format!("dedup --state {{other.koel,{long}}}"), "a\n", 0, "a\n", "");
}

#[test]
fn what_has_the_name_of_a_claim_and_is_none_is_refused_and_left_alone() {
    let place = Place::new();
    let claim = ".seen.koel.koel-claim";
    place.write("victim", b"17\n");
    for plant in [
        "ln -s victim CLAIM",
        "ln -s nothing CLAIM",
        "ln victim CLAIM",
        "mkdir CLAIM",
        "mkfifo CLAIM",
        "echo important > CLAIM",
    ] {
        shell(&place, &plant.replace("CLAIM", claim));
        let said = "/.seen.koel.koel-claim is in the way, where its lock file has to be, and is no lock file";
        place.assert_refused(&[("{add,dedup --state,forget} seen.koel", said)]);
        assert_eq!(place.names(), [claim, "victim"], "{plant}");
        shell(&place, &"rm -r CLAIM".replace("CLAIM", claim));
    }
    // What a killed process left is no obstacle, even if it had no time to write its id.
    for left in ["", "123456\n"] {
        place.write(claim, left);
        place.ok("add seen.koel", "a\n");
        assert!(!is_there(&place.path(claim)));
    }
}
