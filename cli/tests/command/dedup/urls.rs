//! `--url` and `--ignore-case`: equal lines are one line, and a state remembers how its lines are compared.

use crate::common::*;

/// Pairs of lines that differ in case.
const LINES: &[u8] = "a line\nA Line\n\u{c4}pfel\n\u{e4}PFEL\n\u{416}\n\u{436}\n".as_bytes();
const FIRST: &[u8] = "a line\n\u{c4}pfel\n\u{416}\n".as_bytes();

#[test]
fn equal_lines_are_one_and_written_as_they_came() {
    let urls =
        b"HTTP://A.Example/x\nhttp://a.example:80/x\r\nhttp://a.example/X\nhttps://a.example/x\n\
        https://a.example:443/x\nhttps://a.example:444/x\n";
    let first =
        b"HTTP://A.Example/x\nhttp://a.example/X\nhttps://a.example/x\nhttps://a.example:444/x\n";
    let once = b"http://a.example/b/c%7E\nhttp://a.example/x/../b/c~\n\
        HTTP://A.EXAMPLE/./b/c~#part\nhttp://a.example:80/b/%63~\n";
    Place::new().assert_outputs(&[
        ("dedup --url", urls, first),
        ("dedup", urls, urls),
        ("dedup --url --count", once, b"1\n"),
        ("dedup --ignore-case", LINES, FIRST),
        ("dedup -i --lossless --rate 0.3", LINES, FIRST),
        ("dedup", LINES, LINES),
        // Latin 1 is no UTF-8, and only letters of ASCII are folded.
        ("dedup --ignore-case", b"\xC4pfel\n\xE4pfel\n\xC4PFEL\n", b"\xC4pfel\n\xE4pfel\n"),
    ]);
}

#[test]
fn what_is_no_url_is_compared_as_it_is_and_counted() {
    let place = Place::new();
    let input = b"no URL\nNO URL\nno URL\n\nhttp://a.example\n\xFF\n";
    let ran = place.koel_on("dedup --url --json", input);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, b"no URL\nNO URL\n\nhttp://a.example\n\xFF\n");
    let summary = json(&ran);
    assert_eq!(
        (summary["lines"].as_u64(), summary["not_urls"].as_u64()),
        (Some(6), Some(5)),
        "{summary}"
    );
    let Some(ran) = place.shown_on("dedup --url", input) else { return };
    assert!(ran.stderr.contains("; 5 are not URLs; "), "{}", ran.stderr);
}

#[test]
fn a_state_remembers_how_its_lines_are_compared() {
    let place = Place::new();
    let first = place.koel_on("dedup --url --state urls.koel", b"http://a.example/\n");
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let same = b"HTTP://A.EXAMPLE:80/\nhttp://b.example/\n";
    // Without the option.
    assert_eq!(place.koel_on("query urls.koel", same).stdout, b"HTTP://A.EXAMPLE:80/\n");
    let ran = place.koel_on("dedup --json --state urls.koel", same);
    assert_eq!(ran.stdout, b"http://b.example/\n");
    assert_eq!(json(&ran)["not_urls"].as_u64(), Some(0));
    let ran = place.koel_on("add --json urls.koel", b"HTTP://B.example:80/\nno URL\n");
    assert_eq!(json(&ran)["added"].as_u64(), Some(1));
    assert_eq!(json(&ran)["not_urls"].as_u64(), Some(1));
    let ran = place.koel_on("forget --json urls.koel", b"http://B.EXAMPLE/\n");
    assert_eq!(json(&ran)["forgotten"].as_u64(), Some(1));
    assert_eq!(place.koel_on("query -v urls.koel", same).stdout, b"http://b.example/\n");
    // And with it, of course.
    assert_eq!(place.koel_on("dedup --url --state urls.koel", same).code, Some(0));
    let info = String::from_utf8(place.koel("info urls.koel").stdout).unwrap();
    assert!(info.contains("compares   URLs (--url)"), "{info}");
}

#[test]
fn options_tell_what_else_makes_no_difference() {
    let place = Place::new();
    let input = b"http://a.example/x?b=2&a=1\nhttp://a.example/x?a=1&b=2\n\
        http://a.example/x?b=2&a=1&utm_source=mail\nhttp://a.example/x?gclid=7&a=1&b=2\n";
    for (options, new) in [
        ("", 4),
        ("--sort-query", 3),
        ("--ignore-tracking", 2),
        ("--sort-query --ignore-tracking", 1),
    ] {
        let count = place.koel_on(&format!("dedup --count --url {options}"), input).stdout;
        assert_eq!(String::from_utf8(count).unwrap(), format!("{new}\n"), "{options}");
        // A state remembers that, too.
        let added = place.koel_on(&format!("add --json --url {options} seen.koel"), input);
        assert_eq!(json(&added)["added"], new, "{options}");
        assert_eq!(place.koel_on("dedup --state seen.koel", input).stdout, b"", "{options}");
        std::fs::remove_file(place.path("seen.koel")).unwrap();
    }
}

#[test]
fn a_state_remembers_that_case_is_ignored() {
    let place = Place::new();
    place.assert_outputs(&[
        ("dedup -i --state seen.koel", LINES, FIRST),
        ("dedup --state seen.koel", b"A LINE\nb\nB\n", b"b\n"),
        ("query seen.koel", b"A line\nc\n", b"A line\n"),
        ("add -i seen.koel", b"C\nc\n", b""),
        ("forget seen.koel", b"A LINE\n", b""),
        ("dedup --state seen.koel", b"a line\nc\n", b"a line\n"),
    ]);
    let info = String::from_utf8(place.koel("info seen.koel").stdout).unwrap();
    assert!(info.contains("compares   lines, in lower case (--ignore-case)"), "{info}");
}

#[test]
fn a_state_that_compares_otherwise_is_refused() {
    let place = Place::new();
    place.assert_outputs(&[
        ("add bytes.koel", b"a\n", b""),
        ("add --ignore-case case.koel", b"a\n", b""),
        ("add --url urls.koel", b"http://a.example/\n", b""),
        ("add --url --sort-query sorted.koel", b"http://a.example/\n", b""),
    ]);
    let states = || place.names().iter().map(|name| place.read(name)).collect::<Vec<_>>();
    let before = states();
    for words in [
        "dedup --url --state bytes.koel",
        "add --url bytes.koel",
        "dedup --ignore-case --state bytes.koel",
        "add --ignore-case bytes.koel",
        "dedup --url --state case.koel",
        "add --url case.koel",
        "dedup --url --sort-query --state urls.koel",
        "dedup --url --ignore-tracking --state urls.koel",
        "add --url --ignore-tracking urls.koel",
        "add --ignore-case urls.koel",
        "dedup --url --state sorted.koel",
        "dedup --url --sort-query --ignore-tracking --state sorted.koel",
    ] {
        place.assert_refused(&[
            (words, "this state compares "),
            (words, "omit them, or use another state"),
        ]);
    }
    place.assert_refused(&[
        ("dedup --sort-query", "--url"),
        ("dedup --ignore-tracking", "--url"),
        ("add --sort-query bytes.koel", "--url"),
        ("dedup --ignore-case --url", "cannot be used with"),
        ("add -i --url new.koel", "cannot be used with"),
    ]);
    assert!(states() == before);
}
