//! Killed runs: a run that is killed at any moments, any number of times, and repeated until it completes leaves what
//! a run leaves that nobody disturbed.

use crate::common::*;
use crate::dedup::folders::{new_in_each, packed, unpacked};
use std::fs;
use std::io::pipe;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// Lines of 64 bytes, many of which are repeated soon.
fn input(lines: u32) -> Vec<u8> {
    let number = |at: u32| if at % 3 == 2 { at / 2 } else { at };
    (0..lines).flat_map(|at| format!("{:063}\n", number(at)).into_bytes()).collect()
}

/// Writes the input, and what a run makes of it that nobody disturbs. Returns that, and how long it took.
fn undisturbed(place: &Place, lines: u32) -> (Vec<u8>, Duration) {
    place.write("lines", input(lines));
    place.make_state("undisturbed.koel");
    let start = Instant::now();
    place.ok("dedup -s undisturbed.koel -o undisturbed lines", "");
    let took = start.elapsed();
    place.make_state("seen.koel");
    (place.read("undisturbed"), took)
}

/// Checks what is left in the end.
#[track_caller]
fn assert_done(place: &Place, expected: &[u8]) {
    assert_same(&place.known("seen.koel", expected), expected, "what is known");
    let is_left = |name: &String| name.contains("koel-output") || name.contains("claim");
    assert!(!place.names().iter().any(is_left), "{:?}", place.names());
}

/// Repeats a run until it completes. The first runs, at most `kills_at_most`, are killed after a random time. Returns
/// the number of kills.
fn killed_until_done(
    took: Duration,
    kills_at_most: usize,
    seed: usize,
    mut start: impl FnMut(usize) -> Going,
    mut check: impl FnMut(),
) -> usize {
    let mut random = Random(seed as u64);
    for round in 0.. {
        let mut going = start([1, 2, 8][round % 3]);
        if round < kills_at_most {
            let most = took.as_micros() as usize / 3;
            thread::sleep(Duration::from_micros(random.below(most) as u64));
            let _ = going.child.kill();
        }
        let (status, stderr) = going.wait();
        check();
        if status.code() == Some(0) {
            return round;
        }
        assert_eq!(status.code(), None, "{stderr}");
        assert!(round < kills_at_most, "{stderr}");
    }
    unreachable!()
}

#[test]
fn an_output_is_that_of_a_run_that_nobody_disturbed() {
    // In a state that forgets, with this seed, no two of so many lines share a fingerprint.
    let forgetting = "--seed 7 --forget-after 30d --refresh --checkpoint 0.02";
    let lines = rounds(300_000, 1_500_000);
    for (options, lines) in [("", lines), ("--checkpoint 0.01", lines), (forgetting, 300_000)] {
        let place = Place::new();
        let (expected, took) = undisturbed(&place, lines);
        if options == forgetting {
            fs::remove_file(place.path("seen.koel")).unwrap();
        }
        let words = format!("dedup -s seen.koel -o out {options} lines --threads");
        let start = |threads| place.start(&format!("{words} {threads}"));
        let check = || {
            let out = fs::read(place.path("out")).unwrap_or_default();
            assert_same(&out, &expected[..out.len().min(expected.len())], options);
            let has_state = place.path("seen.koel").exists();
            assert!(
                !has_state || is_subset(&place.known("seen.koel", &expected), &out),
                "{options}"
            );
        };
        let kills = killed_until_done(took, rounds(6, 50), 8 + options.len(), start, check);
        println!("{options}: {kills} kills");
        assert_same(&place.read("out"), &expected, "the output");
        assert_done(&place, &expected);
    }
}

