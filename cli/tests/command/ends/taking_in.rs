//! What a killed run has left is taken in with care: beside a living run, from files of any kind, and by their owners.

use crate::common::*;
use crate::ends::kills::that_has_written;
use crate::ends::system_calls::straced;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::MetadataExt;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const WORDS: &str = "dedup -s seen.koel -o out";
const JOURNAL: &str = "seen.koel.journal.1";

#[test]
fn the_output_of_a_living_run_is_not_cut_off() {
    let place = Place::new();
    place.make_state("seen.koel");
    let going = that_has_written(&place, WORDS, &[b"a\n", b"b\nc\n"]);
    place.write("copy.koel", place.read("seen.koel"));
    place.write("copy.koel.journal.1", place.read(JOURNAL));
    // As if the run were in the middle of its second batch.
    let out = fs::OpenOptions::new().write(true).open(place.path("out")).unwrap();
    out.set_len(4).unwrap();
    let ran = place.koel_on("dedup -s copy.koel -o other", b"x\n");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("out: cannot cut off"), "{}", ran.stderr);
    assert!(ran.stderr.contains("another koel is writing to it"), "{}", ran.stderr);
    assert_eq!(place.read("out"), b"a\nb\n");
    assert!(is_there(&place.path("copy.koel.journal.1")) && !is_there(&place.path("other")));
    going.signal(Signal::KILL);
    going.wait();
    let ran = place.koel_on("dedup -s copy.koel -o other", b"b\nx\n");
    assert_eq!((ran.code, place.read("out")), (Some(0), b"a\n".to_vec()), "{}", ran.stderr);
    assert_eq!(place.read("other"), b"b\nx\n");
}

/// Leaves what a killed run leaves that has written `a`, `b` and `c` to `out`, in three batches.
fn killed(place: &Place) -> Vec<u8> {
    place.make_state("seen.koel");
    let going = that_has_written(place, WORDS, &[b"a\n", b"b\n", b"c\n"]);
    going.signal(Signal::KILL);
    going.wait();
    place.read(JOURNAL)
}

/// The word of a journal at which its first record begins.
const OUTPUT: usize = 8;

fn word(journal: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(journal[8 * at..8 * (at + 1)].try_into().unwrap())
}

fn set(journal: &mut [u8], at: usize, value: u64) {
    journal[8 * at..8 * (at + 1)].copy_from_slice(&value.to_le_bytes());
}

/// A journal that has another word in one of its records, as if a run had written that.
fn with_word(journal: &[u8], record: usize, at: usize, value: u64) -> Vec<u8> {
    let mut journal = journal.to_vec();
    set(&mut journal, record + at, value);
    let (key, kind) = (word(&journal, 2), word(&journal, record));
    let rest = &journal[8 * (record + 2)..8 * (record + (kind >> 8) as usize)];
    let check = xxh3_64_with_seed(rest, key ^ kind.rotate_left(32));
    set(&mut journal, record + 1, check);
    journal
}

#[test]
fn what_is_no_regular_file_is_in_the_way() {
    let place = Place::new();
    let journal = killed(&place);
    place.write("elsewhere", &journal);
    let paths = ["seen.koel.journal.2", "elsewhere"].map(|name| place.path(name));
    let [path, elsewhere] = &paths;
    for kind in ["a pipe", "a link", "a folder"] {
        match kind {
            "a pipe" => rustix::fs::mknodat(
                rustix::fs::CWD,
                path,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RWXU,
                0,
            )
            .unwrap(),
            "a link" => std::os::unix::fs::symlink(elsewhere, path).unwrap(),
            _ => fs::create_dir(path).unwrap(),
        }
        let ran = place.koel_on(WORDS, b"a\n");
        assert_eq!(ran.code, Some(2), "{kind}: {}", ran.stderr);
        let said = "seen.koel.journal.2: cannot read this journal: it is in the way";
        assert!(ran.stderr.contains(said), "{kind}: {}", ran.stderr);
        assert_eq!(place.koel_on("query seen.koel", b"a\n").code, Some(1), "{kind}");
        assert!(place.read(JOURNAL) == journal, "{kind}");
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    }
    assert_eq!(place.koel_on(WORDS, b"a\n").code, Some(0));
}

