//! Killed runs: a run that is killed at any moments, any number of times, and repeated until it completes leaves what
//! a run leaves that nobody disturbed. Each scene is killed at random times, and at each of its system calls.

use crate::common::*;
use crate::dedup::folders::{new_in_each, packed, unpacked};
use crate::ends::system_calls::killed_at;
use std::fs;
use std::io::pipe;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// A run that appends lines to files and remembers them in a state.
struct Scene {
    place: Place,
    words: String,
    /// The state, and what else is there when the run begins.
    begin: Vec<(String, Vec<u8>)>,
    /// The files, and the lines that the run adds to each.
    files: Vec<(String, Vec<u8>)>,
    /// The lines that each file has when the run begins. The state does not have them.
    before: &'static [u8],
    /// Whether a file is there as a whole or not at all.
    is_whole: bool,
}

const NOTE: &str = ".seen.koel.koel-output";

/// Lines of 64 bytes, many of which are repeated soon.
fn input(lines: u32) -> Vec<u8> {
    let number = |at: u32| if at % 3 == 2 { at / 2 } else { at };
    (0..lines).flat_map(|at| format!("{:063}\n", number(at)).into_bytes()).collect()
}

fn empty_state(place: &Place) -> (String, Vec<u8>) {
    place.make_state("seen.koel");
    ("seen.koel".into(), place.read("seen.koel"))
}

impl Scene {
    /// A run into one file.
    fn of_output(lines: u32, options: &str) -> Scene {
        let place = Place::new();
        let input = input(lines);
        place.write("lines", &input);
        let new = new_in_each(&[&input]).remove(0);
        let words = format!("dedup -s seen.koel -o out lines {options}");
        let (begin, files) = (vec![empty_state(&place)], vec![("out".into(), new)]);
        Scene { begin, place, words, files, before: b"", is_whole: false }
    }

    /// A run into a folder, in which each file may have a line already.
    fn of_folder(lines: u32, before: &'static [u8]) -> Scene {
        let place = Place::new();
        let names = ["a", "b.gz", "c.zst", "d", "e.gz"];
        let texts: Vec<Vec<u8>> =
            (0..5).map(|at| padded(at * lines / 2..(at + 2) * lines / 2).repeat(2)).collect();
        let news = new_in_each(&texts.iter().map(|text| &text[..]).collect::<Vec<_>>());
        let (mut begin, mut files) = (vec![empty_state(&place)], Vec::new());
        for ((name, text), new) in names.iter().zip(texts).zip(news) {
            place.write(&format!("in/{name}"), packed(name, &text));
            let name = format!("out/{name}");
            if !before.is_empty() {
                begin.push((name.clone(), packed(&name, before)));
            }
            files.push((name, new));
        }
        let inputs = names.map(|name| format!("in/{name}")).join(" ");
        let words = format!("dedup -s seen.koel --output-dir out {inputs}");
        Scene { place, words, begin, files, before, is_whole: true }
    }

    /// Leaves what is there when the run begins.
    fn reset(&self) {
        for name in ["seen.koel", NOTE, "out"] {
            if self.begin.iter().all(|(there, _)| there != name) {
                let path = self.place.path(name);
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
        }
        for (name, bytes) in &self.begin {
            self.place.write(name, bytes);
        }
    }

    /// All lines that the run adds.
    fn all(&self) -> Vec<u8> {
        self.files.iter().flat_map(|(_, new)| new.clone()).collect()
    }

    fn known(&self) -> Vec<u8> {
        let has_state = self.place.path("seen.koel").exists();
        if has_state { self.place.known("seen.koel", &self.all()) } else { Vec::new() }
    }

    /// Checks that the files have nothing else than what the run writes, and the state no line that they do not have.
    /// Returns the lines that they have.
    #[track_caller]
    fn written(&self) -> Vec<u8> {
        let mut written = Vec::new();
        for (name, new) in &self.files {
            let Ok(file) = fs::read(self.place.path(name)) else { continue };
            let lines = unpacked(&file);
            let is = lines.strip_prefix(self.before).expect("what was there");
            let may_be_less = !self.is_whole || is.is_empty();
            assert_same(is, if may_be_less { &new[..is.len().min(new.len())] } else { new }, name);
            written.extend_from_slice(is);
        }
        assert!(is_subset(&self.known(), &written), "{}: a line is not written", self.words);
        written
    }

    /// Checks what is left by the run that completes.
    #[track_caller]
    fn is_done(&self, what: &str) {
        assert_same(&self.written(), &self.all(), what);
        assert_same(&self.known(), &self.all(), what);
        // Lines of others are not taken in.
        assert!(self.place.known("seen.koel", self.before).is_empty());
        assert!(self.unfinished().is_empty(), "{what}: {:?}", self.unfinished());
        let folder = fs::read_dir(self.place.path("out"));
        assert!(folder.is_ok_and(|folder| folder.count() == self.files.len()) == self.is_whole);
    }

    /// Returns the names of what a run that is ended may leave: a claim, a note, files that are not in place.
    fn unfinished(&self) -> Vec<String> {
        let folders = ["", "out"].map(|name| fs::read_dir(self.place.path(name)));
        let files = folders.into_iter().flatten().flatten();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with('.')).collect()
    }

