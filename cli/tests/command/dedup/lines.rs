//! `koel dedup` writes each line the first time it is seen, unchanged and in input order. Its
//! output equals that of a model with a standard `HashSet`, for all kinds of lines and files, and
//! any number of threads. Lines that are longer than a mebibyte wait in a file, not in memory.
//!
//! A line may be dropped by mistake, with a very low probability, so runs of many lines use a state whose hashes are
//! known.

use crate::common::*;
use std::collections::HashSet;

/// The expected output.
struct Model {
    lines: usize,
    new: Vec<u8>,
    repeated: Vec<u8>,
    count: usize,
}

/// Processes the inputs line by line.
fn model(inputs: &[&[u8]], terminator: u8) -> Model {
    let mut seen = HashSet::new();
    let mut model = Model { lines: 0, new: Vec::new(), repeated: Vec::new(), count: 0 };
    for input in inputs {
        for line in input.split_inclusive(|byte| *byte == terminator) {
            let bare = line.strip_suffix(&[terminator]).unwrap_or(line);
            let key = match bare.strip_suffix(b"\r") {
                Some(key) if terminator == b'\n' => key,
                _ => bare,
            };
            let is_new = seen.insert(key.to_vec());
            let to = if is_new { &mut model.new } else { &mut model.repeated };
            to.extend_from_slice(bare);
            to.push(terminator);
            model.lines += 1;
            model.count += usize::from(is_new);
        }
    }
    model
}

/// Checks what runs write of an input against the model, with several numbers of threads.
#[track_caller]
fn assert_as_modelled(input: &[u8], zero: &str) {
    let place = Place::new();
    let model = model(&[input], if zero.is_empty() { b'\n' } else { 0 });
    let others = model.lines - model.count;
    for threads in &[8, 1, 2][..rounds(2, 3)] {
        for (options, expected) in [
            ("", &model.new),
            ("--repeated", &model.repeated),
            ("--count", &format!("{}\n", model.count).into_bytes()),
            ("--count --repeated", &format!("{others}\n").into_bytes()),
        ] {
            place.make_state("state.koel");
            let words = format!("dedup --state state.koel --threads {threads} {options} {zero}");
            place.row(&words, input, 0, expected, "");
            if model.lines < 300 {
                place.row(&format!("dedup {options} {zero}"), input, 0, expected, "");
            }
        }
    }
}

/// Generates lines of many kinds, some of them repeated.
fn made_up(random: &mut Random, lines: usize, terminator: u8) -> Vec<u8> {
    let kinds = 1 + random.below(2 * lines + 1);
    let mut text = Vec::new();
    for _ in 0..lines {
        let kind = random.below(kinds);
        let mut line = match kind % 5 {
            0 => format!("https://{kind}.example/"),
            1 => format!("{kind}"),
            2 => "x".repeat(kind % 300),
            _ => format!("a line with number {kind}, and so on"),
        }
        .into_bytes();
        // The bytes of a line depend only on its kind.
        let mut bytes = Random(kind as u64);
        if kind.is_multiple_of(7) {
            line.extend((0..bytes.below(40)).map(|_| bytes.below(256) as u8));
        }
        line.retain(|byte| *byte != terminator && *byte != b'\r');
        if random.below(20) == 0 {
            line.clear();
        }
        text.extend(line);
        if random.below(4) == 0 {
            text.push(b'\r');
        }
        text.push(terminator);
    }
    if random.below(2) == 0 {
        text.pop();
    }
    text
}

#[test]
fn any_bytes_are_a_line_up_to_what_ends_it() {
    let place = Place::new();
    place.write("one", b"a\nb");
    place.write("two", b"c\nb");
    let ends = b"a\r\na\nb\nb\r\na\r\n";
    let bytes = b"\0\n\xFF\xFE\n\0\n\0\0\n\n\r\n\r\r\n\xFF\xFE\r\n\xC3\n";
    place.assert_outputs(&[
        ("dedup", bytes, b"\0\n\xFF\xFE\n\0\0\n\n\r\r\n\xC3\n"),
        // The last line of a file does not run into the next file.
        ("dedup one two", b"", b"a\nb\nc\n"),
        ("dedup -d", b"a\nb\na\r\na\nb", b"a\r\na\nb\n"),
        ("dedup", ends, b"a\r\nb\n"),
        ("dedup --keep-cr", ends, b"a\r\na\nb\nb\r\n"),
        ("dedup --lossless --keep-cr", ends, b"a\r\na\nb\nb\r\n"),
        // Lines that end in a NUL byte always keep their carriage return.
        ("dedup --zero", b"a\nb\0a\0a\nb\0a\r\0a", b"a\nb\0a\0a\r\0"),
        ("dedup -z --keep-cr", b"a\r\0a\0a\r\0", b"a\r\0a\0"),
    ]);
}

#[test]
fn each_line_is_written_the_first_time_and_repeated_lines_are_all_the_others() {
    let mut random = Random(1);
    for lines in [0, 1, 2, 3, 10, 100, 1_000, 5_000, 30_000] {
        assert_as_modelled(&made_up(&mut random, lines, b'\n'), "");
    }
    assert_as_modelled(&made_up(&mut random, 3_000, 0), "--zero");
}

#[test]
fn the_first_of_several_is_the_one_that_is_written() {
    // Chunks of lines that are the same but for a carriage return, so that it shows which one was
    // first.
    let mut text = Vec::new();
    for block in 0..rounds(4, 20) {
        for end in ["\n", "\r\n", "\n"] {
            let line = |number| format!("line {number} of block {block}{end}").into_bytes();
            text.extend((0..11_000).flat_map(line));
        }
    }
    assert_as_modelled(&text, "");
}

