//! Pipes as outputs: a reader that leaves early ends the run without an error, and one that comes
//! late misses nothing.

use crate::common::*;

/// More than a pipe holds, and more than circulates in a run.
const LINES: u32 = 400_000;

/// More than a chunk has.
const CHUNK: usize = 2 << 20;

/// Runs the command, reads the beginning of its output, and closes the pipe.
fn run_and_leave(place: &Place, words: &str, bytes: usize) -> Ran {
    let mut going = place.start(words);
    let read = going.next(bytes);
    drop(going.stdout.take());
    let (status, stderr) = going.wait();
    ran(status, read, stderr)
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
fn a_reader_that_goes_early_has_what_the_state_knows() {
    let place = Place::new();
    let all = numbered(0..LINES);
    place.write("lines", &all);
    let all_cases = [(2, 1_000_000), (1, 1), (1, 300_000), (8, 2_000_000)];
    for &(threads, bytes) in &all_cases[..rounds(1, 4)] {
        place.make_state("seen.koel");
        let words = format!("dedup --json --threads {threads} --state seen.koel lines");
        let read = run_and_leave(&place, &words, bytes);
        assert_eq!((read.code, &json(&read)["end"]), (Some(0), &"broken pipe".into()));
        assert!(all.starts_with(&read.stdout));
        let known = place.known("seen.koel", &all);
        assert!(known.len() < all.len() && all.starts_with(&known));
        // What the pipe has taken counts as seen, and what it has not is new again.
        assert!(
            known.len() + CHUNK >= read.stdout.len()
                && json(&read)["known"] == place.info("seen.koel")["items"]
        );
        let rest = place.ok(&words, "");
        assert_same(&[known, rest.stdout].concat(), &all, "what is known, and the rest");
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
