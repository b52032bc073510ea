//! `koel dedup --lossless` drops nothing, at a rate at which a run without it drops hundreds of
//! lines.

use crate::common::*;
use std::collections::HashSet;

const DIFFERENT: u32 = 60_000;

/// Lines: a third of them twice, and some again with a carriage return.
fn input() -> Vec<u8> {
    let mut text = numbered(0..DIFFERENT);
    text.extend(numbered(DIFFERENT / 3..2 * DIFFERENT / 3));
    text.extend(numbered(0..100).iter().flat_map(|byte| match byte {
        b'\n' => vec![b'\r', b'\n'],
        byte => vec![*byte],
    }));
    text.pop();
    text
}

fn lines_in() -> usize {
    (DIFFERENT + DIFFERENT / 3 + 100) as usize
}

/// Checks that each distinct line is there once.
#[track_caller]
fn assert_all(text: &[u8], what: &str) {
    assert_eq!(lines_of(text).len(), DIFFERENT as usize, "{what}");
    let lines = numbered(0..DIFFERENT);
    let all: HashSet<_> = lines_of(&lines).into_iter().collect();
    let bare = |line: &[u8]| [line.trim_ascii_end(), b"\n"].concat();
    let found: HashSet<_> = lines_of(text).into_iter().map(bare).collect();
    assert!(found.len() == all.len() && found.iter().all(|line| all.contains(&line[..])), "{what}");
}

#[test]
fn each_line_is_written_once() {
    let place = Place::new();
    let input = input();
    for threads in &[8, 1, 2][..rounds(1, 3)] {
        let words =
            format!("dedup --lossless --rate 0.3 --capacity 10000 --json --threads {threads}");
        let ran = place.koel_on(&words, &input);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_all(&ran.stdout, &words);
        let json = json(&ran);
        // Without --lossless, these lines would be missing.
        assert!(json["recovered"].as_u64().unwrap() > 50, "{json}");
        assert_eq!(json["new"].as_u64(), Some(u64::from(DIFFERENT)));
        assert_eq!(json["repeated"].as_u64(), Some((lines_in() as u32 - DIFFERENT).into()));
        assert_eq!(json["expected_drops"].as_f64(), Some(0.0));
    }
}

#[test]
fn what_is_recovered_comes_last_and_in_order() {
    let place = Place::new();
    let ran = place
        .koel_on("dedup --lossless --rate 0.3 --capacity 10000 --json", &numbered(0..DIFFERENT));
    let recovered = json(&ran)["recovered"].as_u64().unwrap() as usize;
    let lines = lines_of(&ran.stdout);
    let number = |line: &[u8]| -> u32 {
        let text = std::str::from_utf8(line).unwrap().trim_end();
        text.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let (first, last) = lines.split_at(lines.len() - recovered);
    assert!(first.is_sorted_by_key(|line| number(line)));
    assert!(last.is_sorted_by_key(|line| number(line)));
}

#[test]
fn a_file_is_read_again_and_gets_what_is_missing() {
    let place = Place::new();
    place.write("in", input());
    // The previous contents do not count as written.
    place.write("out", numbered(0..DIFFERENT));
    let ran = place.koel("dedup --json --lossless --rate 0.3 --capacity 10000 --output out in");
    assert_eq!((ran.code, ran.stdout.len()), (Some(0), 0), "{}", ran.stderr);
    assert!(json(&ran)["recovered"].as_u64() > Some(0), "{}", ran.stderr);
    assert_all(&place.read("out"), "the file");
}

#[test]
fn counts_are_exact() {
    let place = Place::new();
    let input = input();
    for (options, expected) in
        [("", DIFFERENT as usize), ("--repeated", lines_in() - DIFFERENT as usize)]
    {
        let ran = place.koel_on(
            &format!("dedup --lossless --rate 0.3 --capacity 10000 --count {options}"),
            &input,
        );
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), format!("{expected}\n"), "{options}");
    }
    place.koel_on("dedup --lossless --rate 0.3 --capacity 10000 --count --output out", &input);
    assert_eq!(place.read("out"), format!("{DIFFERENT}\n").as_bytes());
}

