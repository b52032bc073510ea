//! `--url`: equal URLs are one line, and a state remembers that its lines are compared as URLs.

use crate::common::*;

#[test]
fn equal_urls_are_one_and_written_as_they_came() {
    let place = Place::new();
    let input =
        b"HTTP://A.Example/x\nhttp://a.example:80/x\r\nhttp://a.example/X\nhttps://a.example/x\n\
        https://a.example:443/x\nhttps://a.example:444/x\n";
    let ran = place.koel_on("dedup --url", input);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let expected =
        b"HTTP://A.Example/x\nhttp://a.example/X\nhttps://a.example/x\nhttps://a.example:444/x\n";
    assert_same(&ran.stdout, expected, "URLs");
    // Without it, they are lines.
    assert_eq!(lines_of(&place.koel_on("dedup", input).stdout).len(), 6);
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
fn a_crawler_would_fetch_these_once() {
    let place = Place::new();
    let same =
        b"http://a.example/b/c%7E\nhttp://a.example/x/../b/c~\nHTTP://A.EXAMPLE/./b/c~#part\n\
        http://a.example:80/b/%63~\n";
    assert_eq!(place.koel_on("dedup --url --count", same).stdout, b"1\n");
}

#[test]
fn a_state_that_compares_otherwise_is_refused() {
    let place = Place::new();
    place.koel_on("add bytes.koel", b"a\n");
    place.koel_on("add --url urls.koel", b"http://a.example/\n");
    place.koel_on("add --url --sort-query sorted.koel", b"http://a.example/\n");
    let (bytes, urls) = (place.read("bytes.koel"), place.read("urls.koel"));
    for words in [
        "dedup --url --state bytes.koel",
        "add --url bytes.koel",
        "dedup --url --sort-query --state urls.koel",
        "dedup --url --ignore-tracking --state urls.koel",
        "add --url --ignore-tracking urls.koel",
        "dedup --url --state sorted.koel",
        "dedup --url --sort-query --ignore-tracking --state sorted.koel",
    ] {
        let ran = place.koel_on(words, b"http://b.example/\n");
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{words}");
        assert!(ran.stderr.contains("this state compares "), "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains("omit them, or use another state"), "{words}: {}", ran.stderr);
    }
    assert!(place.read("bytes.koel") == bytes && place.read("urls.koel") == urls);
    for words in ["dedup --sort-query", "dedup --ignore-tracking", "add --sort-query bytes.koel"] {
        assert_eq!(place.koel(words).code, Some(2), "{words}");
    }
}
