//! What a killed run leaves: its output, and the note beside the state that says what of it the state does not have.
//! Journals of programs that use the library are taken in, too.

use crate::common::*;
use crate::ends::kills::that_has_written;
use crate::ends::system_calls::{injected, straced};
use koel::{ConcurrentCuckooFilter, DurableFilter, StableHash};
use std::fs;
use std::time::{Duration, SystemTime};

const WORDS: &str = "dedup -s seen.koel -o out";
const NOTE: &str = ".seen.koel.koel-output";
const BATCHES: [&[u8]; 3] = [b"a\nb\nc\n", b"dddddddd\n", b"e\nf\ng\n"];

/// What a killed run has left.
struct Left {
    place: Place,
    state: Vec<u8>,
    out: Vec<u8>,
    note: Vec<u8>,
}

impl Left {
    /// Kills a run that has appended the batches to an output that had this before.
    fn new(before: &str) -> Left {
        let place = Place::new();
        place.make_state("seen.koel");
        place.write("out", before);
        that_has_written(&place, WORDS, &BATCHES).end_by(Signal::KILL);
        Left::of(place)
    }

    fn of(place: Place) -> Left {
        let [state, out, note] = ["seen.koel", "out", NOTE].map(|name| place.read(name));
        Left { place, state, out, note }
    }

    /// Leaves the same again, with another output in the same file.
    fn again(&self, out: &[u8]) {
        self.place.write("seen.koel", &self.state);
        self.place.write("out", out);
        self.place.write(NOTE, &self.note);
    }
}

#[test]
fn a_repeated_run_goes_on_from_whatever_the_output_has() {
    let (left, all) = (Left::new(""), BATCHES.concat());
    let cuts = (0..=all.len()).map(|length| (all[..length].to_vec(), all.clone()));
    let mut holes = all.clone();
    holes[6..15].fill(0);
    let others = [
        // Lines that others have appended are not cut off.
        ([&all[..], b"x\n"].concat(), [&all[..], b"x\n"].concat()),
        ([&all[..15], b"x\n"].concat(), [&all[..15], b"x\ne\nf\ng\n"].concat()),
        ([&all[..], b"x"].concat(), all.clone()),
        // A power failure has taken some bytes.
        (holes.clone(), [&holes[..], b"dddddddd\ne\n"].concat()),
    ];
    for (number, (out, expected)) in cuts.chain(others).enumerate() {
        left.again(&out);
        left.place.ok(WORDS, &all);
        assert_same(&left.place.read("out"), &expected, &format!("the output of {number}"));
        assert_eq!(left.place.known("seen.koel", &all), all, "{number}");
        assert_eq!(left.place.names(), ["out", "seen.koel"], "{number}");
    }
}

#[test]
fn only_the_lines_since_the_last_save_are_taken_in() {
    let left = Left::new("old\n");
    left.place.ok("add --json seen.koel", "").has("seen.koel: took in 7 lines of a run");
    assert_eq!(left.place.known("seen.koel", b"old\na\ng\n"), b"a\ng\n");
    // A save notes how long the output is.
    let place = Place::new();
    place.make_state("seen.koel");
    let mut going = place.start(&format!("{WORDS} --checkpoint 0.05"));
    going.feed(b"a\nb\n");
    wait_until("a checkpoint", || {
        fs::read(place.path(NOTE)).is_ok_and(|note| note.split(|byte| *byte == b'\n').count() > 2)
    });
    going.signal(Signal::STOP);
    let out = fs::OpenOptions::new().append(true).open(place.path("out"));
    std::io::Write::write_all(&mut out.unwrap(), b"c\n").unwrap();
    going.end_by(Signal::KILL);
    place.ok("add seen.koel", "").has("seen.koel: took in 1 lines of a run");
    assert_eq!(place.known("seen.koel", b"a\nb\nc\nd\n"), b"a\nb\nc\n");
}

