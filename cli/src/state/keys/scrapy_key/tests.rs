//! Tables of lines and what w3lib 2.5.0 on Python 3.11 makes of them, and properties of random
//! lines made of what a parser treats specially.
//!
//! The keys of two million generated lines were compared with those of w3lib when this was written,
//! byte for byte. The tables have one row of each kind.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const RULES: ScrapyRules = ScrapyRules { ignore_tracking: false };
const UNTRACKED: ScrapyRules = ScrapyRules { ignore_tracking: true };

fn key(rules: ScrapyRules, line: &[u8]) -> Option<String> {
    let mut scratch = String::from("left over");
    let key = rules.key(line, &mut scratch)?;
    Some(String::from_utf8(key.to_vec()).unwrap())
}

/// Checks what must hold for any line.
fn check(line: &[u8]) {
    for rules in [RULES, UNTRACKED] {
        let (mut first, mut second) = (String::new(), String::new());
        let parsed = rules.parsed(line, &mut first);
        let shown = line.escape_ascii();
        assert_eq!(rules.key(line, &mut second), parsed, "as it is and parsed: {shown}");
        // A key that were no URL could equal another line that is none.
        if let Some(key) = parsed {
            assert!(rules.parsed(key, &mut second).is_some(), "a key without a key: {shown}");
        }
    }
}

/// Returns `short`, or `long` if `KOEL_LONG_TESTS` is set.
fn size(short: usize, long: usize) -> usize {
    if std::env::var_os("KOEL_LONG_TESTS").is_some() { long } else { short }
}

