//! Killed runs: repeating a run until it completes gives every line, and a state never has a line
//! that was not written.

use crate::common::*;
use rustix::process::Signal;
use std::collections::HashSet;
use std::thread;
use std::time::Duration;

/// Lines, many of which are repeated soon.
fn input() -> Vec<u8> {
    let number = |at: u32| if at % 3 == 2 { at / 2 } else { at };
    (0..rounds(150_000, 500_000))
        .flat_map(|at| format!("line number {}\n", number(at)).into_bytes())
        .collect()
}

#[test]
fn a_run_that_is_killed_can_be_resumed() {
    let place = Place::new();
    let all = input();
    place.write("lines", &all);
    let different: Vec<u8> = set(&all).concat();
    place.make_state("seen.koel");
    place.write("out", b"");
    let mut random = Random(8);
    let kills_at_most = rounds(4, 12);
    let (mut kills, mut with_something_saved) = (0, 0);
    for round in 0.. {
        let threads = [1, 2, 8][round % 3];
        let words =
            format!("dedup -s seen.koel -o out --checkpoint 0.05 --threads {threads} lines");
        let before = place.read("seen.koel");
        let mut going = place.start(&words);
        if round < kills_at_most {
            // Half of the kills come after a checkpoint, the others at any time.
            if random.below(2) == 0 {
                wait_until("a checkpoint", || {
                    place.read("seen.koel") != before || going.child.try_wait().unwrap().is_some()
                });
            }
            thread::sleep(Duration::from_micros(random.below(60_000) as u64));
            let _ = going.child.kill();
        }
        let (status, stderr) = going.wait();
        let known = place.known("seen.koel", &different);
        let out = place.read("out");
        assert!(is_subset(&known, &out), "a line is known but not in the output");
        if status.code() == Some(0) {
            assert_same(&known, &different, "what is known in the end");
            break;
        }
        assert_eq!(status.code(), None, "{stderr}");
        kills += 1;
        with_something_saved += u32::from(!known.is_empty());
        assert!(round < kills_at_most, "{stderr}");
    }
    println!("{kills} kills, {with_something_saved} of them with something saved");
    let out = place.read("out");
    assert!(is_subset(&different, &out), "a line is missing");
    // Each kill leaves at most one incomplete line, which is a line of its own.
    let all: HashSet<_> = lines_of(&all).into_iter().collect();
    let broken = lines_of(&out).into_iter().filter(|line| !all.contains(line)).count();
    assert!(broken <= kills, "{broken} lines that are none");
    assert_eq!(place.names(), ["lines", "out", "seen.koel"]);
}

#[test]
fn a_checkpoint_survives_a_kill() {
    let place = Place::new();
    place.make_state("seen.koel");
    let before = place.read("seen.koel");
    let mut going = place.start("dedup --state seen.koel --checkpoint 0.05");
    let (first, all) = (numbered(0..5_000), numbered(0..6_000));
    going.feed(&first);
    assert_same(&going.next(first.len()), &first, "what is printed");
    wait_until("a checkpoint", || place.known("seen.koel", &first) == first);
    assert!(place.read("seen.koel") != before);
    going.signal(Signal::KILL);
    going.wait();
    let rest = place.koel_on("dedup --state seen.koel", &all);
    assert_same(&rest.stdout, &numbered(5_000..6_000), "the rest");
}
