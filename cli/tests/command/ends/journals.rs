//! The journal of a killed run: damaged, beside another state, with another output, and used by other commands.

use crate::common::*;
use crate::ends::kills::that_has_written;
use koel::{ConcurrentCuckooFilter, DurableErrorKind, DurableFilter, StableHash};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;

const WORDS: &str = "dedup -s seen.koel -o out";

/// Leaves what a killed run leaves that has written these batches to `out`. Returns the journal.
fn killed(place: &Place, words: &str, batches: &[&[u8]]) -> Vec<u8> {
    if !place.path("seen.koel").exists() {
        place.make_state("seen.koel");
    }
    let going = that_has_written(place, words, batches);
    going.signal(Signal::KILL);
    going.wait();
    place.read(JOURNAL)
}

const JOURNAL: &str = "seen.koel.journal.1";

fn bytes(text: &str) -> &[u8] {
    text.as_bytes()
}

const BATCHES: [&[u8]; 3] = [b"a\nb\nc\n", b"dddddddd\n", b"e\nf\ng\n"];

fn builder() -> koel::Builder<StableHash> {
    ConcurrentCuckooFilter::builder().capacity(10_000).hasher(StableHash::with_seed(7)).growing()
}

#[test]
fn of_a_damaged_journal_a_beginning_counts() {
    let place = Place::new();
    let journal = killed(&place, WORDS, &BATCHES);
    let (state, out) = (place.read("seen.koel"), place.read("out"));
    let all = BATCHES.concat();
    let (mut refused, mut doubled) = (0, 0);
    let step = rounds(13, 1);
    let flips = (0..journal.len()).step_by(step).map(|at| {
        let mut damaged = journal.clone();
        damaged[at] ^= 1 << (at % 8);
        damaged
    });
    let cuts = (0..journal.len()).step_by(step).map(|length| journal[..length].to_vec());
    for (number, damaged) in flips.chain(cuts).enumerate() {
        place.write("seen.koel", &state);
        place.write("out", &out);
        place.write(JOURNAL, &damaged);
        let ran = place.koel_on(WORDS, &all);
        if ran.code != Some(0) {
            refused += 1;
            assert_eq!(ran.code, Some(2), "{number}: {}", ran.stderr);
            assert!(ran.stderr.contains("journal"), "{number}: {}", ran.stderr);
            assert!(place.read("out") == out && place.read(JOURNAL) == damaged, "{number}");
            continue;
        }
        let now = place.read("out");
        // What does not count is written again, and that is the end of the lines.
        let again =
            now.strip_prefix(&out[..]).unwrap_or_else(|| panic!("{number}: lines are gone"));
        assert!(all.ends_with(again), "{number}: {}", again.escape_ascii());
        doubled += usize::from(!again.is_empty());
        assert!(place.known("seen.koel", &all) == all, "{number}");
        assert_eq!(place.names(), ["out", "seen.koel"], "{number}");
    }
    println!("{refused} refused, {doubled} written again");
    assert!(refused > 0 && doubled > 0);
}

#[test]
fn what_an_output_has_lost_is_written_again() {
    let place = Place::new();
    let journal = killed(&place, WORDS, &BATCHES);
    let (state, out) = (place.read("seen.koel"), place.read("out"));
    let all = BATCHES.concat();
    for length in 0..=out.len() {
        place.write("seen.koel", &state);
        place.write("out", &out[..length]);
        place.write(JOURNAL, &journal);
        let ran = place.koel_on(WORDS, &all);
        assert_eq!(ran.code, Some(0), "{length}: {}", ran.stderr);
        assert_same(&place.read("out"), &all, "the output");
        assert!(place.known("seen.koel", &all) == all, "{length}");
    }
    // A copy has another number.
    place.write("seen.koel", &state);
    place.write("copy", &out[..out.len() - 1]);
    fs::rename(place.path("copy"), place.path("out")).unwrap();
    place.write(JOURNAL, &journal);
    assert_eq!(place.koel_on(WORDS, &all).code, Some(0));
    assert_same(&place.read("out"), &all, "the output");
    // The bytes of a batch that were never on the disk.
    let mut holes = out.clone();
    holes[6..15].fill(0);
    place.write("seen.koel", &state);
    place.write("out", &holes);
    place.write(JOURNAL, &journal);
    assert_eq!(place.koel_on(WORDS, &all).code, Some(0));
    assert_same(&place.read("out"), &[&holes[..], &all[6..]].concat(), "the output");
}

