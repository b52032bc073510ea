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
    command.args(["-c", "trap '' HUP; exec \"$0\" dedup", koel]);
    let mut going = Going::start(command.current_dir(place.path("")));
    going.feed(b"a\n");
    assert_eq!(going.next(2), b"a\n");
    going.signal(Signal::HUP);
    going.feed(b"b\n");
    assert_eq!(going.next(2), b"b\n");
    drop(going.stdin.take());
    let (status, stderr) = going.wait();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(stderr.starts_with("koel: 2 lines, 2 new"), "{stderr}");
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
