//! Pipes as outputs: a reader that leaves early ends the run without an error, and one that comes
//! late misses nothing.

use crate::common::*;
use std::io::Write;

/// More than a pipe holds, and more than circulates in a run.
const LINES: u32 = 400_000;

/// Runs the command, reads the beginning of its output, and closes the pipe.
fn run_and_leave(place: &Place, words: &str, bytes: usize) -> Ran {
    let mut going = place.start(words);
    let read = going.next(bytes);
    going.stop_reading();
    let (status, stderr) = going.wait();
    Ran { code: status.code(), stdout: read, stderr }
}

#[test]
fn a_reader_that_goes_early_ends_the_run_in_peace() {
    let place = Place::new();
    place.write("lines", numbered(0..LINES));
    place.ok("add seen.koel", b"line number 5\n");
    for words in each("{dedup,dedup -s s.koel,query --invert seen.koel} lines") {
        let ran = run_and_leave(&place, &words, 1);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{words}");
    }
    let ran = run_and_leave(&place, "sample 1000000", 1);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
}

#[test]
fn the_summary_counts_what_was_written_before_the_reader_went() {
    let place = Place::new();
    // Each line comes twice, so as many are repeated as are new.
    let lines = lines_of(&numbered(0..LINES))
        .into_iter()
        .flat_map(|line| line.repeat(2))
        .collect::<Vec<u8>>();
    place.write("lines", &lines);
    place.make_state("all.koel");
    place.ok("add all.koel lines", "");
    for words in each("{dedup,dedup -d,dedup -s s.koel,query all.koel,query -v s.koel} lines") {
        let ran = run_and_leave(&place, &format!("{words} --json --threads 1"), 100_000);
        assert_eq!(ran.code, Some(0), "{words}: {}", ran.stderr);
        let json = json(&ran);
        let count = |name: &str| json[name].as_u64().expect("a number");
        let written = lines_of(whole_lines(&ran.stdout)).len() as u64;
        assert!(
            count("lines") >= written && count("lines") < 2 * u64::from(LINES),
            "{words}: {json}"
        );
        assert!(count("bytes") >= 14 * count("lines"), "{words}: {json}");
        if words.starts_with("dedup") {
            let (new, repeated) = (count("new"), count("repeated"));
            let wrote = if words.contains("-d") { repeated } else { new };
            assert!(wrote >= written && new + repeated == count("lines"), "{words}: {json}");
        }
    }
}

#[test]
fn lines_and_bytes_before_the_reader_went_fit_together() {
    let place = Place::new();
    let all = numbered(0..LINES);
    place.write("lines", &all);
    for options in ["", "--state seen.koel"] {
        let ran = run_and_leave(&place, &format!("dedup --json {options} lines"), 30_000);
        let json = json(&ran);
        let lines = json["lines"].as_u64().expect("a number") as usize;
        let bytes: usize = lines_of(&all)[..lines].iter().map(|line| line.len()).sum();
        has(&json, json!({ "new": lines, "repeated": 0, "bytes": bytes, "end": "broken pipe" }));
    }
}

fn whole_lines(text: &[u8]) -> &[u8] {
    &text[..text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)]
}

/// Lines come through a pipe, and in small chunks, most of which are in the pipe when the reader goes.
#[test]
fn lines_that_stay_unread_in_a_pipe_are_not_remembered() {
    let place = Place::new();
    let all = numbered(0..LINES);
    // The capacity of the output, what is read of it, and how.
    for (capacity, bytes, options) in [
        (64 << 10, 43, ""),
        (64 << 10, 100_001, "--threads 1"),
        (64 << 10, 1_000_000, "--threads 8"),
        (1 << 20, 30, ""),
        (4 << 10, 5_000, "--checkpoint 0.01"),
        (64 << 10, 0, "--field 3 --delimiter _"),
    ] {
        place.make_state("seen.koel");
        let words = format!("dedup --json --state seen.koel {options}");
        let mut going = place.start(&words);
        rustix::pipe::fcntl_setpipe_size(going.stdout.as_ref().unwrap(), capacity).unwrap();
        let (mut stdin, fed) = (going.stdin.take().unwrap(), all.clone());
        let feeder = std::thread::spawn(move || stdin.write_all(&fed));
        let read = going.next(bytes);
        going.is_idle();
        going.stop_reading();
        let (status, stderr) = going.wait();
        assert!(feeder.join().unwrap().is_err(), "{options}");
        let ran = Ran { code: status.code(), stdout: read, stderr };
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let read = whole_lines(&ran.stdout);
        assert_same(&place.known("seen.koel", &all), read, options);
        let new = lines_of(read).len();
        assert_eq!(place.info("seen.koel")["items"], new);
        has(&json(&ran), json!({ "new": new, "known": new, "end": "broken pipe" }));
    }
}

#[test]
fn a_reader_that_goes_before_the_end_leaves_lines_that_are_not_remembered() {
    let place = Place::new();
    let long = [&[b'b'; 200_000 + (1 << 20)][..], b"\n"].concat();
    let short = &b"a\nb\nc\n"[..];
    let all = [b"a\n", &long[..], b"c\n"].concat();
    // What comes, how much of it is read, what ends the run, and how much of it is known then.
    for (input, read, signal, known) in [
        (short, 3, None, 2),
        (short, 3, Some(Signal::INT), 2),
        (short, 6, None, 6),
        (&all, 1_000, None, 2),
        (&all, 2 + long.len(), None, 2 + long.len()),
    ] {
        place.make_state("seen.koel");
        let mut going = place.start("dedup --state seen.koel");
        going.is_watchful();
        going.feed(input);
        going.next(read);
        going.is_idle();
        going.stop_reading();
        match signal {
            Some(signal) => going.signal(signal),
            None => drop(going.stdin.take()),
        }
        going.wait();
        assert_same(&place.known("seen.koel", input), &input[..known], "what is known");
    }
}

#[test]
fn a_named_pipe_is_waited_for_and_its_reader_may_go_early() {
    let place = Place::new();
    place.write("lines", numbered(0..LINES));
    for (script, output) in [
        // Without waiting for a reader, the run would end in this time and lose the lines.
        (
            "mkfifo pipe; (sleep 0.3; cat pipe) & printf 'a\\nb\\na\\n' | koel dedup -o pipe -s s",
            "a\nb\n",
        ),
        ("head -c 14 pipe & koel dedup -o pipe lines", "line number 0\n"),
    ] {
        let ran = shell(&place, &format!("{script}; code=$?; wait; exit $code"));
        assert_eq!((ran.code, &*ran.stderr, ran.text()), (Some(0), "", output), "{script}");
    }
}
