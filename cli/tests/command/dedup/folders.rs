//! `--output-dir`: for each input, a file of its name, as a whole or not at all.

use crate::common::*;
use flate2::read::GzDecoder;
use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, symlink};

/// Returns the lines of a file that has one member or one frame, if it is compressed.
pub fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut rest = packed;
    if packed.starts_with(b"\x1F\x8B") {
        let mut decoder = GzDecoder::new(&mut rest);
        decoder.read_to_end(&mut lines).expect("a whole member");
    } else if packed.starts_with(b"\x28\xB5\x2F\xFD") {
        let decoder = zstd::stream::read::Decoder::with_buffer(&mut rest).unwrap();
        decoder.single_frame().read_to_end(&mut lines).expect("a whole frame");
    } else {
        return packed.to_vec();
    }
    assert!(rest.is_empty(), "something follows the first member or frame");
    lines
}

/// Compresses lines as the name of their file says.
pub fn packed(name: &str, lines: &[u8]) -> Vec<u8> {
    match name.rsplit_once('.') {
        Some((_, "gz")) => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut encoder, lines).unwrap();
            encoder.finish().unwrap()
        }
        Some((_, "zst")) => zstd::encode_all(lines, 1).unwrap(),
        _ => lines.to_vec(),
    }
}

/// Returns for each text the lines that neither it nor one before it has had yet.
pub fn new_in_each(texts: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut seen = HashSet::new();
    texts
        .iter()
        .map(|text| {
            lines_of(text).into_iter().filter(|line| seen.insert(*line)).collect::<Vec<_>>()
        })
        .map(|lines| lines.concat())
        .collect()
}

#[test]
fn each_input_has_a_file_of_its_name_that_is_compressed_as_it_was() {
    // Many chunks, with repeated lines within a file and among them, and nothing new at the end.
    let most = rounds(60_000, 400_000);
    let texts = [
        ("plain.txt", padded(0..most)),
        ("some.txt.gz", padded(most / 2..2 * most).repeat(2)),
        ("some.txt.zst", padded(most..3 * most)),
        ("without", padded(3 * most..3 * most + 10)),
        ("empty.gz", vec![]),
        ("empty", vec![]),
        ("none.zst", padded(0..most)),
    ];
    let expected = new_in_each(&texts.each_ref().map(|(_, text)| &text[..]));
    for options in ["--threads 1", "--threads 2 --state seen.koel", "--threads 8"] {
        let place = Place::new();
        place.make_state("seen.koel");
        let mut words = format!("dedup {options} --json --output-dir new/out");
        for (name, text) in &texts {
            // The first bytes say it, if the name does not.
            let like = if *name == "without" { "without.gz" } else { name };
            place.write(&format!("in/{name}"), packed(like, text));
            words += &format!(" in/{name}");
        }
        let ran = place.ok(&words, "");
        assert_eq!((ran.stdout.len(), &json(&ran)["new"]), (0, &(3 * most + 10).into()));
        for ((name, _), expected) in texts.iter().zip(&expected) {
            let file = place.read(&format!("new/out/{name}"));
            let is = place.read(&format!("in/{name}"));
            let begins = |file: &[u8]| {
                file.first().copied().filter(|byte| *byte > 0x7F || *byte < 0x20 || *byte == 0x28)
            };
            assert_eq!(begins(&file), begins(&is), "{name}");
            assert_same(&unpacked(&file), expected, name);
        }
        assert_eq!(fs::read_dir(place.path("new/out")).unwrap().count(), texts.len());
        // A repeated run replaces all files, or, with a state, none.
        let inode = |name: &str| fs::metadata(place.path(name)).unwrap().ino();
        let before = inode("new/out/some.txt.gz");
        place.ok(&words, "");
        assert_eq!(inode("new/out/some.txt.gz") == before, options.contains("state"), "{options}");
        assert_same(&unpacked(&place.read("new/out/some.txt.gz")), &expected[1], options);
    }
}

#[test]
fn with_a_state_new_lines_come_after_those_that_are_there() {
    let place = Place::new();
    for name in ["f", "f.gz", "f.zst"] {
        place.make_state("seen.koel");
        let words = format!("dedup -s seen.koel --output-dir out in/{name}");
        // The last line that is there has no newline.
        place.write(&format!("out/{name}"), packed(name, b"before\nlast"));
        for (input, expected) in [
            (&b"a\nb\na\n"[..], &b"before\nlast\na\nb\n"[..]),
            (b"b\nc\n", b"before\nlast\na\nb\nc\n"),
            (b"b\n", b"before\nlast\na\nb\nc\n"),
        ] {
            place.write(&format!("in/{name}"), packed(name, input));
            place.ok(&words, "");
            assert_same(&unpacked(&place.read(&format!("out/{name}"))), expected, name);
        }
        // Repeated lines only read the state, so the file is replaced.
        place.ok(&words.replace("dedup", "dedup -d"), "");
        assert_same(&unpacked(&place.read(&format!("out/{name}"))), b"b\n", name);
    }
    // What cannot be read is not replaced by less.
    place.write("in/f.gz", packed("f.gz", b"new\n"));
    place.write("out/f.gz", b"no member");
    place.row(
        "dedup -s seen.koel --output-dir out in/f.gz",
        "",
        2,
        "",
        "out/f.gz: cannot keep the lines that are there",
    );
    assert_eq!(place.read("out/f.gz"), b"no member");
    assert_eq!(place.known("seen.koel", b"new\n"), b"");
}