#[test]
#[cfg(target_os = "linux")]
fn of_a_long_journal_only_records_are_read() {
    let place = Place::new();
    killed(&place);
    // Zeros, of which a small machine has no room for a copy.
    let journal = fs::OpenOptions::new().write(true).open(place.path(JOURNAL)).unwrap();
    journal.set_len(1 << 30).unwrap();
    let mut command = std::process::Command::new("sh");
    let limited = "ulimit -v 700000 && exec \"$0\" \"$@\"";
    let koel = place.command(&[]).get_program().to_owned();
    let words = ["dedup", "-s", "seen.koel", "-o", "out", "--threads", "1"];
    command.arg("-c").arg(limited).arg(koel).args(words).current_dir(place.path("."));
    let ran = run(&mut command, b"a\nb\nc\nd\n");
    assert_eq!(
        (ran.code, place.read("out")),
        (Some(0), b"a\nb\nc\nd\n".to_vec()),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("damaged"), "{}", ran.stderr);
}

#[test]
fn damage_is_told_from_what_a_kill_leaves() {
    let place = Place::new();
    let journal = killed(&place);
    let (state, out) = (place.read("seen.koel"), place.read("out"));
    // A header of eight words, the record of the output, and three of batches, each with one of four words.
    let output = 8 * (OUTPUT + (word(&journal, OUTPUT) >> 8) as usize);
    let zeros = vec![0; 5_000];
    let flipped = |at: usize| {
        let mut damaged = journal.clone();
        damaged[at] ^= 1;
        damaged
    };
    for (what, journal, is_damaged) in [
        ("nothing", journal.clone(), false),
        ("the output", flipped(output - 1), true),
        ("the first batch", flipped(output + 20), true),
        ("the last record", flipped(journal.len() - 1), false),
        ("a part", journal[..journal.len() - 5].to_vec(), false),
        ("a smaller part", journal[..journal.len() - 30].to_vec(), false),
        ("zeros", [&journal[..], &zeros].concat(), false),
        ("something behind zeros", [&journal[..], &zeros, &[1]].concat(), true),
    ] {
        place.write("seen.koel", &state);
        place.write("out", &out);
        place.write(JOURNAL, &journal);
        let ran = place.koel_on(WORDS, &out);
        assert_eq!(ran.code, Some(0), "{what}: {}", ran.stderr);
        let said = "seen.koel.journal.1: this journal was damaged";
        assert_eq!(ran.stderr.contains(said), is_damaged, "{what}: {}", ran.stderr);
    }
}

#[test]
fn no_number_is_too_large() {
    let place = Place::new();
    let journal = killed(&place);
    // In a name: of the journal itself, after which there is none.
    let last = "seen.koel.journal.18446744073709551615";
    fs::rename(place.path(JOURNAL), place.path(last)).unwrap();
    let ran = place.koel_on(WORDS, b"a\n");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("has the number 18446744073709551615"), "{}", ran.stderr);
    fs::remove_file(place.path(last)).unwrap();
    // In a header and in a batch.
    let mut header = journal.clone();
    set(&mut header, 6, u64::MAX);
    let sum = xxh3_64(&header[..56]);
    set(&mut header, 7, sum);
    let batch = with_word(&journal, OUTPUT + (word(&journal, OUTPUT) >> 8) as usize, 2, u64::MAX);
    let state = place.read("seen.koel");
    for (journal, code) in [(header, 2), (batch, 0)] {
        place.write("seen.koel", &state);
        place.write(JOURNAL, &journal);
        let ran = place.koel_on(WORDS, b"a\nb\nc\n");
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    }
}

#[test]
fn a_journal_of_another_user_is_refused() {
    let place = Place::new();
    let journal = killed(&place);
    place.write("out", b"a\nb\nc");
    let of = |name: &str, user| std::os::unix::fs::chown(place.path(name), Some(user), None);
    let own = rustix::process::geteuid().as_raw();
    if of(JOURNAL, own + 1).is_err() {
        return println!("not tested: only root can give files away");
    }
    let ran = place.koel_on(WORDS, b"a\nb\nc\n");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let said = format!("journal.1: this journal belongs to the user {}, who is not you", own + 1);
    assert!(ran.stderr.contains(&said), "{}", ran.stderr);
    assert!(place.read(JOURNAL) == journal && place.read("out") == b"a\nb\nc");
    // Nor is it of another user than the state.
    of("seen.koel", own + 1).unwrap();
    let ran = place.koel_on(WORDS, b"a\nb\nc\n");
    assert_eq!((ran.code, place.read("out")), (Some(0), b"a\nb\nc\n".to_vec()), "{}", ran.stderr);
}