#[test]
fn what_others_have_appended_is_not_cut_off() {
    let place = Place::new();
    let journal = killed(&place, WORDS, &BATCHES);
    let (state, out) = (place.read("seen.koel"), place.read("out"));
    let all = BATCHES.concat();
    for (length, theirs, is) in [
        // A batch in part, and no more than its own bytes behind that.
        (15, "x\n", "x\ne\nf\ng\n"),
        (17, "x\n", "e\nx\ne\nf\ng\n"),
        (17, "x", "e\nx\ne\nf\ng\n"),
        // No part of the batch, and the beginning of a line.
        (15, "x", "x\ne\nf\ng\n"),
        // All of it.
        (21, "x\n", "e\nf\ng\nx\n"),
    ] {
        place.write("seen.koel", &state);
        place.write("out", [&out[..length], bytes(theirs)].concat());
        place.write(JOURNAL, &journal);
        let ran = place.koel_on(WORDS, &all);
        assert_eq!(ran.code, Some(0), "{length} {theirs:?}: {}", ran.stderr);
        let expected = [&out[..15], bytes(is)].concat();
        // An incomplete line that follows complete ones of the batch may be one of its own.
        let cut = [&out[..15], bytes("e\nf\ng\n")].concat();
        let now = place.read("out");
        let may_be_cut = (length, theirs) == (17, "x");
        assert!(now == expected || may_be_cut && now == cut, "{theirs:?}: {}", now.escape_ascii());
    }
}

#[test]
fn lines_count_that_others_have_appended_between() {
    let place = Place::new();
    place.make_state("seen.koel");
    let mut going = that_has_written(&place, WORDS, &[b"a\n"]);
    fs::write(place.path("out"), "a\ntheirs\n").unwrap();
    going.feed(b"b\n");
    wait_until("a line", || place.read("out") == b"a\ntheirs\nb\n");
    // Somebody has taken them away.
    fs::write(place.path("out"), "").unwrap();
    going.feed(b"c\n");
    wait_until("a line", || place.read("out") == b"c\n");
    going.is_idle();
    going.signal(Signal::KILL);
    going.wait();
    let ran = place.koel_on(WORDS, b"a\nb\nc\nd\n");
    assert_eq!((ran.code, place.read("out")), (Some(0), b"c\nd\n".to_vec()), "{}", ran.stderr);
}

#[test]
fn an_output_that_has_moved_has_what_it_has() {
    let all = BATCHES.concat();
    let more = [&all[..], b"h\n"].concat();
    for (output, moves, removes) in
        [("other", false, false), ("out", true, false), ("out", false, true)]
    {
        let place = Place::new();
        killed(&place, WORDS, &BATCHES);
        if moves {
            fs::rename(place.path("out"), place.path("moved")).unwrap();
        }
        if removes {
            fs::remove_file(place.path("out")).unwrap();
        }
        let ran = place.koel_on(&format!("dedup -s seen.koel -o {output}"), &more);
        assert_eq!((ran.code, place.read(output)), (Some(0), b"h\n".to_vec()), "{}", ran.stderr);
        assert_eq!(place.known("seen.koel", &more), more);
        for name in ["out", "moved"].into_iter().filter(|name| *name != output) {
            assert!(!place.path(name).exists() || place.read(name) == all);
        }
    }
    // What is not there for certain is written again.
    let place = Place::new();
    let journal = killed(&place, WORDS, &BATCHES);
    place.write(JOURNAL, &journal[..journal.len() - 32]);
    fs::remove_file(place.path("out")).unwrap();
    place.koel_on(WORDS, &more);
    assert_eq!(place.read("out"), b"e\nf\ng\nh\n");
    // And what the other output lacks, in the new one.
    let place = Place::new();
    killed(&place, WORDS, &BATCHES);
    place.write("out", b"a\nb\nc\nddd");
    place.koel_on("dedup -s seen.koel -o other", &more);
    assert_eq!(place.read("out"), b"a\nb\nc\n");
    assert_eq!(place.read("other"), b"dddddddd\ne\nf\ng\nh\n");
}