#[test]
fn what_would_be_lost_or_has_no_name_is_refused() {
    let place = Place::new();
    for name in
        ["in/a", "in/b", "in/folder", "other/a", "out/x", "file", "out/b", "linked/a", "links/b"]
    {
        place.write(name, b"a\n");
    }
    fs::create_dir(place.path("out/folder")).unwrap();
    symlink("../in/b", place.path("linked/b")).unwrap();
    symlink("out", place.path("link")).unwrap();
    place.write("in/.a.koel-writing", b"a\n");
    symlink("b", place.path("links/a")).unwrap();
    symlink("nowhere", place.path("links/x")).unwrap();
    place.ok("add out/a", b"a\n");
    place.assert_refused(&[
        (
            "dedup --output-dir out {,-,in/b -} {,--state s}",
            "standard input: it has no name for a file",
        ),
        (
            "dedup --output-dir new {,--state s} in/a other/a",
            "in/a and other/a would both be written to new/a; rename one",
        ),
        ("dedup --output-dir new in/a in/a", "would both be written to"),
        (
            "dedup --output-dir {out,link,./out/} in/b out/x",
            "/x: this is an input; use another --output-dir",
        ),
        ("dedup --output-dir linked in/b", "linked/b: this is an input; use another --output-dir"),
        ("dedup --output-dir out in/folder", "out/folder: this is no regular file"),
        (
            "dedup --output-dir out --state out/a in/a",
            "out/a: this is the state; write the lines to another",
        ),
        ("dedup --output-dir links in/a in/b", "would both be written to"),
        ("dedup --output-dir links out/x", "links/x: this link leads nowhere"),
        (
            "dedup --output-dir new in/.a.koel-writing in/a",
            "are of files not in place yet; rename it",
        ),
        ("dedup --output-dir file in/a", "file: cannot make this folder"),
        ("dedup --output-dir file/new in/a", "file/new: cannot make this folder"),
        ("dedup --output-dir new ..", "..: it has no name for a file"),
        ("dedup --output-dir new in/a {-o f,--count,--limit 1,--lossless}", "cannot be used with"),
        ("dedup --output-dir new in/a --state s --checkpoint 1", "cannot be used with"),
        ("dedup --estimate 5 --output-dir new", "cannot be used with"),
    ]);
    assert!(!place.path("new").exists() && !place.path("s").exists());
}

#[test]
fn an_input_that_cannot_be_read_has_no_file_or_the_lines_before_the_damage() {
    let place = Place::new();
    let all = padded(0..100_000);
    let gz = packed("cut.gz", &all);
    place.write("cut.gz", &gz[..gz.len() / 2]);
    place.write("f", b"last\n");
    fs::create_dir(place.path("folder")).unwrap();
    place.write("text.gz", b"no member");
    for state in ["", "--state seen.koel"] {
        let _ = fs::remove_dir_all(place.path("out"));
        let words = format!("dedup {state} --json --output-dir out nosuch folder text.gz cut.gz f");
        let ran = place.koel(&words);
        assert_eq!((ran.code, &json(&ran)["unreadable"]), (Some(2), &4.into()), "{}", ran.stderr);
        let mut names: Vec<_> =
            fs::read_dir(place.path("out")).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["cut.gz", "f"]);
        let read = unpacked(&place.read("out/cut.gz"));
        assert!(
            read.len() > 1_000_000 && all.starts_with(&read) && place.read("out/f") == b"last\n"
        );
        assert_eq!(ran.text(), "");
    }
    assert_same(
        &place.known("seen.koel", &all),
        &unpacked(&place.read("out/cut.gz")),
        "what is known",
    );
}

#[test]
fn a_failure_leaves_the_files_that_are_in_place_and_no_other() {
    let place = Place::new();
    let (first, second) = (padded(0..10), padded(0..300_000));
    place.write("a", &first);
    place.write("b", &second);
    let words = "dedup --json --state seen.koel --output-dir out a b";
    let ran = place.koel(&format!("{words} --max-memory 256K"));
    assert_eq!((ran.code, &json(&ran)["new"]), (Some(2), &10.into()), "{}", ran.stderr);
    ran.has("raise --max-memory");
    assert!(place.read("out/a") == first && !is_there(&place.path("out/b")));
    assert_same(&place.known("seen.koel", &second), &first, "what is known");
    place.ok(words, "");
    assert_same(&place.read("out/b"), &second[first.len()..], "b");
}
