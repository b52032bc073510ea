//! Lines that are longer than `--max-line`.

use crate::common::*;

fn lines() -> Vec<u8> {
    let long = [&[b'x'; 3_000_000][..], b"\n"].concat();
    [b"a\n", &long[..], b"b\na\n", &long, &long, b"c\n", &long[..5_000]].concat()
}

#[test]
fn they_are_left_out_or_passed_on_and_counted() {
    let place = Place::new();
    place.write("lines", lines());
    let mut all = lines();
    all.push(b'\n');
    let at = all.windows(3).position(|three| three == b"\na\n").unwrap();
    all.drain(at + 1..at + 3); // the second a
    for threads in [1, 3] {
        let words = format!("dedup --json --max-line 4K --threads {threads} lines --long-lines");
        for (what, expected) in [("skip", &b"a\nb\nc\n"[..]), ("pass", &all)] {
            let ran = place.koel(&format!("{words} {what}"));
            assert_eq!(ran.code, Some(0), "{what}: {}", ran.stderr);
            assert_same(&ran.stdout, expected, what);
            let summary: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
            assert_eq!((&summary["long"], &summary["lines"]), (&4.into(), &4.into()), "{what}");
        }
    }
    let ran = place.koel("dedup --max-line 4K --long-lines skip lines");
    assert!(ran.stderr.contains("; 4 too long to compare; "), "{}", ran.stderr);
}

#[test]
fn with_a_state_the_lines_around_them_are_remembered() {
    let place = Place::new();
    place.write("lines", lines());
    for what in ["skip", "pass"] {
        let words = format!("dedup --state {what}.koel --max-line 4K --long-lines {what} lines");
        assert_eq!(place.koel(&words).code, Some(0));
        assert_eq!(place.known(&format!("{what}.koel"), b"a\nb\nc\nd\n"), b"a\nb\nc\n");
    }
    let ran = place.koel("query --max-line 4K --long-lines pass skip.koel lines");
    assert_eq!(ran.stdout, b"a\nb\na\nc\n");
}

#[test]
fn what_was_not_read_because_of_one_is_named() {
    let place = Place::new();
    place.write("one", lines());
    place.write("two", b"b\n");
    let ran = place.koel("dedup --max-line 4K one two two");
    assert_eq!((ran.code, &*ran.stdout), (Some(2), &b"a\n"[..]));
    let said = "one: line 2 is longer than 4096 bytes; it and everything after it was not read, nor \
                was two, two; use --max-line";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}
