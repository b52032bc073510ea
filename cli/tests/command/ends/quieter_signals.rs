//! Ignored signals, and a signal in the second pass of `--lossless`.

use crate::common::*;
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

#[test]
fn a_signal_that_was_ignored_before_stays_so() {
    let place = Place::new();
    let mut command = Command::new("sh");
    let koel = env!("CARGO_BIN_EXE_koel");
    command.args(["-c", "trap '' HUP; exec \"$0\" dedup --json", koel]);
    let mut going = Going::start(command.current_dir(place.path("")));
    going.feed(b"a\n");
    assert_eq!(going.next(2), b"a\n");
    going.signal(Signal::HUP);
    going.feed(b"b\n");
    assert_eq!(going.next(2), b"b\n");
    drop(going.stdin.take());
    let (status, stderr) = going.wait();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(stderr.starts_with(r#"{"lines":2,"new":2,"#), "{stderr}");
}

#[test]
fn a_signal_in_the_second_pass_says_that_lines_may_be_missing() {
    let place = Place::new();
    place.write("lines", numbered(0..50_000).repeat(2));
    // Repeated lines are written in the second pass, and not all of them are read.
    let mut going = place.start("dedup --lossless --repeated lines");
    going.next(1);
    going.signal(Signal::INT);
    let (status, stderr) = going.wait();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{stderr}");
    assert!(stderr.contains("ended in the second pass"), "{stderr}");
}

#[test]
fn a_signal_in_the_second_pass_leaves_the_output_as_it_was() {
    let place = Place::new();
    // The second pass takes a while.
    let lines = padded(0..rounds(400_000, 1_000_000));
    place.write("lines", [&lines[..], &lines].concat());
    for (words, output) in
        [("dedup --lossless lines -o out", "out"), ("dedup --lossless --in-place lines", "lines")]
    {
        let before = if output == "lines" { place.read("lines") } else { b"before\n".to_vec() };
        place.write(output, &before);
        let names = place.names();
        let mut command = place.command(&words.split(' ').collect::<Vec<_>>());
        let temporary = place.path("temporary");
        std::fs::create_dir(&temporary).unwrap();
        let going = Going::start(command.env("TMPDIR", &temporary));
        // Its two files are joined by those of the parts.
        let files = format!("/proc/{}/fd", going.child.id());
        let is_temporary = |file: &std::fs::DirEntry| {
            let to = std::fs::read_link(file.path()).unwrap_or_default();
            to.starts_with(&temporary)
        };
        wait_until("the second pass", || {
            let files = std::fs::read_dir(&files).into_iter().flatten().flatten();
            files.filter(is_temporary).count() > 2
        });
        going.signal(Signal::INT);
        let (status, stderr) = going.wait();
        std::fs::remove_dir(&temporary).unwrap();
        assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{words}: {stderr}");
        assert!(stderr.contains(&format!("koel: {output}: left as it was")), "{words}: {stderr}");
        assert_same(&place.read(output), &before, words);
        assert_eq!(place.names(), names, "{words}");
    }
}
