//! The table of the README and of `koel dedup --help` that tells which URLs are equal by which rules.

use crate::common::*;

/// Pairs of URLs, and whether they are equal by `--url`, and by `--url --sort-query`.
#[rustfmt::skip]
const PAIRS: [(&str, &str, [bool; 2]); 32] = [
    ("HTTP://A.example", "http://a.example/", [true, true]),
    ("http://a.example/x?#top", "http://a.example/x", [true, true]),
    ("http://a.example/b/../x", "http://a.example/x", [true, true]),
    ("http://a.example/%7Ex", "http://a.example/~x", [true, true]),
    ("http://bücher.example/", "http://xn--bcher-kva.example/", [true, true]),
    ("http://a.example:80/", "http://a.example/", [true, true]),
    ("http://127.1/", "http://127.0.0.1/", [true, true]),
    ("http://a.example/?b=1&a=2", "http://a.example/?a=2&b=1", [false, true]),
    ("http://a.example/?a=1&&b=2", "http://a.example/?a=1&b=2", [false, true]),
    ("http://a.example/?a", "http://a.example/?a=", [false, false]),
    ("http://a.example/?q=a+b", "http://a.example/?q=a%20b", [false, false]),
    ("http://a.example/?q=a/b", "http://a.example/?q=a%2Fb", [false, false]),
    ("http://a.example/a,b", "http://a.example/a%2Cb", [false, false]),
    ("http://a.example/x;", "http://a.example/x", [false, false]),
    ("http://straße.example/", "http://strasse.example/", [false, false]),
    ("http://a.example/?q=a+b", "http://a.example/?q=a%2Bb", [false, false]),
    ("http://a.example/a/b", "http://a.example/a%2Fb", [false, false]),
    ("http://a.example/x", "http://a.example/X", [false, false]),
    ("http://a.example/x", "https://a.example/x", [false, false]),
    ("http://a.example/x#top", "http://a.example/x", [true, true]),
    ("http://a.example/x?", "http://a.example/x", [true, true]),
    ("http://a.example/%c3%bc", "http://a.example/ü", [true, true]),
    ("http:a.example", "http://a.example/", [true, true]),
    ("http://me:@a.example/", "http://me@a.example/", [true, true]),
    ("http://a.example/?a=2&a=1", "http://a.example/?a=1&a=2", [false, true]),
    ("http://a.example/[b]", "http://a.example/%5Bb%5D", [false, false]),
    ("http://a.example/x", "http://a.example/x/", [false, false]),
    ("http://a.example/", "https://a.example/", [false, false]),
    ("http://a.example/", "http://a.example./", [false, false]),
    ("http://a.example/", "http://www.a.example/", [false, false]),
    ("http://a.example/x;jsessionid=1", "http://a.example/x", [false, false]),
    ("http://a.example/?a=1&a=1", "http://a.example/?a=1", [false, false]),
];

const MODES: [&str; 2] = ["--url", "--url --sort-query"];

#[test]
fn pairs_of_urls_are_equal_as_the_table_says() {
    let place = Place::new();
    for (number, (one, other, equal)) in PAIRS.into_iter().enumerate() {
        // A short run compares each pair in one mode.
        let modes = MODES.into_iter().zip(equal);
        for (mode, is_equal) in modes.skip(number % rounds(2, 1)).step_by(rounds(2, 1)) {
            let count = place.koel_on(
                &format!("dedup --quiet --count {mode}"),
                format!("{one}\n{other}\n").as_bytes(),
            );
            let expected = if is_equal { "1\n" } else { "2\n" };
            assert_eq!(String::from_utf8(count.stdout).unwrap(), expected, "{mode} {one} {other}");
        }
    }
}

/// Checks the rows of a table: words for the URLs, and a word for each way to compare them.
#[track_caller]
fn assert_true(rows: Vec<Vec<&str>>, equal: &str, different: &str) {
    assert!(rows.len() >= 15, "{} rows found", rows.len());
    for row in rows {
        let [one, other, marks @ ..] = &row[..] else { panic!("{row:?}") };
        let pair = PAIRS.iter().find(|pair| (&pair.0, &pair.1) == (one, other));
        let (_, _, expected) = pair.unwrap_or_else(|| panic!("an unknown pair: {row:?}"));
        let expected = expected.map(|is_equal| if is_equal { equal } else { different });
        assert_eq!(marks, expected, "{row:?}");
    }
}

#[test]
fn the_tables_of_the_help_and_of_the_readme_are_true() {
    let place = Place::new();
    for command in ["dedup", "add"] {
        let help = String::from_utf8(place.koel(&format!("{command} --help")).stdout).unwrap();
        let rows = help.lines().filter(|line| line.trim_start().to_lowercase().starts_with("http"));
        assert_true(rows.map(|row| row.split_whitespace().collect()).collect(), "=", "-");
    }
    let readme = include_str!("../../../README.md");
    let rows = readme.lines().filter(|line| line.to_lowercase().starts_with("| `http"));
    let words = |row: &'static str| -> Vec<&str> {
        row.split('|').map(|word| word.trim().trim_matches('`')).filter(|w| !w.is_empty()).collect()
    };
    assert_true(rows.map(words).collect(), "=", "≠");
}
