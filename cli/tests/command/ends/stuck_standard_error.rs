//! A blocked standard error does not keep a signal from being handled: what was written is saved.

use std::fs;
use std::io::{Read, Write, pipe};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const KOEL: &str = env!("CARGO_BIN_EXE_koel");

#[test]
fn a_state_is_saved_although_an_error_cannot_be_printed() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    fs::write(folder.join("lines"), "a\nb\n").unwrap();
    let (_nobody_reads, mut errors) = pipe().unwrap();
    rustix::io::ioctl_fionbio(&errors, true).unwrap();
    while errors.write(&[b'x'; 512]).is_ok() {}
    while errors.write(b"x").is_ok() {}
    rustix::io::ioctl_fionbio(&errors, false).unwrap();
    let mut koel = Command::new(KOEL)
        .args(["dedup", "-q", "--checkpoint", "0.1", "--state", "state", "lines", "missing"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .unwrap();
    let mut lines = [0; 4];
    koel.stdout.take().unwrap().read_exact(&mut lines).unwrap();
    assert_eq!(&lines, b"a\nb\n");

    // Longer than the time to a checkpoint, which must not block either.
    thread::sleep(Duration::from_millis(300));
    let process = rustix::process::Pid::from_child(&koel);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    let is_known = || {
        let query = ["query", "-q", "--count", "state", "lines"];
        let said = Command::new(KOEL).args(query).current_dir(folder).output().unwrap();
        said.stdout == b"2\n"
    };
    let start = Instant::now();
    while !is_known() {
        assert!(start.elapsed() < Duration::from_secs(20), "it was not saved");
        thread::sleep(Duration::from_millis(20));
    }
    koel.kill().unwrap();
    koel.wait().unwrap();
}