#[test]
fn lines_of_an_output_that_is_another_one_are_new_again() {
    let all = BATCHES.concat();
    for (change, before) in [
        ("rm out", &b""[..]),
        ("mv out moved", b""),
        // Shorter than noted, and other bytes before.
        ("printf ol > out", b"ol\n"),
        ("echo other > out", b"other\n"),
        ("echo new > copy; mv copy out", b"new\n"),
        // The note counts for nothing without the state.
        ("rm seen.koel", b"old\na\nb\nc\ndddddddd\ne\nf\ng\n"),
    ] {
        let left = Left::new("old\n");
        shell(&left.place, change);
        let ran = left.place.ok(WORDS, &all);
        let is_said = ran.stderr.contains("out: it is not the file any more");
        assert_eq!(is_said, change != "rm seen.koel", "{change}: {}", ran.stderr);
        assert_same(&left.place.read("out"), &[before, &all].concat(), change);
        assert_eq!(left.place.known("seen.koel", &all), all, "{change}");
        assert!(!is_there(&left.place.path(NOTE)));
        assert!(change != "mv out moved" || left.place.read("moved") == left.out);
    }
}

#[test]
fn of_a_damaged_note_no_line_is_lost() {
    let (left, all) = (Left::new("old\n"), BATCHES.concat());
    let flip = |at: usize| -> Vec<u8> {
        let flipped = left.note[at] ^ 1 << (at % 7);
        [&left.note[..at], &[flipped], &left.note[at + 1..]].concat()
    };
    let all_places = (0..left.note.len()).step_by(rounds(5, 1));
    let damages = all_places.flat_map(|at| [flip(at), left.note[..at].to_vec()]);
    let mut refused = 0;
    for (number, damaged) in damages.enumerate() {
        left.again(&left.out);
        left.place.write(NOTE, &damaged);
        let ran = left.place.koel_on(WORDS, &all);
        if ran.code != Some(0) {
            refused += 1;
            assert_eq!(ran.code, Some(2), "{number}: {}", ran.stderr);
            assert!(left.place.read("out") == left.out && left.place.read(NOTE) == damaged);
            continue;
        }
        assert!(is_subset(&all, &left.place.read("out")), "{number}: a line is gone");
        assert_eq!(left.place.known("seen.koel", &all), all, "{number}");
        assert_eq!(left.place.names(), ["out", "seen.koel"], "{number}");
    }
    println!("{refused} refused");
}

#[test]
fn what_could_harm_others_is_refused() {
    for (change, said) in [
        ("rm NOTE; mkfifo NOTE", "cannot read this note: it is not a regular file"),
        ("mv NOTE n; ln -s n NOTE", "cannot read this note: it is not a regular file"),
        ("rm out; ln -s out out", "out: cannot take in what a killed run has written there"),
        (
            "rm seen.koel; mv NOTE n; koel add seen.koel < /dev/null; mv n NOTE",
            ".seen.koel.koel-output is of another state than the one beside it; restore",
        ),
        ("chown 54321 NOTE", "this note belongs to the user"),
    ] {
        if change.starts_with("chown") && !rustix::process::geteuid().is_root() {
            println!("not tested: only root can give files away");
            continue;
        }
        let left = Left::new("");
        shell(&left.place, &change.replace("NOTE", NOTE));
        left.place.row("{dedup -o other -s,add,forget} seen.koel", "a\n", 2, "", said);
        assert!(is_there(&left.place.path(NOTE)) && !is_there(&left.place.path("other")));
    }
}

#[test]
fn the_output_of_a_living_run_is_not_cut_off() {
    let place = Place::new();
    place.make_state("seen.koel");
    let going = that_has_written(&place, WORDS, &[b"a\n", b"b\nc\n"]);
    place.write("copy.koel", place.read("seen.koel"));
    place.write(".copy.koel.koel-output", place.read(NOTE));
    // As if the run were in the middle of its second batch.
    place.write("out", "a\nb\nc");
    let said = ["out: cannot take in", "another koel is writing to it"];
    place.assert_refused(&said.map(|said| ("dedup -s copy.koel -o other", said)));
    going.end_by(Signal::KILL);
    place.ok("dedup -s copy.koel -o other", "b\nc\nx\n");
    assert_eq!((place.read("out"), place.read("other")), (b"a\nb\n".to_vec(), b"c\nx\n".to_vec()));
}

