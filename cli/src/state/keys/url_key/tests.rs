//! Tables of URLs and their keys, and properties of random lines made of what a parser treats
//! specially: the scan of the bytes agrees with the parser, and a key is its own key.

use super::*;
use percent_encoding::percent_decode;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const PLAIN: UrlRules = UrlRules { sort_query: false, ignore_tracking: false };
const SORTED: UrlRules = UrlRules { sort_query: true, ignore_tracking: false };
const UNTRACKED: UrlRules = UrlRules { sort_query: false, ignore_tracking: true };
const BOTH: UrlRules = UrlRules { sort_query: true, ignore_tracking: true };

fn key(rules: UrlRules, line: &str) -> Option<String> {
    let mut scratch = String::from("left over");
    let key = rules.key(line.as_bytes(), &mut scratch)?;
    Some(String::from_utf8(key.to_vec()).unwrap())
}

/// Checks what must hold for any line.
fn check(line: &[u8]) {
    for rules in [PLAIN, SORTED, UNTRACKED, BOTH] {
        let (mut first, mut second) = (String::new(), String::new());
        let parsed = rules.parsed(line, &mut first);
        let shown = || format!("{:?} {rules:?}", String::from_utf8_lossy(line));
        if let Some(plain) = rules.plain(line) {
            assert_eq!(Some(plain), parsed, "as it is and parsed: {}", shown());
        }
        let Some(key) = parsed else { continue };
        assert_eq!(rules.parsed(key, &mut second), Some(key), "a key's key: {}", shown());
        if rules == PLAIN {
            let url = Url::parse(str::from_utf8(line).unwrap()).unwrap();
            let is_empty = url.query().is_none_or(str::is_empty);
            let end = if is_empty { Position::AfterPath } else { Position::AfterQuery };
            let host_end = url[..Position::AfterPort].len();
            let page = percent_decode(url[Position::BeforePath..end].as_bytes());
            assert!(percent_decode(&key[host_end..]).eq(page), "another page: {}", shown());
        }
    }
}

/// Returns `short`, or `long` if `KOEL_LONG_TESTS` is set.
fn size(short: usize, long: usize) -> usize {
    if std::env::var_os("KOEL_LONG_TESTS").is_some() { long } else { short }
}

