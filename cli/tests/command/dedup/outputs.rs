//! An output file is replaced as a whole, or not at all.

use crate::common::*;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn an_output_stays_if_no_input_can_be_read() {
    let place = Place::new();
    place.write("important.txt", b"important\n");
    for words in [
        "dedup nosuch.txt -o important.txt",
        "dedup --count nosuch.txt -o important.txt",
        "dedup --lossless nosuch.txt nosuch.gz -o important.txt",
    ] {
        let ran = place.koel(words);
        assert_eq!(ran.code, Some(2), "{words}");
        assert!(ran.stderr.contains("important.txt: left as it was"), "{words}: {}", ran.stderr);
        assert_eq!(place.read("important.txt"), b"important\n", "{words}");
    }
    place.koel_on("add seen.koel", b"a\n");
    let ran = place.koel("query seen.koel nosuch.txt -o important.txt");
    assert_eq!((ran.code, place.read("important.txt")), (Some(2), b"important\n".to_vec()));
    assert_eq!(place.names(), ["important.txt", "seen.koel"]);
    // Of several, one is enough.
    place.write("lines", b"a\na\n");
    let ran = place.koel("dedup nosuch.txt lines -o important.txt");
    assert_eq!((ran.code, place.read("important.txt")), (Some(2), b"a\n".to_vec()));
}

#[test]
fn an_output_may_be_what_another_program_is_still_reading() {
    let place = Place::new();
    let lines = numbered(0..200_000);
    place.write("f", [&lines[..], &lines].concat());
    let script = format!("cat f | {} dedup -q -o f", env!("CARGO_BIN_EXE_koel"));
    let mut shell = std::process::Command::new("sh");
    let ran = run(shell.args(["-c", &script]).current_dir(place.path("")), b"");
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    assert_same(&place.read("f"), &lines, "f");
    assert_eq!(place.names(), ["f"]);
}

#[test]
fn a_run_that_is_stopped_leaves_the_output_as_it_was() {
    let place = Place::new();
    place.write("out", b"before\n");
    let mut going = place.start("dedup -o out");
    let mut stdin = going.stdin.take().expect("a pipe");
    stdin.write_all(&numbered(0..200_000)).expect("a reader");
    wait_until("something is written", || place.names().len() == 2);
    going.signal(rustix::process::Signal::INT);
    let (status, stderr) = going.wait();
    assert_eq!(ran(status, Vec::new(), stderr).signal, Some(2));
    assert_eq!((place.read("out"), place.names()), (b"before\n".to_vec(), vec!["out".into()]));
}

#[test]
fn an_output_keeps_its_mode_and_links_to_it() {
    let place = Place::new();
    place.write("real", b"before\n");
    fs::set_permissions(place.path("real"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real", place.path("link")).unwrap();
    assert_eq!(place.koel_on("dedup -o link", b"a\na\n").code, Some(0));
    assert!(fs::symlink_metadata(place.path("link")).unwrap().is_symlink());
    assert_eq!(place.read("real"), b"a\n");
    let mode = |name| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("real"), 0o640);
    assert_eq!(place.koel_on("dedup -o new", b"a\n").code, Some(0));
    place.write("usual", b"");
    assert_eq!(mode("new"), mode("usual"));
}

#[test]
fn a_file_is_rewritten_in_place() {
    let place = Place::new();
    place.write("f", b"b\na\nb\na\n\nc");
    let ran = place.koel("dedup --in-place f");
    assert_eq!((ran.code, &*ran.stdout), (Some(0), &b""[..]), "{}", ran.stderr);
    assert_eq!(place.read("f"), b"b\na\n\nc\n");
    place.koel_on("dedup -o big", &numbered(0..100_000).repeat(2));
    assert_eq!(place.koel("dedup -d --in-place big").code, Some(0));
    assert_eq!(place.read("big"), b"");
    place.write("verified", numbered(0..100_000).repeat(2));
    assert_eq!(place.koel("dedup --rate 0.2 --lossless --in-place verified").code, Some(0));
    assert_eq!(place.read("verified").len(), numbered(0..100_000).len());
    assert_eq!(place.names(), ["big", "f", "verified"]);
}

#[test]
fn a_file_that_cannot_be_read_to_its_end_is_not_rewritten() {
    let place = Place::new();
    let lines = [&b"a\na\n"[..], &[b'x'; 2_000], b"\n"].concat();
    place.write("f", &lines);
    for (words, said) in [
        ("dedup --in-place --max-line 1K f", "line 3 is longer"),
        ("dedup --in-place nosuch", "No such file"),
        ("dedup --in-place f f", "takes one FILE"),
        ("dedup --in-place -", "takes one FILE"),
        ("dedup --in-place f -o g", "cannot be used with"),
    ] {
        let ran = place.koel(words);
        assert_eq!(ran.code, Some(2), "{words}");
        assert!(ran.stderr.contains(said), "{words}: {}", ran.stderr);
        assert!(place.read("f") == lines, "{words}");
    }
    assert_eq!(place.names(), ["f"]);
}