#[test]
fn lines_are_taken_in_by_the_options_of_the_run_that_was_killed() {
    for (words, then, first, second) in [
        ("--zero", "--zero --field 2", &b"aa\0"[..], &b"bb\0cc\0"[..]),
        ("--field 2 --delimiter ,", "", b"1,aa\n", b"2,bb\n3,cc\n"),
        ("--json-field a.b", "", b"{\"a\":{\"b\":1}}\n", b"{\"a\":{\"b\":2}}\n{\"a\":3}\n"),
        ("--url --sort-query", "", b"http://a/?b&a\n", b"http://a/?c&a\nhttp://a/?d&a\n"),
        ("--ignore-case", "", "\u{c4}a\n".as_bytes(), "\u{c4}b\n\u{c4}c\n".as_bytes()),
        ("--keep-cr", "", b"a\r\n", b"b\r\nc\r\n"),
        ("", "--keep-cr", b"a\r\n", b"b\r\nc\r\n"),
    ] {
        let place = Place::new();
        let words = format!("dedup -s s.koel {words} -o out");
        that_has_written(&place, &words, &[first, second]).end_by(Signal::KILL);
        let all = [first, second].concat();
        place.write("out", &all[..all.len() - 1]);
        place.ok(&format!("dedup -s s.koel {then} -o out"), "").has("took in 2 lines");
        place.ok(&words, &all);
        assert_same(&place.read("out"), &all, &words);
    }
}

/// Kills a run, and cuts its last line off in the middle.
fn leave_an_output(place: &Place) {
    place.make_state("seen.koel");
    that_has_written(place, WORDS, &[b"one\ntwo\nthree\n"]).end_by(Signal::KILL);
    place.write("out", "one\ntwo\nthre");
}

/// Ends a program that has not closed its filter.
fn leave_a_journal(place: &Place) {
    let filter = DurableFilter::open(place.path("seen.koel"), builder_of_states()).unwrap();
    for line in ["one", "two"] {
        filter.insert(line.as_bytes()).unwrap();
    }
}

#[test]
fn commands_that_change_a_state_take_in_what_is_left_and_others_say_that_there_is_more() {
    for (leave, bytes, file) in [
        (leave_an_output as fn(&Place), "12 B", "/out"),
        (leave_a_journal, "12.00 KiB", "seen.koel.journal.1"),
    ] {
        let place = Place::new();
        leave(&place);
        let before = place.all();
        for words in each("{query,dedup --count -s} seen.koel") {
            let ran = place.koel_on(&words, b"a\n");
            ran.has(&format!("seen.koel: newer changes, {bytes} of them, are in "));
            ran.has(&format!(
                "{file}, and not read here: another run is using the state, or was killed or"
            ));
            place.koel_on(&format!("{words} --quiet"), b"a\n").has("");
        }
        // A union without them would lack lines, and nobody would know.
        let said = "has left: koel add seen.koel < /dev/null";
        place.assert_refused(&[("merge new.koel seen.koel", said)]);
        let info = place.ok("info seen.koel", "");
        let said = format!("  besides    {bytes} of newer changes, in ");
        assert!(info.text().contains(&said), "{}", info.text());
        assert!(place.info("seen.koel")["unsaved_bytes"].as_u64() > Some(0));
        assert!(place.all() == before);
        for (words, known) in [
            ("add seen.koel", "one\ntwo\nx\n"),
            ("forget seen.koel", "one\ntwo\n"),
            ("compact seen.koel", "one\ntwo\n"),
            ("merge seen.koel other.koel", "one\ntwo\ny\n"),
            ("dedup -s seen.koel", "one\ntwo\nx\n"),
        ] {
            let place = Place::new();
            leave(&place);
            place.make_state("other.koel");
            place.ok("add other.koel", b"y\n");
            let ran = place.koel_on(words, b"x\n");
            assert!(matches!(ran.code, Some(0 | 1)), "{words}: {}", ran.stderr);
            let is = place.known("seen.koel", b"one\ntwo\nthree\nthre\nx\ny\n");
            assert_same(&is, known.as_bytes(), words);
            let mut left = place.names();
            left.retain(|name| name != "out" || place.read(name) != b"one\ntwo\n");
            assert_eq!(left, ["other.koel", "seen.koel"], "{words}");
            assert!(DurableFilter::open(place.path("seen.koel"), builder_of_states()).is_ok());
        }
    }
}

