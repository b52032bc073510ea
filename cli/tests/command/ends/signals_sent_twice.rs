//! A signal sent twice within a moment, as by `timeout`, ends a run in order: what was written is
//! saved.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const KOEL: &str = env!("CARGO_BIN_EXE_koel");

#[test]
fn a_signal_that_comes_twice_in_a_moment_ends_the_run_in_order() {
    for pause in [0, 100, 1_000, 10_000] {
        let folder = tempfile::tempdir().unwrap();
        let (state, output) = (folder.path().join("seen.koel"), folder.path().join("new.txt"));
        let mut koel = Command::new(KOEL)
            .args(["dedup", "--quiet", "--checkpoint", "0", "--state"])
            .arg(&state)
            .arg("--output")
            .arg(&output)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = koel.stdin.take().unwrap();
        input.write_all(b"a\nb\n").unwrap();
        while fs::read(&output).unwrap_or_default() != b"a\nb\n" {
            thread::sleep(Duration::from_millis(5));
        }
        let process = rustix::process::Pid::from_child(&koel);
        for _ in 0..2 {
            rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
            thread::sleep(Duration::from_micros(pause));
        }
        assert_eq!(koel.wait().unwrap().signal(), Some(15));
        drop(input);
        fs::write(folder.path().join("again.txt"), "a\nb\nc\n").unwrap();
        let again = Command::new(KOEL)
            .args(["dedup", "--quiet", "--state"])
            .arg(&state)
            .arg(folder.path().join("again.txt"))
            .output()
            .unwrap();
        assert_eq!(again.stdout, b"c\n");
    }
}