#[test]
fn a_key_is_what_w3lib_makes_of_a_url() {
    #[rustfmt::skip]
    let rows = [
        // Scheme, and what is around
        ("HTTP://A.example", "http://a.example/"),
        ("https://a.example?b", "https://a.example/?b="),
        ("hTTpS://a.EXAMPLE/B", "https://a.example/B"),
        ("ftp://a.example/b;type=A", "ftp://a.example/b;type=A"),
        ("ws://a.example/b;", "ws://a.example/b;"),
        ("wss://a.example/b;c", "wss://a.example/b;c"),
        (" \u{1}http://a.example/b \r", "http://a.example/b"),
        ("ht\ttp://a.ex\rample/b", "http://a.example/b"),
        ("http:\\\\a.example\\b\\c?\\", "http://a.example/b/c?%5C="),
        ("http://a.example#b/c?d", "http://a.example/"),
        ("http://a.example/b#c", "http://a.example/b"),
        ("http://a.example/b#\u{ff}", "http://a.example/b"),
        // User and port
        ("http://a.example:80/", "http://a.example:80/"),
        ("http://a.example:/", "http://a.example/"),
        ("http://a.example:00081/", "http://a.example:81/"),
        ("http://Me:P%2fw@A.example/", "http://Me:P%2Fw@a.example/"),
        ("http://@a.example/", "http://@a.example/"),
        ("http://me:@a.example/", "http://me:@a.example/"),
        ("http://b:c:d@a.example/", "http://b:c%3Ad@a.example/"),
        ("http://b@c@a.example/", "http://b%40c@a.example/"),
        ("http://%7e%40;=\u{fc}@a.example/", "http://~%40%3B%3D%C3%BC@a.example/"),
        ("http://b[@[::1]/", "http://b%5B@[::1]/"),
        // Hosts
        ("http://[2001:DB8:0::0001]:81/", "http://[2001:db8::1]:81/"),
        ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("http://[1:0:0:2:0:0:0:3]/", "http://[1:0:0:2::3]/"),
        ("http://[fe80::1%EN0]/", "http://[fe80::1%en0]/"),
        ("http://[v1.A:b]/", "http://[v1.a:b]/"),
        ("http://[v1.A]/", "http://v1.a/"),
        ("http://127.1/", "http://127.1/"),
        ("http://a..b/", "http://a..b/"),
        ("http://.a/", "http://.a/"),
        ("http://a b/", "http://a b/"),
        ("http://%41.example/", "http://%41.example/"),
        ("http://XN--BCHER-KVA.example/", "http://xn--bcher-kva.example/"),
        ("http://B\u{dc}CHER.example/", "http://xn--bcher-kva.example/"),
        ("http://bu\u{308}cher.example/", "http://xn--bcher-kva.example/"),
        ("http://stra\u{df}e.example/", "http://strasse.example/"),
        ("http://\u{3a3}\u{3af}\u{3c3}\u{3c5}\u{3c6}\u{3bf}\u{3c2}.gr/", "http://xn--kxa6akbbkh.gr/"),
        ("http://\u{4f8b}\u{3048}\u{3002}\u{30c6}\u{30b9}\u{30c8}/", "http://xn--r8jz45g.xn--zckzah/"),
        ("http://\u{ff21}\u{200b}.example/", "http://a.example/"),
        ("http://\u{5d0}\u{5d1}.example/", "http://xn--4dbc.example/"),
        ("http://\u{5d0}b.example/", "http://\u{5d0}b.example/"),
        ("http://\u{5d0}b\u{5d0}.example/", "http://\u{5d0}b\u{5d0}.example/"),
        ("http://\u{5d0}1\u{5d0}.example/", "http://xn--1-zhcb.example/"),
        ("http://\u{fc}..b/", "http://\u{fc}..b/"),
        ("http://\u{e9}.example.", "http://xn--9ca.example./"),
        ("http://\u{1680}.example/", "http://\u{1680}.example/"),
        ("http://\u{131}.example/", "http://xn--cfa.example/"),
        ("http://a\u{ad}\u{301}.example/", "http://xn--1ca.example/"),
        // Paths
        ("http://a.example/b/../c/./d/..", "http://a.example/c/"),
        ("http://a.example/../../b", "http://a.example/b"),
        ("http://a.example/%2e%2E/b/%2e", "http://a.example/b/"),
        ("http://a.example/b/.c/...", "http://a.example/b/.c/..."),
        ("http://a.example//b/..//", "http://a.example///"),
        ("http://a.example/%7e%41%2f%3b%3f%25%2B", "http://a.example/~A%2F%3B%3F%25+"),
        ("http://a.example/%c3%bc%e9", "http://a.example/%C3%BC%E9"),
        ("http://a.example/\u{fc} \"<>`{}^", "http://a.example/%C3%BC%20%22%3C%3E%60%7B%7D%5E"),
        ("http://a.example/b|c[d]%5B%5d%7c", "http://a.example/b|c[d][]|"),
        ("http://a.example/%23%5c%00%7f", "http://a.example/%23%5C%00%7F"),
        ("http://a.example/%%34%31", "http://a.example/%41"),
        ("http://a.example/%2541%4%zz%", "http://a.example/%2541%4%zz%"),
        ("http://a.example/b;c/d;e;f/", "http://a.example/b;c/d;e;f/"),
        ("http://a.example/b;", "http://a.example/b"),
        ("http://a.example/b;%7e%2f[|]", "http://a.example/b;%7e%2f%5B%7C%5D"),
        ("http://a.example/..;b", "http://a.example/;b"),
        ("http://a.example/.;b/..", "http://a.example/"),
        ("http://a.example/!$&'()*+,=:@", "http://a.example/!$&'()*+,=:@"),
        // Queries
        ("http://a.example/?", "http://a.example/"),
        ("http://a.example/?&&", "http://a.example/"),
        ("http://a.example/?c=3&b=5&b=2&a=50", "http://a.example/?a=50&b=2&b=5&c=3"),
        ("http://a.example/?b&a=&=&c", "http://a.example/?=&a=&b=&c="),
        ("http://a.example/?q=a+b&p=%20", "http://a.example/?p=+&q=a+b"),
        ("http://a.example/?q=%2b", "http://a.example/?q=%2B"),
        ("http://a.example/?q=a/b:c@d?e,f;g", "http://a.example/?q=a%2Fb%3Ac%40d%3Fe%2Cf%3Bg"),
        ("http://a.example/?q=~-._!*'()", "http://a.example/?q=~-._%21%2A%27%28%29"),
        ("http://a.example/?a==b=%3D", "http://a.example/?a=%3Db%3D%3D"),
        ("http://a.example/?%26=%3d", "http://a.example/?%26=%3D"),
        ("http://a.example/?\u{fc}=%e9&%C3%BC", "http://a.example/?%C3%BC=&%C3%BC=%E9"),
        ("http://a.example/?a=%%34%31&b=%4", "http://a.example/?a=%2541&b=%254"),
        ("http://a.example/?a=2&A=1&a=1", "http://a.example/?A=1&a=1&a=2"),
        ("http://a.example/?a+b=1&a%21=1&a=1", "http://a.example/?a=1&a+b=1&a%21=1"),
        ("http://a.example/?utm_source=b&c", "http://a.example/?c=&utm_source=b"),
        ("http://a.example/b/..?c/..", "http://a.example/?c%2F..="),
        ("http://a.example/?[b]=|c^", "http://a.example/?%5Bb%5D=%7Cc%5E"),
    ];
    for (line, expected) in rows {
        assert_eq!(key(RULES, line.as_bytes()).as_deref(), Some(expected), "{line:?}");
        check(line.as_bytes());
    }
}