#[test]
fn a_new_file_with_the_name_and_the_number_of_the_output_is_another_one() {
    let place = Place::new();
    let journal = killed(&place);
    if place.path("out").metadata().unwrap().created().is_err() {
        return println!("not tested: no file here has a time of its creation");
    }
    fs::remove_file(place.path("out")).unwrap();
    place.write("out", "");
    // Not every file system gives the number away at once.
    let number = place.path("out").metadata().unwrap().ino();
    place.write(JOURNAL, with_word(&journal, OUTPUT, 4, number));
    let ran = place.koel_on(WORDS, b"a\nb\nc\nd\n");
    assert_eq!((ran.code, place.read("out")), (Some(0), b"d\n".to_vec()), "{}", ran.stderr);
}

#[test]
fn an_output_that_cannot_be_looked_at_has_not_moved() {
    let place = Place::new();
    let journal = killed(&place);
    // A link to itself, which not even root can follow.
    fs::rename(place.path("out"), place.path("moved")).unwrap();
    std::os::unix::fs::symlink("out", place.path("out")).unwrap();
    let ran = place.koel_on("dedup -s seen.koel -o other", b"a\nd\n");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("out: cannot see what a killed run"), "{}", ran.stderr);
    assert!(place.read(JOURNAL) == journal);
    fs::rename(place.path("moved"), place.path("out")).unwrap();
    let ran = place.koel_on("dedup -s seen.koel -o other", b"a\nd\n");
    assert_eq!((ran.code, place.read("other")), (Some(0), b"d\n".to_vec()), "{}", ran.stderr);
}

#[test]
fn standard_output_has_no_hole_where_something_was_cut_off() {
    let place = Place::new();
    place.make_state("seen.koel");
    // One that is not appended to, and stays open, as that of a shell.
    let out = fs::File::create(place.path("out")).unwrap();
    let start = || {
        let mut command = place.command(&["dedup", "-s", "seen.koel"]);
        command.stdin(std::process::Stdio::piped()).stdout(out.try_clone().unwrap());
        Going::start_as_it_is(&mut command)
    };
    let mut going = start();
    for lines in [&b"a\n"[..], b"b\nc\n"] {
        going.feed(lines);
        wait_until("a batch", || place.read("out").ends_with(lines));
        going.is_idle();
    }
    going.signal(Signal::KILL);
    going.wait();
    out.set_len(4).unwrap();
    let mut going = start();
    going.feed(b"a\nb\nc\nd\n");
    drop(going.stdin.take());
    let (status, stderr) = going.wait();
    assert_eq!((status.code(), place.read("out")), (Some(0), b"a\nb\nc\nd\n".to_vec()), "{stderr}");
}

#[test]
fn a_cut_is_on_the_disk_before_its_journal_is_gone() {
    let place = Place::new();
    place.make_state("seen.koel");
    let going = that_has_written(&place, WORDS, &[b"a\nb\n"]);
    going.signal(Signal::KILL);
    going.wait();
    // No batch is whole.
    place.write("out", b"a\nb");
    let calls = ["-e", "trace=ftruncate,fsync,fdatasync,unlink,unlinkat"];
    let Some(ran) = straced(&place, &calls, "dedup -s seen.koel -o out") else { return };
    assert_eq!((ran.code, place.read("out")), (Some(0), Vec::new()), "{}", ran.stderr);
    let log = String::from_utf8(place.read("log")).unwrap();
    let folder = place.path("out").canonicalize().unwrap().parent().unwrap().display().to_string();
    let at =
        |what: &dyn Fn(&str) -> bool| log.lines().position(what).unwrap_or_else(|| panic!("{log}"));
    let steps = [
        at(&|line| line.contains("ftruncate(") && line.contains("/out>")),
        at(&|line| line.contains("sync(") && line.contains("/out>")),
        at(&|line| line.contains("sync(") && line.contains(&format!("{folder}>"))),
        at(&|line| line.contains("unlink") && line.contains(JOURNAL)),
    ];
    assert!(steps.is_sorted(), "{log}");
}