#[test]
fn lines_that_are_taken_in_are_as_old_as_the_output() {
    let place = Place::new();
    place.make_aged_state("seen.koel", [(12, "old")]);
    that_has_written(&place, WORDS, &[b"new\n"]).end_by(Signal::KILL);
    let out = fs::OpenOptions::new().append(true).open(place.path("out")).unwrap();
    out.set_modified(SystemTime::now() - Duration::from_secs(10 * 86_400)).unwrap();
    place.ok("add seen.koel", b"x\n");
    let filter = ConcurrentCuckooFilter::<StableHash>::load(place.path("seen.koel")).unwrap();
    let ages = ["old", "new", "x"].map(|line| filter.age(line.as_bytes()));
    assert_eq!(ages, [Some(12), Some(5), Some(0)]);
}

#[test]
fn a_cut_is_on_the_disk_before_its_note_is_gone() {
    let left = Left::new("");
    left.place.write("out", b"a\nb");
    let calls = ["-e", "trace=ftruncate,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat"];
    let Some(ran) = straced(&left.place, &calls, WORDS) else { return };
    assert_eq!((ran.code, left.place.read("out")), (Some(0), b"a\n".to_vec()), "{}", ran.stderr);
    let log = String::from_utf8(left.place.read("log")).unwrap();
    let folder = left.place.path("").canonicalize().unwrap().display().to_string();
    let at =
        |what: &dyn Fn(&str) -> bool| log.lines().position(what).unwrap_or_else(|| panic!("{log}"));
    let steps = [
        at(&|line| line.contains("ftruncate(") && line.contains("/out>")),
        at(&|line| line.contains("sync(") && line.contains("/out>")),
        at(&|line| line.contains("sync(") && line.contains(&format!("{folder}>"))),
        at(&|line| line.contains("rename") && line.contains("seen.koel\"")),
        at(&|line| line.contains("unlink") && line.contains(NOTE)),
    ];
    assert!(steps.is_sorted(), "{log}");
}

/// Its state is gone.
#[test]
fn a_journal_without_changes_is_in_nobodys_way() {
    let place = Place::new();
    let open = || DurableFilter::open(place.path("seen.koel"), builder_of_states()).unwrap();
    open().insert(&b"two"[..]).unwrap();
    open();
    fs::remove_file(place.path("seen.koel")).unwrap();
    place.ok("add seen.koel", b"x\n");
    assert_eq!(place.names().len(), 2);
    let filter = open();
    assert!(filter.contains(&b"x"[..]) && !filter.contains(&b"two"[..]));
    filter.close().unwrap();
    assert_eq!(place.names(), ["seen.koel"]);
}