#[test]
fn what_is_not_utf_8_is_escaped() {
    for (line, expected) in [
        (&b"http://a\xff.example/"[..], "http://a%ff.example/"),
        (&b"http://a.example/\xe9\xc3"[..], "http://a.example/%E9%C3"),
        (&b"http://a.example/?b=\xff"[..], "http://a.example/?b=%FF"),
        (b"http://a.example/?b=1#\xff", "http://a.example/?b=1"),
    ] {
        assert_eq!(key(RULES, line).as_deref(), Some(expected), "{}", line.escape_ascii());
        check(line);
    }
}

#[test]
fn a_host_that_cannot_be_encoded_stays_as_it_is() {
    let long = "\u{fc}".repeat(60);
    assert_eq!(key(RULES, format!("http://{long}/").as_bytes()), Some(format!("http://{long}/")));
    let longest = "a".repeat(63) + ".\u{fc}";
    let encoded = format!("http://{}.xn--tda/", "a".repeat(63));
    assert_eq!(key(RULES, format!("http://{longest}/").as_bytes()), Some(encoded));
    let too_long = format!("http://{}.\u{fc}/", "a".repeat(64));
    assert_eq!(key(RULES, too_long.as_bytes()), Some(too_long));
}

#[test]
fn tracking_parameters_are_ignored_if_asked() {
    for (line, expected) in [
        ("http://a.example/?c&gclid=1&b", "http://a.example/?b=&c="),
        ("http://a.example/?utm_source=b", "http://a.example/"),
        ("http://a.example/?b=1&utm_id=1", "http://a.example/?b=1"),
        ("http://a.example/?utm%5Fid=1&UTM_ID&c=1", "http://a.example/?c=1"),
        ("http://a.example/?gclid%3D=1&b=gclid", "http://a.example/?b=gclid&gclid%3D=1"),
    ] {
        assert_eq!(key(UNTRACKED, line.as_bytes()).as_deref(), Some(expected), "{line:?}");
        check(line.as_bytes());
    }
}

#[test]
fn what_has_no_host_or_is_refused_by_w3lib_is_no_url() {
    for line in [
        "",
        "#",
        "a line",
        "a.example/b",
        "//a.example/b",
        "/b",
        "http:",
        "http:a.example",
        "http:/a.example",
        "http://",
        "http:///b",
        "http://?b",
        "http://:80/",
        "http://me@/",
        "http://me@:80/",
        "mailto:me@a.example",
        "file:///b",
        "git://a.example/b",
        "http ://a.example/",
        // Refused
        "http://a.example:65536/",
        "http://a.example:x/",
        "http://a.example:-1/",
        "http://a.example:\u{663}/",
        "http://[::1/",
        "http://::1]/",
        "http://a[::1]/",
        "http://[::1]a/",
        "http://[::1]:x/",
        "http://[1.2.3.4]/",
        "http://[1::2::3]/",
        "http://[::1%]/",
        "http://[::1%\u{fc}]/",
        "http://[V1.a]/",
        "http://[v.a]/",
        "http://[b]@a.example/",
        "http://a\u{2100}b/",
        "http://\u{2100}@a.example/",
        // Their keys would be refused.
        "http://[v1.[a]/",
        "http://a\u{ff3b}b/",
    ] {
        assert_eq!(key(RULES, line.as_bytes()), None, "{line:?}");
        check(line.as_bytes());
    }
}