#[test]
fn standard_output_that_is_a_file_is_as_good() {
    let place = Place::new();
    place.make_state("seen.koel");
    let append =
        || fs::OpenOptions::new().append(true).create(true).open(place.path("out")).unwrap();
    let all = BATCHES.concat();
    let mut command = place.command(&["dedup", "-s", "seen.koel"]);
    command.stdin(std::process::Stdio::piped()).stdout(append());
    let mut going = Going::start_as_it_is(&mut command);
    for lines in BATCHES {
        going.feed(lines);
        wait_until("a batch", || place.read("out").ends_with(lines));
    }
    going.is_idle();
    going.signal(Signal::KILL);
    going.wait();
    place.write("out", &all[..all.len() - 3]);
    let mut command = place.command(&["dedup", "-s", "seen.koel"]);
    command.stdin(std::process::Stdio::piped()).stdout(append());
    let mut going = Going::start_as_it_is(&mut command);
    going.feed(&all);
    drop(going.stdin.take());
    assert_eq!(going.wait().0.code(), Some(0));
    assert_same(&place.read("out"), &all, "the output");
}

#[test]
fn the_options_that_compare_lines_may_change() {
    // What is cut off is found by the options of the run that was killed.
    for (words, then, first, second) in [
        ("--zero", "--zero --field 2", bytes("aa\0"), bytes("bb\0cc\0")),
        ("--field 2 --delimiter ,", "", b"1,aa\n", b"2,bb\n3,cc\n"),
        ("--url --sort-query", "", b"http://a/?b&a\n", b"http://a/?c&a\nhttp://a/?d&a\n"),
        ("--ignore-case", "", bytes("Äa\n"), bytes("Äb\nÄc\n")),
        ("--keep-cr", "", b"a\r\n", b"b\r\nc\r\n"),
        ("", "--keep-cr", b"a\r\n", b"b\r\nc\r\n"),
    ] {
        let place = Place::new();
        let words = format!("dedup -s s.koel {words} -o out");
        let going = that_has_written(&place, &words, &[first, second]);
        going.signal(Signal::KILL);
        going.wait();
        let all = [first, second].concat();
        place.write("out", &all[..all.len() - 1]);
        let ran = place.koel_on(&format!("dedup -s s.koel {then} -o out"), b"");
        assert_eq!((ran.code, place.read("out")), (Some(0), first.to_vec()), "{}", ran.stderr);
        let ran = place.koel_on(&words, &all);
        assert_eq!((ran.code, place.read("out")), (Some(0), all), "{}", ran.stderr);
    }
}

#[test]
fn a_journal_of_another_state_is_refused() {
    let place = Place::new();
    let journal = killed(&place, WORDS, &BATCHES);
    let out = place.read("out");
    place.koel_on("add other.koel", b"x\n");
    let other = place.read("other.koel");
    for replace in [true, false] {
        match replace {
            true => place.write("seen.koel", &other),
            false => fs::remove_file(place.path("seen.koel")).unwrap(),
        }
        for words in [WORDS, "add seen.koel", "forget seen.koel", "merge seen.koel other.koel"] {
            let ran = place.koel_on(words, b"a\n");
            assert_eq!(ran.code, Some(2), "{words}: {}", ran.stderr);
            let said = "journal.1 has changes of another state than the one beside it; restore";
            assert!(ran.stderr.contains(said), "{words}: {}", ran.stderr);
            assert!(place.read(JOURNAL) == journal && place.read("out") == out);
            assert_eq!(place.path("seen.koel").exists(), replace, "{words}");
        }
    }
    fs::remove_file(place.path(JOURNAL)).unwrap();
    assert_eq!(place.koel_on(WORDS, b"a\n").code, Some(0));
}

