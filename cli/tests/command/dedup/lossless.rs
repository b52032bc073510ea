//! `koel dedup --lossless` drops nothing, at a rate at which a run without it drops hundreds of
//! lines.

use crate::common::*;

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

/// At this rate, hundreds of lines would be missing.
const LOSSLESS: &str = "dedup --lossless --rate 0.3 --capacity 10000";

const REPEATED: u32 = DIFFERENT / 3 + 100;

/// Returns what is before the end of each line, sorted. A NUL byte ends a line, too.
fn sorted(text: &[u8]) -> Vec<&[u8]> {
    let lines = text.split(|byte| [b'\n', 0].contains(byte));
    let mut lines: Vec<_> = lines.map(<[u8]>::trim_ascii_end).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn each_line_is_written_once() {
    let place = Place::new();
    let input = input();
    for threads in &[8, 1, 2][..rounds(1, 3)] {
        let ran = place.ok(&format!("{LOSSLESS} --json --threads {threads}"), &input);
        assert!(sorted(&ran.stdout) == sorted(&numbered(0..DIFFERENT)), "{}", ran.stderr);
        let json = json(&ran);
        // What is recovered comes last, and in order.
        let recovered = json["recovered"].as_u64().unwrap() as usize;
        assert!(recovered > 50, "{json}");
        let numbers: Vec<u32> = lines_of(&ran.stdout)
            .into_iter()
            .map(|line| {
                let line = std::str::from_utf8(line).unwrap().trim_end();
                line.rsplit(' ').next().unwrap().parse().unwrap()
            })
            .collect();
        let (first, last) = numbers.split_at(numbers.len() - recovered);
        assert!(first.is_sorted() && last.is_sorted());
        has(&json, json!({ "new": DIFFERENT, "repeated": REPEATED, "expected_drops": 0.0 }));
    }
    // A file is read again. Its previous contents do not count as written.
    place.write("in", input);
    place.write("out", numbered(0..DIFFERENT));
    let ran = place.ok(&format!("{LOSSLESS} --json --output out in"), "");
    assert!(json(&ran)["recovered"].as_u64() > Some(0), "{}", ran.stderr);
    assert!(sorted(&place.read("out")) == sorted(&numbered(0..DIFFERENT)), "the file");
}

#[test]
fn repeated_lines_and_counts_are_exact_too() {
    let place = Place::new();
    let input = input();
    place.row(&format!("{LOSSLESS} --count"), &input, 0, format!("{DIFFERENT}\n"), "");
    place.row(&format!("{LOSSLESS} --count -d"), &input, 0, format!("{REPEATED}\n"), "");
    place.row(&format!("{LOSSLESS} --count --output out"), &input, 0, "", "");
    assert_eq!(place.read("out"), format!("{DIFFERENT}\n").as_bytes());
    // Only the last line of the input has no end.
    let repeated = [&lines_of(&input)[DIFFERENT as usize..].concat()[..], b"\n"].concat();
    for output in ["", "--output out"] {
        let ran = place.ok(&format!("{LOSSLESS} --repeated {output}"), &input);
        let written = if output.is_empty() { ran.stdout } else { place.read("out") };
        assert!(sorted(&written) == sorted(&repeated), "{output}: {} bytes", written.len());
    }
}

#[test]
fn lines_are_compared_in_the_second_pass_as_in_the_first() {
    let place = Place::new();
    let lines = |before: &str, end: &str| -> Vec<u8> {
        (0..20_000).flat_map(|number| format!("{before}{number}{end}").into_bytes()).collect()
    };
    for (options, first, second) in [
        ("--zero", lines("a", "\0"), lines("a", "\0")),
        ("--url", lines("http://a.example/", "\n"), lines("HTTP://A.EXAMPLE:80/", "\n")),
        ("--field 2", lines("a\tfield ", "\n"), lines("b\tfield ", "\n")),
    ] {
        for output in ["", "--output out"] {
            let words = format!("{LOSSLESS} {options} --json {output}");
            let ran = place.ok(&words, [&first[..], &second].concat());
            assert!(json(&ran)["recovered"].as_u64().unwrap() > 10, "{}", ran.stderr);
            let written = if output.is_empty() { ran.stdout } else { place.read("out") };
            assert!(sorted(&written) == sorted(&first), "{words}");
        }
    }
}

#[test]
fn the_summary_says_what_is_equal() {
    let place = Place::new();
    let cr = ", ignoring a CR before the newline";
    for (options, compared) in [
        ("", format!("byte by byte{cr}")),
        ("--zero", "byte by byte".into()),
        ("--ignore-case", format!("in lower case (--ignore-case){cr}")),
        ("--url --sort-query --keep-cr", "as URLs (--url --sort-query)".into()),
        ("--field 3 --delimiter ,", format!("by field 3, byte by byte{cr}")),
        ("--json-field a.b", format!("by JSON field a.b, byte by byte{cr}")),
    ] {
        has(&place.json(&format!("dedup {options}"), "a\na\n"), json!({ "compared": compared }));
        let said = format!("; none dropped by mistake; compared {compared}; ");
        place.shows(&format!("dedup --lossless {options}"), "a\na\n", 0, &said);
    }
    // Without --lossless, the summary promises nothing.
    place.shows("dedup", "a\na\n", 0, " of a line dropped by mistake; 0.");
}

#[test]
fn a_temporary_folder_is_named_if_it_is_missing_and_empty_afterwards() {
    let place = Place::new();
    place.assert_refused(&[
        ("dedup --lossless --state seen.koel", "--lossless"),
        ("dedup --lossless --state seen.koel", "--state"),
    ]);
    let mut command = place.command("dedup --lossless");
    let ran = Going::start(command.env("TMPDIR", "/nonexistent")).run(b"a\na\n");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("TMPDIR") && ran.stderr.contains("/nonexistent"), "{}", ran.stderr);
    std::fs::create_dir(place.path("tmp")).unwrap();
    let ran = Going::start(command.env("TMPDIR", place.path("tmp"))).run(b"a\na\n");
    assert_eq!((ran.code, &ran.stdout[..]), (Some(0), &b"a\n"[..]));
    assert!(std::fs::read_dir(place.path("tmp")).unwrap().next().is_none());
}