#[test]
fn some_keys_have_other_keys_as_in_w3lib() {
    let first = key(RULES, b"http://a.example/%%34%31").unwrap();
    assert_eq!(first, "http://a.example/%41");
    assert_eq!(key(RULES, first.as_bytes()).unwrap(), "http://a.example/A");
}

#[test]
fn a_line_may_be_huge() {
    for part in ["b", "b/", "../", "%41", "%%34", "\u{fc}", "&c", "&", "?", "#", ".", "@", ";", ":"]
    {
        for start in ["http://a.example/", "http://a.example/?", "http://", "HTTP://a@", "http://["]
        {
            check(format!("{start}{}", part.repeat(size(1_000, 100_000))).as_bytes());
        }
    }
}

/// Tests every position of a line, in whatever block it is scanned.
#[test]
fn no_byte_is_overlooked_anywhere() {
    let line = b"https://www.one-of-these.example.org/to/some/page.html?of=1&page=2&so=on#x";
    let end = line.len() - 2;
    assert!(RULES.is_own_key(&line[..end]));
    for at in 0..=line.len() {
        // A short test takes every sixteenth byte, others at the next place.
        for byte in (0..=255_u8).skip(at % size(16, 1)).step_by(size(16, 1)) {
            check(&[&line[..at], &[byte], &line[at..]].concat());
            check(&[&line[..at], &[byte], line.get(at + 1..).unwrap_or_default()].concat());
        }
        for part in ["..", "/.", "/..", ";", "xn--", "%2e", "&&", "=", "&a=", "\u{fc}", "utm_=&"] {
            check(&[&line[..at], part.as_bytes(), &line[at..]].concat());
        }
        check(&line[at..]);
        check(&line[..at]);
    }
}

/// What w3lib, Python or IDNA treat specially.
#[rustfmt::skip]
const STRANGE: &[&str] = &[
    "http://", "HTTP://", "a", "B", "xn--", "1", "0", ".", "..", "/.", "/..", "%2e", "%41", "%2f",
    "%3b", "%25", "%3d", "%26", "%", "%%", "%4", "%zz", "%c3%bc", "%ff", "/", "//", "\\", "?", "#",
    "&", "&&", "=", "+", "%2B", ";", ";a", "utm_source=x", "&gclid=1", "@", ":", ":80", "[", "]",
    "[::1]", "[v1.a]", "[fe80::1%a]", "::", " ", "\t", "\r", "\u{0}", "\u{7f}", "\u{85}", "\u{fc}",
    "\u{df}", "\u{1e9e}", "\u{130}", "\u{131}", "\u{5d0}", "\u{661}", "\u{3002}", "\u{ff0e}",
    "\u{ff0f}", "\u{ff20}", "\u{ff3b}", "\u{2100}", "\u{200d}", "\u{ad}", "\u{345}", "\u{1680}",
    "\u{1f600}", "\u{e000}", "^", "|", "'", "\"", "<", "`", "{", "~", "_", "-", "$", "!", "*", ",",
];

/// Runs `check` on many lines, or on `PROPTEST_CASES` lines if that is more.
fn check_many(lines: impl Strategy<Value = Vec<u8>>) {
    let cases = Config::default().cases.max(size(500, 50_000) as u32);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&lines, |line| {
            check(&line);
            Ok(())
        })
        .unwrap();
}

#[test]
fn strange_lines_keep_their_promises() {
    for start in ["", "http://", "http://a.example/", "https://a.example/?b=", "ws://a.example/"] {
        let words = prop::collection::vec(prop::sample::select(STRANGE), 0..8);
        check_many(words.prop_map(move |words| format!("{start}{}", words.concat()).into_bytes()));
    }
}

#[test]
fn all_bytes_keep_their_promises() {
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    check_many(bytes.prop_map(|bytes| [b"http://", &bytes[..]].concat()));
    let text = prop::collection::vec(any::<char>(), 0..20).prop_map(String::from_iter);
    check_many(text.prop_map(|text| format!("http://{text}").into_bytes()));
}
