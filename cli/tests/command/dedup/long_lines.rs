//! Lines of any length: those that are longer than a mebibyte are compared like others, and wait in a file, not in memory.

use crate::common::*;

/// A line of so many bytes that begins with a word.
fn line(word: &str, bytes: usize) -> Vec<u8> {
    let mut line = word.as_bytes().to_vec();
    line.resize(bytes, b'x');
    [&line[..], b"\n"].concat()
}

/// Long lines among short ones, the last of which has no newline, and the same lines, each once.
fn lines() -> (Vec<u8>, Vec<u8>) {
    let [a, b, c] = ["a", "b", "c"].map(|word| line(word, 3_000_000));
    let edge = line("a", 1 << 20);
    let over = line("a", (1 << 20) + 1);
    let all =
        [b"a\n", &a[..], b"b\na\n", &b, &a, &edge, &over, &edge, b"c\n", &over, &c, &b].concat();
    let unique = [b"a\n", &a[..], b"b\n", &b, &edge, &over, b"c\n", &c].concat();
    (all[..all.len() - 1].to_vec(), unique)
}

#[test]
fn they_are_written_once_in_their_order() {
    let place = Place::new();
    let (all, unique) = lines();
    place.write("lines", &all);
    for threads in [1, 3] {
        for options in ["", "--lossless", "--lossless --rate 0.3", "-s seen.koel", "-o out"] {
            let ran = place.koel(&format!("dedup --json --threads {threads} {options} lines"));
            assert_eq!(ran.code, Some(0), "{options}: {}", ran.stderr);
            let written = if options == "-o out" { place.read("out") } else { ran.stdout.clone() };
            if options.contains("--rate") {
                assert!(set(&written) == set(&unique), "{options}");
            } else {
                assert_same(&written, &unique, options);
            }
            let json = json(&ran);
            assert_eq!((&json["lines"], &json["new"]), (&13.into(), &8.into()), "{json}");
            assert_eq!(json["bytes"], all.len(), "{json}");
        }
        let ran = place.koel("dedup -s seen.koel lines");
        assert_eq!((ran.code, ran.stdout.len()), (Some(0), 0), "{}", ran.stderr);
        std::fs::remove_file(place.path("seen.koel")).unwrap();
    }
    assert_eq!(place.koel("dedup --count lines").stdout, b"8\n");
    let ran = place.koel("dedup --repeated lines");
    let [a, b] = ["a", "b"].map(|word| line(word, 3_000_000));
    let [edge, over] = [1 << 20, (1 << 20) + 1].map(|bytes| line("a", bytes));
    assert_same(&ran.stdout, &[b"a\n", &a[..], &edge, &over, &b].concat(), "--repeated");
    let ran = place.koel("dedup --limit 2 lines");
    assert_same(&ran.stdout, &[b"a\n", &a[..]].concat(), "--limit");
}

#[test]
fn other_commands_take_them_too() {
    let place = Place::new();
    let [a, b] = ["a", "b"].map(|word| line(word, 2_000_000));
    place.write("lines", [&a[..], &b, b"c\n"].concat());
    place.koel_on("add seen.koel", &a);
    assert_same(&place.koel("query seen.koel lines").stdout, &a, "query");
    let ran = place.koel("query --invert seen.koel lines");
    assert_same(&ran.stdout, &[&b[..], b"c\n"].concat(), "query --invert");
    assert_eq!(place.koel("forget seen.koel lines").code, Some(0));
    assert_eq!(place.koel("query seen.koel lines").code, Some(1));
}