#[test]
fn pages_that_are_the_same_have_one_key() {
    #[rustfmt::skip]
    let rows = [
        // Keys
        (PLAIN, "http://a.example/", "http://a.example/"),
        (PLAIN, "https://a.example/b.html?c=d&e", "https://a.example/b.html?c=d&e"),
        (PLAIN, "http://a.example:8080/", "http://a.example:8080/"),
        (PLAIN, "ws://a.example/b", "ws://a.example/b"),
        // Scheme, host and what is around them
        (PLAIN, "HTTP://A.Example", "http://a.example/"),
        (PLAIN, "hTTpS://a.EXAMPLE/B", "https://a.example/B"),
        (PLAIN, " http://a.example/ \r\n", "http://a.example/"),
        (PLAIN, "\u{0}http://a.example/\u{1f}", "http://a.example/"),
        (PLAIN, "ht\ttp://a.ex\nample/b\rc", "http://a.example/bc"),
        (PLAIN, "http:\\\\a.example\\b\\c", "http://a.example/b/c"),
        (PLAIN, "http:a.example", "http://a.example/"),
        (PLAIN, "http:////a.example//b", "http://a.example//b"),
        (PLAIN, "http://b\u{fc}cher.example/", "http://xn--bcher-kva.example/"),
        (PLAIN, "http://B\u{dc}CHER.example/", "http://xn--bcher-kva.example/"),
        (PLAIN, "http://XN--BCHER-KVA.example/", "http://xn--bcher-kva.example/"),
        (PLAIN, "http://b%C3%BCcher.example/", "http://xn--bcher-kva.example/"),
        (PLAIN, "http://\u{ff41}\u{3002}example/", "http://a.example/"),
        (PLAIN, "http://%61.example/", "http://a.example/"),
        (PLAIN, "http://r3---sn.example/", "http://r3---sn.example/"),
        (PLAIN, "http://a.example./", "http://a.example./"),
        // Ports and what is before an @
        (PLAIN, "http://a.example:80/", "http://a.example/"),
        (PLAIN, "https://a.example:443/b", "https://a.example/b"),
        (PLAIN, "ftp://a.example:21/b", "ftp://a.example/b"),
        (PLAIN, "http://a.example:/b", "http://a.example/b"),
        (PLAIN, "http://a.example:00081", "http://a.example:81/"),
        (PLAIN, "http://Me:Pass%2f@A.example/", "http://Me:Pass%2f@a.example/"),
        (PLAIN, "http://me:@a.example/", "http://me@a.example/"),
        (PLAIN, "http://@a.example/", "http://a.example/"),
        (PLAIN, "http://m@e@a.example/", "http://m%40e@a.example/"),
        // Addresses
        (PLAIN, "http://0x7f.1/", "http://127.0.0.1/"),
        (PLAIN, "http://127.0.0.1/", "http://127.0.0.1/"),
        (PLAIN, "http://2130706433/", "http://127.0.0.1/"),
        (PLAIN, "http://0177.0.0.01./", "http://127.0.0.1/"),
        (PLAIN, "http://[0:0::0:1]:80/", "http://[::1]/"),
        (PLAIN, "http://[2001:DB8::0001]:81/", "http://[2001:db8::1]:81/"),
        (PLAIN, "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        // Paths
        (PLAIN, "http://a.example/b/../c/./d/..", "http://a.example/c/"),
        (PLAIN, "http://a.example/../../b", "http://a.example/b"),
        (PLAIN, "http://a.example/b/%2E%2e/c/%2e/d", "http://a.example/c/d"),
        (PLAIN, "http://a.example/.b/...", "http://a.example/.b/..."),
        (PLAIN, "http://a.example/%2e%2e%2e/b%2e", "http://a.example/.../b."),
        (PLAIN, "http://a.example/%7eb/%41%2d%5F", "http://a.example/~b/A-_"),
        (PLAIN, "http://a.example/%c3%bc%2f", "http://a.example/%C3%BC%2F"),
        (PLAIN, "http://a.example/\u{fc} b", "http://a.example/%C3%BC%20b"),
        (PLAIN, "http://a.example/%%34%31%4", "http://a.example/%%341%4"),
        (PLAIN, "http://a.example/%2%65%zz%", "http://a.example/%2%65%zz%"),
        (PLAIN, "http://a.example/%%7a%252e", "http://a.example/%z%252e"),
        (PLAIN, "http://a.example/b|c^d'e", "http://a.example/b|c^d'e"),
        (PLAIN, "http://a.example/b\"<>`{}", "http://a.example/b%22%3C%3E%60%7B%7D"),
        // Queries and fragments
        (PLAIN, "http://a.example?b", "http://a.example/?b"),
        (PLAIN, "http://a.example/?", "http://a.example/"),
        (PLAIN, "http://a.example/b?#c", "http://a.example/b"),
        (PLAIN, "http://a.example/b??", "http://a.example/b??"),
        (PLAIN, "http://a.example/b#c?d", "http://a.example/b"),
        (PLAIN, "http://a.example/?b#\u{fc} c", "http://a.example/?b"),
        (PLAIN, "http://a.example/?%62=%2b+%20'", "http://a.example/?b=%2B+%20%27"),
        (PLAIN, "http://a.example/?b=\u{fc}/../c", "http://a.example/?b=%C3%BC/../c"),
        (PLAIN, "http://a.example/?&b&&", "http://a.example/?&b&&"),
        (PLAIN, "http://a.example/?c&b&utm_id=1", "http://a.example/?c&b&utm_id=1"),
        // Parameters
        (SORTED, "http://a.example/?c=2&b&c=1", "http://a.example/?b&c=1&c=2"),
        (SORTED, "http://a.example/?b=1&c&b=1", "http://a.example/?b=1&b=1&c"),
        (SORTED, "http://a.example/?&c&%62&", "http://a.example/?b&c"),
        (SORTED, "http://a.example/?&&", "http://a.example/"),
        (SORTED, "http://a.example/?b%&%41", "http://a.example/?A&b%"),
        (SORTED, "http://a.example/?gclid=1&b", "http://a.example/?b&gclid=1"),
        (UNTRACKED, "http://a.example/?c&gclid=1&b", "http://a.example/?c&b"),
        (UNTRACKED, "http://a.example/?utm_source=b", "http://a.example/"),
        (UNTRACKED, "http://a.example/b?fbclid", "http://a.example/b"),
        (UNTRACKED, "http://a.example/?UTM_Source=b&c#d", "http://a.example/?c"),
        (UNTRACKED, "http://a.example/?utm%5fsource=b&c", "http://a.example/?c"),
        (UNTRACKED, "http://a.example/?utm_some_long_name_of_theirs=1", "http://a.example/"),
        (UNTRACKED, "http://a.example/?b=gclid&utm=1", "http://a.example/?b=gclid&utm=1"),
        (UNTRACKED, "http://a.example/?ref=b&xutm_id", "http://a.example/?ref=b&xutm_id"),
        (UNTRACKED, "http://a.example/utm_id=1", "http://a.example/utm_id=1"),
        (BOTH, "http://a.example/?d&mc_eid=1&b&", "http://a.example/?b&d"),
        (BOTH, "http://a.example/?b&c", "http://a.example/?b&c"),
    ];
    for (rules, line, expected) in rows {
        assert_eq!(key(rules, line).as_deref(), Some(expected), "{line:?}");
        check(line.as_bytes());
    }
}

#[test]
fn other_pages_have_other_keys() {
    for (one, other) in [
        ("http://a.example/", "http://www.a.example/"),
        ("http://a.example/", "http://a.example./"),
        ("http://a.example/", "http://a.example:8080/"),
        ("http://a.example/", "http://me@a.example/"),
        ("http://me@a.example/", "http://ME@a.example/"),
        ("http://a.example/b", "http://a.example/b/"),
        ("http://a.example/b/c", "http://a.example/b//c"),
        ("http://a.example/b/c", "http://a.example/b%5Cc"),
        ("http://a.example/%41", "http://a.example/%2541"),
        ("http://a.example/%41", "http://a.example/%%34%31"),
        ("http://a.example/b", "http://a.example/?b"),
        ("http://a.example/b?c", "http://a.example/b%3Fc"),
        ("http://a.example/b", "http://a.example/b%23"),
        ("http://a.example/?b=c", "http://a.example/?b=C"),
        ("http://a.example/?b&c", "http://a.example/?b%26c"),
        ("http://a.example/?b=c", "http://a.example/?b%3Dc"),
        ("http://a.example/?b", "http://a.example/?b&b"),
    ] {
        for rules in [PLAIN, SORTED, UNTRACKED, BOTH] {
            let (one, other) = (key(rules, one), key(rules, other));
            assert!(one.is_some() && other.is_some() && one != other, "{one:?} {other:?}");
        }
    }
    assert_ne!(key(PLAIN, "http://a.example/?b&c"), key(PLAIN, "http://a.example/?c&b"));
}

#[test]
fn what_no_host_can_be_asked_for_is_no_url() {
    let long = format!("http://{}.example/", "a".repeat(LONGEST_HOST));
    // 250 letters, which become a thousand in Punycode.
    let spread = |at: u32| char::from_u32(0x4E00 + at * 7919 % 20_000).unwrap();
    let long_in_punycode = format!("http://{}.example/", String::from_iter((0..250).map(spread)));
    for line in [
        "",
        "#",
        "a line",
        "a.example/b",
        "//a.example/b",
        "/b",
        "http:",
        "http://",
        "http:///",
        "http:// /",
        "http://a b/",
        "http://a.example:65536/",
        "http://a.example:x/",
        "http://me@/",
        "http://xn--a/",
        "http://1.2.3.4.5/",
        "http://256.0.0.1/",
        "http://a.1/",
        "http://a.0x/",
        "http://[::1/",
        "mailto:me@a.example",
        "data:text/plain,b",
        "javascript:alert(1)",
        "foo:bar",
        "C:\\path",
        "file:///b",
        "file://a.example/b",
        "git://a.example/b",
        &long,
        &long_in_punycode,
    ] {
        assert_eq!(key(PLAIN, line), None, "{line:?}");
        check(line.as_bytes());
    }
    for line in [&b"http://a.example/\xff"[..], b"http://a.example/#\xff"] {
        assert_eq!(PLAIN.key(line, &mut String::new()), None);
    }
}

#[test]
fn a_line_may_be_huge() {
    for part in ["b", "b/", "../", "%41", "%%34", "\u{fc}", "&c", "&", "?", "#", ".", "@"] {
        for start in ["http://a.example/", "http://a.example/?", "http://", "HTTP://a@"] {
            check(format!("{start}{}", part.repeat(size(2_000, 100_000))).as_bytes());
        }
    }
}

/// Puts pairs of bytes, and what a parser treats specially, at every position of a line, so in whatever block it is
/// scanned, and in the place of every byte.
#[test]
fn a_line_is_taken_as_it_is_only_if_it_stays_so() {
    let lines = [
        "https://www.one-of-these.example.org/to/some/page.html?of=1&page=2&so=on#x",
        "http://me@a.example:8/",
        "http://a./%c?b=c&=d",
    ];
    let parts = ["..", "--", "/.", "/..", "xn--", "%2e", "%41", "?'", "&&", "\u{fc}", "utm_=&"];
    let mut plain = 0;
    for line in lines.map(str::as_bytes) {
        assert!(line.len() < 70 || PLAIN.plain(line).is_some());
        for at in 0..=line.len() {
            let mut put = |part: &[u8]| {
                for rest in [&line[at..], line.get(at + 1..).unwrap_or_default()] {
                    let line = [&line[..at], part, rest].concat();
                    for rules in [PLAIN, BOTH] {
                        let Some(key) = rules.plain(&line) else { continue };
                        assert_eq!(Some(key), rules.parsed(&line, &mut String::new()));
                        plain += 1;
                    }
                }
            };
            for first in 0..=255_u8 {
                // A short test takes every sixteenth second byte, among them the one that equals the
                // first.
                for second in (first % size(16, 1) as u8..=255).step_by(size(16, 1)) {
                    put(&[first, second]);
                }
            }
            parts.iter().for_each(|part| put(part.as_bytes()));
            check(&line[at..]);
            check(&line[..at]);
        }
    }
    assert!(plain > size(6_000, 100_000), "{plain}");
}

/// What a parser treats specially.
#[rustfmt::skip]
const STRANGE: &[&str] = &[
    "http://", "HTTP://", "A", "xn--", "xn--bcher-kva", "0x1", "1", "0", ".", "..", "...", "/.",
    "%2e", "%2E%2e", "%41", "%2f", "%", "%%", "%4", "%zz", "%c3%bc", "/", "//", "\\", "?", "??",
    "#", "&", "&&", "=", "utm_source=x", "&gclid=1", "&UTM_id", "@", ":", ":80", ":443", ":81",
    "[", "]", "[::1]", " ", "\u{fc}", "\u{df}", "\u{5d0}", "\u{3002}", "\u{ff0e}", "\u{200d}",
    "\u{ad}", "\u{1f600}", "\u{0}", "\u{1}", "\u{7f}", "\u{80}", "\t", "\n", "\r", "^", "|", "'",
    "\"", "<", ">", "`", "{", "}", "~", "_", "+", "-", "--", "---", "$", "!", "*", ";", ",",
];

/// Runs `check` on many lines, or on `PROPTEST_CASES` lines if that is more.
fn check_many(lines: impl Strategy<Value = Vec<u8>>) {
    let cases = Config::default().cases.max(size(500, 5_000) as u32);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&lines, |line| {
            check(&line);
            Ok(())
        })
        .unwrap();
}