    /// Sends runs a signal at random times. After one that can be caught, exactly what is written is known.
    fn is_ended_at_random(&self, signal: Signal, rounds: usize, at_most: usize) {
        self.reset();
        let start = Instant::now();
        self.place.ok(&self.words, "");
        let took = start.elapsed();
        self.is_done("nobody disturbed it");
        let mut kills = 0;
        for round in 0..rounds {
            self.reset();
            let start = |threads| self.place.start(&format!("{} --threads {threads}", self.words));
            let seed = self.words.len() + round;
            kills += ended_until_done(signal, took, at_most, seed, start, || {
                let written = self.written();
                if signal != Signal::KILL {
                    assert_same(&self.known(), &written, "what is known");
                    // One that comes before it is watched for ends the run at once, when nothing is written.
                    assert!(self.unfinished().iter().all(|name| name.ends_with("-claim")));
                }
            });
            self.is_done(&format!("round {round}"));
        }
        println!("{}: {kills} times {signal:?}", self.words);
    }

    /// Kills commands at their calls of these numbers. After every second kill, another command takes in what is left,
    /// before the run is repeated.
    fn is_killed_at_calls(&self, killed: &str, calls: &[(&str, &[u32])]) {
        let mut kills = 0;
        for (call, numbers) in calls {
            for number in *numbers {
                self.reset();
                let Some(is_killed) = killed_at(&self.place, call, *number, killed) else { return };
                if !is_killed {
                    break;
                }
                kills += 1;
                let what = format!("{killed}: {call} {number}");
                let written = self.written();
                if kills % 2 == 0 && self.place.path("seen.koel").exists() {
                    let ran = self.place.ok("add seen.koel -", "");
                    assert!(!ran.stderr.contains("not the file any more"), "{}", ran.stderr);
                    let whole =
                        written.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                    assert_same(&self.known(), &written[..whole], &what);
                }
                self.place.ok(&self.words, "");
                self.is_done(&what);
            }
        }
        println!("{killed}: {kills} kills");
        assert!(kills > 5);
    }
}

/// Repeats a run until it completes. The first runs, at most so many, get a signal after a random time. Returns the
/// number of runs that the signal has ended.
fn ended_until_done(
    signal: Signal,
    took: Duration,
    at_most: usize,
    seed: usize,
    start: impl Fn(usize) -> Going,
    check: impl Fn(),
) -> usize {
    let mut random = Random(seed as u64);
    for round in 0.. {
        let going = start([1, 2, 8][round % 3]);
        if round < at_most {
            let most = took.as_micros() as usize / 2;
            thread::sleep(Duration::from_micros(random.below(most) as u64));
            going.signal(signal);
        }
        let (status, stderr) = going.wait();
        check();
        if status.code() == Some(0) {
            return round;
        }
        assert_eq!(status.signal(), Some(signal.as_raw()), "{stderr}");
        assert!(round < at_most, "{stderr}");
    }
    unreachable!()
}

