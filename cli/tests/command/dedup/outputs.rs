//! An output file is replaced as a whole, or not at all.

use crate::common::*;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

#[test]
fn an_output_stays_if_no_input_can_be_read() {
    let place = Place::new();
    place.write("important.txt", b"important\n");
    place.ok("add seen.koel", b"a\n");
    place.assert_refused(&[
        ("dedup {,--count }nosuch.txt -o important.txt", "important.txt: left as it was"),
        ("dedup --lossless nosuch.txt nosuch.gz -o important.txt", "important.txt: left as it was"),
        ("query seen.koel nosuch.txt -o important.txt", ""),
    ]);
    // Of several, one is enough.
    place.write("lines", b"a\na\n");
    place.row("dedup nosuch.txt lines -o important.txt", "", 2, "", "nosuch.txt");
    assert_eq!(place.read("important.txt"), b"a\n");
    // What is written has no name yet, so it is not read again, as repeated lines without end.
    place.row("dedup -d lines new -o new", "", 2, "", "new: No such file");
    assert_eq!(place.read("new"), b"a\n");
}

/// What a kill leaves is swept by the next run to that output.
#[test]
fn a_run_that_is_stopped_or_killed_leaves_the_output_as_it_was() {
    let place = Place::new();
    for (words, signal) in [
        ("dedup -o out", Signal::KILL),
        ("dedup -o out", Signal::INT),
        ("dedup --lossless -o out", Signal::KILL),
        ("dedup --lossless -o out", Signal::INT),
    ] {
        place.write("out", b"before\n");
        let mut going = place.start(words);
        going.feed(&numbered(0..200_000));
        going.is_idle();
        going.end_by(signal);
        assert_eq!(place.read("out"), b"before\n", "{words}");
        assert_eq!(place.names().len(), if signal == Signal::KILL { 2 } else { 1 }, "{words}");
        place.row("dedup -o out", "a\na\n", 0, "", "");
        assert_eq!((place.read("out"), place.names()), (b"a\n".to_vec(), vec!["out".into()]));
    }
}

#[test]
fn an_output_that_is_removed_during_the_run_is_an_error() {
    let place = Place::new();
    let all = numbered(0..1_000);
    for (words, to) in
        [("dedup -s seen.koel -o out", ""), ("dedup -s seen.koel", "> out"), ("dedup", ">> out")]
    {
        place.make_state("seen.koel");
        place.write("out", b"");
        let mut command = std::process::Command::new("sh");
        let script = format!("exec {} {words} {to}", env!("CARGO_BIN_EXE_koel"));
        command.args(["-c", &script]).current_dir(place.path(""));
        let mut going = Going::start(&mut command);
        going.feed(&all);
        wait_until("the lines", || place.read("out").len() == all.len());
        fs::remove_file(place.path("out")).unwrap();
        drop(going.stdin.take());
        let (status, stderr) = going.wait();
        assert_eq!(status.code(), Some(2), "{words} {to}: {stderr}");
        assert!(stderr.contains("was removed during the run, and the lines in it are lost"));
        assert_eq!(stderr.contains("1,000 lines could not be saved as seen"), words.contains("-s"));
        assert_eq!(place.names(), ["seen.koel"]);
        assert_eq!(place.known("seen.koel", &all), b"");
    }
    // A file that is only moved still has its lines.
    place.write("out", b"");
    let mut going = place.start("dedup -s seen.koel -o out");
    going.feed(&all);
    wait_until("the lines", || place.read("out").len() == all.len());
    fs::rename(place.path("out"), place.path("moved")).unwrap();
    going.end();
    assert_same(&place.known("seen.koel", &all), &all, "what is known");
}

#[test]
fn an_output_may_be_the_input() {
    let place = Place::new();
    let lines = numbered(0..rounds(30_000, 100_000));
    for (options, before, after) in [
        ("", &b"b\na\nb\na\n\nc"[..], &b"b\na\n\nc\n"[..]),
        ("-d", &lines, b""),
        ("--lossless --rate 0.2", &lines.repeat(2), &lines),
    ] {
        place.write("f", before);
        place.row(&format!("dedup {options} f -o f"), "", 0, "", "");
        assert!(set(&place.read("f")) == set(after), "{options}");
        assert_eq!((place.read("f").len(), place.names()), (after.len(), vec!["f".into()]));
    }
    // Another program may still be reading it.
    place.write("f", lines.repeat(2));
    assert_eq!(shell(&place, "cat f | koel dedup -q -o f").code, Some(0));
    assert_same(&place.read("f"), &lines, "f");
    // What could not be read completely would be lost.
    place.write("cut.gz", b"\x1F\x8B");
    place.assert_refused(&[
        ("dedup f cut.gz -o f", "f: left as it was"),
        ("dedup f nosuch -o f", "f: left as it was"),
        ("dedup cut.gz -o cut.gz", "compress"),
        ("dedup {-c,--limit 1,--limit 9000000} f -o f", "f: this is an input, and its lines would"),
    ]);
}

#[test]
fn a_folder_without_room_for_a_new_file_is_reported_and_the_output_stays() {
    let place = Place::new();
    place.write("out", b"b\nb\n");
    place.ok("add seen.koel", b"a\n");
    fs::create_dir(place.path(".out.koel-writing")).unwrap();
    let said = "koel: out: cannot create a file in its folder, where the lines are written";
    place.assert_refused(&[("{dedup,dedup -c,query seen.koel} - -o out", said)]);
}

#[test]
fn an_output_keeps_its_mode_and_links_to_it() {
    let place = Place::new();
    symlink("out", place.path("link")).unwrap();
    place.write("f", b"a\na\n");
    let mode = |name| fs::metadata(place.path(name)).unwrap().mode();
    for words in ["dedup f -o link", "dedup link -o link", "dedup --count f -o out"] {
        place.write("out", b"before\n");
        fs::set_permissions(place.path("out"), fs::Permissions::from_mode(0o642)).unwrap();
        place.ok(words, "");
        assert_eq!(mode("out") & 0o7777, 0o642, "{words}");
        assert!(place.path("link").is_symlink(), "{words}");
    }
    place.ok("dedup f -o new", "");
    assert_eq!(mode("new"), mode("f"));
}

#[test]
fn lines_come_after_those_that_others_have_added() {
    let place = Place::new();
    let mut going = place.start("dedup -s seen.koel -o out");
    let mut wait_for = |line: &[u8], out: &[u8]| {
        going.feed(line);
        wait_until("a line", || fs::read(place.path("out")).is_ok_and(|is| is == out));
    };
    wait_for(b"a\n", b"a\n");
    fs::OpenOptions::new().append(true).open(place.path("out")).unwrap().write_all(b"x\n").unwrap();
    wait_for(b"b\n", b"a\nx\nb\n");
    // No hole appears where somebody has taken lines away.
    place.write("out", b"");
    wait_for(b"c\n", b"c\n");
    going.end();
}