#[test]
fn files_are_read_one_after_the_other() {
    let place = Place::new();
    let mut random = Random(5);
    let inputs: Vec<_> = (0..4).map(|_| made_up(&mut random, 60, b'\n')).collect();
    let [one, two, three, four] = [0, 1, 2, 3].map(|number| &inputs[number][..]);
    for (name, text) in [("one", one), ("two", two), ("three", three), ("none", b"")] {
        place.write(name, text);
    }
    for (names, read) in [
        ("one two none three", &[one, two, three][..]),
        ("one - two", &[one, four, two]),
        ("{-,}", &[four]),
        ("one one", &[one]),
    ] {
        let words = format!("dedup --threads {{1,2,8}} {names}");
        place.row(&words, four, 0, &model(read, b'\n').new, "");
    }
}

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
fn long_lines_are_written_once_in_their_order() {
    let place = Place::new();
    let (all, unique) = lines();
    let [a, b] = ["a", "b"].map(|word| line(word, 3_000_000));
    let [edge, over] = [1 << 20, (1 << 20) + 1].map(|bytes| line("a", bytes));
    place.write("lines", &all);
    for threads in [1, 3] {
        for options in ["", "--lossless", "--lossless --rate 0.3", "-s seen.koel", "-o out"] {
            let words = format!("dedup --json --threads {threads} {options} lines");
            let mut ran = place.ok(&words, "");
            has(&json(&ran), json!({ "lines": 13, "new": 8, "bytes": all.len() }));
            if options == "-o out" {
                ran.stdout = place.read("out");
            }
            match options.contains("--rate") {
                true => assert!(set(&ran.stdout) == set(&unique), "{options}"),
                false => assert_same(&ran.stdout, &unique, options),
            }
        }
        place.row("dedup -s seen.koel lines", "", 0, "", "");
        std::fs::remove_file(place.path("seen.koel")).unwrap();
    }
    let [c, ab] = [&b"c\n"[..], &[b"a\n", &a[..]].concat()];
    place.write("more", [&a[..], &b, c].concat());
    place.assert_outputs(&[
        ("dedup --count lines", b"", b"8\n"),
        ("dedup --repeated lines", b"", &[b"a\n", &a[..], &edge, &over, &b].concat()),
        ("dedup --limit 2 lines", b"", ab),
        ("add seen.koel", &a, b""),
        ("query seen.koel more", b"", &a),
        ("query --invert seen.koel more", b"", &[&b[..], c].concat()),
        ("forget seen.koel more", b"", b""),
    ]);
    place.row("query seen.koel more", "", 1, "", "");
}

#[test]
fn long_lines_are_compared_as_short_lines_are() {
    let place = Place::new();
    let long = line("a", 2_000_000);
    let carriage = [&long[..long.len() - 1], b"\r\n"].concat();
    let capital = long.to_ascii_uppercase();
    let field = |word: &str| [word.as_bytes(), b"\t", &long].concat();
    let record = |id: &str| {
        let text = &long[..long.len() - 1];
        [b"{\"text\":\"", text, b"\",\"id\":", id.as_bytes(), b"}\n"].concat()
    };
    let urls = [&field("HTTP://a.example:80"), &b"http://a.example/\n"[..], &long, &long].concat();
    // What is compared of a long line may be short, and the other way round.
    for (options, some, different) in [
        ("", [&long[..], &carriage].concat(), 1),
        ("--keep-cr", [&long[..], &carriage].concat(), 2),
        ("", [&long[..], &capital].concat(), 2),
        ("--ignore-case", [&long[..], &capital].concat(), 1),
        ("--field 1", [&field("A")[..], &field("a"), b"a\tshort\n"].concat(), 2),
        ("--field 2", [field("a"), field("b")].concat(), 1),
        ("--url --field 1", urls, 2),
        ("--json-field id", [record("1"), b"{\"id\":1}\n".to_vec(), record("2")].concat(), 2),
        ("--json-field text", [record("1"), record("2")].concat(), 1),
        ("--json-field no-such-field", [record("1"), record("2"), record("2")].concat(), 2),
    ] {
        let words = format!("dedup --count {options}");
        place.row(&words, some, 0, format!("{different}\n"), "");
    }
    // A program finds a long line in a state as it finds others.
    place.ok("add seen.koel", &long);
    let seen = koel::ConcurrentCuckooFilter::<koel::StableHash>::load(place.path("seen.koel"));
    assert!(seen.unwrap().contains(&long[..long.len() - 1]));
    let mut command = place.command(&["dedup"]);
    let ran = run(command.env("TMPDIR", "/no/such/folder"), &long);
    assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0));
    ran.has("cannot create a temporary file in /no/such/folder");
}

#[test]
fn long_lines_take_no_more_memory_than_short_ones() {
    let place = Place::new();
    for options in ["", "--state seen.koel", "--field 2", "--json-field a"] {
        let mut going = place.start(&format!("dedup --threads 1 {options}"));
        for _ in 0..rounds(60, 1_000) {
            going.feed(&[b'x'; 1 << 20]);
        }
        going.is_idle();
        let kib: u64 = going.proc("status", "VmHWM:").trim_end_matches(" kB").parse().unwrap();
        assert!(kib < 40_000, "{options}: {kib} KiB");
    }
}