#[test]
fn every_command_that_changes_a_state_takes_in_what_is_left() {
    let all = BATCHES.concat();
    for (words, known) in [
        ("add seen.koel", [&all[..], b"x\n"].concat()),
        ("forget seen.koel", all.clone()),
        ("merge seen.koel other.koel", [&all[..], b"y\n"].concat()),
        ("dedup -s seen.koel", [&all[..], b"x\n"].concat()),
    ] {
        let place = Place::new();
        killed(&place, WORDS, &BATCHES);
        // Of the last batch, there is only a part.
        let out = place.read("out");
        place.write("out", &out[..out.len() - 1]);
        let is_there = |line: &&[u8]| !BATCHES[2].windows(2).any(|of_it| of_it == *line);
        place.make_state("other.koel");
        place.koel_on("add other.koel", b"y\n");
        let ran = place.koel_on(words, b"x\n");
        assert!(matches!(ran.code, Some(0 | 1)), "{words}: {}", ran.stderr);
        let known: Vec<_> = lines_of(&known).into_iter().filter(is_there).collect();
        let known = known.concat();
        let asked = [&all[..], b"x\ny\n"].concat();
        assert_same(&place.known("seen.koel", &asked), &known, words);
        assert_eq!(place.read("out"), b"a\nb\nc\ndddddddd\n", "{words}");
        assert_eq!(place.names(), ["other.koel", "out", "seen.koel"], "{words}");
    }
}

