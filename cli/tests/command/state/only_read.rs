//! States that are only read, and runs that are refused before anything is written.

use crate::common::*;

#[test]
fn counting_or_writing_what_is_repeated_leaves_a_state_as_it_is() {
    let place = Place::new();
    place.make_state("seen.koel");
    place.koel_on("add seen.koel", b"a\nb\n");
    let before = place.read("seen.koel");
    let run = |words: &str| {
        let ran = place.koel_on(&format!("dedup --state seen.koel {words}"), b"b\nc\nc\nd\n");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!ran.stderr.contains(" has "), "{}", ran.stderr);
        String::from_utf8(ran.stdout).unwrap()
    };
    assert_eq!(run("--count"), "2\n");
    assert_eq!(run("--repeated"), "b\nc\n");
    assert_eq!(run("--repeated --count"), "2\n");
    assert!(run("--count --json").contains('2'));
    assert!(place.read("seen.koel") == before, "the state has changed");
    // Nor is a state created.
    assert_eq!(place.koel_on("dedup --count --state other.koel", b"a\n").stdout, b"1\n");
    assert_eq!(place.names(), ["seen.koel"]);
    assert_eq!(place.koel_on("dedup --state seen.koel", b"b\nc\n").stdout, b"c\n");
}

#[test]
fn an_output_is_replaced_where_the_state_is_only_read() {
    let place = Place::new();
    place.koel_on("add seen.koel", b"a\n");
    for (words, written) in
        [("--repeated", "a\na\n"), ("--count", "1\n"), ("", "a\na\nb\n"), ("-c -d", "2\n")]
    {
        // Only new lines are added to what is there.
        let before = if words.is_empty() { "a\na\n" } else { "before\n" };
        place.write("out", before);
        place.koel_on(&format!("dedup --state seen.koel -o out {words}"), b"a\nb\na\n");
        assert_eq!(String::from_utf8(place.read("out")).unwrap(), written, "{words}");
        if words.is_empty() {
            place.koel_on("forget seen.koel", b"b\n");
        }
    }
    let help = place.koel("dedup --help").stdout;
    let help = String::from_utf8(help).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("which only read the state, FILE is replaced"), "{help}");
}

#[test]
fn a_state_that_is_only_read_may_be_in_use() {
    let place = Place::new();
    place.make_state("seen.koel");
    let mut going = place.start("dedup --state seen.koel");
    going.feed(b"a\n");
    going.next(2);
    assert_eq!(place.koel_on("dedup --count --state seen.koel", b"a\n").stdout, b"1\n");
    assert_eq!(place.koel("dedup --state seen.koel").code, Some(2));
}

#[test]
fn a_state_that_takes_more_than_is_allowed_is_refused() {
    let place = Place::new();
    place.make_state("seen.koel");
    for command in ["dedup --state seen.koel", "add seen.koel"] {
        let ran = place.koel_on(&format!("{command} --max-memory 64K"), b"a\n");
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("--max-memory"), "{}", ran.stderr);
    }
    assert!(place.known("seen.koel", b"a\n").is_empty());
}

#[test]
fn standard_input_and_output_have_a_name_but_are_no_state() {
    let place = Place::new();
    assert_eq!(place.koel_on("dedup --output - -", b"a\na\n").stdout, b"a\n");
    for words in ["dedup --state -", "add -", "forget -"] {
        let ran = place.koel_on(words, b"a\n");
        assert_eq!(ran.code, Some(2), "{words}");
        assert!(ran.stderr.contains("a state must be a file"), "{}", ran.stderr);
    }
    assert!(place.names().is_empty());
}

#[test]
fn an_output_with_the_name_of_a_compressed_file_is_refused() {
    let place = Place::new();
    for name in ["out.gz", "out.zst", "out.GZ"] {
        let ran = place.koel_on(&format!("dedup --output {name}"), b"a\n");
        assert_eq!(ran.code, Some(2), "{name}");
        assert!(ran.stderr.contains("compress"), "{}", ran.stderr);
    }
    assert!(place.names().is_empty());
}

#[test]
fn a_run_that_failed_says_so_in_its_last_line() {
    let place = Place::new();
    let words = "dedup --threads 1 --max-memory 256K --state seen.koel -o out";
    let Some(ran) = place.shown_on(words, &padded(0..100_000)) else { return };
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let closing = ran.stderr.lines().next().unwrap();
    assert!(closing.ends_with("; failed") && !closing.contains("has"), "{}", ran.stderr);
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.starts_with("koel: out of memory for the lines seen"), "{}", ran.stderr);
}