#[test]
fn an_output_is_that_of_a_run_that_nobody_disturbed() {
    let lines = rounds(200_000, 1_500_000);
    for (options, signal) in
        [("", Signal::KILL), ("--checkpoint 0.01", Signal::KILL), ("--json", Signal::INT)]
    {
        Scene::of_output(lines, options).is_ended_at_random(signal, 1, rounds(6, 50));
    }
    // In a state that forgets, with this seed, no two of so many lines share a fingerprint.
    let forgetting = "--seed 7 --forget-after 30d --refresh --checkpoint 0.02";
    let scene =
        Scene { begin: Vec::new(), ..Scene::of_output(rounds(200_000, 300_000), forgetting) };
    scene.is_ended_at_random(Signal::KILL, 1, rounds(6, 50));
}

#[test]
fn files_in_a_folder_are_those_of_a_run_that_nobody_disturbed() {
    for before in [&b""[..], b"before\n"] {
        let scene = Scene::of_folder(rounds(40_000, 200_000), before);
        scene.is_ended_at_random(Signal::KILL, rounds(2, 12), rounds(6, 20));
        scene.is_ended_at_random(Signal::TERM, rounds(1, 3), rounds(6, 20));
    }
}

const CALLS: [&str; 6] = ["rename", "unlink", "fsync", "fdatasync", "openat", "write"];

#[test]
fn a_kill_at_any_call_of_a_run_takes_nothing() {
    let numbers = rounds(&[1, 3][..], &[1, 2, 3, 4, 5, 6, 7, 8, 12, 16]);
    for options in ["--checkpoint 0.01", ""] {
        let scene = Scene::of_output(rounds(100_000, 300_000), options);
        scene.is_killed_at_calls(&scene.words, &CALLS.map(|call| (call, numbers)));
    }
}

#[test]
fn a_kill_at_any_call_of_a_run_into_a_folder_takes_nothing() {
    let scene = Scene::of_folder(rounds(10_000, 40_000), b"");
    let numbers: Vec<u32> = (1..60).step_by(rounds(3, 1)).collect();
    let killed = format!("{} --threads 1", scene.words);
    scene.is_killed_at_calls(&killed, &CALLS.map(|call| (call, &numbers[..])));
}

#[test]
fn a_kill_at_any_call_of_taking_in_takes_nothing() {
    let mut scene = Scene::of_output(100_000, "");
    scene.reset();
    let Some(_) = killed_at(&scene.place, "write", 7, &scene.words) else { return };
    scene.begin =
        ["seen.koel", NOTE, "out"].map(|name| (name.into(), scene.place.read(name))).into();
    // A part of what was written last is there.
    let out = &mut scene.begin[2].1;
    out.truncate(out.len().next_multiple_of(1 << 20) - (1 << 20) + 1_000);
    let numbers: Vec<u32> = (1..200).collect();
    let opens: Vec<u32> = numbers.iter().map(|number| number * rounds(11, 1)).collect();
    let calls = CALLS.map(|call| (call, if call == "openat" { &opens[..] } else { &numbers }));
    scene.is_killed_at_calls("add seen.koel -", &[&calls[..], &[("ftruncate", &numbers)]].concat());
}

#[test]
fn of_what_goes_into_a_pipe_no_line_is_lost() {
    for options in ["", "--checkpoint 0.01"] {
        let scene = Scene::of_output(rounds(300_000, 1_500_000), "");
        let start = Instant::now();
        scene.place.ok("dedup lines", "");
        let took = start.elapsed();
        let (reader, writer) = pipe().unwrap();
        let reader = collect(reader);
        let start = |threads| {
            let words = format!("dedup -s seen.koel {options} --threads {threads} lines");
            let mut command = scene.place.command(&words);
            command.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(Stdio::piped());
            Going::start_as_it_is(&mut command)
        };
        let kills =
            ended_until_done(Signal::KILL, took, rounds(6, 40), 3 + options.len(), start, || ());
        println!("{options}: {kills} kills");
        drop(writer);
        assert!(set(&reader.join().unwrap()) == set(&scene.all()), "a line is missing");
        assert_same(&scene.known(), &scene.all(), "what is known");
        assert_eq!(scene.place.names(), ["lines", "seen.koel"]);
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
