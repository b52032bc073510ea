//! `koel dedup` writes each line the first time it is seen, unchanged and in input order. Its
//! output equals that of a model with a standard `HashSet`, for all kinds of lines and files, and
//! any number of threads.
//!
//! A line may be dropped by mistake, with a very low probability, so runs of many lines use a state whose hashes are
//! known.

use crate::common::*;
use std::collections::HashSet;

/// Returns the lines that are new, and those that are repeated.
fn model(inputs: &[&[u8]], terminator: u8) -> [Vec<u8>; 2] {
    let (mut seen, mut new, mut repeated) = (HashSet::new(), Vec::new(), Vec::new());
    for input in inputs {
        for line in input.split_inclusive(|byte| *byte == terminator) {
            let bare = line.strip_suffix(&[terminator]).unwrap_or(line);
            let key = match bare.strip_suffix(b"\r") {
                Some(key) if terminator == b'\n' => key,
                _ => bare,
            };
            let to = if seen.insert(key.to_vec()) { &mut new } else { &mut repeated };
            to.extend_from_slice(bare);
            to.push(terminator);
        }
    }
    [new, repeated]
}

/// Checks what runs write of an input against the model, with several numbers of threads.
#[track_caller]
fn assert_as_modelled(input: &[u8], zero: &str) {
    let place = Place::new();
    let terminator = if zero.is_empty() { b'\n' } else { 0 };
    let modelled = model(&[input], terminator);
    let [new, repeated] = &modelled;
    let [count, others] = modelled.each_ref().map(|lines| {
        let number = lines.iter().filter(|byte| **byte == terminator).count();
        format!("{number}\n").into_bytes()
    });
    for threads in &[8, 1, 2][..rounds(2, 3)] {
        for (options, expected) in [
            ("", new),
            ("--repeated", repeated),
            ("--count", &count),
            ("--count --repeated", &others),
        ] {
            place.make_state("state.koel");
            let words = format!("dedup --state state.koel --threads {threads} {options} {zero}");
            place.row(&words, input, 0, expected, "");
            if input.len() < 10_000 {
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
        ("dedup --output - -", b"a\na\n", b"a\n"),
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
        place.row(&words, four, 0, &model(read, b'\n')[0], "");
    }
}

#[test]
fn a_line_may_be_long_and_takes_its_memory_only_while_it_passes() {
    let place = Place::new();
    let long = |word: &str| [word.as_bytes(), &[b'x'; 3_000_000], b"\n"].concat();
    let [a, b] = ["a", "b"].map(long);
    place.write("lines", [b"a\n", &a[..], b"b\n", &b, &a, b"b\n", &b[..b.len() - 1]].concat());
    let once = [b"a\n", &a[..], b"b\n", &b].concat();
    for options in ["", "--lossless", "--threads 1 --state seen.koel"] {
        place.row(&format!("dedup {options} lines"), "", 0, &once, "");
    }
    place.row("query --invert seen.koel lines", "", 1, "", "");
    for options in ["", "--ignore-case"] {
        let mut going = place.start(&format!("dedup --threads 1 {options}"));
        going.feed(&[&[b'x'; 50 << 20][..], b"\n"].concat());
        going.next((50 << 20) + 1);
        let lines = padded(0..200_000);
        let reader = collect(going.stdout.take().unwrap());
        going.feed(&lines);
        going.is_idle();
        let resident = status_of(going.child.id(), "VmRSS:");
        let kib: u64 = resident.trim_end_matches(" kB").parse().unwrap();
        assert!(kib < 60_000, "{kib} KiB: {options}");
        going.end();
        assert_same(&reader.join().unwrap(), &lines, "what follows");
    }
}

#[test]
fn a_line_that_is_too_long_is_left_out_and_counted_and_the_lines_after_it_are_read() {
    let place = Place::new();
    place.write("next", "c\n");
    let long = "head -c 300000000 /dev/zero";
    let script = format!("(echo a; {long}; echo; echo b; {long}) | koel dedup --json - next");
    let ran = shell(&place, &script);
    assert_eq!((ran.code, ran.text()), (Some(2), "a\nb\nc\n"));
    let said = "koel: standard input: a line is longer than 256 MiB, so it is left out\n";
    assert_eq!(ran.stderr.matches(said).count(), 2, "{}", ran.stderr);
    has(&json(&ran), json!({ "lines": 3, "bytes": 6, "too_long": 2, "unreadable": 0 }));
    // An input that would lose it is not replaced.
    let script = format!("(echo a; {long}) > f; koel dedup f -o f; code=$?; wc -c < f; exit $code");
    let ran = shell(&place, &script);
    assert_eq!((ran.code, ran.text().trim()), (Some(2), "300000002"));
    ran.has("f: left as it was");
}
