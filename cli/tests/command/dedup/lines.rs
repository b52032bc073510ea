//! `koel dedup` writes each line the first time it is seen, unchanged and in input order. Its
//! output equals that of a model with a standard `HashSet`, for all kinds of lines and files, and
//! any number of threads.
//!
//! A line may be dropped by mistake, with a very low probability, so these tests accept one missing
//! line, but not two.

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

/// Checks the output against the model. One line may be missing if there are many.
#[track_caller]
fn assert_as_expected(is: &[u8], model: &Model, what: &str) {
    if is != model.new && model.count > 300 {
        let (is, all) = (lines_of(is), lines_of(&model.new));
        let at = is.iter().zip(&all).take_while(|(one, other)| one == other).count();
        if is.len() + 1 == all.len() && is[at..] == all[at + 1..] {
            return;
        }
    }
    assert_same(is, &model.new, what);
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
fn each_line_is_written_the_first_time() {
    let place = Place::new();
    let mut random = Random(1);
    for lines in [0, 1, 2, 3, 10, 100, 1_000, 5_000, 30_000] {
        let input = made_up(&mut random, lines, b'\n');
        let model = model(&[&input], b'\n');
        for &threads in rounds(&[1, 8][..], &[1, 2, 8]) {
            let ran = place.koel_on(&format!("dedup --threads {threads}"), &input);
            assert_eq!((ran.code, ran.signal), (Some(0), None), "{}", ran.stderr);
            assert_as_expected(&ran.stdout, &model, &format!("{lines} lines, {threads} threads"));
        }
    }
}

#[test]
fn the_first_of_several_is_the_one_that_is_written() {
    // Chunks of lines that are the same but for a carriage return, so that it shows which one was
    // first.
    let place = Place::new();
    let mut text = Vec::new();
    for block in 0..rounds(4, 20) {
        for end in ["\n", "\r\n", "\n"] {
            let line = |number| format!("line {number} of block {block}{end}").into_bytes();
            text.extend((0..11_000).flat_map(line));
        }
    }
    place.write("lines", &text);
    let model = model(&[&text], b'\n');
    for threads in &[8, 1, 2][..rounds(1, 3)] {
        let ran = place.koel(&format!("dedup --threads {threads} lines"));
        assert_as_expected(&ran.stdout, &model, &format!("{threads} threads"));
    }
}

#[test]
fn repeated_lines_are_all_the_others() {
    let place = Place::new();
    place.make_state("empty.koel");
    let mut random = Random(2);
    for lines in [0, 1, 50, 300, 20_000] {
        let input = made_up(&mut random, lines, b'\n');
        let model = model(&[&input], b'\n');
        for threads in &[8, 1, 2][..rounds(1, 3)] {
            // With a state whose hashes are known, so that nothing is missing.
            for (options, expected) in [("", &model.new), ("--repeated", &model.repeated)] {
                std::fs::copy(place.path("empty.koel"), place.path("state.koel")).unwrap();
                let words = format!("dedup --state state.koel --threads {threads} {options}");
                let ran = place.koel_on(&words, &input);
                assert_eq!(ran.code, Some(0), "{}", ran.stderr);
                assert_same(&ran.stdout, expected, &format!("{lines} lines: {words}"));
            }
        }
    }
}

#[test]
fn counts_are_numbers_of_lines() {
    let place = Place::new();
    let mut random = Random(3);
    for lines in [0, 1, 200, 10_000] {
        let input = made_up(&mut random, lines, b'\n');
        let model = model(&[&input], b'\n');
        let count = |options| -> usize {
            let ran = place.koel_on(&format!("dedup --count {options}"), &input);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            String::from_utf8(ran.stdout).unwrap().strip_suffix('\n').unwrap().parse().unwrap()
        };
        let may_be_missing = usize::from(model.count > 300);
        let (new, repeated) = (count(""), count("--repeated"));
        assert!((model.count - may_be_missing..=model.count).contains(&new), "{new}");
        let others = model.lines - model.count;
        assert!((others..=others + may_be_missing).contains(&repeated), "{repeated}");
    }
}

#[test]
fn lines_may_end_in_zero_bytes() {
    let place = Place::new();
    let mut random = Random(4);
    let input = made_up(&mut random, 3_000, 0);
    let model = model(&[&input], 0);
    for threads in [1, 8] {
        let ran = place.koel_on(&format!("dedup -z --threads {threads}"), &input);
        assert_as_expected(&ran.stdout, &model, "zeros");
    }
}

#[test]
fn long_lines_stay_whole() {
    let place = Place::new();
    const CHUNK: usize = 1 << 20;
    let mut text = Vec::new();
    for length in [CHUNK - 2, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 1 << 20, 5, CHUNK / 2, 0] {
        for byte in [b'a', b'b', b'a'] {
            text.extend(std::iter::repeat_n(byte, length));
            text.push(b'\n');
        }
    }
    let inputs = [&text[..text.len() - 1], &text[7..], &text[..], &text[1..]];
    for input in &inputs[..rounds(1, 4)] {
        let model = model(&[input], b'\n');
        for threads in &[2, 1, 8][..rounds(1, 3)] {
            place.write("long", input);
            let words = format!("dedup --threads {threads}");
            assert_same(&place.koel_on(&words, input).stdout, &model.new, "from a pipe");
            assert_same(&place.koel(&(words + " long")).stdout, &model.new, "from a file");
        }
    }
}

#[test]
fn files_are_read_one_after_the_other() {
    let place = Place::new();
    let mut random = Random(5);
    let inputs: Vec<_> = (0..4).map(|_| made_up(&mut random, 60, b'\n')).collect();
    place.write("one", &inputs[0]);
    place.write("two", &inputs[1]);
    place.write("three", &inputs[2]);
    place.write("none", b"");
    for threads in [1, 2, 8] {
        let with = |names: &str, stdin: usize| {
            place.koel_on(&format!("dedup --threads {threads} {names}"), &inputs[stdin]).stdout
        };
        let new = |inputs: &[&[u8]]| model(inputs, b'\n').new;
        let [one, two, three, four] = [0, 1, 2, 3].map(|number| &inputs[number][..]);
        assert_same(&with("one two none three", 3), &new(&[one, two, three]), "files");
        assert_same(&with("one - two", 3), &new(&[one, four, two]), "standard input between files");
        assert_same(&with("-", 3), &new(&[four]), "-");
        assert_same(&with("", 3), &new(&[four]), "no files");
        assert_same(&with("one one", 3), &new(&[one]), "the same file twice");
    }
}
