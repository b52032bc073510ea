//! Files whose names end in .gz or .zst are decompressed, up to where they are damaged.

use crate::common::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// Lines that compress badly, so that damage in the middle of the file is in the middle of the
/// lines.
fn lines(from: u64, to: u64) -> Vec<u8> {
    let mut random = Random(from);
    let line = |_| format!("{:x}{:x}\n", random.below(1 << 40), random.below(1 << 60));
    (from..to).map(line).collect::<String>().into_bytes()
}

#[test]
fn all_members_and_frames_are_read() {
    let place = Place::new();
    place.make_state("empty.koel");
    // The cut is in the middle of a line.
    let all = lines(0, 20_000);
    let (first, second) = all.split_at(all.len() / 2 + 3);
    place.write("a.gz", [gz(first), gz(b""), gz(second)].concat());
    place.write("a.zst", [zst(first), zst(b""), zst(second)].concat());
    place.write("A.GZ", gz(&all));
    for name in ["a.gz", "a.zst", "A.GZ"] {
        std::fs::copy(place.path("empty.koel"), place.path("seen.koel")).unwrap();
        let ran = place.koel(&format!("dedup --json --state seen.koel {name}"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_same(&ran.stdout, &all, name);
        assert_eq!(json(&ran)["bytes"].as_u64(), Some(all.len() as u64));
    }
}

#[test]
fn whole_lines_before_the_damage_are_processed() {
    let place = Place::new();
    let all = lines(0, 40_000);
    for (name, packed) in [("cut.gz", gz(&all)), ("cut.zst", zst(&all))] {
        place.make_state("seen.koel");
        place.write(name, &packed[..packed.len() * 2 / 3]);
        place.write("other", b"other\n");
        let ran = place.koel(&format!("dedup --json --state seen.koel {name} other"));
        assert_eq!(ran.code, Some(2), "{name}");
        assert!(ran.stderr.contains(&format!("koel: {name}: ")), "{}", ran.stderr);
        assert_eq!(json(&ran)["unreadable"].as_u64(), Some(1));
        // The other file is read, too.
        let written = ran.stdout.strip_suffix(b"other\n").expect("the other file");
        assert!(all.starts_with(written) && written.ends_with(b"\n"), "{name}");
        assert!(written.len() > all.len() / 4, "{name}: {} of {}", written.len(), all.len());
        // Exactly the lines written are saved.
        assert_same(&place.known("seen.koel", &all), written, name);
    }
}

#[test]
fn the_name_or_the_first_bytes_decide_what_is_decompressed() {
    let place = Place::new();
    for name in ["lines.gz", "lines.zst"] {
        place.write(name, b"these are lines\nand not compressed\n");
        let ran = place.koel(&format!("dedup {name}"));
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{name}");
        assert!(ran.stderr.contains(&format!("koel: {name}: ")), "{}", ran.stderr);
    }
    for packed in [gz(b"a\nb\na\n"), zst(b"a\nb\na\n")] {
        place.write("packed", &packed);
        for ran in [place.koel("dedup packed"), place.koel_on("dedup", &packed)] {
            assert_eq!((ran.code, &*ran.stdout), (Some(0), &b"a\nb\n"[..]), "{}", ran.stderr);
        }
        // Too short, or only similar.
        for bytes in [&packed[..1], &packed[..2], &[&packed[..1], b"a\n"].concat()] {
            let ran = place.koel_on("dedup", bytes);
            let is_packed = bytes.len() == 2 && packed[0] == 0x1F;
            assert_eq!(ran.code, Some(if is_packed { 2 } else { 0 }), "{bytes:?}");
            assert!(is_packed || ran.stdout.starts_with(bytes), "{bytes:?}");
        }
    }
}

#[test]
fn formats_that_are_not_read_are_refused_with_the_program_that_reads_them() {
    let place = Place::new();
    place.write("other", b"other\n");
    for (begins, program) in [
        (&b"BZh91AY&SY and more"[..], "bzip2"),
        (b"\xFD7zXZ\0 and more", "xz"),
        (b"\x04\x22\x4D\x18 and more", "lz4"),
    ] {
        place.write("packed", begins);
        let ran = place.koel("dedup packed other");
        // The other file is read, as after any file that cannot be.
        assert_eq!((ran.code, &*ran.stdout), (Some(2), &b"other\n"[..]), "{program}");
        let said = format!(
            "koel: packed: it is compressed by {program}, which koel does not read; use: {program} -dc packed | koel \
             dedup\n"
        );
        assert!(ran.stderr.contains(&said), "{}", ran.stderr);
        let ran = place.koel_on("dedup", begins);
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{program}");
        assert!(ran.stderr.contains(&format!("use: {program} -dc | koel dedup")), "{}", ran.stderr);
        // Text that only begins in a similar way is text.
        let text = [&begins[..3], b"ello\n"].concat();
        assert_eq!(place.koel_on("dedup", &text).stdout, text, "{program}");
    }
}

#[test]
fn other_commands_read_them_too() {
    let place = Place::new();
    place.write("a.gz", gz(b"a\nb\n"));
    place.write("b.zst", zst(b"b\nc\n"));
    assert_eq!(place.koel("add seen.koel a.gz").code, Some(0));
    assert_eq!(place.koel("query seen.koel b.zst").stdout, b"b\n");
    assert_eq!(place.koel("forget seen.koel b.zst").code, Some(0));
    assert_eq!(place.koel("query seen.koel a.gz b.zst").stdout, b"a\n");
}

#[test]
fn text_that_begins_like_a_compressed_file_is_said_to_be_taken_for_one() {
    let place = Place::new();
    place.write("text", b"\x1F\x8B is how gzip begins\nb\n");
    place.write("other", b"\x28\xB5\x2F\xFD is how zstd begins\nb\n");
    for (name, form) in [("text", "gzip"), ("other", "zstd")] {
        let input = place.read(name);
        for (words, input) in [(format!("dedup {name}"), &b""[..]), (String::from("dedup"), &input)]
        {
            let ran = place.koel_on(&words, input);
            assert_eq!(ran.code, Some(2), "{words}");
            let said = format!("(its first bytes are those of {form}, so it was decompressed");
            assert!(ran.stderr.contains(&said), "{words}: {}", ran.stderr);
            assert!(ran.stderr.contains("put another line before it"), "{}", ran.stderr);
        }
        // As the message says.
        let input = [b"\n", &input[..]].concat();
        assert_eq!(place.koel_on("dedup", &input).stdout, input);
    }
}

#[test]
fn a_compressed_file_is_not_rewritten_in_place() {
    let place = Place::new();
    for (name, packed) in [
        ("a.gz", gz(b"a\na\n")),
        ("a.zst", zst(b"a\na\n")),
        ("gz", gz(b"a\n")),
        ("zst", zst(b"a\n")),
    ] {
        place.write(name, &packed);
        let link = format!("link-to-{}", name.replace('.', "-"));
        std::os::unix::fs::symlink(name, place.path(&link)).unwrap();
        for name in [name, &link] {
            let ran = place.koel(&format!("dedup --in-place {name}"));
            assert_eq!((ran.code, place.read(name)), (Some(2), packed.clone()), "{name}");
            let said = format!("koel: {name}: it is compressed, and what replaces it would not be");
            assert!(ran.stderr.starts_with(&said), "{}", ran.stderr);
        }
    }
    // A name is enough, even if the file is not what it says.
    place.write("text.gz", b"");
    assert_eq!(place.koel("dedup --in-place text.gz").code, Some(2));
}
