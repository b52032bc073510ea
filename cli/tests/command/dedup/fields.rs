//! `--field`: lines are compared by one of their fields, written whole, and found in any state.

use crate::common::*;

#[test]
fn lines_with_one_field_in_common_are_one() {
    let lines = b"1\tb\tx\n2\ta\tx\n3\tb\ty\n4\tc\n4\tc\n";
    Place::new().assert_outputs(&[
        ("dedup --field 2", lines, b"1\tb\tx\n2\ta\tx\n4\tc\n"),
        ("dedup --field 2 --repeated", lines, b"3\tb\ty\n4\tc\n"),
        ("dedup --field 1 --count", lines, b"4\n"),
        ("dedup --field 2 --count --delimiter \\t", lines, b"3\n"),
        ("dedup --field 2 --count --delimiter=\\t", lines, b"3\n"),
        ("dedup --field 2 --delimiter ,", b"a,b\r\nc,b\nd,b,\nb,d\n", b"a,b\r\nb,d\n"),
        ("dedup --field 2 --delimiter , --keep-cr", b"a,b\r\nc,b\nd,b,\n", b"a,b\r\nc,b\n"),
        ("dedup --field 2 --delimiter \\n --zero", b"a\nb\0c\nb\0d\ne\0", b"a\nb\0d\ne\0"),
    ]);
}

#[test]
fn lines_without_the_field_are_compared_as_a_whole_and_counted() {
    let place = Place::new();
    // Lines that repeat themselves are counted, too. A field may equal a whole line.
    let lines = b"a\na\nb\tc\na\nd\tc\n\n\nc\n";
    for threads in [1, 4] {
        let ran = place.koel_on(&format!("dedup --field 2 --json --threads {threads}"), lines);
        assert_eq!(ran.stdout, b"a\nb\tc\n\n");
        let summary = json(&ran);
        assert_eq!((&summary["lines"], &summary["without_field"]), (&8.into(), &6.into()));
    }
    let Some(ran) = place.shown_on("dedup --field 2", lines) else { return };
    assert!(ran.stderr.contains("; 6 do not have the field; "), "{}", ran.stderr);
    let Some(ran) = place.shown_on("dedup --field 2", b"a\n") else { return };
    assert!(ran.stderr.contains("; 1 does not have the field; "), "{}", ran.stderr);
    let ran = place.koel_on("dedup --field 1 --json", lines);
    assert_eq!(json(&ran)["without_field"], 0);
}

#[test]
fn the_lines_after_a_limit_are_not_counted_and_stay_new() {
    let place = Place::new();
    let lines = b"a\n1\tb\na\n2\tb\nc\n3\td\nc\ne\n";
    let ran = place.koel_on("dedup --field 2 --limit 3 --json --state seen.koel", lines);
    assert_eq!(ran.stdout, b"a\n1\tb\nc\n");
    assert_eq!((&json(&ran)["lines"], &json(&ran)["without_field"]), (&5.into(), &3.into()));
    let ran = place.koel_on("dedup --field 2 --state seen.koel", lines);
    assert_eq!(ran.stdout, b"3\td\ne\n");
}

#[test]
fn a_state_is_made_of_lines_and_used_with_a_field() {
    let place = Place::new();
    place.koel_on("add --url urls.koel", b"http://a.example/\nhttp://b.example/\n");
    let log = b"1\tGET\tHTTP://A.example/#top\n2\tGET\thttp://c.example/\n3\tGET\n";
    let ran = place.koel_on("query --field 3 --json urls.koel", log);
    assert_eq!(ran.stdout, b"1\tGET\tHTTP://A.example/#top\n", "{}", ran.stderr);
    assert_eq!((&json(&ran)["not_urls"], &json(&ran)["without_field"]), (&1.into(), &1.into()));
    let ran = place.koel_on("forget --field 3 --json urls.koel", &log[..30]);
    assert_eq!(json(&ran)["forgotten"], 1);
    let ran = place.koel_on("add --field 3 --json urls.koel", log);
    assert_eq!(json(&ran)["added"], 3);
    assert_eq!(place.koel_on("query urls.koel", b"http://c.example\n").code, Some(0));
    let ran =
        place.koel_on("dedup --field 2 --delimiter ; --state urls.koel", b"x;http://c.example/\n");
    assert_eq!((ran.code, ran.stdout.len()), (Some(0), 0), "{}", ran.stderr);
}

#[test]
fn fields_are_compared_in_the_second_pass_too() {
    let place = Place::new();
    let lines = |before: &str| -> Vec<u8> {
        (0..20_000).flat_map(|n| format!("{before}{n}\tfield {n}\n").into_bytes()).collect()
    };
    let (first, second) = (lines("a"), lines("b"));
    for output in ["", "--output out"] {
        let words =
            format!("dedup --lossless --rate 0.3 --capacity 10000 --field 2 --json {output}");
        let ran = place.koel_on(&words, &[&first[..], &second].concat());
        assert!(json(&ran)["recovered"].as_u64().unwrap() > 10, "{}", ran.stderr);
        let written = if output.is_empty() { ran.stdout } else { place.read("out") };
        assert!(set(&written) == set(&first), "{} lines", lines_of(&written).len());
    }
}

#[test]
fn a_delimiter_is_one_byte_that_ends_no_line() {
    Place::new().assert_refused(&[
        ("dedup --field 0", "a number from 1"),
        ("dedup --field x", "a number from 1"),
        ("dedup --field 1 --delimiter ab", "one byte"),
        ("dedup --field 1 --delimiter=", "one byte"),
        ("dedup --delimiter ,", "--field"),
        ("dedup --field 1 --delimiter \\n", "a newline, which ends the lines"),
        ("dedup --zero --field 1 --delimiter \\0", "a NUL byte, which ends the lines"),
        ("add --field 1 --delimiter \\n new.koel", "a newline, which ends the lines"),
    ]);
}
