//! Files whose names end in .gz or .zst are decompressed, up to where they are damaged.

use crate::common::*;
use crate::dedup::folders::packed;

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
    // The cut is in the middle of a line.
    let all = lines(0, 20_000);
    let (first, second) = all.split_at(all.len() / 2 + 3);
    for (name, packed) in [
        ("a.gz", [packed(".gz", first), packed(".gz", b""), packed(".gz", second)].concat()),
        // Padded to blocks, as by a tape.
        (
            "padded.gz",
            [packed(".gz", first), vec![0; 7], packed(".gz", second), vec![0; 300_000]].concat(),
        ),
        ("a.zst", [packed(".zst", first), packed(".zst", b""), packed(".zst", second)].concat()),
        ("A.GZ", packed(".gz", &all)),
    ] {
        place.write(name, packed);
        place.make_state("seen.koel");
        let ran = place.ok(&format!("dedup --json --state seen.koel {name}"), "");
        assert_same(&ran.stdout, &all, name);
        assert_eq!(json(&ran)["bytes"], all.len());
    }
}

#[test]
fn whole_lines_before_the_damage_are_processed() {
    let place = Place::new();
    let all = lines(0, 40_000);
    place.write("other", b"other\n");
    for name in ["cut.gz", "cut.zst"] {
        let packed = packed(name, &all);
        place.make_state("seen.koel");
        place.write(name, &packed[..packed.len() * 2 / 3]);
        let ran = place.koel(&format!("dedup --json --state seen.koel {name} other"));
        assert_eq!((ran.code, &json(&ran)["unreadable"]), (Some(2), &1.into()), "{name}");
        ran.has(&format!("koel: {name}: "));
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
        place.assert_refused(&[
            (&format!("dedup {name}"), &format!("koel: {name}: ")),
            (&format!("dedup {name}"), "if it is text, name it otherwise"),
        ]);
    }
    place.assert_refused(&[("dedup --output out.{gz,zst,GZ}", "compress")]);
    let once = || b"a\nb\n".to_vec();
    for (input, output, said) in [
        (packed(".gz", b"a\nb\na\n"), once(), ""),
        (packed(".zst", b"a\nb\na\n"), once(), ""),
        (packed(".gz", b"a\nb\n")[..12].to_vec(), vec![], "it may be cut off"),
        (b"BZh91AY&SY and more".to_vec(), vec![], "koel does not read; use: bzip2 -dc"),
        (b"\xFD7zXZ\0 and more".to_vec(), vec![], "koel does not read; use: xz -dc"),
        (b"\x04\x22\x4D\x18 and more".to_vec(), vec![], "koel does not read; use: lz4 -dc"),
        (b"\x1F\x8B is how gzip begins\nb\n".to_vec(), vec![], "text, put another line before it"),
        (b"\x28\xB5\x2F\xFD is how zstd begins\nb\n".to_vec(), vec![], "(it was taken for zstd, "),
    ] {
        place.write("packed", &input);
        let code = if output.is_empty() { 2 } else { 0 };
        place.row("dedup {-,packed}", &input, code, &output, said);
    }
    place.row("dedup packed", "", 2, "", "koel: packed: ");
    // What only begins in a similar way, or is preceded by a line, is text.
    for begins in ["\x1F", "\x28", "BZh", "\x04\x22", "\n\u{4d}\x1F"] {
        let text = format!("{begins}ello\n");
        place.row("dedup", &text, 0, &text, "");
    }
}
