//! Pipes as outputs: a reader that leaves early ends the run without an error, and one that comes
//! late misses nothing.

use crate::common::*;

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

/// A batch ends where the input has no more for now, so each of these is one.
#[test]
fn a_batch_that_a_reader_refused_is_new_again_and_those_before_it_are_not() {
    let place = Place::new();
    place.make_state("seen.koel");
    let mut going = place.start("dedup --json --state seen.koel");
    going.is_watchful();
    going.feed(b"a\nb\n");
    going.next(2);
    going.is_idle();
    going.stop_reading();
    going.feed(b"c\nd\n");
    let (status, stderr) = going.wait();
    assert_eq!(status.code(), Some(0), "{stderr}");
    let ran = Ran { code: status.code(), stdout: Vec::new(), stderr };
    has(&json(&ran), json!({ "lines": 2, "new": 2, "known": 2, "bytes": 4, "end": "broken pipe" }));
    assert_same(&place.known("seen.koel", b"a\nb\nc\nd\n"), b"a\nb\n", "what is known");
}

/// Whole batches are counted and saved as seen, and what the pipe took of the last one is not.
#[test]
fn a_batch_that_a_pipe_took_in_part_is_new_again_as_a_whole() {
    let place = Place::new();
    let all = numbered(0..LINES);
    place.write("lines", &all);
    for words in each(
        "dedup --json {,--state seen.koel,--state seen.koel --threads 8,--state seen.koel --checkpoint 0.01}",
    ) {
        place.make_state("seen.koel");
        let ran = run_and_leave(&place, &format!("{words} lines"), 100_001);
        assert_eq!(ran.code, Some(0), "{words}: {}", ran.stderr);
        let json = json(&ran);
        let lines = json["lines"].as_u64().expect("a number") as usize;
        let written = lines_of(&all)[..lines].concat();
        assert!(written.len() < all.len(), "{words}");
        has(
            &json,
            json!({ "new": lines, "repeated": 0, "bytes": written.len(), "end": "broken pipe" }),
        );
        if words.contains("seen.koel") {
            has(&json, json!({ "known": lines }));
            assert_same(&place.known("seen.koel", &all), &written, &words);
        }
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
