//! One process at a time can use a state: a second process is refused, and the first continues.

use crate::common::*;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Starts a run that has claimed the state and written one line.
fn first(place: &Place) -> Going {
    let mut first = place.start("dedup --state seen.koel");
    first.feed(b"first\n");
    assert_eq!(first.next(6), b"first\n");
    first
}

#[test]
fn a_second_process_is_refused_and_the_first_continues() {
    let place = Place::new();
    let mut first = first(&place);
    symlink("seen.koel", place.path("link.koel")).unwrap();
    let process = format!("process {} is using it", first.child.id());
    for words in
        ["dedup --state seen.koel", "dedup -s ./link.koel", "add seen.koel", "forget seen.koel"]
    {
        let ran = place.koel_on(words, b"second\n");
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{words}");
        assert!(ran.stderr.contains(&process), "{words}: {}", ran.stderr);
    }
    // Commands that only read the state are not refused.
    assert_eq!(place.koel_on("query seen.koel", b"second\n").code, Some(1));
    assert_eq!(place.koel("info seen.koel").code, Some(0));

    first.feed(b"second\n");
    assert_eq!(first.next(7), b"second\n");
    drop(first.stdin.take());
    let (status, stderr) = first.wait();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert_eq!(place.koel_on("dedup --state link.koel", b"first\nsecond\n").stdout, b"");
    assert_eq!(place.names(), ["link.koel", "seen.koel"]);
    assert!(place.path("link.koel").is_symlink(), "a link stays a link");
}

#[test]
fn a_second_process_may_wait_for_the_first() {
    let place = Place::new();
    let mut first = first(&place);
    let ran = place.koel_on("add --wait 0.3 seen.koel", b"second\n");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("is using it"), "{}", ran.stderr);
    let mut second = place.start("dedup --wait 60 --state seen.koel");
    second.feed(b"first\nsecond\n");
    std::thread::sleep(std::time::Duration::from_millis(200));
    drop(first.stdin.take());
    assert_eq!(first.wait().0.code(), Some(0));
    drop(second.stdin.take());
    assert_eq!(second.next(7), b"second\n");
    assert_eq!(second.wait().0.code(), Some(0));
    assert_eq!(place.known("seen.koel", b"first\nsecond\n"), b"first\nsecond\n");
}

#[test]
fn a_claim_of_a_killed_process_is_taken_over() {
    let place = Place::new();
    let first = first(&place);
    first.is_idle();
    assert_eq!(place.names(), [".seen.koel.koel-claim", "seen.koel"]);
    first.signal(Signal::KILL);
    let (status, _) = first.wait();
    assert_eq!(status.code(), None);
    assert!(is_there(&place.path(".seen.koel.koel-claim")), "it had no time to remove it");
    let ran = place.koel_on("dedup --state seen.koel", b"first\nsecond\n");
    assert_eq!((ran.code, &ran.stdout[..]), (Some(0), &b"first\nsecond\n"[..]), "{}", ran.stderr);
    assert_eq!(place.names(), ["seen.koel"]);
}

#[test]
fn a_claim_is_gone_however_the_run_ends() {
    let place = Place::new();
    for signal in [Signal::INT, Signal::TERM] {
        let first = first(&place);
        first.signal(signal);
        first.wait();
        assert_eq!(place.names(), ["seen.koel"]);
        fs::remove_file(place.path("seen.koel")).unwrap();
    }
    place.koel("dedup --state seen.koel missing");
    assert_eq!(place.names(), ["seen.koel"]);
    place.koel("dedup --state seen.koel --output no/folder");
    assert_eq!(place.names(), ["seen.koel"]);
}

#[test]
fn states_of_several_names_do_not_get_in_each_others_way() {
    let place = Place::new();
    let _first = first(&place);
    assert_eq!(place.koel_on("dedup --state other.koel", b"a\n").stdout, b"a\n");
    // A name that is too long to be extended.
    let long = "x".repeat(250);
    let ran = place.koel_on(&format!("dedup --state {long}"), b"a\n");
    assert_eq!((ran.code, &ran.stdout[..]), (Some(0), &b"a\n"[..]), "{}", ran.stderr);
}

/// Puts something where a claim is to be.
type Plant = fn(&Place, &Path);

#[test]
fn what_has_the_name_of_a_claim_and_is_none_is_refused_and_left_alone() {
    let place = Place::new();
    let claim = place.path(".seen.koel.koel-claim");
    let planted: [(&str, Plant); 6] = [
        ("a link", |place, claim| symlink(place.path("victim"), claim).unwrap()),
        ("a link to nothing", |place, claim| symlink(place.path("nothing"), claim).unwrap()),
        ("a hard link", |place, claim| fs::hard_link(place.path("victim"), claim).unwrap()),
        ("a folder", |_, claim| fs::create_dir(claim).unwrap()),
        ("a pipe", |_, claim| {
            assert!(Command::new("mkfifo").arg(claim).status().unwrap().success());
        }),
        ("another file", |_, claim| fs::write(claim, "important\n").unwrap()),
    ];
    place.write("victim", b"17\n");
    for (what, plant) in planted {
        plant(&place, &claim);
        for words in ["add seen.koel", "dedup --state seen.koel", "forget seen.koel"] {
            let ran = place.koel_on(words, b"a\n");
            assert_eq!((ran.code, &*ran.stdout), (Some(2), &b""[..]), "{what}: {words}");
            assert!(
                ran.stderr.contains("/.seen.koel.koel-claim is in the way"),
                "{what}: {}",
                ran.stderr
            );
            assert!(ran.stderr.contains("remove it"), "{what}: {}", ran.stderr);
        }
        assert_eq!(place.read("victim"), b"17\n", "{what}");
        assert_eq!(place.names(), [".seen.koel.koel-claim", "victim"], "{what}");
        if what == "another file" {
            assert_eq!(place.read(".seen.koel.koel-claim"), b"important\n");
        }
        fs::remove_file(&claim).or_else(|_| fs::remove_dir(&claim)).unwrap();
    }
    // What a killed process left is no obstacle, even if it had no time to write its id.
    for left in ["", "123456\n"] {
        fs::write(&claim, left).unwrap();
        assert_eq!(place.koel_on("add seen.koel", b"a\n").code, Some(0), "{left:?}");
        assert!(!is_there(&claim));
    }
}