#[test]
fn a_state_is_not_replaced_while_only_a_journal_has_its_changes() {
    let place = Place::new();
    let mut run = place.start("dedup --state seen.koel --checkpoint 0.01");
    run.passes(b"first\n");
    wait_until("that it is saved", || place.known("seen.koel", b"first\n") == b"first\n");
    // As a program does that takes no notice of the claim.
    fs::remove_file(place.path(".seen.koel.koel-claim")).unwrap();
    let filter = DurableFilter::open(place.path("seen.koel"), builder_of_states()).unwrap();
    filter.insert(&b"other"[..]).unwrap();
    let before = place.read("seen.koel");
    run.passes(b"second\n");
    std::thread::sleep(Duration::from_millis(500));
    drop(run.stdin.take());
    let (status, said) = run.wait();
    assert_eq!(status.code(), Some(2), "{said}");
    let why = "seen.koel: newer changes are in a journal that another program has begun; try again";
    for end in [" (will be tried again)\n", "; 1 line could not be saved as seen"] {
        assert!(said.contains(&format!("{why}{end}")), "{said}");
    }
    assert!(place.read("seen.koel") == before);
    filter.close().unwrap();
    assert_same(&place.known("seen.koel", b"other\n"), b"other\n", "what is known");
}

#[test]
fn what_the_library_has_lost_is_told() {
    let said = "its journal was damaged; changes lost by that: 1";
    let stays = ": cannot remove its old journal";
    for fails in [false, true] {
        let place = Place::new();
        let filter = DurableFilter::open(place.path("seen.koel"), builder_of_states()).unwrap();
        filter.insert(&b"one"[..]).unwrap();
        drop(filter);
        let mut journal = place.read("seen.koel.journal.1");
        let first = (4 << 10) + 16;
        assert!(journal[first..first + 16].iter().any(|byte| *byte != 0));
        journal[first + 9] ^= 1;
        place.write("seen.koel.journal.1", &journal);
        place.write("lines", "two\n");
        let words = "add seen.koel lines";
        let ran = match fails {
            false => place.koel(words),
            true => {
                let path = place.path("").canonicalize().unwrap().join("seen.koel.journal.1");
                let calls = "unlink,unlinkat";
                let ran = injected(&place, Some(&path), calls, "error=EPERM", words);
                let Some(ran) = ran else { return };
                ran
            }
        };
        assert_eq!(ran.code, Some(if fails { 2 } else { 0 }), "{}", ran.stderr);
        ran.has(said);
        assert_eq!(ran.stderr.contains(stays), fails, "{}", ran.stderr);
        assert_eq!(ran.stderr.contains("Operation not permitted"), fails, "{}", ran.stderr);
        place.ok(words, "");
        assert_eq!(place.known("seen.koel", b"one\ntwo\n"), b"two\n");
        assert_eq!(place.names().len(), if fails { 3 } else { 2 });
    }
}

#[test]
fn lines_are_taken_in_whatever_the_limit_of_the_state() {
    let lines = numbered(0..100_000);
    for (first, then) in [("256K", 1 << 30), ("256K", 1 << 28), ("1G", 1 << 30)] {
        let place = Place::new();
        place.ok(&format!("{WORDS} --max-memory {first}"), "");
        let words = format!("{WORDS} --max-memory {then}");
        that_has_written(&place, &words, &[&lines]).end_by(Signal::KILL);
        let left = Left::of(place);
        for words in ["add seen.koel", &words, "forget seen.koel"] {
            left.again(&lines);
            let ran = left.place.koel_on(words, b"");
            assert!(matches!(ran.code, Some(0 | 1)), "{words}: {}", ran.stderr);
            assert!(
                ran.stderr.ends_with(" 100,000 lines of a run that was killed\n"),
                "{}",
                ran.stderr
            );
            assert_same(&left.place.known("seen.koel", &lines), &lines, words);
        }
        // As if its run had been allowed less.
        let [is, less] = [then, 200_000].map(|bytes| format!("\"max_bytes\":{bytes}"));
        let note = String::from_utf8(left.note.clone()).unwrap();
        left.again(&lines);
        left.place.write(NOTE, note.replace(&is, &less));
        let ran = left.place.ok("add seen.koel", "");
        ran.has("took in 100,000 lines of a run that was killed; it takes ");
        ran.has(" of memory now, more than that run allowed\n");
        // The limit of this command is another matter.
        let said = "memory; raise --max-memory";
        left.place.assert_refused(&[("{dedup -s,add} seen.koel --max-memory 256K", said)]);
    }
}