#[test]
fn of_what_goes_into_a_pipe_no_line_is_lost() {
    for options in ["", "--checkpoint 0.01"] {
        let place = Place::new();
        let (expected, took) = undisturbed(&place, rounds(300_000, 1_500_000));
        let (reader, writer) = pipe().unwrap();
        let reader = collect(reader);
        let start = |threads| {
            let words = format!("dedup -s seen.koel {options} --threads {threads} lines");
            let mut command = place.command(&words.split_whitespace().collect::<Vec<_>>());
            command.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(Stdio::piped());
            Going::start_as_it_is(&mut command)
        };
        let kills = killed_until_done(took, rounds(6, 40), 3 + options.len(), start, || ());
        println!("{options}: {kills} kills");
        drop(writer);
        assert!(set(&reader.join().unwrap()) == set(&expected), "a line is missing");
        assert_done(&place, &expected);
    }
}

/// Of files in a folder, each is there as a whole, or not at all.
#[test]
fn files_in_a_folder_are_those_of_a_run_that_nobody_disturbed() {
    let most = rounds(40_000, 200_000);
    let names = ["a", "b.gz", "c.zst", "d", "e.gz"];
    let texts: Vec<Vec<u8>> =
        (0..5).map(|at| padded(at * most / 2..(at + 2) * most / 2).repeat(2)).collect();
    let all = texts.concat();
    let expected = new_in_each(&texts.iter().map(|text| &text[..]).collect::<Vec<_>>());
    for before in ["", "before\n"] {
        let place = Place::new();
        fs::create_dir(place.path("in")).unwrap();
        let reset = || {
            place.make_state("seen.koel");
            let _ = fs::remove_dir_all(place.path("out"));
            fs::create_dir(place.path("out")).unwrap();
            for name in names.iter().filter(|_| !before.is_empty()) {
                place.write(&format!("out/{name}"), packed(name, before.as_bytes()));
            }
        };
        for (name, text) in names.iter().zip(&texts) {
            place.write(&format!("in/{name}"), packed(name, text));
        }
        let inputs = names.map(|name| format!("in/{name}")).join(" ");
        let words = format!("dedup -s seen.koel --output-dir out {inputs} --threads");
        reset();
        let start = Instant::now();
        place.ok(&format!("{words} 2"), "");
        let took = start.elapsed();
        let mut kills = 0;
        for round in 0..rounds(3, 12) {
            reset();
            let start = |threads| place.start(&format!("{words} {threads}"));
            let check = || {
                let mut written = Vec::new();
                for (name, expected) in names.iter().zip(&expected) {
                    let Ok(file) = fs::read(place.path(&format!("out/{name}"))) else { continue };
                    let lines = unpacked(&file);
                    let new = lines.strip_prefix(before.as_bytes()).expect("what was there");
                    if !new.is_empty() {
                        assert_same(new, expected, name);
                    }
                    written.extend_from_slice(new);
                }
                assert!(is_subset(&place.known("seen.koel", &all), &written));
            };
            kills += killed_until_done(took * 3, rounds(6, 20), 90 + round, start, check);
            for (name, expected) in names.iter().zip(&expected) {
                let lines = unpacked(&place.read(&format!("out/{name}")));
                assert_same(&lines, &[before.as_bytes(), expected].concat(), name);
            }
            assert_same(&place.known("seen.koel", &all), &all, "what is known");
            // Lines of others are not taken in.
            assert_eq!(place.known("seen.koel", b"before\n"), b"");
            assert_eq!(place.names(), ["in", "out", "seen.koel"]);
            assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), names.len());
        }
        println!("{kills} kills");
    }
}

/// Starts a run that has written these lines.
pub fn that_has_written(place: &Place, words: &str, lines: &[&[u8]]) -> Going {
    let mut going = place.start(words);
    for lines in lines {
        going.feed(lines);
        match words.contains(" -o out") {
            true => wait_until("that it is written", || {
                fs::read(place.path("out")).is_ok_and(|out| out.ends_with(lines))
            }),
            false => assert_same(&going.next(lines.len()), lines, "what is printed"),
        }
        // It is counted then.
        going.is_idle();
    }
    going
}