#[test]
fn repeated_lines_are_exact_too() {
    let place = Place::new();
    let input = input();
    let mut expected: Vec<_> = lines_of(&input)[DIFFERENT as usize..].to_vec();
    let last = [expected.pop().unwrap(), b"\n"].concat();
    expected.push(&last);
    for output in ["", "--output out"] {
        let words = format!("dedup --lossless --rate 0.3 --capacity 10000 --repeated {output}");
        let ran = place.koel_on(&words, &input);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let written = if output.is_empty() { ran.stdout } else { place.read("out") };
        // The order is that of the input. Here, only the lines and their number are compared.
        let lines = lines_of(&written);
        let bare = |lines: &[&[u8]]| -> Vec<Vec<u8>> {
            let mut lines: Vec<_> =
                lines.iter().map(|line| line.trim_ascii_end().to_vec()).collect();
            lines.sort_unstable();
            lines
        };
        assert!(bare(&lines) == bare(&expected), "{words}: {} lines", lines.len());
    }
}

#[test]
fn lines_end_in_zero_bytes_in_the_second_pass_too() {
    let place = Place::new();
    let zeros: Vec<u8> =
        numbered(0..20_000).iter().map(|byte| if *byte == b'\n' { 0 } else { *byte }).collect();
    let ran = place.koel_on(
        "dedup --lossless --rate 0.3 --capacity 10000 --zero",
        &[&zeros[..], &zeros].concat(),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let set = |text: &[u8]| -> HashSet<Vec<u8>> {
        text.split_inclusive(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
    };
    assert_eq!(ran.stdout.len(), zeros.len());
    assert!(set(&ran.stdout) == set(&zeros));
}

#[test]
fn urls_are_compared_as_urls_in_the_second_pass() {
    let place = Place::new();
    let urls = |host: &str| -> Vec<u8> {
        (0..20_000).flat_map(|page| format!("http://{host}/{page}\n").into_bytes()).collect()
    };
    let input = [urls("a.example"), urls("A.EXAMPLE:80")].concat();
    let ran = place.koel_on("dedup --lossless --rate 0.3 --capacity 10000 --url --count", &input);
    assert_eq!(ran.stdout, b"20000\n", "{}", ran.stderr);
}

#[test]
fn the_summary_says_what_is_equal() {
    let place = Place::new();
    let cr = ", ignoring a CR before the newline";
    for (options, compared) in [
        ("", format!("byte by byte{cr}")),
        ("--keep-cr", "byte by byte".into()),
        ("--zero", "byte by byte".into()),
        ("--ignore-case", format!("in lower case (--ignore-case){cr}")),
        ("--url", format!("as URLs (--url){cr}")),
        ("--url --sort-query", format!("as URLs (--url --sort-query){cr}")),
        ("--url --keep-cr", "as URLs (--url)".into()),
        ("--field 3 --delimiter ,", format!("by field 3, byte by byte{cr}")),
        ("--url --field 3", format!("by field 3, as URLs (--url){cr}")),
    ] {
        let words = format!("dedup --lossless {options}");
        let Some(ran) = place.shown_on(&words, b"a\na\n") else { return };
        let expected = format!("; none dropped by mistake; compared {compared}; ");
        assert!(ran.stderr.contains(&expected), "{options}: {}", ran.stderr);
        let ran = place.koel_on(&format!("dedup --json {options}"), b"a\na\n");
        assert_eq!(json(&ran)["compared"], *compared, "{options}");
        // Without --lossless, the summary promises nothing.
        let words = format!("dedup {options}");
        let Some(ran) = place.shown_on(&words, b"a\na\n") else { return };
        assert!(!ran.stderr.contains("compared"), "{options}: {}", ran.stderr);
    }
}

#[test]
fn a_state_cannot_be_lossless() {
    let place = Place::new();
    let ran = place.koel_on("dedup --lossless --state seen.koel", b"a\n");
    assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0));
    assert!(ran.stderr.contains("--lossless") && ran.stderr.contains("--state"), "{}", ran.stderr);
    assert!(place.names().is_empty());
}

#[test]
fn without_a_temporary_folder_tmpdir_is_named() {
    let place = Place::new();
    let mut command = place.command(&["dedup", "--lossless"]);
    let ran = run(command.env("TMPDIR", "/nonexistent"), b"a\na\n");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("TMPDIR") && ran.stderr.contains("/nonexistent"), "{}", ran.stderr);
}

#[test]
fn nothing_stays_in_the_temporary_folder() {
    let place = Place::new();
    std::fs::create_dir(place.path("tmp")).unwrap();
    let mut command = place.command(&["dedup", "--lossless"]);
    let ran = run(command.env("TMPDIR", place.path("tmp")), b"a\na\n");
    assert_eq!((ran.code, &ran.stdout[..]), (Some(0), &b"a\n"[..]));
    assert!(std::fs::read_dir(place.path("tmp")).unwrap().next().is_none());
}