#[test]
fn they_are_compared_as_short_lines_are() {
    let place = Place::new();
    let of = |options: &str, some: &[&[u8]]| {
        let ran = place.koel_on(&format!("dedup {options}"), &some.concat());
        assert_eq!(ran.code, Some(0), "{options}: {}", ran.stderr);
        lines_of(&ran.stdout).len()
    };
    let long = line("a", 2_000_000);
    let carriage = [&long[..long.len() - 1], b"\r\n"].concat();
    assert_eq!((of("", &[&long, &carriage]), of("--keep-cr", &[&long, &carriage])), (1, 2));
    let capital = long.to_ascii_uppercase();
    assert_eq!((of("", &[&long, &capital]), of("--ignore-case", &[&long, &capital])), (2, 1));
    // What is compared of a long line may be short, and the other way round.
    let field = |word: &str| [word.as_bytes(), b"\t", &long].concat();
    assert_eq!(of("--field 1", &[&field("A"), &field("a"), b"a\tshort\n"]), 2);
    assert_eq!(of("--field 1 --ignore-case", &[&field("\u{c4}"), "\u{e4}\tb\n".as_bytes()]), 1);
    assert_eq!(of("--field 2", &[&field("a"), &field("b")]), 1);
    let urls = [&field("HTTP://a.example:80"), &b"http://a.example/\n"[..], &long, &long];
    assert_eq!(of("--url --field 1", &urls), 2);
}

/// A program finds a long line in a state as it finds others.
#[test]
fn they_have_the_hash_of_their_bytes() {
    let place = Place::new();
    let long = line("a", 2_000_000);
    place.koel_on("add seen.koel", &long);
    let seen = koel::ConcurrentCuckooFilter::<koel::StableHash>::load(place.path("seen.koel"));
    assert!(seen.unwrap().contains(&long[..long.len() - 1]));
}

#[cfg(target_os = "linux")]
#[test]
fn they_take_no_more_memory_than_short_ones() {
    let place = Place::new();
    for options in ["", "--state seen.koel", "--field 2"] {
        let mut going = place.start(&format!("dedup --threads 1 {options}"));
        let piece = [b'x'; 1 << 20];
        for _ in 0..rounds(100, 1_000) {
            going.feed(&piece);
        }
        going.is_idle();
        let status = std::fs::read_to_string(format!("/proc/{}/status", going.child.id())).unwrap();
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kib: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kib < 40_000, "{options}: {kib} KiB");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn one_that_is_not_read_completely_is_not_remembered() {
    let place = Place::new();
    let long = line("b", 200_000 + (1 << 20));
    for (read, known) in [(1_000, &b"a\n"[..]), (2 + long.len(), &[b"a\n", &long[..]].concat())] {
        place.make_state("seen.koel");
        let mut going = place.start("dedup --state seen.koel");
        going.feed(&[b"a\n", &long[..], b"c\n"].concat());
        going.next(read);
        going.is_idle();
        drop(going.stdout.take());
        drop(going.stdin.take());
        assert_eq!(going.wait().0.code(), Some(0));
        let all = [b"a\n", &long[..], b"c\n"].concat();
        assert_same(&place.known("seen.koel", &all), known, "what is known");
    }
}

#[test]
fn a_killed_run_that_is_repeated_has_each_of_them_once() {
    let place = Place::new();
    let (all, unique) = lines();
    place.write("lines", &all);
    for bytes in [1, 3_000_010, 9_000_000] {
        place.make_state("seen.koel");
        place.write("out", b"");
        let mut going = place.start("dedup --state seen.koel --output out");
        going.feed(&all[..bytes]);
        going.is_idle();
        going.child.kill().unwrap();
        going.wait();
        let ran = place.koel("dedup --state seen.koel --output out lines");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_same(&place.read("out"), &unique, "both runs");
    }
}

#[test]
fn a_folder_without_room_for_them_is_named() {
    let place = Place::new();
    let mut command = place.command(&["dedup"]);
    let ran = run(command.env("TMPDIR", "/no/such/folder"), &line("a", 2_000_000));
    assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0));
    assert!(
        ran.stderr.contains("cannot create a temporary file in /no/such/folder"),
        "{}",
        ran.stderr
    );
}