#[test]
fn commands_that_only_read_say_that_there_is_more() {
    let place = Place::new();
    let journal = killed(&place, WORDS, &BATCHES);
    let state = place.read("seen.koel");
    let said = "seen.koel: newer changes, ";
    for words in ["query seen.koel", "dedup --count -s seen.koel"] {
        let ran = place.koel_on(words, b"a\n");
        assert!(ran.stderr.contains(said), "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains(" are in seen.koel.journal.1,"), "{words}: {}", ran.stderr);
        let quiet = place.koel_on(&format!("{words} --quiet"), b"a\n");
        assert_eq!(quiet.stderr, "", "{words}");
    }
    // A union without them would lack lines, and nobody would know.
    let merged = place.koel("merge new.koel seen.koel");
    assert_eq!(merged.code, Some(2));
    assert!(merged.stderr.contains("seen.koel: newer changes are in"), "{}", merged.stderr);
    assert!(merged.stderr.contains("koel add seen.koel < /dev/null"), "{}", merged.stderr);
    assert!(!is_there(&place.path("new.koel")));
    let info = String::from_utf8(place.koel("info seen.koel").stdout).unwrap();
    assert!(info.contains(" of newer changes, in seen.koel.journal.1\n"), "{info}");
    let info = place.koel("info --json seen.koel").stdout;
    let info: serde_json::Value = serde_json::from_slice(&info).unwrap();
    assert!((100..1_000).contains(&info["journal_bytes"].as_u64().unwrap()), "{info}");
    assert!(place.read("seen.koel") == state && place.read(JOURNAL) == journal);
    // It is not for one that is in the state already.
    let again = place.koel_on(WORDS, &BATCHES.concat());
    assert_eq!(again.code, Some(0));
    place.write(JOURNAL, &journal);
    let ran = place.koel_on("query seen.koel", b"a\n");
    assert!(!ran.stderr.contains(said), "{}", ran.stderr);
    // A left one of an older state is another state's, if nothing says that it came before.
    let ran = place.koel_on(WORDS, b"");
    assert!(ran.stderr.contains("of another state"), "{}", ran.stderr);
}

#[test]
fn the_library_leaves_it_to_the_command() {
    let place = Place::new();
    killed(&place, WORDS, &BATCHES);
    let error = DurableFilter::open(place.path("seen.koel"), builder()).err().unwrap();
    assert_eq!(error.kind(), DurableErrorKind::Journal);
    let said = error.to_string();
    assert!(
        said.ends_with("it was left by a `koel dedup` that was killed; run it again first"),
        "{said}"
    );
    assert_eq!(place.koel_on(WORDS, b"").code, Some(0));
    let filter = DurableFilter::open(place.path("seen.koel"), builder()).unwrap();
    assert!(filter.contains(&b"dddddddd"[..]));
}

#[test]
fn the_command_takes_in_what_the_library_has_left() {
    let all = b"one\ntwo\nthree\n";
    for words in ["dedup -s seen.koel", "add seen.koel", "forget seen.koel"] {
        let place = Place::new();
        {
            let filter = DurableFilter::open(place.path("seen.koel"), builder()).unwrap();
            for line in ["one", "two"] {
                filter.insert(line.as_bytes()).unwrap();
            }
        }
        let query = place.koel_on("query seen.koel", all);
        assert!(query.stderr.contains("newer changes"), "{}", query.stderr);
        assert_eq!(query.stdout, b"");
        let ran = place.koel_on(words, b"three\n");
        assert!(matches!(ran.code, Some(0 | 1)), "{words}: {}", ran.stderr);
        let known = if words.starts_with("forget") { &b"one\ntwo\n"[..] } else { all };
        assert_same(&place.known("seen.koel", all), known, words);
        assert_eq!(place.names(), ["seen.koel"], "{words}");
        let filter = DurableFilter::open(place.path("seen.koel"), builder()).unwrap();
        assert!(filter.contains(&b"two"[..]));
        drop(filter);
        // The state is gone, and they are left.
        fs::remove_file(place.path("seen.koel")).unwrap();
        let ran = place.koel_on("add seen.koel", b"x\n");
        assert_eq!(
            (ran.code, place.names()),
            (Some(0), vec!["seen.koel".into()]),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn what_the_library_has_lost_is_told() {
    let place = Place::new();
    let filter = DurableFilter::open(place.path("seen.koel"), builder()).unwrap();
    filter.insert(&b"one"[..]).unwrap();
    drop(filter);
    let mut journal = place.read(JOURNAL);
    let first = (4 << 10) + 16;
    assert!(journal[first..first + 16].iter().any(|byte| *byte != 0));
    journal[first + 9] ^= 1;
    place.write(JOURNAL, &journal);
    let ran = place.koel_on("add seen.koel", b"two\n");
    assert!(ran.stderr.contains("its journal was damaged, and 1 change behind"), "{}", ran.stderr);
    assert_eq!(place.known("seen.koel", b"one\ntwo\n"), b"two\n");
}

#[test]
fn refreshed_lines_are_remembered_by_the_journal() {
    const TICK: u64 = 2 * 86_400;
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let number = |before: u64| TICK << 36 | (now / TICK - before);
    let place = Place::new();
    let filter = builder().remembers(14).build().unwrap();
    filter.tick_to(number(12));
    ["old", "refreshed"].iter().for_each(|line| filter.insert(*line).unwrap());
    filter.save(place.path("seen.koel")).unwrap();
    let mut going = place.start("dedup -s seen.koel --refresh -o out");
    going.feed(b"refreshed\nnew\n");
    wait_until("a line", || fs::read(place.path("out")).is_ok_and(|out| out == b"new\n"));
    going.is_idle();
    going.feed(b"refreshed\nnew\n");
    going.is_idle();
    going.signal(Signal::KILL);
    going.wait();
    assert_eq!(place.koel_on("add seen.koel", b"").code, Some(0));
    let filter = ConcurrentCuckooFilter::<StableHash>::load(place.path("seen.koel")).unwrap();
    let ages = ["old", "refreshed", "new"].map(|line| filter.age(line.as_bytes()));
    assert_eq!(ages, [Some(12), Some(0), Some(0)]);
}

#[test]
fn a_long_journal_has_the_state_saved() {
    let place = Place::new();
    place.make_state("seen.koel");
    let before = place.read("seen.koel");
    // Eight bytes each, and it is long with 32 MiB.
    let lines: Vec<u8> =
        (0..4_400_000).flat_map(|n: u32| format!("{n:x}\n").into_bytes()).collect();
    place.write("lines", &lines);
    let mut words = place.command(&["dedup", "-s", "seen.koel", "-o", "out", "lines", "-"]);
    let mut going = Going::start(&mut words);
    let journal: PathBuf = place.path("seen.koel.journal.2");
    wait_until("a save", || place.read("seen.koel") != before && !place.path(JOURNAL).exists());
    assert!(journal.exists());
    going.signal(Signal::KILL);
    drop(going.stdin.take());
    going.wait();
    assert_eq!(place.koel("dedup -s seen.koel -o out lines").code, Some(0));
    assert_same(&place.read("out"), &lines, "the output");
}