/// Words that a parser treats specially.
fn strange(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(STRANGE), 0..=most).prop_map(|words| words.concat())
}

#[test]
fn urls_keep_their_promises() {
    let url = "(https?://|HTTPS://|ftp://|ws:)\
        ([a-z0-9]{1,8}[.-]){0,4}(example|z\\.de|1|0x1|a\\.)\
        (/[a-zB_~:+]{0,9}(\\.|--|[0-9])?[a-z]{0,3}){0,5}/?\
        (\\?((a|Z|utm_|gclid|b=1|[?/=-]){0,4}&){0,6}(c=)?)?(#[a-z/]{0,9})?";
    let lines = (url, any::<prop::sample::Index>(), strange(1));
    check_many(lines.prop_map(|(mut line, at, strange)| {
        line.insert_str(at.index(line.len()), &strange);
        line.into_bytes()
    }));
}

#[test]
fn strange_lines_keep_their_promises() {
    for start in ["http://", "http://a.example/", "https://a.example/?b"] {
        check_many(strange(5).prop_map(move |words| format!("{start}{words}").into_bytes()));
    }
}

#[test]
fn all_bytes_keep_their_promises() {
    check_many(prop::collection::vec(any::<u8>(), 0..40));
    check_many("(?s)http://.{0,20}".prop_map(String::into_bytes));
}
