//! `--ignore-case`: lines that differ in case are one line, and a state remembers it.

use crate::common::*;

/// Pairs of lines that differ in case.
const LINES: &[u8] = "a line\nA Line\n\u{c4}pfel\n\u{e4}PFEL\n\u{416}\n\u{436}\n".as_bytes();
const FIRST: &[u8] = "a line\n\u{c4}pfel\n\u{416}\n".as_bytes();

#[test]
fn lines_are_equal_in_either_case_and_written_as_they_came() {
    let place = Place::new();
    assert_eq!(place.koel_on("dedup --ignore-case", LINES).stdout, FIRST);
    assert_eq!(place.koel_on("dedup -i --lossless --rate 0.3", LINES).stdout, FIRST);
    assert_eq!(place.koel_on("dedup", LINES).stdout, LINES);
    // Latin 1 is no UTF-8, and only letters of ASCII are folded.
    let latin = b"\xC4pfel\n\xE4pfel\n\xC4PFEL\n";
    assert_eq!(place.koel_on("dedup --ignore-case", latin).stdout, b"\xC4pfel\n\xE4pfel\n");
    let not_urls = json(&place.koel_on("dedup --ignore-case --json", LINES))["not_urls"].clone();
    assert!(not_urls.is_null());
}

#[test]
fn a_state_remembers_that_case_is_ignored() {
    let place = Place::new();
    assert_eq!(place.koel_on("dedup -i --state seen.koel", LINES).stdout, FIRST);
    assert_eq!(place.koel_on("dedup --state seen.koel", b"A LINE\nb\nB\n").stdout, b"b\n");
    assert_eq!(place.koel_on("query seen.koel", b"A line\nc\n").stdout, b"A line\n");
    assert_eq!(json(&place.koel_on("add -i --json seen.koel", b"C\nc\n"))["added"], 1);
    assert_eq!(json(&place.koel_on("forget --json seen.koel", b"A LINE\n"))["forgotten"], 1);
    assert_eq!(place.koel_on("query seen.koel", b"a line\n").code, Some(1));
    let info = String::from_utf8(place.koel("info seen.koel").stdout).unwrap();
    assert!(info.contains("compares   lines, in lower case (--ignore-case)"), "{info}");
}

#[test]
fn a_state_that_compares_otherwise_is_refused() {
    let place = Place::new();
    place.koel_on("add bytes.koel", b"a\n");
    place.koel_on("add --url urls.koel", b"http://a.example/\n");
    place.koel_on("add --ignore-case case.koel", b"a\n");
    for words in [
        "dedup --ignore-case --state bytes.koel",
        "add --ignore-case bytes.koel",
        "add --ignore-case urls.koel",
        "dedup --url --state case.koel",
        "add --url case.koel",
    ] {
        let ran = place.koel_on(words, b"B\n");
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{words}");
        assert!(ran.stderr.contains("this state compares "), "{words}: {}", ran.stderr);
    }
    for words in ["dedup --ignore-case --url", "add -i --url new.koel"] {
        let ran = place.koel_on(words, b"B\n");
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{words}");
        assert!(ran.stderr.contains("cannot be used with"), "{words}: {}", ran.stderr);
    }
    assert_eq!(place.names(), ["bytes.koel", "case.koel", "urls.koel"]);
}
