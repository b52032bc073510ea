//! SIGINT, SIGTERM and SIGHUP: exactly the lines printed are saved, whether they are read or not,
//! and the process ends as the signal would have ended it.

use crate::common::*;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

#[test]
fn a_signal_saves_what_was_printed() {
    let (half, all) = (numbered(0..1_000), numbered(0..2_000));
    for (signal, name) in
        [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM"), (Signal::HUP, "SIGHUP")]
    {
        let place = Place::new();
        place.make_state("seen.koel");
        let mut going = place.start("dedup --json --state seen.koel");
        // Lines are written as they arrive, without waiting for more.
        going.passes(&half);
        going.feed(b"the beginning of a line");
        let rest = collect(going.stdout.take().unwrap());
        let stderr = going.end_by(signal);
        assert!(stderr.starts_with(r#"{"lines":1000,"new":1000,"repeated":0,"#), "{stderr}");
        assert!(stderr.contains(&format!(r#""end":"{name}""#)), "{stderr}");
        assert!(rest.join().unwrap().is_empty());
        assert_same(&place.known("seen.koel", &all), &half, "what is saved");
        place.row("dedup --state seen.koel", &all, 0, numbered(1_000..2_000), "");
        assert_eq!(place.names(), ["seen.koel"]);
    }
}

/// The number of bytes read from a stalled run: more than a chunk, so that one has been written.
const READ: usize = 1_200_000;

/// Starts a run, reads the beginning of its output, and waits until it is blocked on the rest.
fn stalled(place: &Place, threads: u32, options: &str) -> (Going, Vec<u8>) {
    // More chunks than circulate in a run, plus those read here.
    let all = padded(0..(threads + 7) * 16_384);
    place.write("lines", &all);
    place.make_state("seen.koel");
    let options = format!("--threads {threads} {options}");
    let mut going = place.start(&format!("dedup --state seen.koel {options} lines"));
    assert!(all.starts_with(&going.next(READ)));
    going.is_idle();
    (going, all)
}

#[test]
fn what_is_on_its_way_out_gets_out_and_is_saved() {
    for &threads in rounds(&[2][..], &[1, 2, 8]) {
        let place = Place::new();
        let (mut going, all) = stalled(&place, threads, "");
        // There is still unread output when the signal comes.
        going.signal(Signal::TERM);
        let reader = collect(going.stdout.take().unwrap());
        let (status, stderr) = going.wait();
        let printed = [&all[..READ], &reader.join().unwrap()].concat();
        assert!(all.starts_with(&printed) && printed.len() > READ + (256 << 10));
        // On a busy machine, the run may have ended before it knew of the signal.
        let is_whole = status.success() && printed == all;
        assert!(is_whole || status.signal() == Some(Signal::TERM.as_raw()), "{status}: {stderr}");
        assert_same(&place.known("seen.koel", &all), &printed, "what is saved");
    }
}

#[test]
fn a_signal_or_a_kill_ends_a_stalled_run_and_no_line_is_lost() {
    let all_cases = [
        (2, "--checkpoint 0.02", Signal::INT),
        (1, "--checkpoint 0.02", Signal::KILL),
        (8, "", Signal::INT),
        (1, "", Signal::INT),
        (8, "--checkpoint 0.02", Signal::KILL),
    ];
    for &(threads, options, signal) in &all_cases[..rounds(2, 5)] {
        let place = Place::new();
        let (mut going, all) = stalled(&place, threads, options);
        // The time of several checkpoints. They wait for what is on its way out.
        thread::sleep(Duration::from_millis(rounds(100, 300)));
        let stdout = going.stdout.take().unwrap();
        going.end_by(signal);
        // The pipe may end in an incomplete line.
        let out = [&all[..READ], &collect(stdout).join().unwrap()].concat();
        assert!(all.starts_with(&out) && out.len() < all.len());
        let whole = &out[..out.iter().rposition(|byte| *byte == b'\n').unwrap() + 1];
        assert!(is_subset(&place.known("seen.koel", &all), whole), "a line is saved but not out");
        let rest = place.koel_on("dedup --state seen.koel", &all);
        assert!(set(&[whole, &rest.stdout].concat()) == set(&all), "a line is missing");
    }
}

#[test]
fn a_signal_ends_a_run_whose_input_has_no_end() {
    let place = Place::new();
    place.make_state("seen.koel");
    let with_a_state = "dedup -s seen.koel,add seen.koel,forget seen.koel,query -c seen.koel";
    let words = format!("{{{with_a_state},dedup,dedup -c,dedup --lossless}} --zero /dev/zero");
    for words in each(&words) {
        let going = place.start(&words);
        going.is_watchful();
        going.end_by(Signal::TERM);
    }
}

#[test]
fn lines_go_on_after_a_checkpoint() {
    let place = Place::new();
    place.make_state("seen.koel");
    let mut last = place.read("seen.koel");
    let mut going = place.start("dedup --state seen.koel --checkpoint 0.02");
    for round in 0..5 {
        let lines = numbered(100 * round..100 * round + 100);
        going.passes(&lines);
        wait_until("a checkpoint", || place.read("seen.koel") != last);
        last = place.read("seen.koel");
        assert_same(&place.known("seen.koel", &lines), &lines, "what is saved");
    }
    assert_eq!(going.end(), "");
    // Without checkpoints, a state is saved at the end only.
    let mut going = place.start("dedup --state seen.koel --checkpoint 0");
    going.passes(b"a\n");
    thread::sleep(Duration::from_millis(200));
    assert!(place.read("seen.koel") == last);
    going.end();
    assert!(place.read("seen.koel") != last);
}

/// Starts a run whose state cannot be saved, because its folder has been moved. Standard error goes
/// to `log`.
fn with_a_state_in_a_folder(place: &Place, options: &str) -> Going {
    fs::create_dir(place.path("folder")).unwrap();
    place.make_state("folder/seen.koel");
    let words = format!("dedup --state folder/seen.koel {options}");
    let mut command = place.command(&words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(fs::File::create(place.path("log")).unwrap());
    let mut going = Going::start_as_it_is(&mut command);
    going.passes(b"a\n");
    going.is_idle();
    fs::rename(place.path("folder"), place.path("elsewhere")).unwrap();
    going
}

#[test]
fn a_checkpoint_that_fails_is_reported_and_tried_again() {
    let place = Place::new();
    let mut going = with_a_state_in_a_folder(&place, "--json --checkpoint 0.02");
    let log = || String::from_utf8(place.read("log")).unwrap();
    going.passes(b"b\n");
    wait_until("a checkpoint", || log().contains("(will be tried again)\n"));
    fs::rename(place.path("elsewhere"), place.path("folder")).unwrap();
    wait_until("another one", || place.known("folder/seen.koel", b"a\nb\n") == b"a\nb\n");
    going.end();
    assert!(log().lines().last().unwrap().starts_with(r#"{"lines":2,"new":2,"#), "{}", log());
}

#[test]
fn a_state_that_cannot_be_saved_is_reported_instead_of_the_signal() {
    let place = Place::new();
    let going = with_a_state_in_a_folder(&place, "");
    going.signal(Signal::INT);
    let status = going.wait().0;
    let log = String::from_utf8(place.read("log")).unwrap();
    assert_eq!((status.code(), status.signal()), (Some(2), None), "{log}");
    let last = log.lines().last().unwrap();
    assert!(last.starts_with("koel: folder/seen.koel: "), "{log}");
    assert!(place.known("elsewhere/seen.koel", b"a\n").is_empty());
    let again = "; 1 line could not be saved as seen, so the next run writes them again";
    assert!(last.ends_with(again), "{log}");
    assert_eq!(place.koel_on("dedup --state elsewhere/seen.koel", b"a\nb\n").stdout, b"a\nb\n");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    // After the first signal, a stalled run waits for a second, saves and reports. If this process
    // was not scheduled for that long, the test is repeated.
    for _ in 0..10 {
        let place = Place::new();
        let (mut going, all) = stalled(&place, 2, "");
        going.signal(Signal::INT);
        while going.child.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(50));
            going.signal(Signal::TERM);
        }
        let (status, stderr) = going.wait();
        if status.signal() == Some(Signal::TERM.as_raw()) {
            assert_eq!(stderr, "koel: ended immediately: nothing more was saved\n");
            assert!(place.known("seen.koel", &all).is_empty(), "the state is as it was");
            return;
        }
    }
    panic!("no second signal came in time");
}

#[test]
fn other_commands_save_what_they_did_so_far() {
    let place = Place::new();
    place.make_state("seen.koel");
    for (command, lines) in [("add", "a\nb\n"), ("forget", "b\n")] {
        let mut going = place.start(&format!("{command} --json seen.koel"));
        going.feed(lines.as_bytes());
        going.is_watchful();
        // An idle process has read the lines.
        going.is_idle();
        let summary: Value = serde_json::from_str(&going.end_by(Signal::INT)).unwrap();
        let known = lines_of(&place.known("seen.koel", b"a\nb\n")).len();
        has(&summary, json!({ "end": "SIGINT", "known": known }));
    }
}

/// As `timeout` sends it.
#[test]
fn a_signal_that_comes_twice_in_a_moment_ends_the_run_in_order() {
    for pause in [0, 100, 1_000, 10_000] {
        let place = Place::new();
        let mut going = place.start("dedup -s seen.koel -o out");
        going.feed(b"a\nb\n");
        wait_until("lines", || fs::read(place.path("out")).is_ok_and(|out| out == b"a\nb\n"));
        for _ in 0..2 {
            going.signal(Signal::TERM);
            thread::sleep(Duration::from_micros(pause));
        }
        let (status, stderr) = going.wait();
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{stderr}");
        assert_eq!(place.known("seen.koel", b"a\nb\nc\n"), b"a\nb\n");
        assert_eq!(place.names(), ["out", "seen.koel"]);
    }
}

#[test]
fn a_state_is_saved_although_an_error_cannot_be_printed() {
    let place = Place::new();
    place.write("lines", "a\nb\n");
    let (_nobody_reads, mut errors) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&errors, true).unwrap();
    while errors.write(&[b'x'; 512]).is_ok() {}
    while errors.write(b"x").is_ok() {}
    rustix::io::ioctl_fionbio(&errors, false).unwrap();
    let mut command = place.command("dedup -q --checkpoint 0.1 --state seen.koel lines missing");
    let mut going = Going::start_as_it_is(command.stdout(Stdio::piped()).stderr(errors));
    assert_eq!(going.next(4), b"a\nb\n");
    // Longer than the time to a checkpoint, which must not block either.
    thread::sleep(Duration::from_millis(300));
    going.signal(Signal::TERM);
    wait_until("a save", || place.known("seen.koel", b"a\nb\n") == b"a\nb\n");
}

#[test]
fn a_signal_that_was_ignored_before_stays_so() {
    let place = Place::new();
    let mut command = Command::new("sh");
    let koel = env!("CARGO_BIN_EXE_koel");
    command.args(["-c", "trap '' HUP; exec \"$0\" dedup --json", koel]);
    let mut going = Going::start(command.current_dir(place.path("")));
    going.passes(b"a\n");
    going.signal(Signal::HUP);
    going.passes(b"b\n");
    let stderr = going.end();
    assert!(stderr.starts_with(r#"{"lines":2,"new":2,"#), "{stderr}");
}

#[test]
fn a_signal_in_the_second_pass_says_so_and_leaves_the_output_as_it_was() {
    let place = Place::new();
    // The second pass takes a while.
    place.write("lines", padded(0..rounds(400_000, 1_000_000)).repeat(2));
    place.write("out", "before\n");
    let temporary = place.path("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut command = place.command("dedup --lossless lines -o out");
    let going = Going::start(command.env("TMPDIR", &temporary));
    // Its two files are joined by those of the parts.
    let files = format!("/proc/{}/fd", going.child.id());
    let is_temporary =
        |file: &fs::DirEntry| fs::read_link(file.path()).is_ok_and(|to| to.starts_with(&temporary));
    wait_until("the second pass", || {
        let files = fs::read_dir(&files).into_iter().flatten().flatten();
        files.filter(is_temporary).count() > 2
    });
    let said = "koel: ended in the second pass: lines dropped by mistake may be missing\n";
    assert_eq!(going.end_by(Signal::INT), said);
    assert_eq!(place.read("out"), b"before\n");
    assert_eq!(place.names(), ["lines", "out", "temporary"]);
    // What is written there may wait for its reader.
    let mut going = place.start("dedup --lossless --repeated lines");
    going.next(1);
    assert_eq!(going.end_by(Signal::INT), said);
}
